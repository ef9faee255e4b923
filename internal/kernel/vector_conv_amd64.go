package kernel

type convCode struct {
	nr      int // two vectors
	patches patchesFunc

	tiles     func(call convTile, vectors, n int)
	leaves    func(call convLeave)
	rowTiles  func(call convRowTile, vectors, n int)
	lanes     int
	positions int
	channels  int

	windows func(kind windowKind, call windowCall)
	pads    func(kind padKind, call padCall)
}

type patchesFunc func(planes, rows int, dst *float32, step int, src *float32, at, rowStep, planeStep, lo, hi, n int)

var (
	conv256 = convCode{
		nr: 16, patches: patches256, tiles: convTiles256, leaves: func(call convLeave) { convLeave256(&call) }, lanes: 8, positions: 6,
		rowTiles: convRowTiles256, channels: 5,
		windows: windows256, pads: pads256,
	}
	conv512 = convCode{
		nr: 32, patches: patches512, tiles: convTiles512, leaves: func(call convLeave) { convLeave512(&call) }, lanes: 16, positions: 14,
		rowTiles: convRowTiles512, channels: 14,
		windows: windows512, pads: pads512,
	}
)

func (v *convCode) install() {
	patchRows = v.patchRows
	convTiles, convLeaves, convLanes, convPositions = v.tiles, v.leaves, v.lanes, v.positions
	convRowTiles, convRowChannels = v.rowTiles, v.channels
	windowRows, padRows, rowLanes = v.windows, v.pads, v.lanes
}

// Calls by name keep their argument on the stack, those through a variable would not.

func windows256(kind windowKind, call windowCall) {
	switch kind {
	case windowSum:
		windowSum256(&call)
	case windowMax:
		windowMax256(&call)
	default:
		windowMean256(&call)
	}
}

func windows512(kind windowKind, call windowCall) {
	switch kind {
	case windowSum:
		windowSum512(&call)
	case windowMax:
		windowMax512(&call)
	default:
		windowMean512(&call)
	}
}

func pads256(kind padKind, call padCall) {
	switch kind {
	case padPlain:
		padRows256(&call)
	case padAffine:
		padAffine256(&call)
	default:
		padPairs256(&call)
	}
}

func pads512(kind padKind, call padCall) {
	switch kind {
	case padPlain:
		padRows512(&call)
	case padAffine:
		padAffine512(&call)
	default:
		padPairs512(&call)
	}
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
