package compute

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op"
)

var (
	floatTypes = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
	intTypes   = []dtype.DType{dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64}
)

// tolerance is the largest error of a result of that type.
func tolerance(dt dtype.DType) float64 {
	switch dt {
	case dtype.F64:
		return 1e-9
	case dtype.F32:
		return 2e-6
	case dtype.F16:
		return 2e-3
	case dtype.BF16:
		return 1e-2
	}
	return 0
}

// admits reports whether the operator takes the element type at all.
func admits(name string, dt dtype.DType) bool {
	sig := &op.Sig{Def: op.Builtin().Lookup(name), Results: make([]op.Type, 1)}
	for range sig.Def.MinArgs {
		sig.Args = append(sig.Args, op.Type{DType: dt, Shape: arg([]float32{0}, 1).Shape})
	}
	return op.InferTypes(sig) == nil
}

// TestUnary compares the operators of all functions with their references, on
// every type that they take, with the default parameters and with others.
func TestUnary(t *testing.T) {
	for _, f := range elementwise.Functions() {
		if f.ONNX == "" {
			continue
		}
		for _, dt := range append(floatTypes, intTypes...) {
			if !admits(f.Name, dt) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", f.Name, dt), func(t *testing.T) {
				n := 33
				if dt == dtype.F32 && (f.Name == "relu" || f.Name == "exp") {
					n = spanElements + 5
				}
				for _, params := range paramsOf(f, dt) {
					checkFunction(t, f.Name, f.Name, attributesOf(f, params), drawFor(f, dt, n), params)
				}
			})
		}
	}
	for _, dt := range floatTypes {
		x := random(dt, 1, -4, 4, 1, 33)
		checkFunction(t, "gelu", "gelu", nil, x, [2]float64{})
		checkFunction(t, "gelu", "gelu_tanh", attrs("approximate", "tanh"), x, [2]float64{})
	}
}

// paramsOf returns the values of parameters to try: first the defaults.
func paramsOf(f *elementwise.Function, dt dtype.DType) (list [][2]float64) {
	for _, at := range []float64{-1, 0, 0.4, 1} {
		var params [2]float64
		for i, p := range f.Params {
			v := p.Default
			if at >= 0 {
				v = p.Min + at*(p.Max-p.Min)
			}
			params[i] = float64(float32(v))
		}
		list = append(list, params)
		if len(f.Params) == 0 || !dt.IsSigned() { // a number below 0 has no unsigned result
			break
		}
	}
	return list
}

// attributesOf returns the parameters as attributes, none for the defaults.
func attributesOf(f *elementwise.Function, params [2]float64) op.Attrs {
	if params == paramsOf(f, dtype.F32)[0] {
		return nil
	}
	var list []any
	for i, p := range f.Params {
		list = append(list, p.Name, params[i])
	}
	return attrs(list...)
}

// drawFor draws operands of a function from its domain, the first of them where
// functions may break.
func drawFor(f *elementwise.Function, dt dtype.DType, n int) op.Arg {
	lo, hi := f.Domain.Within(-4, 4)
	if !dt.IsSigned() {
		lo = max(lo, 0)
	}
	list := values[float64](1, n, lo, hi)
	for i, v := range []float64{-2, -0.5, 0, 0.5, 2} {
		if lo <= v && v <= hi {
			list[i] = v
		}
	}
	if dt.IsInt() {
		for i := range list {
			list[i] = math.Round(list[i])
		}
	}
	return fromFloats(dt, list, 1, n)
}

// checkFunction runs an operator and compares it with the reference of a
// function.
func checkFunction(t *testing.T, name, function string, a op.Attrs, x op.Arg, params [2]float64) {
	t.Helper()
	want := floats(x)
	for i, v := range want {
		want[i] = ref.Unary(function, v, params[0], params[1])
		if x.DType.IsInt() {
			want[i] = math.Trunc(want[i])
		}
	}
	expect(t, fmt.Sprintf("%s %v", function, params), eval(t, name, a, x), x.Shape.Sizes(), want, tolerance(x.DType))
}

func TestBitwiseNot(t *testing.T) {
	for _, dt := range intTypes {
		if !dt.IsSigned() {
			continue
		}
		x := random(dt, 1, -4, 4, 1, 33)
		want := floats(x)
		for i, v := range want {
			want[i] = -v - 1
		}
		expect(t, "bitwise_not", eval(t, "bitwise_not", nil, x), []int{1, 33}, want, 0)
	}
}

func TestClip(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		lo := 0.0
		if dt.IsSigned() {
			lo = -9
		}
		x := random(dt, 3, lo, 9, 40)
		two, five := fromFloats(dt, []float64{2}), fromFloats(dt, []float64{5})
		for _, c := range []struct {
			in     []op.Arg
			lo, hi float64
		}{
			{[]op.Arg{x}, -100, 100}, {[]op.Arg{x, two}, 2, 100}, {[]op.Arg{x, absent, five}, -100, 5}, {[]op.Arg{x, two, five}, 2, 5},
			{[]op.Arg{x, five, two}, 2, 2}, // min over max: max wins
		} {
			want := floats(x)
			for i, v := range want {
				want[i] = min(max(v, c.lo), c.hi)
			}
			expect(t, fmt.Sprintf("clip %v", dt), eval(t, "clip", nil, c.in...), []int{40}, want, 0)
		}
	}
}

func TestBinary(t *testing.T) {
	functions := map[string]func(x, y float64) float64{
		"pow": math.Pow,
		"mod": func(x, y float64) float64 { return x - y*math.Floor(x/y) },
		"max": math.Max, "min": math.Min,
	}
	for _, f := range elementwise.Binaries() {
		if f.ONNX != "" {
			functions[f.Name] = referenceOf(f)
		}
	}
	shapes := [][2][]int{{{3, 5}, {3, 5}}, {{3, 5}, {}}, {{}, {3, 5}}, {{3, 1}, {1, 5}}, {{2, 1, 3, 1}, {4, 1, 6}}, {{0, 3}, {1, 3}}, {{}, {}}}
	for name, f := range functions {
		for _, dt := range slices.Concat(floatTypes, intTypes, []dtype.DType{dtype.Bool}) {
			if !admits(name, dt) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				for k, s := range shapes {
					lo := 4.0 // differences of unsigned numbers stay positive
					if dt.IsSigned() && name != "pow" {
						lo = -4
					}
					x, y := random(dt, uint64(k), lo, 6, s[0]...), random(dt, 99, 1, 4, s[1]...)
					if dt == dtype.Bool {
						x, y = random(dtype.I8, uint64(k), 0, 1, s[0]...), random(dtype.I8, 99, 0, 1, s[1]...)
						x.DType, y.DType = dt, dt
					}
					checkBinary(t, name, f, x, y)
				}
			})
		}
	}
	x, y := random(dtype.F32, 1, -1, 1, 3, 40_000), random(dtype.F32, 2, -1, 1, 40_000)
	checkBinary(t, "add", func(x, y float64) float64 { return x + y }, x, y)
}

// referenceOf returns the reference of a function of two operands.
func referenceOf(f *elementwise.Binary) func(x, y float64) float64 {
	switch {
	case f.Predicate:
		return func(x, y float64) float64 {
			if ref.Predicate(f.Name, cmp.Compare(x, y), x != 0, y != 0) {
				return 1
			}
			return 0
		}
	case f.Types&elementwise.Floats != 0:
		return func(x, y float64) float64 { return ref.Binary(f.Name, x, y) }
	}
	return func(x, y float64) float64 {
		v, _ := ref.BinaryInt(f.Name, big.NewInt(int64(x)), big.NewInt(int64(y)), 64).Float64()
		return v
	}
}

// checkBinary runs the operator and compares with f on the broadcast operands.
func checkBinary(t *testing.T, name string, f func(x, y float64) float64, x, y op.Arg) {
	t.Helper()
	got := eval(t, name, nil, x, y)
	sizes := got.Shape.Sizes()
	a, b := floats(x), floats(y)
	var want []float64
	each(sizes, func(i []int) {
		v := f(at(x, a, i), at(y, b, i))
		if got.DType.IsInt() {
			v = math.Trunc(v)
		}
		want = append(want, v)
	})
	expect(t, fmt.Sprintf("%s(%v, %v)", name, x.Type, y.Type), got, sizes, want, tolerance(got.DType))
}

func TestModAndPowOfMixedTypes(t *testing.T) {
	x, y := arg([]int32{-7, 7, -7, 7}, 4), arg([]int32{3, 3, -3, -3}, 4)
	expect(t, "mod", eval(t, "mod", nil, x, y), []int{4}, []float64{2, 1, -1, -2}, 0)
	expect(t, "fmod", eval(t, "mod", attrs("fmod", 1), x, y), []int{4}, []float64{-1, 1, -1, 1}, 0)
	f := arg([]float32{-7.5, 7.5}, 2)
	expect(t, "fmod", eval(t, "mod", attrs("fmod", 1), f, scalar[float32](2)), []int{2}, []float64{-1.5, 1.5}, 0)

	base := arg([]float32{1, 2, 3}, 3)
	for _, e := range []op.Arg{scalar[int64](2), scalar(int32(2)), scalar(2.0), arg([]int64{2, 2, 2}, 3), arg([]uint8{2}, 1)} {
		expect(t, "pow", eval(t, "pow", nil, base, e), []int{3}, []float64{1, 4, 9}, 0)
	}
	expect(t, "pow", eval(t, "pow", nil, scalar[float32](2), ints(1, 2, 3)), []int{3}, []float64{2, 4, 8}, 0)
	expect(t, "pow", eval(t, "pow", nil, arg([]int32{4, 9}, 2), scalar[float32](0.5)), []int{2}, []float64{2, 3}, 0)
	expect(t, "pow", eval(t, "pow", nil, arg([]int32{2, 3}, 2), scalar[int64](3)), []int{2}, []float64{8, 27}, 0)
}

func TestPredicates(t *testing.T) {
	b2f := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for name, f := range map[string]func(x, y float64) float64{
		"equal":            func(x, y float64) float64 { return b2f(x == y) },
		"less":             func(x, y float64) float64 { return b2f(x < y) },
		"greater":          func(x, y float64) float64 { return b2f(x > y) },
		"less_or_equal":    func(x, y float64) float64 { return b2f(x <= y) },
		"greater_or_equal": func(x, y float64) float64 { return b2f(x >= y) },
	} {
		for _, dt := range append(floatTypes, intTypes...) {
			ones := fromFloats(dt, []float64{0, 1, 2, 1, 0, 2}, 2, 3)
			checkBinary(t, name, f, ones, fromFloats(dt, []float64{1, 1, 1}, 3))
			checkBinary(t, name, f, fromFloats(dt, []float64{1, 0}, 2, 1), ones)
		}
	}
	x, y := arg([]bool{false, false, true, true}, 4), arg([]bool{false, true, false, true}, 4)
	for name, want := range map[string][]float64{"and": {0, 0, 0, 1}, "or": {0, 1, 1, 1}, "xor": {0, 1, 1, 0}, "equal": {1, 0, 0, 1}} {
		expect(t, name, eval(t, name, nil, x, y), []int{4}, want, 0)
		expect(t, name, eval(t, name, nil, x, arg([]bool{true}, 1)), []int{4}, []float64{want[1], want[1], want[3], want[3]}, 0)
	}
	expect(t, "not", eval(t, "not", nil, x), []int{4}, []float64{1, 1, 0, 0}, 0)
}

func TestWhere(t *testing.T) {
	cond := arg([]bool{true, false, true}, 3)
	for _, dt := range append(floatTypes, intTypes...) {
		x, y := fromFloats(dt, []float64{1, 2, 3, 4, 5, 6}, 2, 3), fromFloats(dt, []float64{7, 8}, 2, 1)
		expect(t, "where", eval(t, "where", nil, cond, x, y), []int{2, 3}, []float64{1, 7, 3, 4, 8, 6}, 0)
		expect(t, "where", eval(t, "where", nil, cond, y, x), []int{2, 3}, []float64{7, 2, 7, 8, 5, 8}, 0)
	}
	expect(t, "where", eval(t, "where", nil, cond, arg([]bool{true}, 1), cond), []int{3}, []float64{1, 0, 1}, 0)
}

func TestVariadic(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		x, y, z := fromFloats(dt, []float64{1, 9, 3, 4, 5, 6}, 2, 3), fromFloats(dt, []float64{4, 2, 5}, 3), fromFloats(dt, []float64{6, 7}, 2, 1)
		same := []op.Arg{x, fromFloats(dt, []float64{6, 1, 3, 9, 2, 8}, 2, 3), fromFloats(dt, []float64{2, 2, 6, 8, 5, 1}, 2, 3)}
		for name, want := range map[string][3][]float64{
			"max":  {{6, 9, 6, 7, 7, 7}, {6, 9, 6, 9, 5, 8}, {1, 9, 3, 4, 5, 6}},
			"min":  {{1, 2, 3, 4, 2, 5}, {1, 1, 3, 4, 2, 1}, {1, 9, 3, 4, 5, 6}},
			"sum":  {{11, 17, 14, 15, 14, 18}, {9, 12, 12, 21, 12, 15}, {1, 9, 3, 4, 5, 6}},
			"mean": {{11. / 3, 17. / 3, 14. / 3, 5, 14. / 3, 6}, {3, 4, 4, 7, 4, 5}, {1, 9, 3, 4, 5, 6}},
		} {
			if !admits(name, dt) {
				continue
			}
			expect(t, name, eval(t, name, nil, x, y, z), []int{2, 3}, want[0], tolerance(dt))
			expect(t, name, eval(t, name, nil, same...), []int{2, 3}, want[1], tolerance(dt))
			expect(t, name, eval(t, name, nil, x), []int{2, 3}, want[2], 0)
		}
	}
	// The rounding is the same in any operand's bytes, over several tiles.
	var big []op.Arg
	for i := range 4 {
		big = append(big, random(dtype.F32, uint64(i), -1e6, 1e6, 3, spanElements/2))
	}
	eval(t, "sum", nil, big...)
	eval(t, "mean", nil, big...)
}

func TestCast(t *testing.T) {
	src := []float64{0, 1, 2, 3, 100, 7, 64, 5, 9}
	all := append(append([]dtype.DType{}, floatTypes...), intTypes...)
	for _, from := range all {
		for _, to := range all {
			got := eval(t, "cast", attrs("to", to), fromFloats(from, src, 3, 3))
			expect(t, fmt.Sprintf("cast %v to %v", from, to), got, []int{3, 3}, src, 0)
		}
		got := eval(t, "cast", attrs("to", dtype.Bool), fromFloats(from, src, 3, 3))
		expect(t, fmt.Sprintf("cast %v to bool", from), got, []int{3, 3}, []float64{0, 1, 1, 1, 1, 1, 1, 1, 1}, 0)
		got = eval(t, "cast", attrs("to", from), arg([]bool{true, false}, 2))
		expect(t, fmt.Sprintf("cast bool to %v", from), got, []int{2}, []float64{1, 0}, 0)
		packed := eval(t, "cast", attrs("to", dtype.I4), fromFloats(from, []float64{0, 1, 2, 3, 7}, 5))
		expect(t, "cast from i4", eval(t, "cast", attrs("to", from), packed), []int{5}, []float64{0, 1, 2, 3, 7}, 0)
	}
	big := random(dtype.F32, 5, -100, 100, spanElements+3)
	want := floats(big)
	for i := range want {
		want[i] = math.Trunc(want[i])
	}
	expect(t, "cast", eval(t, "cast", attrs("to", dtype.I32), big), []int{spanElements + 3}, want, 0)
}

func TestUnsupportedTypesAreNamed(t *testing.T) {
	c := call(t, "add", nil, 1, ints(1, 2), ints(3, 4))
	c.In[0].DType, c.In[1].DType = dtype.C64, dtype.C64
	_, err := Bind(c)
	if !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), "c64[2], c64[2]") {
		t.Errorf("got %v, want ErrUnsupported with the types", err)
	}
}
