package elementwise_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// moreParams are scalars to try beside the defaults and the limits of a
// function's row.
var moreParams = map[string][][2]float32{
	"leaky_relu":       {{0, 0}, {1, 0}, {-0.5, 0}},
	"thresholded_relu": {{-1, 0}},
	"clip":             {{0, 6}, {float32(math.Inf(-1)), float32(math.Inf(1))}, {2, 1}},
	"hard_sigmoid":     {{1, 0}},
	"swish":            {{1.702, 0}},
	"elu":              {{0.3, 0}},
	"celu":             {{0.5, 0}},
	"shrink":           {{1.5, 1.5}, {0, 0}},
	"pow_scalar":       {{3, 0}, {-1, 0}, {1, 0}, {0, 0}, {0.5, 0}, {0.75, 0}, {-0.5, 0}, {1.7, 0}},
	"affine":           {{2, 1}, {-0.5, 0}},
}

// paramsOf returns the scalars that a function is tried with.
func paramsOf(f *table.Function) [][2]float32 {
	all := make([][2]float32, 3)
	for i, p := range f.Params {
		all[0][i], all[1][i], all[2][i] = float32(p.Default), float32(p.Min), float32(p.Max)
	}
	if len(f.Params) == 0 {
		all = all[:1]
	}
	return append(all, moreParams[f.Name]...)
}

// operandsOf returns operands of all magnitudes, and many within the function's
// domain.
func operandsOf(f *table.Function) []float32 {
	lo, hi := f.Domain.Within(-20, 40)
	return append(kerneltest.Spread(kerneltest.NewRand(1), 8000), ref.Map(kerneltest.Uniform(kerneltest.NewRand(5), 9000), func(v float32) float32 {
		return float32(lo + (float64(v)+1)/2*(hi-lo))
	})...)
}

// kernelsOf returns the functions that kernels know by their names.
func kernelsOf() map[string]kernel.UnaryOp {
	ops := map[string]kernel.UnaryOp{}
	for _, op := range kernel.UnaryOps() {
		ops[op.String()] = op
	}
	return ops
}

func TestUnary(t *testing.T) { kerneltest.EachVariant(t, testUnary) }

func testUnary(t *testing.T, v *kernel.Variant) {
	ops := kernelsOf()
	for _, f := range table.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			op, ok := ops[f.Name]
			if !ok {
				t.Fatal("no kernel: run go generate in internal/kernel/gen")
			}
			for _, p := range paramsOf(f) {
				unaryValues(t, v, op, f, p)
				unaryPlaces(t, v, op, p[0], p[1])
			}
		})
	}
	t.Run("int", kerneltest.With(v, testUnaryInt))
	t.Run("half", kerneltest.With(v, testUnaryHalf))
}

func unaryValues(t *testing.T, v *kernel.Variant, op kernel.UnaryOp, f *table.Function, p [2]float32) {
	t.Helper()
	s := kerneltest.NewSpace(t)
	src := kerneltest.In(s, "src", operandsOf(f))
	dst := kerneltest.Out[float32](s, "dst", len(src))
	elementwise.UnaryF32(v, op, dst, src, p[0], p[1])
	s.Check()
	wide := make([]float64, len(src))
	elementwise.UnaryF64(v, op, wide, kerneltest.F64s(src), float64(p[0]), float64(p[1]))
	if fault := functionFault(f, ref.UnaryOf(f.Name), p, src, dst, wide); fault != "" {
		t.Fatal(fault)
	}
}

// unitsAt returns a bound at x in units in the last place.
func unitsAt(b table.Bound, x float64) float64 {
	x = min(math.Abs(x), math.MaxFloat32)
	return b.Ulps + b.PerX*x + b.PerSquare*x*x
}

// vanishes has the numbers below which the results of a function are as good
// as 0.
var vanishes = map[string]float64{"gelu": -6, "gelu_tanh": -6}

// noReference stands behind the name of a function in the fault that it has no
// reference.
const noReference = ": there is no reference: write one in internal/kernel/ref/elementwise.go"

// functionFault compares the results of a function of x, in float32 and in
// float64, with those of a reference. It returns the first that is off by more
// than the function's row states, and "" if none is.
func functionFault(f *table.Function, reference func(x, a, b float64) float64, p [2]float32, x, got []float32, wide []float64) string {
	if reference == nil {
		return f.Name + noReference
	}
	for i, x := range x {
		x, a, b := float64(x), float64(p[0]), float64(p[1])
		want := reference(x, a, b)
		ulps, slack := unitsAt(f.MaxError, x), f.MaxError.Absolute
		if from, ok := vanishes[f.Name]; ok && x < from {
			slack = 2e-9
		}
		if !kerneltest.SameValue(got[i], want, ulps) && !(math.Abs(float64(got[i])-want) <= slack) {
			return fmt.Sprintf("%s(%v; %v, %v): got %v, want %v", f.Name, x, a, b, got[i], want)
		}
		want = reference(x, a, b)
		// The reference rounds exponents as well.
		if !(math.Abs(wide[i]-want) <= max(1e-13, ulps*0x1p-51)*math.Abs(want)+1e-300) && wide[i] != want && (wide[i] == wide[i] || want == want) {
			return fmt.Sprintf("%s(%v; %v, %v) in float64: got %v, want %v", f.Name, x, a, b, wide[i], want)
		}
	}
	return ""
}

// unaryPlaces checks that a value's result depends neither on its place in the
// row nor on whether the row is computed in place.
func unaryPlaces(t *testing.T, v *kernel.Variant, op kernel.UnaryOp, a, b float32) {
	t.Helper()
	all := kerneltest.Spread(kerneltest.NewRand(2), 30)
	for _, n := range kerneltest.Lengths {
		s := kerneltest.NewSpace(t)
		src := kerneltest.In(s, "src", all[:n])
		dst := kerneltest.Out[float32](s, "dst", n)
		place := kerneltest.InOut(s, "in place", all[:n])
		elementwise.UnaryF32(v, op, dst, src, a, b)
		elementwise.UnaryF32(v, op, place, place, a, b)
		s.Check()
		for i := range src {
			one := kerneltest.Out[float32](s, "one", 1)
			elementwise.UnaryF32(v, op, one, src[i:i+1], a, b)
			kerneltest.WantEqual(t, dst[i:i+1], one)
		}
		kerneltest.WantEqual(t, place, dst)
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
	r := kerneltest.NewRand(3)
	src := make([]T, 300)
	for i := range src {
		src[i] = T(r.Uint64())
	}
	src[0], src[1] = 0, 1
	for _, op := range []kernel.UnaryOp{kernel.Identity, kernel.Relu, kernel.Abs, kernel.Neg, kernel.Sign} {
		s := kerneltest.NewSpace(t)
		x, dst, place := kerneltest.In(s, "src", src), kerneltest.Out[T](s, "dst", len(src)), kerneltest.InOut(s, "in place", src)
		elementwise.UnaryInt(v, op, dst, x)
		elementwise.UnaryInt(v, op, place, place)
		s.Check()
		kerneltest.WantEqual(t, place, dst)
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
		kerneltest.WantEqual(t, dst, want)
	}
	s := kerneltest.NewSpace(t)
	dst := kerneltest.Out[T](s, "dst", len(src))
	elementwise.BitNot(dst, src)
	kerneltest.WantEqual(t, dst, ref.Map(src, func(v T) T { return ^v }))
	elementwise.Clamp(v, dst, src, 3, 50)
	kerneltest.WantEqual(t, dst, ref.Map(src, func(v T) T { return min(max(v, 3), 50) }))
	s.Check()
}

func testUnaryHalf(t *testing.T, v *kernel.Variant) {
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		src := make([]uint16, 1<<16)
		for i := range src {
			src[i] = uint16(i)
		}
		for _, scratch := range []int{1, 7, elementwise.HalfScratchFloats} {
			s := kerneltest.NewSpace(t)
			x, dst := kerneltest.In(s, "src", src), kerneltest.InOut(s, "dst", src)
			elementwise.UnaryHalf(v, kernel.Sigmoid, dt, dst, x, 0, 0, kerneltest.Out[float32](s, "scratch", scratch))
			s.Check()
			for i := range src {
				want := float32(ref.Unary("sigmoid", float64(kerneltest.FromHalf(dt, src[i])), 0, 0))
				got := kerneltest.FromHalf(dt, dst[i])
				// The nearest half, or that of a float32 within the error of
				// the function.
				lo, hi := kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, want*(1-0x1p-22))), kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, want*(1+0x1p-22)))
				if !(lo <= got && got <= hi) && (got == got || want == want) {
					t.Fatalf("%s sigmoid(%v): got %v, want %v", dt, kerneltest.FromHalf(dt, src[i]), got, want)
				}
			}
		}
	}
}
