package gemm_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func TestCompressedFloats(t *testing.T) { kerneltest.EachVariant(t, testCompressedFloats) }

// testCompressedFloats takes floats apart and puts them together, bit by bit
// the same.
func testCompressedFloats(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(30)
	most := gemm.Exponents{120, 121, 122, 123, 124, 119, 118, 117}
	for _, kind := range []struct {
		name string
		bits func(i int) uint32
	}{
		{"common exponents", func(int) uint32 { return r.Uint32()&0x807fffff | uint32(most[r.IntN(8)])<<23 }},
		{"any bits", func(int) uint32 { return r.Uint32() }},
		{"one in four aside", func(int) uint32 { return r.Uint32()&0x81ffffff | 0x3c000000 }},
		{"all aside", func(i int) uint32 { return uint32(i)<<23 | uint32(i) }},
		{"special", func(int) uint32 {
			return []uint32{0, 1 << 31, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00001, 0xffbfffff, 0x7f800001, 0x3f800000}[r.IntN(10)]
		}},
	} {
		for pairs := 1; pairs <= 40; pairs++ { // groups begin in between
			x := make([]uint32, pairs*gemm.PanelWidth(v))
			for i := range x {
				x[i] = kind.bits(i)
			}
			compressCase(t, v, fmt.Sprintf("%s, %d", kind.name, len(x)), most, x)
		}
	}
	// One exponent aside, and all but one, at every place of a group and a
	// little more.
	n := (34*8 + gemm.PanelWidth(v)) / gemm.PanelWidth(v) * gemm.PanelWidth(v)
	for at := range n {
		one, others := make([]uint32, n), make([]uint32, n)
		for i := range one {
			one[i], others[i] = r.Uint32()&0x807fffff|uint32(most[i%8])<<23, r.Uint32()&0x807fffff|uint32(i%100)<<23
		}
		one[at], others[at] = others[at], one[at]
		compressCase(t, v, fmt.Sprint("one aside at ", at), most, one)
		compressCase(t, v, fmt.Sprint("one with a code at ", at), most, others)
	}
	t.Run("matrices", kerneltest.With(v, testCompressedMatrices))
	t.Run("damaged", kerneltest.With(v, testCompressedDamage))
}

// compressCase compresses numbers by their bits, between guards, at addresses
// that vary.
func compressCase(t *testing.T, v *kernel.Variant, name string, most gemm.Exponents, bits []uint32) {
	t.Helper()
	aside := 0
	x := make([]float32, len(bits))
	for i, b := range bits {
		x[i] = math.Float32frombits(b)
		if !bytes.Contains(most[:], []byte{byte(b >> 23)}) {
			aside++
		}
	}
	s := kerneltest.NewSpace(t)
	source := kerneltest.In(s, "x", x)
	dst := kerneltest.Out[float32](s, "expanded", len(x))
	data := kerneltest.Out[byte](s, "compressed", gemm.CompressedBytes(v, len(x), aside))
	gemm.CompressFloats(v, data, most, aside, source)
	gemm.ExpandFloats(v, dst, kerneltest.In(s, "copy", data), most, aside)
	s.Check()
	wantBits(t, name, dst, x)
}

func wantBits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if g := math.Float32bits(got[i]); g != math.Float32bits(w) {
			t.Fatalf("%s: element %d: got bits %#08x, want %#08x", name, i, g, math.Float32bits(w))
		}
	}
}

// testCompressedMatrices compresses right matrices. They come back as they
// were, and products are those with panels that are not compressed.
func testCompressedMatrices(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(31)
	bell := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64() * 0.02)
		}
		return x
	}
	noise := func(n int) []float32 {
		x := bell(n)
		for i := range x {
			if i > n/2 {
				x[i] = math.Float32frombits(r.Uint32() &^ (1 << 30)) // small ones, of all exponents
			}
		}
		return x
	}
	for n := 1; n <= 40; n++ {
		matrixCase(t, v, r, n, 13+n%3, bell)
		matrixCase(t, v, r, 11+n%30, n, bell)
	}
	for _, size := range [][2]int{{130, 300}, {64, 1024}, {33, 257}, {300, 512}, {16, 700}} {
		matrixCase(t, v, r, size[0], size[1], bell)
		matrixCase(t, v, r, size[0], size[1], noise)
	}
	// Less than 28 bits for what weights look like, and no more than the panels
	// for noise.
	for _, c := range []struct {
		name       string
		fill       func(n int) []float32
		low, limit float64
	}{
		{"bell", bell, 27, 28},
		{"noise", func(n int) []float32 { x := noise(2 * n); return x[n+1:] }, 31, 32.2},
	} {
		z := gemm.CompressedB{N: 512, K: 1024, Alpha: 1}
		z.Prepare(v)
		packed := compress(&z, append(c.fill(512*1024), 0), make([]float32, z.ScratchFloats()))
		if bits := float64(8*len(packed)) / (512 * 1024); bits < c.low || bits > c.limit {
			t.Errorf("%s: got %.2f bits a number, want %v to %v", c.name, bits, c.low, c.limit)
		}
	}
}

func compress(z *gemm.CompressedB, b, scratch []float32) []byte {
	index := make([]byte, z.IndexBytes())
	for part := range z.Parts() {
		kerneltest.Poison(scratch)
		z.Measure(part, index, b, scratch)
	}
	words := make([]uint64, z.Place(index)/8)
	packed := kerneltest.AsBytes(words)
	copy(packed, index)
	kerneltest.Backwards(z.Parts(), func(part int) {
		kerneltest.Poison(scratch)
		z.Pack(part, packed, b, scratch)
	})
	return packed
}

func matrixCase(t *testing.T, v *kernel.Variant, r *rand.Rand, n, k int, fill func(n int) []float32) {
	t.Helper()
	for _, g := range []gemm.Gemm{{Alpha: 1}, {Alpha: 1, TransB: true}, {Alpha: 0.3}, {Alpha: 0.3, TransB: true}} {
		g.N, g.K, g.PackedB = n, k, true
		name := fmt.Sprintf("%dx%d alpha %v transB %v", k, n, g.Alpha, g.TransB)
		s := kerneltest.NewSpace(t)
		b := kerneltest.In(s, "b", fill(n*k))
		z := gemm.CompressedB{N: n, K: k, TransB: g.TransB, Alpha: g.Alpha}
		z.Prepare(v)
		scratch := kerneltest.Out[float32](s, "scratch", z.ScratchFloats())
		packed := compress(&z, b, scratch)
		if g.Alpha == 1 {
			back := kerneltest.Out[float32](s, "unpacked", n*k)
			kerneltest.Backwards(z.Parts(), func(part int) { z.Unpack(part, back, packed, scratch) })
			wantBits(t, name, back, b)
		}
		panels := kerneltest.Out[float32](s, "panels", g.PackedBFloats(v))
		plain := g
		plain.PackB(v, panels, b)
		compressed := kerneltest.In(s, "compressed", floatsOf(packed))
		for _, m := range []int{1, 3, 64, 140} {
			a := kerneltest.In(s, "a", kerneltest.Uniform(r, m*k))
			want, got := kerneltest.Out[float32](s, "want", m*n), kerneltest.Out[float32](s, "got", m*n)
			p := g
			p.M = m
			runGemm(v, s, &p, &gemm.Args{C: want, A: a, B: panels})
			p = g
			p.M, p.CompressedB = m, true
			runGemm(v, s, &p, &gemm.Args{C: got, A: a, B: compressed})
			wantBits(t, fmt.Sprint(name, " rows ", m), got, want)
		}
		s.Check()
	}
}

// floatsOf reads bytes as numbers, as the operands of a product are.
func floatsOf(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	copy(kerneltest.AsBytes(x), data)
	return x
}

// testCompressedDamage hands over bytes that are not those of the matrix.
func testCompressedDamage(t *testing.T, v *kernel.Variant) {
	z := gemm.CompressedB{N: 64, K: 64, Alpha: 1}
	z.Prepare(v)
	scratch := make([]float32, z.ScratchFloats())
	packed := compress(&z, make([]float32, 64*64), scratch)
	for _, n := range []int{0, 8, z.IndexBytes(), len(packed) - 64} {
		g := gemm.Gemm{M: 1, N: 64, K: 64, Alpha: 1, PackedB: true, CompressedB: true}
		wantBug(t, "compressed panels", func() {
			runGemm(v, kerneltest.NewSpace(t), &g, &gemm.Args{C: make([]float32, 64), A: make([]float32, 64), B: floatsOf(packed[:n])})
		})
	}
	x := make([]float32, gemm.PanelWidth(v))
	data := make([]byte, gemm.CompressedBytes(v, len(x), 0))
	wantBug(t, "compressed floats", func() { gemm.ExpandFloats(v, x, data[:len(data)-1], gemm.Exponents{}, 0) })
	wantBug(t, "compressed floats", func() { gemm.ExpandFloats(v, x, data, gemm.Exponents{}, 100) })
	wantBug(t, "compressed floats", func() { gemm.CompressFloats(v, data, gemm.Exponents{1}, 0, append([]float32{1}, x[1:]...)) })
	wantBug(t, "compressed floats", func() { gemm.ExpandFloats(v, x[1:], data, gemm.Exponents{}, 0) })
}

// wantBug calls f, which must panic with a text that says whose fault it is.
func wantBug(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := recover(); !strings.HasPrefix(fmt.Sprint(r), "BUG: kernel: "+what) {
			t.Errorf("got panic %v, want a bug of %s", r, what)
		}
	}()
	f()
}
