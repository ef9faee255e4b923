package conv

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Windows that stay in one channel, of depthwise convolutions and pools, read
// rows that are copied first: with padding around them, and taken apart by the
// stride, elements 0, s, 2s, ... before elements 1, s+1, ... Then tap k of
// neighbouring outputs reads neighbours, at a distance from the output's place
// that a table holds.

func windowRows(v *kernel.Variant, kind kernel.WindowKind, call kernel.WindowCall) {
	if v.Conv.Windows == nil {
		portableWindowRows(kind, call)
		return
	}
	v.Conv.Windows(kind, call)
}

func padRows(v *kernel.Variant, kind kernel.PadKind, call kernel.PadCall) {
	if v.Conv.Pads == nil {
		portablePadRows(kind, call)
		return
	}
	v.Conv.Pads(kind, call)
}

// copiedRows is how the rows of an area of outputs are copied.
type copiedRows struct {
	window   *Window
	offsets  []int32
	rowSize  int // floats of a copied row, of a part of it, and of all
	partSize int
	height   int // rows per tap of the outermost axis
	floats   int
	fill     float32
}

// Windows that many taps or wide gaps make larger than this are for other ways.
const (
	copiedTaps   = 4 << 10
	copiedFloats = 1 << 20
)

// copyable reports whether rows can be copied for windows like this.
func (w *Window) copyable() bool {
	if w.taps > copiedTaps {
		return false
	}
	row := float64(w.out[2])*float64(w.stride[2]) + float64(w.reach(2))
	return row*float64(w.kernel[0])*float64(w.reach(1)) <= float64(copiedFloats+8*min(w.inArea, 16*copiedFloats))
}

// prepare lays out copies for areas of up to rows rows of outputs in one plane.
func (r *copiedRows) prepare(v *kernel.Variant, w *Window, rows int, fill float32) {
	*r = copiedRows{window: w, fill: fill, offsets: r.offsets[:0]}
	step := w.stride[2]
	r.partSize = w.out[2] + (w.reach(2)-1)/step
	if step > 1 { // whole vectors of one part end before the next
		r.partSize = kernel.CeilDiv(r.partSize, v.Conv.Lanes)*v.Conv.Lanes + v.Conv.Lanes
	}
	r.rowSize = step * r.partSize
	r.height = (rows-1)*w.stride[1] + w.reach(1)
	r.floats = w.kernel[0]*r.height*r.rowSize + 2*v.Conv.Lanes
	for z := range w.kernel[0] {
		for y := range w.kernel[1] {
			for x := range w.kernel[2] {
				at := x * w.dilation[2]
				r.offsets = append(r.offsets, int32(4*((z*r.height+y*w.dilation[1])*r.rowSize+at%step*r.partSize+at/step)))
			}
		}
	}
}

// rowChange is what happens to elements as they are copied.
type rowChange struct {
	scale, shift float32
	affine, relu bool
}

func (c *Conv) rowChange(channel int, args *Args) rowChange {
	f := rowChange{scale: 1, affine: c.ScaleShift, relu: c.PrologueRelu}
	if c.ScaleShift {
		f.scale, f.shift = args.Scale[channel], args.Shift[channel]
	}
	return f
}

// copy copies what rows [y, y+rows) of plane z of the outputs read. src is a
// plane of the input from row origin, over both outer axes, on.
func (r *copiedRows) copy(v *kernel.Variant, dst, src []float32, origin, z, y, rows int, change rowChange) {
	w := r.window
	height := (rows-1)*w.stride[1] + w.reach(1)
	top := y*w.stride[1] - w.padBegin[1]
	for tz := range w.kernel[0] {
		plane := dst[tz*r.height*r.rowSize:]
		iz := z*w.stride[0] - w.padBegin[0] + tz*w.dilation[0]
		lo, hi := min(max(0, -top), height), max(0, min(height, w.in[1]-top))
		if iz < 0 || iz >= w.in[0] || lo >= hi {
			kernel.Repeat(plane[:height*r.rowSize], r.fill)
			continue
		}
		kernel.Repeat(plane[:lo*r.rowSize], r.fill)
		r.copyRows(v, plane[lo*r.rowSize:], src[w.InSteps.at(iz, top+lo-origin, 0):], hi-lo, change)
		kernel.Repeat(plane[hi*r.rowSize:height*r.rowSize], r.fill)
	}
}

// copyRows copies whole rows of the input.
func (r *copiedRows) copyRows(v *kernel.Variant, dst, src []float32, rows int, change rowChange) {
	w := r.window
	step, left := w.stride[2], w.padBegin[2]
	left = min(left, step*(w.out[2]-1)+w.reach(2))
	n := min(w.in[2], step*(w.out[2]-1)+w.reach(2)-left)
	if n <= 0 {
		kernel.Repeat(dst[:rows*r.rowSize], r.fill)
		return
	}
	kind := kernel.PadPlain
	call := kernel.PadCall{
		Src: &src[0], SrcStep: 4 * w.InSteps.Row, Dst: &dst[0], DstStep: 4 * r.rowSize, Rows: rows, N: n, Left: left, Width: r.partSize,
		Fill: r.fill, Scale: change.scale, Shift: change.shift, Floor: float32(math.Inf(-1)),
	}
	_, _ = src[(rows-1)*w.InSteps.Row+n-1], dst[rows*r.rowSize+v.Conv.Lanes-1]
	switch {
	case step == 2 && !change.affine && !change.relu:
		// The first element goes to the part of the even or of the odd ones.
		kind = kernel.PadPairs
		call.Width = r.partSize - v.Conv.Lanes
		first, second := left%2*r.partSize, (left+1)%2*r.partSize
		call.Dst, call.Left = &dst[first], left/2
		call.Dst1, call.Left1 = &dst[second], (left+1)/2
	case step > 1:
		r.takeApart(dst, src, rows, n, left, change)
		return
	case change.affine || change.relu:
		kind = kernel.PadAffine
		if change.relu {
			call.Floor = 0
		}
	}
	padRows(v, kind, call)
}

// takeApart is copyRows for strides that have no loop of their own.
func (r *copiedRows) takeApart(dst, src []float32, rows, n, left int, change rowChange) {
	w := r.window
	step := w.stride[2]
	for i := range rows {
		row := dst[i*r.rowSize:][:r.rowSize]
		kernel.Repeat(row, r.fill)
		for k, v := range src[i*w.InSteps.Row:][:n] {
			if change.affine {
				v = v*change.scale + change.shift
			}
			if change.relu {
				v = max(v, 0)
			}
			row[(k+left)%step*r.partSize+(k+left)/step] = v
		}
	}
}

// sum adds up weighted taps.
func (r *copiedRows) sum(v *kernel.Variant, call kernel.WindowCall) {
	w := r.window
	if v.Conv.TallWindows != nil && w.kernel[0] == 1 && w.dilation[1] == 1 {
		tall := call
		tall.Taps, tall.SourceStep = w.kernel[2], 4*r.rowSize
		if v.Conv.TallWindows(w.kernel[1], w.stride[1], tall) {
			return
		}
	}
	windowRows(v, kernel.WindowSum, call)
}

// call is for rows of outputs whose source is copied at src.
func (r *copiedRows) call(v *kernel.Variant, src []float32, rows int) kernel.WindowCall {
	w := r.window
	last := (rows-1)*w.stride[1]*r.rowSize + int(r.offsets[len(r.offsets)-1])/4
	_ = src[last+kernel.CeilDiv(w.out[2], v.Conv.Lanes)*v.Conv.Lanes-1]
	return kernel.WindowCall{
		Src: &src[0], RowStep: 4 * w.stride[1] * r.rowSize, Offsets: &r.offsets[0], Taps: len(r.offsets),
		Rows: rows, Cols: w.out[2], OutStep: 4 * w.OutSteps.Row, Low: float32(math.Inf(-1)), High: float32(math.Inf(1)),
	}
}
