package kernels_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/cuda/internal/ptx"
	"github.com/tenure-go/tenure/dtype"
)

const draws = 60

func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	vectors := 0
	for _, element := range []int{1, 2, 4, 8} {
		for i := range draws {
			size := sizes(r)
			p, end := layout(r, size, element, 64, false)
			pattern := binary.LittleEndian.AppendUint64(nil, r.Uint64())[:element]
			h := newHeap(end + 64)
			want := slices.Clone(h.data)
			each(size, []place{p}, func(at []int) { copy(want[at[0]:], pattern) })
			l, err := kernels.Fill(p.operand(), size, pattern)
			if err != nil {
				t.Fatal(err)
			}
			run(t, h, l, uint64(i))
			compare(t, fmt.Sprint("fill ", element, size, p), h, want)
			if l != nil && l.Kernel.Vector {
				vectors++
			}
		}
	}
	if vectors < draws/4 {
		t.Errorf("got %d launches of the contiguous kernel, want more", vectors)
	}
}

func TestCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	vectors := 0
	for _, element := range []int{1, 2, 4, 8, 16} {
		for i := range draws {
			size := sizes(r)
			src, end := layout(r, size, element, 64, true)
			dst, end := layout(r, size, element, end+64, false)
			h := newHeap(end + 64)
			each(size, []place{src}, func(at []int) {
				b := make([]byte, element)
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				h.put(at[0], b)
			})
			want := slices.Clone(h.data)
			each(size, []place{dst, src}, func(at []int) { copy(want[at[0]:][:element], want[at[1]:]) })
			l, err := kernels.Copy(dst.operand(), src.operand(), size, element)
			if err != nil {
				t.Fatal(err)
			}
			run(t, h, l, uint64(i))
			compare(t, fmt.Sprint("copy ", element, size, dst, src), h, want)
			if l != nil && l.Kernel.Vector {
				vectors++
			}
		}
	}
	if vectors < draws/6 {
		t.Errorf("got %d launches of the contiguous kernel, want more", vectors)
	}
}

// TestLarge has more elements than a grid has threads, and offsets of more than
// 32 bits.
func TestLarge(t *testing.T) {
	h := newHeap(64)
	h.put(0, []byte{1, 2, 3, 4})
	far := int64(1) << 33
	src := kernels.Operand{Address: base - uint64(far)*2, Strides: []int64{far, 1}} // the row 2 alone is memory
	l, err := kernels.Copy(kernels.Operand{Address: base + 32, Strides: []int64{2, 1}}, kernels.Operand{Address: src.Address + uint64(far)*2, Strides: []int64{-far, 1}}, []int64{1, 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	run(t, h, l, 0)
	if h.data[32] != 1 || h.data[33] != 2 {
		t.Errorf("got %v", h.data[32:34])
	}
	one := []byte{7, 0, 0, 0, 0, 0, 0, 0}
	fill := kernels.Table()[slices.IndexFunc(kernels.Table(), func(k *kernels.Kernel) bool { return k.Name == "fill_1" })]
	h = newHeap(1000)
	strided, err := kernels.Fill(kernels.Operand{Address: base + 1, Strides: []int64{30, 3}}, []int64{9, 9}, one[:1])
	if err != nil {
		t.Fatal(err)
	}
	run(t, h, &kernels.Launch{Kernel: fill, Blocks: 1, Args: strided.Args}, 1)
	each([]int64{9, 9}, []place{{1, []int64{30, 3}}}, func(at []int) {
		if h.data[at[0]] != 7 {
			t.Errorf("offset %d: got %d", at[0], h.data[at[0]])
		}
	})
	if b := fill.Blocks(1 << 40); b != 1<<16 {
		t.Errorf("got %d blocks, want 65536", b)
	}
}

func add(dt dtype.DType, a, b uint64) uint64 {
	switch dt {
	case dtype.F32:
		return uint64(math.Float32bits(math.Float32frombits(uint32(a)) + math.Float32frombits(uint32(b))))
	case dtype.F64:
		return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	case dtype.F16:
		return uint64(dtype.Float16FromFloat32(dtype.Float16(a).Float32() + dtype.Float16(b).Float32()))
	case dtype.BF16:
		return uint64(dtype.BFloat16FromFloat32(dtype.BFloat16(a).Float32() + dtype.BFloat16(b).Float32()))
	}
	return a + b
}

func TestAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I32, dtype.I64} {
		n := dt.Size()
		for i := range draws {
			size := sizes(r)
			a, end := layout(r, size, n, 64, false)
			dst := a // in place
			b, end := layout(r, size, n, end+64, true)
			if i%3 > 0 {
				dst, end = layout(r, size, n, end+64, false)
			}
			h := newHeap(end + 64)
			each(size, []place{a, b}, func(at []int) {
				h.put(at[0], word(value(r, dt), n))
				h.put(at[1], word(value(r, dt), n))
			})
			want := slices.Clone(h.data)
			each(size, []place{dst, a, b}, func(at []int) {
				copy(want[at[0]:], word(add(dt, bits(h.data, at[1], n), bits(h.data, at[2], n)), n))
			})
			l, err := kernels.Add(dt, dst.operand(), a.operand(), b.operand(), size)
			if err != nil {
				t.Fatal(err)
			}
			run(t, h, l, uint64(i))
			each(size, []place{dst}, func(at []int) { // every NaN is one
				if isNaN(dt, bits(h.data, at[0], n)) && isNaN(dt, bits(want, at[0], n)) {
					copy(want[at[0]:][:n], h.data[at[0]:])
				}
			})
			compare(t, fmt.Sprint("add ", dt, size, dst, a, b), h, want)
		}
	}
}

func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for i := range draws {
		size := append(sizes(r), []int64{0, 1, 2, 255, 256, 257, 300, 1000}[r.IntN(8)])
		for len(size) > 2 && (i%2 == 0 || product(size) > 20_000) {
			size = size[1:]
		}
		src, end := layout(r, size, 4, 64, true)
		outer := size[:len(size)-1]
		dst, end := layout(r, outer, 4, end+64, false)
		h := newHeap(end + 64)
		each(size, []place{src}, func(at []int) { h.put(at[0], word(value(r, dtype.F32)&0xbf7f_ffff, 4)) })
		want := slices.Clone(h.data)
		row := size[len(size)-1]
		each(outer, []place{dst, {src.offset, src.strides[:len(outer)]}}, func(at []int) {
			x := make([]float32, row)
			for j := range x {
				x[j] = math.Float32frombits(uint32(bits(h.data, at[1]+j*int(src.strides[len(outer)]), 4)))
			}
			copy(want[at[0]:], word(uint64(math.Float32bits(kernels.SumF32(x))), 4))
		})
		l, err := kernels.Sum(dtype.F32, dst.operand(), src.operand(), size)
		if err != nil {
			t.Fatal(err)
		}
		run(t, h, l, uint64(i))
		compare(t, fmt.Sprint("sum ", size, dst, src), h, want)
	}
}

func product(size []int64) int64 {
	n := int64(1)
	for _, s := range size {
		n *= s
	}
	return n
}

func TestSumAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for i, n := range []int{0, 1, 5, 256, 257, kernels.Chunk, kernels.Chunk + 1, 3*kernels.Chunk - 5} {
		scratch := int(kernels.SumAllScratch(dtype.F64, uint64(n)))
		h := newHeap(8*n + 16 + scratch)
		x := make([]float64, n)
		for j := range x {
			x[j] = math.Ldexp(r.Float64()-0.5, r.IntN(60))
			h.put(8*j, word(math.Float64bits(x[j]), 8))
		}
		launches, err := kernels.SumAll(dtype.F64, base+uint64(8*n), base, base+uint64(8*n+16), uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range launches {
			run(t, h, l, uint64(i%2))
		}
		if got, want := math.Float64frombits(bits(h.data, 8*n, 8)), kernels.SumAllF64(x); got != want {
			t.Errorf("%d elements: got %g, want %g", n, got, want)
		}
	}
	if kernels.SumAllF32(make([]float32, 20000)) != 0 || kernels.SumF64([]float64{1, 2}) != 3 {
		t.Error("host sums are wrong")
	}
}

// TestRefused has calls that no kernel can do.
func TestRefused(t *testing.T) {
	at := func(address uint64, strides ...int64) kernels.Operand {
		return kernels.Operand{Address: address, Strides: strides}
	}
	zigzag := make([]int64, 9)
	two := make([]int64, 9)
	for i := range two {
		two[i], zigzag[i] = 2, int64(4*(i+1)*(i+2))
	}
	for want, err := range map[string]error{
		"a pattern of 3 bytes":                second(kernels.Fill(at(0, 1), []int64{2}, make([]byte, 3))),
		"the size -1":                         second(kernels.Fill(at(0, 1), []int64{-1}, make([]byte, 1))),
		"2 strides, want 1":                   second(kernels.Fill(at(0, 1, 1), []int64{2}, make([]byte, 1))),
		"the address 0x2, want a multiple":    second(kernels.Fill(at(2, 4), []int64{2}, make([]byte, 4))),
		"the stride 6, want a multiple of 4":  second(kernels.Copy(at(0, 6), at(0, 4), []int64{2}, 4)),
		"elements of 3 bytes":                 second(kernels.Copy(at(0, 6), at(0, 4), []int64{2}, 3)),
		"9 dimensions that cannot be merged":  second(kernels.Copy(at(0, zigzag...), at(0, zigzag...), two, 4)),
		"f32 to f32":                          second(kernels.Convert(at(0, 4), dtype.F32, at(0, 4), dtype.F32, []int64{2})),
		"f8e4m3fn to f32":                     second(kernels.Convert(at(0, 4), dtype.F32, at(0, 4), dtype.F8E4M3FN, []int64{2})),
		"the stride 3, want a multiple of 2":  second(kernels.Convert(at(0, 4), dtype.F32, at(0, 3), dtype.F16, []int64{2})),
		"u8, want one of":                     second(kernels.Add(dtype.U8, at(0, 4), at(0, 3), at(0, 3), []int64{2})),
		"i32, want f32 or f64":                second(kernels.Sum(dtype.I32, at(0), at(0, 3), []int64{2})),
		"0 sizes and 0 strides of the source": second(kernels.Sum(dtype.F32, at(0), at(0), nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
	if l, err := kernels.Copy(at(0, 4, 4), at(0, 4, 4), []int64{3, 0}, 4); l != nil || err != nil {
		t.Errorf("no elements: got %v, %v, want no launch", l, err)
	}
	if _, err := kernels.Source("none"); err == nil {
		t.Error("got no error for an unknown module")
	}
}

func second(_ *kernels.Launch, err error) error { return err }

// TestTable holds the table to the texts.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, name := range kernels.Modules() {
		text, err := kernels.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ptx.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Kernels() {
			names[n] = true
		}
		for _, k := range kernels.Table() {
			if k.Module != name {
				continue
			}
			parsed, err := m.Kernel(k.Name)
			if err != nil {
				t.Fatal(err)
			}
			params := parsed.Params()
			for i, p := range k.Params {
				if q := params[i]; p.Name != q.Name || p.Size != q.Size || p.Align != q.Align {
					t.Errorf("%s: parameter %d is %v in the table and %v in the text", k.Name, i, p, q)
				}
			}
			if parsed.MaxThreads() != kernels.Threads || len(params) != len(k.Params) {
				t.Errorf("%s: got %d threads and %d parameters", k.Name, parsed.MaxThreads(), len(params))
			}
		}
	}
	if len(names) != len(kernels.Table()) || len(names) < 170 {
		t.Errorf("got %d kernels in the texts, %d in the table", len(names), len(kernels.Table()))
	}
}

var figures = regexp.MustCompile(`Compiling entry function '(\w+)'[^\n]*\n[^\n]*\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n[^\n]*Used (\d+) registers`)

// TestPtxas assembles all kernels for three architectures. None may spill.
func TestPtxas(t *testing.T) {
	name := os.Getenv("TENURE_PTXAS")
	if name == "" {
		var err error
		if name, err = exec.LookPath("ptxas"); err != nil {
			t.Skip("no ptxas in PATH; $TENURE_PTXAS can name one: pip install nvidia-cuda-nvcc-cu12 has it")
		}
	}
	text, err := kernels.Source("")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kernels.ptx")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"sm_75", "sm_80", "sm_90"} {
		out, err := exec.Command(name, "-v", "-arch="+arch, "-o", os.DevNull, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, out)
		}
		found := figures.FindAllStringSubmatch(string(out), -1)
		if len(found) != len(kernels.Table()) {
			t.Fatalf("%s: got figures of %d kernels, want %d", arch, len(found), len(kernels.Table()))
		}
		most := map[string]string{}
		for _, f := range found {
			if f[2] != "0" || f[3] != "0" || f[4] != "0" {
				t.Errorf("%s, %s: got a stack of %s bytes, %s and %s bytes spilled, want 0", f[1], arch, f[2], f[3], f[4])
			}
			family, _, _ := strings.Cut(f[1], "_")
			most[family] = max(most[family], fmt.Sprintf("%3s", f[5]))
		}
		t.Logf("%s: registers at most: %v", arch, most)
	}
}
