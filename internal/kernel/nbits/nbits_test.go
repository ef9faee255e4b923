package nbits_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/nbits"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// operands are weights as a source has them, and as numbers.
type operands struct {
	ref            ref.Blocked
	b, scale, zero []byte
}

// draw makes the operands of a product, and sets its source.
func draw(r *rand.Rand, p *nbits.Product) *operands {
	blocks := (p.K + p.Block - 1) / p.Block
	s := &p.Source
	o := &operands{ref: ref.Blocked{N: p.N, K: p.K, Block: p.Block, Q: make([]int, p.N*p.K), Zero: make([]float64, p.N*blocks), Scale: make([]float32, p.N*blocks)}}
	shift := 0
	if s.Signed {
		shift = 1 << (p.Bits - 1)
	}
	at := func(k, col, depth int) int {
		if s.Rows {
			return col*depth + k
		}
		return k*p.N + col
	}
	set := func(to []byte, i, q int) { // q counts from 0
		bits := byte(q) ^ byte(shift)
		to[i*p.Bits/8] |= bits << (i * p.Bits % 8)
	}
	o.b = make([]byte, (p.N*s.Depth*p.Bits+7)/8)
	for col := range p.N {
		for k := range s.Depth {
			q := r.IntN(1 << p.Bits)
			set(o.b, at(k, col, s.Depth), q)
			if k < p.K {
				o.ref.Q[col*p.K+k] = q
			}
		}
	}
	o.scale = make([]byte, p.N*blocks*s.Scale.Size())
	if p.Zeros == nbits.FloatZeros {
		o.zero = make([]byte, p.N*blocks*s.Zero.Size())
	} else {
		o.zero = make([]byte, (p.N*blocks*p.Bits+7)/8)
	}
	for col := range p.N {
		for k := range blocks {
			i, from := col*blocks+k, at(k, col, blocks)
			o.ref.Scale[i] = putFloat(o.scale, s.Scale, from, r.Float32()-0.25)
			switch p.Zeros {
			case nbits.OneZero:
				o.ref.Zero[i] = float64(p.Middle)
			case nbits.ByteZeros:
				z := r.IntN(1 << p.Bits)
				set(o.zero, from, z)
				o.ref.Zero[i] = float64(z)
			case nbits.FloatZeros:
				o.ref.Zero[i] = float64(putFloat(o.zero, s.Zero, from, float32(r.IntN(1<<p.Bits))+r.Float32()))
			}
		}
	}
	return o
}

// putFloat stores a number and returns it as it is stored.
func putFloat(to []byte, dt dtype.DType, i int, f float32) float32 {
	if dt == dtype.F32 {
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(f))
		return f
	}
	h := kerneltest.ToHalf(dt, f)
	binary.LittleEndian.PutUint16(to[2*i:], h)
	return kerneltest.FromHalf(dt, h)
}

// packed returns the operands as the product reads them.
func packed(v *kernel.Variant, s *kerneltest.Space, p *nbits.Product, o *operands) (b, scale, zero []byte) {
	if !p.Packed {
		return kerneltest.In(s, "b", o.b), kerneltest.In(s, "scale", o.scale), kerneltest.In(s, "zero", o.zero)
	}
	b, scale, zero = make([]byte, p.BBytes(v)), kerneltest.AsBytes(make([]float32, p.ScaleBytes(v)/4)), kerneltest.AsBytes(make([]float32, (p.ZeroBytes(v)+3)/4))
	for i := range p.Panels() {
		p.PackB(i, b, o.b)
	}
	p.PackScales(scale, o.scale)
	if p.Zeros != nbits.OneZero {
		p.PackZeros(zero, o.zero)
	}
	return kerneltest.In(s, "b", b), kerneltest.AsBytes(kerneltest.In(s, "scale", kernel.View[float32](scale))), kerneltest.AsBytes(kerneltest.In(s, "zero", kernel.View[float32](zero)))
}

// check computes a product, and holds it to the reference.
func check(t *testing.T, v *kernel.Variant, r *rand.Rand, p nbits.Product) {
	t.Helper()
	s := kerneltest.NewSpace(t)
	o := draw(r, &p)
	a := kerneltest.In(s, "a", kerneltest.Uniform(r, p.M*p.K))
	b, scale, zero := packed(v, s, &p, o)
	bias, residual := kerneltest.Uniform(r, p.N), kerneltest.Uniform(r, p.M*p.N)
	c := kerneltest.Out[float32](s, "c", p.M*p.N)
	p.Prepare(v)
	scratch := kerneltest.OutAligned[byte](s, "scratch", p.ScratchBytes())
	kerneltest.Backwards(p.Tiles(), func(tile int) {
		kerneltest.Poison(kernel.View[float32](scratch))
		p.Tile(tile, scratch, &nbits.Args{C: c, A: a, B: b, Scale: scale, Zero: zero, Bias: bias, Residual: residual})
	})
	s.Check()
	plain := p.Bias == gemm.NoBias && !p.Residual
	if p.Ints && plain {
		kerneltest.WantEqual(t, bits(c), bits(o.ref.TimesInts(p.M, a)))
		return
	}
	want, size := o.ref.Times(p.M, a)
	if p.Ints {
		want = kerneltest.F64s(o.ref.TimesInts(p.M, a))
	}
	// Sums of n numbers in any order are off by n-1 roundings of their
	// magnitudes at most; here zeros, scales and addends round as well.
	eps := float64(p.K+8) / (1 << 24)
	for i := range want {
		if p.Bias == gemm.BiasCol {
			want[i] += float64(bias[i%p.N])
			size[i] += math.Abs(float64(bias[i%p.N]))
		}
		if p.Residual {
			want[i] += float64(residual[i])
			size[i] += math.Abs(float64(residual[i]))
		}
		if p.Act.Op == kernel.Relu {
			want[i] = max(want[i], 0)
		}
		if diff := math.Abs(float64(c[i]) - want[i]); !(diff <= eps*size[i]) {
			t.Fatalf("row %d column %d: got %g, want %g within %g", i/p.N, i%p.N, c[i], want[i], eps*size[i])
		}
	}
}

func bits(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, f := range x {
		out[i] = math.Float32bits(f)
	}
	return out
}

// TestProducts draws products of every form in which weights are stored.
func TestProducts(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		r := kerneltest.NewRand(1)
		halves := []dtype.DType{dtype.F32, dtype.F16, dtype.BF16}
		for n := range 400 {
			p := nbits.Product{M: 1 + r.IntN(9), N: 1 + r.IntN(70), K: 1 + r.IntN(150), Bits: 2 << r.IntN(3), Block: 16 << r.IntN(4),
				Ints: r.IntN(2) == 0, Zeros: nbits.ZeroKind(r.IntN(3)), Packed: r.IntN(3) > 0}
			if n%10 == 0 {
				p.M = 10 + r.IntN(150)
			}
			if n%16 == 0 {
				p.K, p.Block = 1+r.IntN(700), 48
			}
			if p.Ints {
				p.Zeros %= 2
			}
			blocks := (p.K + p.Block - 1) / p.Block
			p.Middle = r.IntN(1 << p.Bits)
			p.Source = nbits.Source{Rows: r.IntN(2) == 0, Depth: p.K + r.IntN(blocks*p.Block-p.K+1), Signed: r.IntN(2) == 0, Scale: halves[r.IntN(3)], Zero: halves[r.IntN(3)]}
			if r.IntN(3) == 0 {
				p.Source.Depth = blocks * p.Block
			}
			if r.IntN(3) == 0 {
				p.Bias = gemm.BiasCol
			}
			if p.Residual = r.IntN(3) == 0; p.Residual && r.IntN(2) == 0 {
				p.Act.Op = kernel.Relu
			}
			t.Run(fmt.Sprintf("%d/%dx%dx%d/%d,%d", n, p.M, p.N, p.K, p.Bits, p.Block), func(t *testing.T) { check(t, v, r, p) })
		}
	})
}

// TestBlocksOfA quantises blocks that are zero, tiny, huge or not finite.
func TestBlocksOfA(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		const block, n = 16, 3
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		rows := [][block]float32{{}, {3: 1e-40}, {0: 3e38, 5: -3e38}, {2: 1e-30, 9: -2.5e-30}, {1: inf}, {15: nan}, {7: -inf, 8: 1}}
		p := nbits.Product{M: len(rows), N: n, K: block, Bits: 4, Block: block, Ints: true, Middle: 8, Packed: true}
		p.Source = nbits.Source{Rows: true, Depth: block, Scale: dtype.F32}
		o := draw(kerneltest.NewRand(3), &p)
		s := kerneltest.NewSpace(t)
		var a []float32
		for i := range rows {
			a = append(a, rows[i][:]...)
		}
		b, scale, zero := packed(v, s, &p, o)
		c := kerneltest.Out[float32](s, "c", p.M*n)
		p.Prepare(v)
		scratch := kerneltest.OutAligned[byte](s, "scratch", p.ScratchBytes())
		args := nbits.Args{C: c, A: a, B: b, Scale: scale, Zero: zero}
		for tile := range p.Tiles() {
			p.Tile(tile, scratch, &args)
		}
		s.Check()
		for i, want := range o.ref.TimesInts(p.M, a) {
			if got := c[i]; math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
				t.Errorf("row %d column %d: got %g, want %g", i/n, i%n, got, want)
			}
		}
		if allocs := testing.AllocsPerRun(10, func() { p.Tile(0, scratch, &args) }); allocs != 0 {
			t.Errorf("got %v allocations per tile, want 0", allocs)
		}
	})
}

// TestMostScratch holds the bound of the scratch to products of fewer rows.
func TestMostScratch(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		for _, p := range []nbits.Product{{M: 300, N: 100, K: 1024, Bits: 4, Block: 32}, {M: 300, N: 40, K: 20001, Bits: 8, Block: 64, Ints: true}, {M: 7, N: 40, K: 33, Bits: 2, Block: 16}} {
			most := p.MostScratchBytes(v)
			for m := 1; m <= p.M; m++ {
				q := p
				q.M = m
				if q.Prepare(v); q.ScratchBytes() > most {
					t.Fatalf("%d rows of %dx%d: got %d bytes of scratch, want at most %d", m, p.N, p.K, q.ScratchBytes(), most)
				}
			}
		}
	})
}
