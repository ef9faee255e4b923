package conv

import "github.com/tenure-go/tenure/internal/kernel"

// GatherBytes copies the elements of x [channels, In...] that the windows at
// positions [col, col+cols) of the output read to dst: a row of cols bytes per
// channel and tap, ld apart. Elements outside of x are pad. The window is
// resolved.
func (w *Window) GatherBytes(dst, x []byte, channels, col, cols, ld int, pad byte) {
	width := w.out[2]
	for done := 0; done < cols; {
		at := (col + done) % width
		n := min(width-at, cols-done)
		p := patchPiece{z: (col + done) / width / w.out[1], y: (col + done) / width % w.out[1], x: at, n: n, to: done}
		w.gatherBytesPiece(&p, dst, x, channels, ld, pad)
		done += n
	}
}

// gatherBytesPiece gathers neighbouring positions of one row of the output.
func (w *Window) gatherBytesPiece(p *patchPiece, dst, x []byte, channels, ld int, pad byte) {
	to := p.to
	for channel := range channels {
		for tz := range w.kernel[0] {
			z := p.z*w.stride[0] - w.padBegin[0] + tz*w.dilation[0]
			for ty := range w.kernel[1] {
				y := p.y*w.stride[1] - w.padBegin[1] + ty*w.dilation[1]
				var row []byte // none outside
				if z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1] {
					row = x[((channel*w.in[0]+z)*w.in[1]+y)*w.in[2]:][:w.in[2]]
				}
				for tx := range w.kernel[2] {
					patchTap(dst[to:][:p.n], row, p.x*w.stride[2]-w.padBegin[2]+tx*w.dilation[2], w.stride[2], pad)
					to += ld
				}
			}
		}
	}
}

// patchTap copies every step-th byte of a row from at on, and the pad where
// that is outside.
func patchTap(dst, row []byte, at, step int, pad byte) {
	if step == 1 && at >= 0 && at+len(dst) <= len(row) {
		copy(dst, row[at:])
		return
	}
	before := 0
	if at < 0 {
		before = min(kernel.CeilDiv(-at, step), len(dst))
	}
	at += before * step
	inside := min(kernel.CeilDiv(max(len(row)-at, 0), step), len(dst)-before)
	for i := range dst[:before] {
		dst[i] = pad
	}
	mid := dst[before:][:inside]
	switch {
	case inside == 0: // at may lie outside
	case step == 1:
		copy(mid, row[at:])
	default:
		for i := range mid {
			mid[i] = row[at]
			at += step
		}
	}
	rest := dst[before+inside:]
	for i := range rest {
		rest[i] = pad
	}
}
