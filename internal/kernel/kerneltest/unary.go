package kerneltest

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// unaryParams are the scalars to try; functions that have none are tried with the first alone.
var unaryParams = map[kernel.UnaryOp][][2]float32{
	kernel.LeakyRelu:       {{0.01, 0}, {0, 0}, {1, 0}, {-0.5, 0}, {3, 0}},
	kernel.ThresholdedRelu: {{1, 0}, {-1, 0}},
	kernel.Clip:            {{0, 6}, {-1, 1}, {float32(math.Inf(-1)), float32(math.Inf(1))}, {2, 1}},
	kernel.HardSigmoid:     {{0.2, 0.5}, {1, 0}},
	kernel.Swish:           {{1, 0}, {1.702, 0}},
	kernel.Elu:             {{1, 0}, {0.3, 0}},
	kernel.Selu:            {{1.6732632, 1.050701}},
	kernel.Celu:            {{1, 0}, {0.5, 0}},
	kernel.Shrink:          {{0.5, 0}, {1.5, 1.5}},
	kernel.PowScalar:       {{2, 0}, {3, 0}, {-1, 0}, {1, 0}, {0, 0}, {0.5, 0}, {0.75, 0}, {-0.5, 0}, {1.7, 0}, {4, 0}},
	kernel.Affine:          {{2, 1}, {-0.5, 0}},
}

func testUnary(t *testing.T, v *kernel.Variant) {
	for _, op := range kernel.UnaryOps() {
		t.Run(op.String(), func(t *testing.T) {
			params := unaryParams[op]
			if params == nil {
				params = [][2]float32{{}}
			}
			for _, p := range params {
				unaryValues(t, v, op, p[0], p[1], spread(newRand(1), 8000))
				unaryValues(t, v, op, p[0], p[1], ref.Map(uniform(newRand(5), 9000), func(v float32) float32 { return 20*v + 20.001 }))
				unaryPlaces(t, v, op, p[0], p[1])
			}
		})
	}
	t.Run("int", with(v, testUnaryInt))
	t.Run("half", with(v, testUnaryHalf))
}

// unaryError is the stated error of a float32 function at x: units in the last place of the result, and an absolute part.
func unaryError(op kernel.UnaryOp, x float64) (ulps, slack float64) {
	switch op {
	case kernel.HardSigmoid, kernel.HardSwish, kernel.Affine, kernel.Shrink:
		return 2, 0x1p-22 // the result is the difference of numbers of the size of 1
	case kernel.Silu, kernel.Mish:
		return 4, 0x1p-138 // where the exponential is below the normal numbers
	case kernel.Swish:
		return 4 + 2*math.Abs(x), 0x1p-138 // and the exponent a*x is rounded
	case kernel.Gelu, kernel.GeluTanh:
		if x < -6 {
			return 5 + 2*x*x, 2e-9 // as good as 0
		}
		return 5 + 2*x*x, 0 // the exponent, about x*x, is rounded
	case kernel.Softplus, kernel.PowScalar:
		return 4, 0
	}
	return 2, 0
}

func unaryValues(t *testing.T, v *kernel.Variant, op kernel.UnaryOp, a, b float32, x []float32) {
	t.Helper()
	s := newSpace(t)
	src := in(s, "src", x)
	dst := out[float32](s, "dst", len(src))
	elementwise.UnaryF32(v, op, dst, src, a, b)
	s.check()
	wide := make([]float64, len(src))
	elementwise.UnaryF64(v, op, wide, f64s(src), float64(a), float64(b))
	for i, x := range src {
		want := ref.Unary(op.String(), float64(x), float64(a), float64(b))
		ulps, slack := unaryError(op, float64(x))
		limit := op == kernel.Gelu && math.IsInf(float64(x), -1) && math.Abs(float64(dst[i])) <= slack
		if !sameValue(dst[i], want, ulps) && !(math.Abs(float64(dst[i])-want) <= slack) && !limit {
			t.Fatalf("%s(%v; %v, %v): got %v, want %v", op, x, a, b, dst[i], want)
		}
		if !(math.Abs(wide[i]-want) <= max(1e-13, ulps*0x1p-51)*math.Abs(want)+1e-300) && wide[i] != want && (wide[i] == wide[i] || want == want) {
			t.Fatalf("%s(%v; %v, %v) in float64: got %v, want %v", op, x, a, b, wide[i], want)
		}
	}
}

// unaryPlaces checks that a value's result depends neither on its place in the row nor on whether the row is computed in place.
func unaryPlaces(t *testing.T, v *kernel.Variant, op kernel.UnaryOp, a, b float32) {
	t.Helper()
	all := spread(newRand(2), 30)
	for _, n := range lengths {
		s := newSpace(t)
		src := in(s, "src", all[:n])
		dst := out[float32](s, "dst", n)
		place := inout(s, "in place", all[:n])
		elementwise.UnaryF32(v, op, dst, src, a, b)
		elementwise.UnaryF32(v, op, place, place, a, b)
		s.check()
		for i := range src {
			one := out[float32](s, "one", 1)
			elementwise.UnaryF32(v, op, one, src[i:i+1], a, b)
			wantEqual(t, dst[i:i+1], one)
		}
		wantEqual(t, place, dst)
	}
}

func testUnaryInt(t *testing.T, v *kernel.Variant) {
	unaryInt[int8](t, v)
	unaryInt[int64](t, v)
	unaryInt[uint8](t, v)
	unaryInt[uint32](t, v)
}

func unaryInt[T kernel.Integer](t *testing.T, v *kernel.Variant) {
	t.Helper()
	r := newRand(3)
	src := make([]T, 300)
	for i := range src {
		src[i] = T(r.Uint64())
	}
	src[0], src[1] = 0, 1
	for _, op := range []kernel.UnaryOp{kernel.Identity, kernel.Relu, kernel.Abs, kernel.Neg, kernel.Sign} {
		s := newSpace(t)
		x, dst, place := in(s, "src", src), out[T](s, "dst", len(src)), inout(s, "in place", src)
		elementwise.UnaryInt(v, op, dst, x)
		elementwise.UnaryInt(v, op, place, place)
		s.check()
		wantEqual(t, place, dst)
		want := ref.Map(src, func(v T) T {
			switch {
			case op == kernel.Relu && v < 0:
				return 0
			case op == kernel.Abs && v < 0, op == kernel.Neg:
				return 0 - v
			case op == kernel.Sign && v > 0:
				return 1
			case op == kernel.Sign && v < 0:
				return ^T(0)
			}
			return v
		})
		wantEqual(t, dst, want)
	}
	s := newSpace(t)
	dst := out[T](s, "dst", len(src))
	elementwise.BitNot(dst, src)
	wantEqual(t, dst, ref.Map(src, func(v T) T { return ^v }))
	elementwise.Clamp(v, dst, src, 3, 50)
	wantEqual(t, dst, ref.Map(src, func(v T) T { return min(max(v, 3), 50) }))
	s.check()
}

func testUnaryHalf(t *testing.T, v *kernel.Variant) {
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		src := make([]uint16, 1<<16)
		for i := range src {
			src[i] = uint16(i)
		}
		for _, scratch := range []int{1, 7, elementwise.HalfScratchFloats} {
			s := newSpace(t)
			x, dst := in(s, "src", src), inout(s, "dst", src)
			elementwise.UnaryHalf(v, kernel.Sigmoid, dt, dst, x, 0, 0, out[float32](s, "scratch", scratch))
			s.check()
			for i := range src {
				want := float32(ref.Unary("sigmoid", float64(fromHalf(dt, src[i])), 0, 0))
				got := fromHalf(dt, dst[i])
				// The nearest half, or that of a float32 within the error of the function.
				lo, hi := fromHalf(dt, toHalf(dt, want*(1-0x1p-22))), fromHalf(dt, toHalf(dt, want*(1+0x1p-22)))
				if !(lo <= got && got <= hi) && (got == got || want == want) {
					t.Fatalf("%s sigmoid(%v): got %v, want %v", dt, fromHalf(dt, src[i]), got, want)
				}
			}
		}
	}
}

func fromHalf(dt dtype.DType, b uint16) float32 {
	if dt == dtype.F16 {
		return dtype.Float16(b).Float32()
	}
	return dtype.BFloat16(b).Float32()
}

func toHalf(dt dtype.DType, f float32) uint16 {
	if dt == dtype.F16 {
		return uint16(dtype.Float16FromFloat32(f))
	}
	return uint16(dtype.BFloat16FromFloat32(f))
}
