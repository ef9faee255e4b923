package op

import (
	"math"

	"github.com/tenure-go/tenure/shape"
)

var resizeOps = []*Def{{
	Name: "resize", ONNX: "Resize", Doc: "resamples x to another size, given as scales or as sizes; operands x, roi, scales, sizes",
	MinArgs: 1, MaxArgs: 4,
	Attrs: []AttrDef{
		intAttr("antialias", 0), intsAttr("axes"), stringAttr("coordinate_transformation_mode", "half_pixel"),
		floatAttr("cubic_coeff_a", -0.75), intAttr("exclude_outside", 0), floatAttr("extrapolation_value", 0),
		stringAttr("keep_aspect_ratio_policy", "stretch"), stringAttr("mode", "nearest"), stringAttr("nearest_mode", "round_prefer_floor"),
	},
	Infer: inferResize, Alias: Fresh(),
}}

// ResizeAxis describes a resize along one axis.
type ResizeAxis struct {
	In, Out  int
	Scale    float64 // as given, or Out / In; 0 for an axis without elements
	Lo, Hi   float64 // region of interest in fractions of the axis; 0 and 1 unless the operand has one
	Resizing bool    // false: an axis that no operand names
}

// given is Has, and not the empty list that older models hold a place with;
// a list of unknown length counts as given.
func (s *Sig) given(arg int) bool {
	if !s.Has(arg) {
		return false
	}
	n, ok := s.listLen(arg)
	return !ok || n > 0
}

func inferResize(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	for i, types := range []dtypes{floats, floats, int64s} {
		if err := s.wantList(i+1, types, 1); err != nil {
			return err
		}
	}
	if err := s.resizeModes(); err != nil {
		return err
	}
	both := s.given(2) && s.given(3)
	if both && s.typeOf(2).IsStatic() && s.typeOf(3).IsStatic() || !s.given(2) && !s.given(3) {
		return badShape("got scales %s and sizes %s, want one of them", s.typeOf(2), s.typeOf(3))
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	rank := x.Shape.Rank()
	if both { // one of them may turn out to be empty
		return s.giveRank(0, x.DType, rank)
	}
	spans, ok, err := s.resizeSpans(rank)
	if err != nil {
		return err
	}
	if !ok {
		return s.giveRank(0, x.DType, rank)
	}
	dims := x.Shape.Dims()
	for i := range dims {
		if dims[i], err = spans[i].dim(dims[i]); err != nil {
			return err
		}
	}
	if s.given(3) {
		if _, err := s.keepAspect(spans, x, dims); err != nil {
			return err
		}
	}
	return s.give(0, x.DType, dims...)
}

func (s *Sig) typeOf(arg int) Type {
	if arg < len(s.Args) {
		return s.Args[arg]
	}
	return Type{}
}

func (s *Sig) resizeModes() error {
	for _, flag := range []string{"antialias", "exclude_outside"} {
		if _, err := s.wantFlag(flag); err != nil {
			return err
		}
	}
	for _, attr := range [][]string{
		{"mode", "nearest", "linear", "cubic"},
		{"nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "inward"},
		{"keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"},
		{"coordinate_transformation_mode", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"},
	} {
		if _, err := s.wantOneOf(attr[0], attr[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// resizeSpan has the statements of the operands about one axis.
type resizeSpan struct {
	named  bool
	scale  float64 // 0: size counts
	size   int
	lo, hi float64
}

// resizeSpans reads the operands; false when they are not known.
func (s *Sig) resizeSpans(rank int) ([]resizeSpan, bool, error) {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if s.Attrs.Has("axes") {
		var err error
		if axes, err = axesOf(s.Ints("axes"), rank); err != nil {
			return nil, false, err
		}
	}
	arg := 2
	if s.given(3) {
		arg = 3
	}
	if n, ok := s.listLen(arg); ok && n != len(axes) {
		return nil, false, badShape("operand %d: got %s for %d axes, want a number for each", arg, s.Args[arg], len(axes))
	}
	list, known := s.KnownFloats(arg)
	if !known || len(list) != len(axes) {
		return nil, false, nil
	}
	roi, cropped, ok, err := s.regionOf(len(axes))
	if err != nil || !ok {
		return nil, false, err
	}
	spans := make([]resizeSpan, rank)
	for i := range spans {
		spans[i].hi = 1
	}
	for i, a := range axes {
		sp := &spans[a]
		sp.named = true
		if cropped {
			sp.lo, sp.hi = roi[i], roi[len(axes)+i]
		}
		v := list[i]
		switch {
		case arg == 2 && !(v > 0 && v <= math.MaxFloat32):
			return nil, false, badShape("scales: got %v, want numbers above 0", list)
		case arg == 3 && !(v >= 0 && v <= maxSize):
			return nil, false, badShape("sizes: got %v, want numbers from 0 to 2^58", list)
		case arg == 2:
			sp.scale = v
		default:
			sp.size = int(v)
		}
	}
	return spans, true, nil
}

// regionOf reads the region of interest, which counts in one mode only.
func (s *Sig) regionOf(n int) (roi []float64, cropped, ok bool, err error) {
	if s.Str("coordinate_transformation_mode") != "tf_crop_and_resize" {
		return nil, false, true, nil
	}
	if !s.given(1) {
		return nil, false, false, badShape("got no region of interest, want one for tf_crop_and_resize")
	}
	if m, counted := s.listLen(1); counted && m != 2*n {
		return nil, false, false, badShape("roi: got %s for %d axes, want %d numbers", s.Args[1], n, 2*n)
	}
	roi, known := s.KnownFloats(1)
	if !known || len(roi) != 2*n {
		return nil, false, false, nil
	}
	for _, v := range roi {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false, false, badShape("roi: got %v, want finite numbers", roi)
		}
	}
	return roi, true, true, nil
}

// dim is the dimension of the result. The product is made in single
// precision: a scale is a float32 that was made as out / in, and must give out
// again. The region of interest does not count in it: ONNX's text has it as a
// factor, but its shape inference, its reference implementation and ONNX
// Runtime do not.
func (sp resizeSpan) dim(d shape.Dim) (shape.Dim, error) {
	n, sized := d.Size()
	switch {
	case !sp.named, sp.scale == 1:
		return d, nil
	case sp.scale == 0:
		switch {
		case sized && n == 0 && sp.size > 0:
			return d, badShape("got size 0 to resize to %d, want an element to sample", sp.size)
		case sized && n > 0 && sp.size == 0:
			return d, badShape("got size %d to resize to 0, which only an axis without elements has", n)
		}
		return shape.N(sp.size), nil
	case !sized:
		return shape.Unknown, nil
	}
	out := math.Floor(float64(float32(n) * float32(sp.scale)))
	if !(out >= 0 && out <= maxSize) {
		return d, badShape("got size %d with scale %v, want a size of 0 to 2^58", n, sp.scale)
	}
	return shape.N(int(out)), nil
}

// keepAspect changes dims to those of one scale for all axes, which it
// returns, unless the policy is to stretch: then it returns 0.
func (s *Sig) keepAspect(spans []resizeSpan, x Type, dims []shape.Dim) (float64, error) {
	policy := s.Str("keep_aspect_ratio_policy")
	if policy == "stretch" {
		return 0, nil
	}
	scale := math.Inf(1)
	if policy == "not_smaller" {
		scale = 0
	}
	for i, sp := range spans {
		n, ok := x.Shape.Dim(i).Size()
		if !sp.named || ok && n == 0 { // an axis without elements has no ratio
			continue
		}
		if !ok {
			scale = math.NaN() // it depends on a size that is not known
			continue
		}
		if ratio := float64(sp.size) / float64(n); policy == "not_smaller" {
			scale = max(scale, ratio)
		} else {
			scale = min(scale, ratio)
		}
	}
	for i, sp := range spans {
		n, ok := x.Shape.Dim(i).Size()
		if !sp.named || ok && n == 0 {
			continue
		}
		dims[i] = shape.Unknown
		if ok && !math.IsNaN(scale) {
			out := math.Floor(scale*float64(n) + 0.5)
			if !(out >= 0 && out <= maxSize) {
				return 0, badShape("sizes: got a size of %v along axis %d, want 0 to 2^58", out, i)
			}
			dims[i] = shape.N(int(out))
		}
	}
	return scale, nil
}

// ResizeAxes describes a call of resize with a static first operand along each
// of its axes; it returns false when the other operands are not known.
func (s *Sig) ResizeAxes() ([]ResizeAxis, bool, error) {
	if err := s.wantStatic(0); err != nil {
		return nil, false, err
	}
	x := s.Args[0]
	spans, ok, err := s.resizeSpans(x.Shape.Rank())
	if err != nil || !ok {
		return nil, false, err
	}
	axes := make([]ResizeAxis, len(spans))
	dims := x.Shape.Dims()
	for i, sp := range spans {
		axes[i] = ResizeAxis{In: x.Shape.Size(i), Scale: sp.scale, Lo: sp.lo, Hi: sp.hi, Resizing: sp.named}
		if dims[i], err = sp.dim(dims[i]); err != nil {
			return nil, false, err
		}
	}
	if s.given(3) {
		scale, err := s.keepAspect(spans, x, dims)
		if err != nil {
			return nil, false, err
		}
		for i := range axes {
			if axes[i].Resizing {
				axes[i].Scale = scale // of the axes, not of their rounded sizes
			}
		}
	}
	for i := range axes {
		a := &axes[i]
		a.Out, _ = dims[i].Size()
		if a.Scale == 0 && a.In > 0 {
			a.Scale = float64(a.Out) / float64(a.In)
		}
	}
	return axes, true, nil
}
