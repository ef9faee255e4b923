package kernel

type convCode struct {
	nr      int // two vectors
	patches patchesFunc
	taps    func(n int, dst, x, w *float32, rows, taps, dilation, gap int)
	taps3x3 func(n int, dst, x, w *float32, dilation, rowStep int)

	tiles     func(call convTile, vectors, n int)
	leaves    func(call convLeave)
	lanes     int
	positions int
}

type patchesFunc func(planes, rows int, dst *float32, step int, src *float32, at, rowStep, planeStep, lo, hi, n int)

var (
	conv256 = convCode{nr: 16, patches: patches256, taps: taps256, taps3x3: taps3x3x256,
		tiles: convTiles256, leaves: func(call convLeave) { convLeave256(&call) }, lanes: 8, positions: 6}
	conv512 = convCode{nr: 32, patches: patches512, taps: taps512, taps3x3: taps3x3x512,
		tiles: convTiles512, leaves: func(call convLeave) { convLeave512(&call) }, lanes: 16, positions: 14}
)

func (v *convCode) install() {
	patchRows = v.patchRows
	tapRows = v.tapRows
	convTiles, convLeaves, convLanes, convPositions = v.tiles, v.leaves, v.lanes, v.positions
}

// patchRows packs a piece's patches one tap of the innermost axis after the other.
func (v *convCode) patchRows(r patchRun, dst, src []float32) {
	rows := r.planes * r.rows
	last := (r.planes-1)*r.planeStep + (r.rows-1)*r.rowStep
	for t := range r.taps {
		at := r.x + t*r.dilation
		lo, hi := min(max(-at, 0), r.n), min(max(r.width-at, 0), r.n)
		_ = dst[(rows*r.taps-r.taps+t)*v.nr+r.n-1]
		if lo < hi {
			_ = src[last+at+hi-1]
		}
		v.patches(r.planes, r.rows, &dst[t*v.nr], 4*r.taps*v.nr, &src[0], 4*at, 4*r.rowStep, 4*r.planeStep, lo, hi, r.n)
	}
}

func (v *convCode) tapRows(out, in, w []float32, taps, rowStep, stride, dilation int) {
	if stride != 1 || len(w) == 0 {
		portableTapRows(out, in, w, taps, rowStep, stride, dilation)
		return
	}
	rows := len(w) / taps
	for len(out) > 0 {
		n := min(len(out), max(1, asmElements/len(w)))
		_ = in[(rows-1)*rowStep+n-1+(taps-1)*dilation]
		if rows == 3 && taps == 3 {
			v.taps3x3(n, &out[0], &in[0], &w[0], 4*dilation, 4*rowStep)
		} else {
			v.taps(n, &out[0], &in[0], &w[0], rows, taps, 4*dilation, 4*(rowStep-taps*dilation))
		}
		if out = out[n:]; len(out) > 0 {
			in = in[n:]
		}
	}
}
