package sample

import (
	"math"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// ResizeTaps says which elements along one axis make each result: result i is
// the sum of Weight[k] * x[Index[k]] for k from i*Width to (i+1)*Width. A
// negative first Index stands for the extrapolation value.
type ResizeTaps struct {
	Width  int
	Index  []int
	Weight []float64
}

// ResizeMode is how results are made of elements.
type ResizeMode struct {
	Linear, Cubic  bool // neither: the nearest element
	Nearest        string
	Transform      string
	CubicA         float64
	Antialias      bool
	ExcludeOutside bool
}

// ResizeSpan is one axis: its sizes, the scale (results per element), and the
// region of interest in fractions of the axis.
type ResizeSpan struct {
	In, Out int
	Scale   float64
	Lo, Hi  float64
}

// coordinate returns where result i lies between the elements. The formulas
// are those of ONNX's Resize, in which the length of the result is the number
// of its elements: Scale * In may have a fraction.
func coordinate[T kernel.Float](m *ResizeMode, i int, a ResizeSpan) T {
	x, in, scale := T(i), T(a.In), T(a.Scale)
	switch m.Transform {
	case "align_corners":
		if a.Out <= 1 {
			return 0
		}
		return x * (in - 1) / T(a.Out-1)
	case "asymmetric":
		return x / scale
	case "tf_crop_and_resize":
		if a.Out > 1 {
			return T(T(a.Lo)*(in-1)) + x*(T(a.Hi)-T(a.Lo))*(in-1)/T(a.Out-1)
		}
		return T((a.Lo + a.Hi) * float64(a.In-1) / 2)
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / scale
	case "pytorch_half_pixel":
		if a.Out <= 1 {
			return 0
		}
	case "half_pixel_symmetric":
		// Where the size was rounded, both ends lose the same. The middle meets
		// the middle: no error may move it off a tie.
		shrink := float64(a.Out) / (a.Scale * float64(a.In))
		return T(float64(a.In)/2*(1-shrink) + (float64(i)+0.5)/a.Scale - 0.5)
	}
	return (x+0.5)/scale - 0.5
}

// Taps makes the table of one axis.
func (m *ResizeMode) Taps(a ResizeSpan) ResizeTaps {
	width, first := 1, 0
	squeeze := 1.0
	if m.Antialias {
		squeeze = min(a.Scale, 1)
	}
	switch {
	case m.Linear:
		first = int(math.Floor(-1/squeeze)) + 1
		width = 2 - 2*first
	case m.Cubic:
		first = int(math.Floor(-2/squeeze)) + 1
		width = 2 - 2*first
	}
	t := ResizeTaps{Width: width, Index: make([]int, a.Out*width), Weight: make([]float64, a.Out*width)}
	for i := range a.Out {
		x := coordinate[float64](m, i, a)
		if !m.Linear && !m.Cubic && max(a.In, a.Out) < 1<<24 {
			// A scale of 1.3 is one in single precision: only in it do its
			// products meet the ties between elements that are meant.
			x = float64(coordinate[float32](m, i, a))
		}
		index, weight := t.Index[i*width:(i+1)*width], t.Weight[i*width:(i+1)*width]
		switch {
		case m.Transform == "tf_crop_and_resize" && (x < 0 || x > float64(a.In-1)):
			index[0] = -1
		case m.Linear || m.Cubic:
			m.weigh(index, weight, x, first, squeeze, a.In)
		default:
			index[0], weight[0] = min(max(m.nearest(x, a.Scale), 0), a.In-1), 1
		}
	}
	return t
}

func (m *ResizeMode) nearest(x, scale float64) int {
	switch m.Nearest {
	case "inward": // as before opset 11
		if scale < 1 {
			return int(math.Ceil(x))
		}
		return int(math.Floor(x))
	case "round_prefer_ceil":
		return int(math.Floor(x + 0.5))
	case "floor":
		return int(math.Floor(x))
	case "ceil":
		return int(math.Ceil(x))
	}
	return int(math.Ceil(x - 0.5))
}

// weigh fills the taps around x. Elements beyond the ends are the ends, or
// count for nothing.
func (m *ResizeMode) weigh(index []int, weight []float64, x float64, first int, squeeze float64, in int) {
	floor := math.Floor(x)
	sum := 0.0
	for k := range index {
		at := first + k
		w := m.filter((float64(at) - (x - floor)) * squeeze)
		i := int(floor) + at
		if i < 0 || i >= in {
			if m.ExcludeOutside {
				w = 0
			}
			i = min(max(i, 0), in-1)
		}
		index[k], weight[k] = i, w
		sum += w
	}
	if sum == 0 {
		return
	}
	for k := range weight {
		weight[k] /= sum
	}
}

func (m *ResizeMode) filter(d float64) float64 {
	d = math.Abs(d)
	if m.Linear {
		return max(1-d, 0)
	}
	a := m.CubicA
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return 0
}

// Resize samples a tensor at another size, one table of taps per axis.
type Resize struct {
	Extrapolation float64

	in, out, strides []int
	to               []int // strides of the results; nil if rows follow each other
	taps             []ResizeTaps
	rows             int
	v                *kernel.Variant // of Prepare
	spreads          bool            // rows of elements are resized first, each once, and then blended
}

// Prepare sets up the resize for axes of the given sizes. The elements lie with
// strides, and so do the results; nil strides are those of row-major order. The
// elements of a row follow each other.
func (r *Resize) Prepare(v *kernel.Variant, in, out []int, taps []ResizeTaps, strides, to []int) {
	r.v, r.in, r.out, r.taps, r.to = v, in, out, taps, to
	if r.strides = append(r.strides[:0], strides...); strides == nil {
		r.strides = kernel.RowMajorIn(r.strides, in)
	}
	r.rows = 1
	for i := len(in) - 1; i >= 0; i-- {
		if i < len(in)-1 {
			r.rows *= out[i]
		}
	}
	r.spreads = r.maySpread()
}

// maySpread reports whether it pays to resize whole rows of elements by the
// taps of the last axis first: there are several results for each of these
// rows, and few rows for each result.
func (r *Resize) maySpread() bool {
	last := len(r.in) - 1
	if points := r.points(); last < 0 || points == 1 || points > spreadRows {
		return false
	}
	if slices.ContainsFunc(r.taps[last].Index, func(i int) bool { return i < 0 }) {
		return false // a weighted sum of the extrapolation value is another number
	}
	rows := 1
	for _, n := range r.in[:last] {
		rows *= n
	}
	return 2*r.rows >= 3*rows
}

// spreadRows is how many resized rows are kept at most.
const spreadRows = 16

// rowLen returns the results of one row.
func (r *Resize) rowLen() int {
	if len(r.out) == 0 {
		return 1
	}
	return r.out[len(r.out)-1]
}

// resizeGrain is the number of elements of one tile.
const resizeGrain = 8 << 10

// perTile returns the rows of a tile.
func (r *Resize) perTile() int { return max(1, resizeGrain/max(r.rowLen(), 1)) }

// Tiles returns the number of tiles.
func (r *Resize) Tiles() int { return (r.rows + r.perTile() - 1) / r.perTile() }

// ScratchBytes returns the scratch of one worker: where the taps of a row's
// outer axes are multiplied out, and a row of elements that they have blended.
func (r *Resize) ScratchBytes() int {
	switch {
	case r.spreads:
		return 16*(r.points()+1) + 8*r.points()*r.rowLen()
	case r.blends():
		return 16*r.points() + 8*r.in[len(r.in)-1]
	}
	return 16 * r.points()
}

// blends reports whether it pays to blend whole rows of elements by the taps of
// the outer axes first, and then to apply those of the last axis once.
func (r *Resize) blends() bool {
	last := len(r.in) - 1
	return r.points() > 1 && r.in[last] <= r.out[last]*r.taps[last].Width
}

func (r *Resize) points() int {
	n := 1
	for i := range max(len(r.taps)-1, 0) {
		n *= r.taps[i].Width
	}
	return n
}

// ResizeTile computes one tile.
func ResizeTile[T kernel.Float](r *Resize, tile int, scratch []byte, dst, src []T) {
	points := r.points()
	at, by := kernel.View[int](scratch[:8*points]), kernel.View[float64](scratch[8*points:16*points])
	n := r.rowLen()
	var line []T
	var kept spread[T]
	switch {
	case r.spreads:
		kept.one, kept.whole = kernel.View[int](scratch[16*points:][:8]), kernel.View[float64](scratch[16*points+8:][:8])
		kept.rows = kernel.View[T](scratch[16*(points+1):])[:points*n]
	case r.blends():
		line = kernel.View[T](scratch[16*points:])[:r.in[len(r.in)-1]]
	}
	lo := tile * r.perTile()
	for row := lo; row < min(lo+r.perTile(), r.rows); row++ {
		d := dst[r.place(row):][:n]
		count, inside := r.outer(row, at, by)
		switch {
		case !inside:
			for i := range d {
				d[i] = T(r.Extrapolation)
			}
		case len(r.out) == 0:
			d[0] = src[0]
		case points == 1 && r.taps[len(r.taps)-1].Width == 1:
			nearestRow(r, d, src[at[0]:])
		case r.spreads:
			kept.blend(r, d, src, at[:count], by[:count])
		case line != nil:
			blendRow(line, src, at[:count], by[:count])
			if r.taps[len(r.taps)-1].Width == 2 {
				linearRow(r, d, line)
				continue
			}
			at[0], by[0] = 0, 1
			resizeRow(r, d, line, at[:1], by[:1])
		default:
			resizeRow(r, d, src, at[:count], by[:count])
		}
	}
}

// place returns where a row of results begins.
func (r *Resize) place(row int) int {
	if r.to == nil {
		return row * r.rowLen()
	}
	at := 0
	for i := len(r.out) - 2; i >= 0; i-- {
		at += row % r.out[i] * r.to[i]
		row /= r.out[i]
	}
	return at
}

func nearestRow[T kernel.Float](r *Resize, dst, src []T) {
	for i, x := range r.taps[len(r.taps)-1].Index {
		if x < 0 {
			dst[i] = T(r.Extrapolation)
			continue
		}
		dst[i] = src[x]
	}
}

// linearRow is resizeRow for one row of weight 1, and two taps.
func linearRow[T kernel.Float](r *Resize, dst, src []T) {
	t := &r.taps[len(r.taps)-1]
	index, weight := t.Index[:2*len(dst)], t.Weight[:2*len(dst)]
	for i := range dst {
		at, by := index[2*i:2*i+2:2*i+2], weight[2*i:2*i+2:2*i+2]
		if at[0] < 0 {
			dst[i] = T(r.Extrapolation)
			continue
		}
		dst[i] = T(by[0]*float64(src[at[0]]) + by[1]*float64(src[at[1]]))
	}
}

// spread keeps rows of elements that were resized along the last axis: of each
// the place of the elements, and the row.
type spread[T kernel.Float] struct {
	at    [spreadRows]int
	count int
	rows  []T
	one   []int // a place and its weight, in scratch: arguments of loops would be on the heap
	whole []float64
}

// blend sets dst to the weighted sum of the rows at some places, and resizes
// those that are not kept.
func (s *spread[T]) blend(r *Resize, dst, src []T, at []int, by []float64) {
	clear(dst)
	for p, start := range at {
		row := s.row(r, len(dst), src, start, at)
		if unsafe.Sizeof(row[0]) == 4 && r.v.Gemm.Axpy1 != nil {
			weight := kernel.View[float32](kernel.BytesOf(s.whole))
			weight[0] = float32(by[p])
			to, from := kernel.View[float32](kernel.BytesOf(dst)), kernel.View[float32](kernel.BytesOf(row))
			r.v.Gemm.Axpy1(len(to), &to[0], &weight[0], &from[:len(to)][0], 0)
			continue
		}
		for i, x := range row {
			dst[i] += T(by[p]) * x
		}
	}
}

// row returns the resized row at a place, in the place of one that is not among
// those that are read now.
func (s *spread[T]) row(r *Resize, n int, src []T, start int, now []int) []T {
	i := slices.Index(s.at[:s.count], start)
	if i >= 0 {
		return s.rows[i*n:][:n]
	}
	if s.count < len(s.rows)/n {
		i = s.count
		s.count++
	} else {
		i = slices.IndexFunc(s.at[:s.count], func(kept int) bool { return !slices.Contains(now, kept) })
	}
	s.at[i] = start
	row := s.rows[i*n:][:n]
	if r.taps[len(r.taps)-1].Width == 2 {
		linearRow(r, row, src[start:])
	} else {
		s.one[0], s.whole[0] = start, 1
		resizeRow(r, row, src, s.one, s.whole)
	}
	return row
}

// blendRow adds up weighted rows of elements.
func blendRow[T kernel.Float](line, src []T, at []int, by []float64) {
	clear(line)
	for p, start := range at {
		w := T(by[p])
		for i, x := range src[start:][:len(line)] {
			line[i] += w * x
		}
	}
}

// outer multiplies out the taps of the axes before the last one: where a row
// of elements begins, and its weight. inside is false where it is outside of
// the region.
func (r *Resize) outer(row int, at []int, by []float64) (count int, inside bool) {
	at[0], by[0], count = 0, 1, 1
	for i := len(r.out) - 2; i >= 0; i-- {
		t := &r.taps[i]
		o := row % r.out[i]
		row /= r.out[i]
		index, weight := t.Index[o*t.Width:(o+1)*t.Width], t.Weight[o*t.Width:(o+1)*t.Width]
		if index[0] < 0 {
			return 0, false
		}
		// From the last tap to the first, so that the points made so far are
		// read before they are overwritten.
		for k := t.Width - 1; k >= 0; k-- {
			for j := range count {
				at[k*count+j] = at[j] + index[k]*r.strides[i]
				by[k*count+j] = by[j] * weight[k]
			}
		}
		count *= t.Width
	}
	return count, true
}

func resizeRow[T kernel.Float](r *Resize, dst, src []T, at []int, by []float64) {
	t := &r.taps[len(r.taps)-1]
	for i := range dst {
		index, weight := t.Index[i*t.Width:(i+1)*t.Width], t.Weight[i*t.Width:(i+1)*t.Width]
		if index[0] < 0 {
			dst[i] = T(r.Extrapolation)
			continue
		}
		sum := 0.0
		for p, start := range at {
			line := 0.0
			for k, x := range index {
				line += weight[k] * float64(src[start+x])
			}
			sum += by[p] * line
		}
		dst[i] = T(sum)
	}
}
