package op_test

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

func f32(dims ...int) op.Type { return op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)} }

// call builds an inferred call whose operands after the first few types are
// lists of known i64.
func call(rt *rapid.T, name string, attrs map[string]any, types []op.Type, lists ...[]int64) *op.Sig {
	s := &op.Sig{Def: op.Builtin().Lookup(name), Args: types, Results: make([]op.Type, 1)}
	for k, v := range attrs {
		s.Attrs = s.Attrs.With(k, v)
	}
	first := len(types)
	for _, l := range lists {
		s.Args = append(s.Args, op.Type{DType: dtype.I64, Shape: shape.MustOf(len(l))})
	}
	s.Known = func(arg int) ([]byte, bool) {
		if arg < first {
			return nil, false
		}
		var data []byte
		for _, v := range lists[arg-first] {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		return data, true
	}
	if err := op.InferTypes(s); err != nil {
		rt.Fatalf("%s %v %v %v: %v", name, types, attrs, lists, err)
	}
	return s
}

// The result of a convolution has one element for each place of the window
// inside the padded operand; with "same" pads there are as many places as
// strides.
func TestConvAxes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(rt, "kernel")
		d := rapid.IntRange(1, 3).Draw(rt, "dilation")
		stride := rapid.IntRange(1, 4).Draw(rt, "stride")
		b, e := rapid.IntRange(0, 4).Draw(rt, "begin"), rapid.IntRange(0, 4).Draw(rt, "end")
		span := (k-1)*d + 1
		in := rapid.IntRange(span, span+9).Draw(rt, "in")
		attrs := map[string]any{"strides": []int64{int64(stride)}, "dilations": []int64{int64(d)}}
		auto := rapid.SampledFrom([]string{"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}).Draw(rt, "auto")
		if attrs["auto_pad"] = auto; auto == "NOTSET" {
			attrs["pads"] = []int64{int64(b), int64(e)}
		}
		s := call(rt, "conv", attrs, []op.Type{f32(1, 2, in), f32(3, 2, k)})
		axes, err := s.ConvAxes()
		if err != nil || len(axes) != 1 {
			rt.Fatalf("got axes %v, error %v, want one axis", axes, err)
		}
		a := axes[0]
		switch auto {
		case "NOTSET":
			if a.Begin != b || a.End != e {
				rt.Fatalf("got pads %d and %d, want %d and %d", a.Begin, a.End, b, e)
			}
		case "VALID":
			if a.Begin != 0 || a.End != 0 {
				rt.Fatalf("got pads %d and %d, want none", a.Begin, a.End)
			}
		default:
			if want := (in + stride - 1) / stride; a.Out != want {
				rt.Fatalf("%+v: got %d places, want %d", a, a.Out, want)
			}
			less, more := a.Begin, a.End
			if auto == "SAME_LOWER" {
				less, more = more, less
			}
			if more != less && more != less+1 {
				rt.Fatalf("%+v %s: got uneven pads", a, auto)
			}
		}
		places := 0
		for start := 0; start+span <= in+a.Begin+a.End; start += stride {
			places++
		}
		if a.Out != places || s.Results[0].Shape.Size(2) != places || a.In != in || a.Kernel != k || a.Stride != stride || a.Dilation != d {
			rt.Fatalf("%+v: want %d places of kernel %d, stride %d, dilation %d over %d", a, places, k, stride, d, in)
		}
	})
}

// In ceil mode a pooling also has the place that reaches past the end, unless
// the window would start there.
func TestPoolAxesInCeilMode(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(rt, "kernel")
		stride := rapid.IntRange(1, 6).Draw(rt, "stride")
		b, e := rapid.IntRange(0, k-1).Draw(rt, "begin"), rapid.IntRange(0, k-1).Draw(rt, "end")
		in := rapid.IntRange(k, k+9).Draw(rt, "in")
		ceil := rapid.Bool().Draw(rt, "ceil")
		attrs := map[string]any{"kernel_shape": []int64{int64(k)}, "strides": []int64{int64(stride)}, "pads": []int64{int64(b), int64(e)}, "ceil_mode": int64(0)}
		if ceil {
			attrs["ceil_mode"] = int64(1)
		}
		s := call(rt, "max_pool", attrs, []op.Type{f32(1, 1, in)})
		axes, err := s.PoolAxes()
		if err != nil {
			rt.Fatal(err)
		}
		want, covered := 0, 0
		for start := 0; start+k <= b+in+e || ceil && covered < b+in+e && start < b+in; start += stride {
			want++
			covered = start + k
		}
		if axes[0].Out != want || s.Results[0].Shape.Size(2) != want {
			rt.Fatalf("%+v ceil %t: got %d places, want %d", axes[0], ceil, axes[0].Out, want)
		}
	})
}

// The pads of a transposed convolution are those for which the plain
// convolution with the same numbers leads back from the result to the operand.
func TestConvTransposeAxes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.IntRange(1, 5).Draw(rt, "kernel")
		d := rapid.IntRange(1, 3).Draw(rt, "dilation")
		stride := rapid.IntRange(1, 4).Draw(rt, "stride")
		in := rapid.IntRange(1, 6).Draw(rt, "in")
		full := (in-1)*stride + (k-1)*d + 1
		attrs := map[string]any{"strides": []int64{int64(stride)}, "dilations": []int64{int64(d)}}
		want := full
		switch rapid.IntRange(0, 3).Draw(rt, "form") {
		case 0:
			b := rapid.IntRange(0, full/2).Draw(rt, "begin")
			e := rapid.IntRange(0, full/2).Draw(rt, "end")
			attrs["pads"] = []int64{int64(b), int64(e)}
			want = full - b - e
		case 1:
			want = rapid.IntRange(1, full).Draw(rt, "out")
			attrs["output_shape"] = []int64{int64(want)}
		case 2:
			want = in * stride
			attrs["auto_pad"] = rapid.SampledFrom([]string{"SAME_UPPER", "SAME_LOWER"}).Draw(rt, "auto")
		}
		s := call(rt, "conv_transpose", attrs, []op.Type{f32(1, 2, in), f32(2, 3, k)})
		axes, err := s.ConvTransposeAxes()
		if err != nil {
			rt.Fatal(err)
		}
		a := axes[0]
		if a.Out != want || s.Results[0].Shape.Size(2) != want || a.In != in {
			rt.Fatalf("%+v: want %d from %d", a, want, in)
		}
		if a.Out <= full && a.Begin+a.End != full-a.Out {
			rt.Fatalf("%+v: want pads of %d together", a, full-a.Out)
		}
		less, more := a.End, a.Begin
		if attrs["auto_pad"] == "SAME_UPPER" {
			less, more = more, less
		}
		if attrs["pads"] == nil && a.Out < full && more != less && more != less+1 {
			rt.Fatalf("%+v %v: got uneven pads", a, attrs)
		}
		if a.Begin < 0 || a.End < 0 {
			rt.Fatalf("%+v: got a negative pad", a)
		}
	})
}

// The elements that a slice selects are those found by counting step by step,
// and it is a view exactly when they are neighbours in the operand.
func TestSliceAxesAndView(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(rt, "sizes")
		n := len(sizes)
		var starts, ends, axes, steps []int64
		for i := range n {
			starts = append(starts, rapid.Int64Range(-6, 6).Draw(rt, "start"))
			ends = append(ends, rapid.Int64Range(-6, 6).Draw(rt, "end"))
			steps = append(steps, rapid.SampledFrom([]int64{1, 1, 1, 2, -1, -2}).Draw(rt, "step"))
			axes = append(axes, int64(i))
		}
		s := call(rt, "slice", nil, []op.Type{f32(sizes...)}, starts, ends, axes, steps)
		got, ok, err := s.SliceAxes()
		if err != nil || !ok {
			rt.Fatalf("got %t, %v, want the axes", ok, err)
		}
		places := []int{0} // offsets of the elements in the operand
		for i, size := range sizes {
			var along []int
			for j := clampStart(starts[i], size, steps[i] < 0); inSlice(j, ends[i], size, steps[i]); j += int(steps[i]) {
				along = append(along, j)
			}
			if len(along) != got[i].Size || len(along) > 0 && along[0] != got[i].Start || len(along) > 1 && along[1]-along[0] != got[i].Step {
				rt.Fatalf("axis %d of %d from %d to %d by %d: got %+v, want %v", i, size, starts[i], ends[i], steps[i], got[i], along)
			}
			var next []int
			for _, p := range places {
				for _, j := range along {
					next = append(next, p+j*s.Args[0].Shape.Strides()[i])
				}
			}
			places = next
		}
		neighbours := true
		for i := 1; i < len(places); i++ {
			neighbours = neighbours && places[i] == places[i-1]+1
		}
		kind, offset := s.AliasOf(0, 0)
		if (kind == op.View) != neighbours {
			rt.Fatalf("%v %v %v %v: got %s, elements at %v", sizes, starts, ends, steps, kind, places)
		}
		if len(places) > 0 && neighbours && offset != 4*places[0] {
			rt.Fatalf("%v %v %v %v: got a view at %d, elements at %v", sizes, starts, ends, steps, offset, places)
		}
	})
}

func clampStart(v int64, size int, backwards bool) int {
	if v < 0 {
		v += int64(size)
	}
	last := size
	if backwards {
		last = size - 1
	}
	return int(min(max(v, 0), int64(last)))
}

func inSlice(j int, end int64, size int, step int64) bool {
	if end < 0 {
		end += int64(size)
	}
	if step > 0 {
		return int64(j) < end && j < size
	}
	return int64(j) > end && j >= 0
}

// The parts of a split that are views lie where the parts before them end.
func TestSplitViews(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		outer := rapid.IntRange(1, 2).Draw(rt, "outer")
		inner := rapid.IntRange(1, 3).Draw(rt, "inner")
		parts := rapid.SliceOfN(rapid.Int64Range(0, 3), 1, 4).Draw(rt, "parts")
		whole := 0
		for _, p := range parts {
			whole += int(p)
		}
		s := &op.Sig{
			Def:     op.Builtin().Lookup("split"),
			Attrs:   op.Attrs{{Name: "axis", Value: int64(1)}},
			Args:    []op.Type{f32(outer, whole, inner), {DType: dtype.I64, Shape: shape.MustOf(len(parts))}},
			Results: make([]op.Type, len(parts)),
			Known: func(int) (data []byte, ok bool) {
				for _, p := range parts {
					data = binary.LittleEndian.AppendUint64(data, uint64(p))
				}
				return data, true
			},
		}
		if err := op.InferTypes(s); err != nil {
			rt.Fatal(err)
		}
		at := 0
		for i, p := range parts {
			kind, offset := s.AliasOf(0, i)
			if (kind == op.View) != (outer == 1) {
				rt.Fatalf("part %d of %s: got %s", i, s.Args[0], kind)
			}
			if kind == op.View && whole > 0 && offset != at*inner*4 {
				rt.Fatalf("part %d of %v: got a view at %d, want %d", i, parts, offset, at*inner*4)
			}
			at += int(p)
		}
	})
}

// Reshape agrees with counting elements.
func TestReshapeHole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 4).Draw(rt, "sizes")
		hole := rapid.IntRange(0, len(sizes)-1).Draw(rt, "hole")
		order := rapid.Permutation(sizes).Draw(rt, "order")
		target := make([]int64, len(sizes))
		for i, n := range order {
			target[i] = int64(n)
		}
		target[hole] = -1
		s := call(rt, "reshape", nil, []op.Type{f32(sizes...)}, target)
		if want := shape.MustOf(order...); s.Results[0].Shape != want {
			rt.Fatalf("%v as %v: got %s, want %s", sizes, target, s.Results[0], want)
		}
	})
}

func TestRangeLen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		start, limit := rapid.Int64Range(-9, 9).Draw(rt, "start"), rapid.Int64Range(-9, 9).Draw(rt, "limit")
		delta := rapid.SampledFrom([]int64{-4, -3, -1, 1, 2, 5}).Draw(rt, "delta")
		want := 0
		for v := start; delta > 0 && v < limit || delta < 0 && v > limit; v += delta {
			want++
		}
		for _, dt := range []dtype.DType{dtype.I64, dtype.F64} {
			s := &op.Sig{Def: op.Builtin().Lookup("range"), Results: make([]op.Type, 1)}
			scalar := op.Type{DType: dt, Shape: shape.Scalar()}
			s.Args = []op.Type{scalar, scalar, scalar}
			s.Known = func(arg int) ([]byte, bool) {
				v := []int64{start, limit, delta}[arg]
				if dt == dtype.F64 {
					return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(v))), true
				}
				return binary.LittleEndian.AppendUint64(nil, uint64(v)), true
			}
			if n, ok, err := s.RangeLen(); n != want || !ok || err != nil {
				rt.Fatalf("%s from %d to %d by %d: got %d, %t, %v, want %d", dt, start, limit, delta, n, ok, err, want)
			}
		}
	})
}

func TestReduceAxes(t *testing.T) {
	for _, test := range []struct {
		axes []int64
		noop int64
		want []int
	}{
		{[]int64{2, -3}, 0, []int{0, 2}},
		{[]int64{}, 0, []int{0, 1, 2}},
		{[]int64{}, 1, []int{}},
	} {
		s := &op.Sig{Def: op.Builtin().Lookup("reduce_sum"), Args: []op.Type{f32(2, 3, 4), {DType: dtype.I64, Shape: shape.MustOf(len(test.axes))}}}
		s.Attrs = s.Attrs.With("noop_with_empty_axes", test.noop)
		s.Known = func(int) (data []byte, ok bool) {
			for _, v := range test.axes {
				data = binary.LittleEndian.AppendUint64(data, uint64(v))
			}
			return data, true
		}
		got, ok, err := s.ReduceAxes(3)
		if err != nil || !ok || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v noop %d: got %v, %t, %v, want %v", test.axes, test.noop, got, ok, err, test.want)
		}
	}
}

func TestResizeAxes(t *testing.T) {
	s := parseCall(t, "", `resize f32[1,8] _ f32[2]{1,0.55}`, 1)
	if err := op.InferTypes(s); err != nil {
		t.Fatal(err)
	}
	axes, ok, err := s.ResizeAxes()
	want := []op.ResizeAxis{{In: 1, Out: 1, Scale: 1, Hi: 1, Resizing: true}, {In: 8, Out: 4, Scale: float64(float32(0.55)), Hi: 1, Resizing: true}}
	if !ok || err != nil || !reflect.DeepEqual(axes, want) {
		t.Errorf("got %+v, %t, %v, want %+v", axes, ok, err, want)
	}
	s = parseCall(t, "", `resize f32[3,8] f32[2]{0.25,0.75} _ i64[1]{4} axes=[1] coordinate_transformation_mode="tf_crop_and_resize"`, 1)
	if err := op.InferTypes(s); err != nil {
		t.Fatal(err)
	}
	axes, ok, err = s.ResizeAxes()
	want = []op.ResizeAxis{{In: 3, Out: 3, Scale: 1, Hi: 1}, {In: 8, Out: 4, Scale: 0.5, Lo: 0.25, Hi: 0.75, Resizing: true}}
	if !ok || err != nil || !reflect.DeepEqual(axes, want) {
		t.Errorf("got %+v, %t, %v, want %+v", axes, ok, err, want)
	}
}

// The pooling of a fused convolution runs over the convolution's result.
func TestFusedPoolAxes(t *testing.T) {
	s := parseCall(t, "", `fused_conv f32[1,3,9,8] f32[4,3,3,3] pool="max" pool_kernel=[2,3] pool_strides=[2,1] pool_pads=[1,0,0,1]`, 1)
	axes, err := s.FusedPoolAxes()
	want := []op.WindowAxis{
		{In: 7, Out: 4, Kernel: 2, Stride: 2, Dilation: 1, Begin: 1},
		{In: 6, Out: 5, Kernel: 3, Stride: 1, Dilation: 1, End: 1},
	}
	if err != nil || !reflect.DeepEqual(axes, want) {
		t.Errorf("got %+v, %v, want %+v", axes, err, want)
	}
	s.Attrs = s.Attrs.With("pool", "")
	if axes, err := s.FusedPoolAxes(); axes != nil || err != nil {
		t.Errorf("got %v, %v without a pooling, want none", axes, err)
	}
}
