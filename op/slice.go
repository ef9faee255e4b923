package op

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// sliceOps is the family of slice.
var sliceOps = []*Def{{
	Name: "slice", ONNX: "Slice", Doc: "slices x from starts to ends by steps along axes; ends are exclusive, negative numbers count from the end",
	MinArgs: 3, MaxArgs: 5, Infer: inferSlice,
	Alias: Aliases(Rule{Kind: View, Offset: sliceOffset}).OfBoxes(sliceBox),
}}

// SliceAxis describes a slice along one axis: Size elements from Start by
// Step, which may be negative.
type SliceAxis struct{ Start, Step, Size int }

// sliceSpan is how one axis is sliced as far as it is known; an axis that no
// operand names is whole.
type sliceSpan struct {
	named, known     bool
	start, end, step int64
}

// sliceSpans reads the operands for axes of the given number, into buf where
// that has the capacity; false means that not even the axes are known.
func (s *Sig) sliceSpans(buf []sliceSpan, rank int) ([]sliceSpan, bool, error) {
	n, counted := s.sliceLen()
	if !counted {
		return nil, false, nil
	}
	var axesBuf [8]int
	var listBuf [4][8]int64
	axes := axesBuf[:0]
	if s.Has(3) {
		list, known := s.AppendKnownInts(listBuf[3][:0], 3)
		if !known {
			return nil, false, nil
		}
		var err error
		if axes, err = appendAxes(axes, list, rank); err != nil {
			return nil, false, err
		}
	} else {
		if n > rank {
			return nil, false, badShape("got %d starts for %s, want at most %d", n, s.Args[0], rank)
		}
		for i := range n {
			axes = append(axes, i)
		}
	}
	starts, ok1 := s.AppendKnownInts(listBuf[0][:0], 1)
	ends, ok2 := s.AppendKnownInts(listBuf[1][:0], 2)
	steps, ok3 := s.AppendKnownInts(listBuf[2][:0], 4)
	ok3 = ok3 || !s.Has(4)
	if len(axes) != n || ok1 && len(starts) != n || ok2 && len(ends) != n || s.Has(4) && ok3 && len(steps) != n {
		return nil, false, badShape("got %d starts, %d ends, %d axes and %d steps, want as many of each", len(starts), len(ends), n, len(steps))
	}
	spans := slices.Grow(buf[:0], rank)[:rank]
	clear(spans)
	for i, a := range axes {
		sp := &spans[a]
		sp.named, sp.known, sp.step = true, ok1 && ok2 && ok3, 1
		if !sp.known {
			continue
		}
		sp.start, sp.end = starts[i], ends[i]
		if s.Has(4) {
			sp.step = steps[i]
		}
		if sp.step == 0 {
			return nil, false, badShape("steps: got %v, want no 0", slices.Clone(steps))
		}
	}
	return spans, true, nil
}

// sliceLen is the number of axes that starts, ends, axes and steps name.
func (s *Sig) sliceLen() (int, bool) {
	for arg := 1; arg <= 4; arg++ {
		if s.Has(arg) {
			if n, ok := s.listLen(arg); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// over clamps the span to an axis of the given size.
func (sp sliceSpan) over(size int) SliceAxis {
	n := int64(size)
	if !sp.named {
		return SliceAxis{0, 1, size}
	}
	clamp := func(v, lo, hi int64) int64 {
		if v < 0 {
			v = max(v, -n-1) + n
		}
		return min(max(v, lo), hi)
	}
	start, end := clamp(sp.start, 0, n), clamp(sp.end, 0, n)
	if sp.step < 0 {
		start, end = clamp(sp.start, 0, n-1), clamp(sp.end, -1, n-1)
	}
	step := min(max(sp.step, -maxSize), maxSize)
	count := int64(0)
	switch {
	case step > 0 && end > start:
		count = (end - start + step - 1) / step
	case step < 0 && end < start:
		count = (start - end - step - 1) / -step
	}
	if count == 0 {
		start = 0
	}
	return SliceAxis{int(start), int(step), int(count)}
}

// dim is over for a dimension that may have no size.
func (sp sliceSpan) dim(d shape.Dim) shape.Dim {
	size, sized := d.Size()
	switch {
	case !sp.named:
		return d
	case !sp.known:
		return shape.Unknown
	case sized:
		return shape.N(sp.over(size).Size)
	}
	// Bounds of 2^58 lie outside every size: such a slice is the whole
	// dimension.
	forward := sp.step == 1 && (sp.start == 0 || sp.start <= -maxSize) && sp.end >= maxSize
	backward := sp.step == -1 && (sp.start == -1 || sp.start >= maxSize) && sp.end <= -maxSize
	if forward || backward {
		return d
	}
	return shape.Unknown
}

// SliceAxes returns the slice that a call of slice with a static first operand
// takes along each of its axes; false when the other operands are not known.
func (s *Sig) SliceAxes() ([]SliceAxis, bool, error) { return s.AppendSliceAxes(nil) }

// AppendSliceAxes is SliceAxes that appends to dst.
func (s *Sig) AppendSliceAxes(dst []SliceAxis) ([]SliceAxis, bool, error) {
	if err := s.wantStatic(0); err != nil {
		return nil, false, err
	}
	sizes := s.Args[0].Shape.Sizes()
	var buf [8]sliceSpan
	spans, ok, err := s.sliceSpans(buf[:], len(sizes))
	if err != nil || !ok {
		return nil, false, err
	}
	for i, sp := range spans {
		if sp.named && !sp.known {
			return nil, false, nil
		}
		dst = append(dst, sp.over(sizes[i]))
	}
	return dst, true, nil
}

func inferSlice(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	count, counted := s.sliceLen()
	for i := 1; i < len(s.Args); i++ {
		if err := s.wantList(i, indices, 1); err != nil {
			return err
		}
		if err := s.wantLike(i, 1); err != nil {
			return err
		}
		if n, ok := s.listLen(i); s.Has(i) && ok && counted && n != count {
			return badShape("operand %d: got %s, want %d numbers as in the other operands", i, s.Args[i], count)
		}
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	var buf [8]sliceSpan
	spans, ok, err := s.sliceSpans(buf[:], x.Shape.Rank())
	if err != nil {
		return err
	}
	if !ok {
		return s.giveRank(0, x.DType, x.Shape.Rank())
	}
	var dimsBuf [fewDims]shape.Dim
	dims := appendDims(dimsBuf[:0], x.Shape)
	for i, sp := range spans {
		dims[i] = sp.dim(dims[i])
	}
	return s.give(0, x.DType, dims...)
}

// sliceBox finds a slice in the operand: by steps of 1, or one element long.
func sliceBox(s *Sig, _ int, at []int) (arg int, ok bool) {
	var buf [8]SliceAxis
	axes, ok, err := s.AppendSliceAxes(buf[:0])
	if err != nil || !ok {
		return -1, false
	}
	for d, a := range axes {
		if a.Step != 1 && a.Size > 1 {
			return -1, false
		}
		at[d] = a.Start
	}
	return 0, true
}

// sliceOffset returns the start of a slice that lies in one piece: one element
// of each axis before some axis, neighbours along it, and all of every axis
// after it.
func sliceOffset(s *Sig, _ int) (int, bool) {
	if !s.Args[0].IsStatic() {
		return 0, false
	}
	x := s.Args[0].Shape
	var buf [8]SliceAxis
	axes, ok, err := s.AppendSliceAxes(buf[:0])
	if err != nil || !ok {
		return 0, false
	}
	offset, whole := 0, true // whole: all axes after this one are
	for i := len(axes) - 1; i >= 0; i-- {
		a := axes[i]
		switch {
		case a.Size == 0:
			return 0, true // no elements lie anywhere
		case a.Size > 1 && (a.Step != 1 || !whole):
			ok = false
		}
		whole = whole && a.Size == x.Size(i)
		offset += a.Start * x.Strides()[i]
	}
	return offset * s.Args[0].DType.Size(), ok
}
