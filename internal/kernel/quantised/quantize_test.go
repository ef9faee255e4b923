package quantised_test

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestQuantize(t *testing.T) { kerneltest.EachVariant(t, testQuantize) }

func testQuantize(t *testing.T, v *kernel.Variant) {
	for _, c := range []struct {
		dims        []int
		axis, block int
	}{{[]int{2, 3, 70}, 1, 0}, {[]int{5, 33}, 0, 0}, {[]int{7, 9}, 1, 0}, {[]int{3, 20}, 1, 8}, {[]int{2, 7, 37}, 1, 3}, {[]int{300}, 0, 64}} {
		quantizeRows[int8](t, v, dtype.I8, c.dims, c.axis, c.block)
		quantizeRows[uint8](t, v, dtype.U8, c.dims, c.axis, c.block)
		quantizeRows[int16](t, v, dtype.I16, c.dims, c.axis, c.block)
		quantizeRows[uint16](t, v, dtype.U16, c.dims, c.axis, c.block)
	}
	t.Run("dynamic", kerneltest.With(v, dynamicScales))
	t.Run("gemm", func(t *testing.T) { intGemms[int8, uint8](t, v); intGemms[uint8, int8](t, v) })
	t.Run("conv", func(t *testing.T) {
		intConvs[int8, int8](t, v)
		intConvs[uint8, int8](t, v)
		intConvs[uint8, uint8](t, v)
		intConvs[int8, uint8](t, v)
		drawnIntConvs(t, v)
	})
}

func numbersOf[T any](dt dtype.DType, x []T) quantised.Numbers {
	return quantised.Numbers{DType: dt, Data: kerneltest.AsBytes(x)}
}

func quantizeRows[T int8 | uint8 | int16 | uint16](t *testing.T, v *kernel.Variant, dt dtype.DType, dims []int, axis, block int) {
	t.Helper()
	r := kerneltest.NewRand(70)
	n, inner := ref.Size(dims), ref.Size(dims[axis+1:])
	q := quantised.Quant{Axis: dims[axis], Inner: inner, Block: max(1, block), Blocked: block > 0}
	count := dims[axis]
	if block > 0 {
		count = n / dims[axis] * ((dims[axis] + block - 1) / block)
	}
	x := ref.Map(kerneltest.Uniform(r, n), func(v float32) float32 { return v * 20 })
	for i, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 3e38, -3e38, 0, 1e-40} { // in vectors and behind them
		x[i], x[n-1-i] = v, v
	}
	scales := ref.Map(kerneltest.Uniform(r, count), func(v float32) float32 { return 0.05 + v*v })
	zeros := make([]T, count)
	for i := range zeros {
		zeros[i] = T(r.IntN(20))
	}
	s := kerneltest.NewSpace(t)
	src, scale, zero := kerneltest.In(s, "x", x), kerneltest.In(s, "scale", scales), kerneltest.In(s, "zero", zeros)
	dst, back := kerneltest.Out[T](s, "dst", n), kerneltest.Out[float32](s, "back", n)
	for lo := 0; lo < n; lo += 128 {
		hi := min(lo+128, n)
		quantised.Quantize(v, &q, lo, hi, numbersOf(dt, dst), numbersOf(dtype.F32, src), numbersOf(dtype.F32, scale), numbersOf(dt, zero), dtype.F32, true)
		quantised.Dequantize(v, &q, lo, hi, numbersOf(dtype.F32, back), numbersOf(dt, dst), numbersOf(dtype.F32, scale), numbersOf(dt, zero))
	}
	s.Check()
	least, most := quantised.IntRange(dt)
	i := 0
	ref.Each(dims, func(idx []int) {
		at := ref.ScaleOf(dims, idx, axis, block)
		want := ref.Quantize(x[i], scales[at], float64(zeros[at]), least, most)
		if float64(dst[i]) != want {
			t.Fatalf("%v block %d: element %d: got %v, want %v", dims, block, i, dst[i], want)
		}
		if w := (float32(want) - float32(zeros[at])) * scales[at]; back[i] != w {
			t.Fatalf("%v block %d: element %d: got %v back, want %v", dims, block, i, back[i], w)
		}
		i++
	})
}

func dynamicScales(t *testing.T, v *kernel.Variant) {
	for _, c := range []struct {
		x     []float32
		scale float32
		zero  uint8
	}{{[]float32{0, 2, -3, -2.5, 1.34, 0.5}, 5.0 / 255, 153}, {[]float32{-1, -2}, 2.0 / 255, 255}, {[]float32{1, 3}, 3.0 / 255, 0}, {nil, 1, 0}, {[]float32{0, 0}, 1, 0}} {
		if scale, zero := quantised.DynamicScale(v, c.x); scale != c.scale || zero != c.zero {
			t.Errorf("%v: got scale %v and zero %d, want %v and %d", c.x, scale, zero, c.scale, c.zero)
		}
	}
}

func TestLookup(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		for n := range 300 {
			x, xi := randomBytes[uint8](n, 91)
			table, ti := randomBytes[uint8](256, 92)
			want := ref.Lookup(xi, ti)
			s := kerneltest.NewSpace(t)
			src, tab, dst := kerneltest.In(s, "x", x), kerneltest.In(s, "table", table), kerneltest.Out[uint8](s, "dst", n)
			quantised.Lookup(v, dst, src, tab)
			s.Check()
			quantised.Lookup(v, x, x, tab)
			for i := range want {
				if int(dst[i]) != want[i] || int(x[i]) != want[i] {
					t.Fatalf("%d bytes: element %d: got %d, and %d in place, want %d", n, i, dst[i], x[i], want[i])
				}
			}
		}
	})
}

// randomBytes returns n random bytes, and the same as ints.
func randomBytes[T quantised.Byte](n int, seed uint64) (x []T, ints []int) {
	r := kerneltest.NewRand(seed)
	for range n {
		v := T(r.Uint32())
		x, ints = append(x, v), append(ints, int(v))
	}
	return x, ints
}

func byteType[T quantised.Byte]() dtype.DType {
	if ^T(0) > 0 {
		return dtype.U8
	}
	return dtype.I8
}

// zeroSet says which zeros a product of bytes has.
type zeroSet int

const (
	noZeros zeroSet = iota
	oneZero
	allZeros
)

func intGemms[A, B quantised.Byte](t *testing.T, v *kernel.Variant) {
	sizes := [][3]int{{1, 1, 1}, {3, 5, 7}, {40, 33, 65}, {2, 3, 0}, {0, 4, 2}, {2, 0, 2}, {120, 300, 20}, {15, 64, 500}}
	for n := 1; n <= 40; n++ {
		sizes = append(sizes, [3]int{n, 7, 9}, [3]int{5, n, 9}, [3]int{5, 7, n})
	}
	for i, d := range sizes {
		for set := noZeros; set <= allZeros; set++ {
			g := quantised.IntGemm{M: d[0], N: d[1], K: d[2], PackedB: (i+int(set))%2 == 0}
			intGemmCase[A, B](t, v, g, set)
		}
	}
}

func intGemmCase[A, B quantised.Byte](t *testing.T, v *kernel.Variant, g quantised.IntGemm, set zeroSet) {
	t.Helper()
	m, n, k := g.M, g.N, g.K
	g.SignedA, g.SignedB = byteType[A]() == dtype.I8, byteType[B]() == dtype.I8
	a, ai := randomBytes[A](m*k, 71)
	b, bi := randomBytes[B](k*n, 72)
	za, zai := randomBytes[A](m, 73)
	zb, zbi := randomBytes[B](n, 74)
	switch set {
	case noZeros:
		za, zb = nil, nil
		clear(zai)
		clear(zbi)
	case oneZero: // of B the one in the middle of its range, as quantised weights have it
		za, zb = []A{3}, []B{0}
		if !g.SignedB {
			zb[0] = ^B(0) << 7
		}
		for i := range zai {
			zai[i] = 3
		}
		for j := range zbi {
			zbi[j] = int(zb[0])
		}
	}
	want := ref.IntMatMul(m, n, k, ai, bi, zai, zbi)
	s := kerneltest.NewSpace(t)
	pb := kerneltest.In(s, "b", b)
	if g.PackedB = g.PackedB && quantised.BytePanels(v); g.PackedB {
		pack := g
		panels, back := kerneltest.Out[int32](s, "panels", g.PackedBBytes(v)/4), kerneltest.Out[B](s, "unpacked", k*n)
		pack.PackB(v, kerneltest.AsBytes(panels), kerneltest.AsBytes(pb))
		pack.UnpackB(v, kerneltest.AsBytes(back), kerneltest.AsBytes(panels))
		if !slices.Equal(back, b) {
			t.Fatalf("%+v: unpacking gives another matrix than was packed", g)
		}
		pb = unsafe.Slice((*B)(unsafe.Pointer(unsafe.SliceData(panels))), 4*len(panels))
	}
	g.Prepare(v)
	pa, pza, pzb := kerneltest.In(s, "a", a), kerneltest.In(s, "zero a", za), kerneltest.In(s, "zero b", zb)
	sums, narrow, scratch := kerneltest.Out[int32](s, "sums", m*n), kerneltest.Out[B](s, "narrow", m*n), kerneltest.Out[int32](s, "scratch", g.ScratchBytes()/4)
	y, zero := []float32{300}, []B{7}
	scaleA, scaleB := make([]float32, m), []float32{0.5}
	if set == allZeros { // and scales of columns
		scaleB = make([]float32, n)
		for j := range scaleB {
			scaleB[j] = float32(j%50+1) / 8
		}
	}
	for i := range scaleA {
		scaleA[i] = float32(i + 1)
	}
	requant := quantised.Requant{A: numbersOf(dtype.F32, scaleA), B: numbersOf(dtype.F32, scaleB), Y: numbersOf(dtype.F32, y), Zero: numbersOf(byteType[B](), zero)}
	bias := make([]int, n)
	if set != oneZero { // one bias for all columns, one each, or none
		requant.Bias = make([]int32, n)
		for j := range bias {
			bias[j] = 9000*j - 31
			requant.Bias[j] = int32(bias[j])
		}
	}
	if set == noZeros && n > 0 {
		requant.Bias = requant.Bias[:1]
		for j := range bias {
			bias[j] = bias[0]
		}
	}
	var zerosA, zerosB quantised.Numbers
	if set != noZeros {
		zerosA, zerosB = numbersOf(byteType[A](), pza), numbersOf(byteType[B](), pzb)
	}
	kerneltest.Backwards(g.Tiles(), func(i int) {
		quantised.IntGemmTile(&g, i, kerneltest.AsBytes(sums), pa, pb, zerosA, zerosB, nil, scratch)
		quantised.IntGemmTile(&g, i, kerneltest.AsBytes(narrow), pa, pb, zerosA, zerosB, &requant, scratch)
	})
	s.Check()
	least, most := quantised.IntRange(byteType[B]())
	for i, w := range want {
		if int(sums[i]) != w {
			t.Fatalf("%+v, zeros %d: element %d: got %d, want %d", g, set, i, sums[i], w)
		}
		k := scaleA[i/n] * scaleB[i%n%len(scaleB)] / 300
		if q := ref.Quantize(float32(w+bias[i%n])*k, 1, 7, least, most); float64(narrow[i]) != q {
			t.Fatalf("%+v, zeros %d: element %d: got %v requantised, want %v", g, set, i, narrow[i], q)
		}
	}
}
