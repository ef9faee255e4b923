package conv

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// gather packs the patches of positions [col, col+cols) into panels: rows [k,
// k+depth) of the matrix whose column is a patch. A panel's columns are filled
// in pieces that lie in one row of the output.
func (c *Conv) gather(panels []float32, batch, group, k, depth, col, cols int, args *Args) {
	w := &c.view
	in := args.In[batch*w.InSteps.Batch+group*(c.InChannels/c.Group)*w.InSteps.Channel:]
	width := w.out[2]
	for done := 0; done < cols; {
		pos := col + done
		x := pos % width
		n := min(c.nr-done%c.nr, width-x, cols-done)
		piece := patchPiece{
			z: pos / width / w.out[1], y: pos / width % w.out[1], x: x, n: n,
			to: done/c.nr*c.nr*depth + done%c.nr,
		}
		c.gatherPiece(&piece, panels, in, group, k, depth, args)
		done += n
	}
	if pad := cols % c.nr; pad != 0 {
		last := panels[cols/c.nr*c.nr*depth:]
		for i := range depth {
			clear(last[i*c.nr+pad : (i+1)*c.nr])
		}
	}
}

// patchPiece is n neighbouring positions of one row of the output, and where
// the first row of their patches goes.
type patchPiece struct{ z, y, x, n, to int }

// patchRun says where the patches of a piece lie if their rows are all inside:
// rows of planes, and the piece's place in a row, which may begin before it or
// end behind it.
type patchRun struct {
	planes, rows, taps           int
	planeStep, rowStep, dilation int
	x, width, n                  int
}

// patchRows packs a piece's patches one tap of the innermost axis after the
// other.
func patchRows(v *kernel.Variant, r patchRun, dst, src []float32) {
	rows, width := r.planes*r.rows, v.Conv.PatchWidth
	last := (r.planes-1)*r.planeStep + (r.rows-1)*r.rowStep
	for t := range r.taps {
		at := r.x + t*r.dilation
		lo, hi := min(max(-at, 0), r.n), min(max(r.width-at, 0), r.n)
		_ = dst[(rows*r.taps-r.taps+t)*width+r.n-1]
		if lo < hi {
			_ = src[last+at+hi-1]
		}
		v.Conv.Patches(r.planes, r.rows, &dst[t*width], 4*r.taps*width, &src[0], 4*at, 4*r.rowStep, 4*r.planeStep, lo, hi, r.n)
	}
}

// gatherRun packs a piece with patchRows, if it is one for that: whole
// channels, no prologue, neighbours side by side, all rows inside and not
// empty.
func (c *Conv) gatherRun(p *patchPiece, panels, in []float32, k, depth int) bool {
	w := &c.view
	if c.v.Conv.Patches == nil || w.in[2] == 0 || c.ScaleShift || c.PrologueRelu || w.stride[2] != 1 || w.kernel[0] != 1 || k%w.taps != 0 || depth%w.taps != 0 {
		return false
	}
	z, y := p.z*w.stride[0]-w.padBegin[0], p.y*w.stride[1]-w.padBegin[1]
	if z < 0 || z >= w.in[0] || y < 0 || y+(w.kernel[1]-1)*w.dilation[1] >= w.in[1] {
		return false
	}
	run := patchRun{
		planes: depth / w.taps, rows: w.kernel[1], taps: w.kernel[2],
		planeStep: w.InSteps.Channel, rowStep: w.dilation[1] * w.InSteps.Row, dilation: w.dilation[2],
		x: p.x - w.padBegin[2], width: w.in[2], n: p.n,
	}
	patchRows(c.v, run, panels[p.to:], in[k/w.taps*w.InSteps.Channel+w.InSteps.at(z, y, 0):])
	return true
}

// gatherPiece walks the taps from the k-th on.
func (c *Conv) gatherPiece(p *patchPiece, panels, in []float32, group, k, depth int, args *Args) {
	if c.gatherRun(p, panels, in, k, depth) {
		return
	}
	w := &c.view
	tx := k % w.kernel[2]
	ty := k / w.kernel[2] % w.kernel[1]
	tz := k / w.kernel[2] / w.kernel[1] % w.kernel[0]
	channel := k / w.taps
	to := p.to
	for left := depth; left > 0; {
		z := p.z*w.stride[0] - w.padBegin[0] + tz*w.dilation[0]
		y := p.y*w.stride[1] - w.padBegin[1] + ty*w.dilation[1]
		n := min(w.kernel[2]-tx, left)
		if z < 0 || z >= w.in[0] || y < 0 || y >= w.in[1] {
			for range n {
				clear(panels[to : to+p.n])
				to += c.nr
			}
		} else {
			row := in[channel*w.InSteps.Channel+w.InSteps.at(z, y, 0):][:w.in[2]]
			for t := tx; t < tx+n; t++ {
				c.gatherTap(panels[to:to+p.n], row, p.x, t, group*(c.InChannels/c.Group)+channel, args)
				to += c.nr
			}
		}
		left -= n
		tx = 0
		if ty++; ty == w.kernel[1] {
			ty = 0
			if tz++; tz == w.kernel[0] {
				tz = 0
				channel++
			}
		}
	}
}

// gatherTap copies what tap t of the innermost axis reads for outputs x, x+1,
// ... from a row of the input, through the prologue.
func (c *Conv) gatherTap(dst, row []float32, x, t, channel int, args *Args) {
	w := &c.view
	step := w.stride[2]
	at := x*step - w.padBegin[2] + t*w.dilation[2]
	if at < 0 {
		n := min(kernel.CeilDiv(-at, step), len(dst))
		clear(dst[:n])
		dst, at = dst[n:], at+n*step
	}
	if inside := kernel.CeilDiv(max(len(row)-at, 0), step); inside < len(dst) {
		clear(dst[inside:])
		dst = dst[:inside]
	}
	if len(dst) == 0 {
		return
	}
	if step == 1 {
		copy(dst, row[at:])
	} else {
		for i := range dst {
			dst[i] = row[at]
			at += step
		}
	}
	c.prologue(dst, channel, args)
}

func (c *Conv) prologue(row []float32, channel int, args *Args) {
	if c.ScaleShift {
		elementwise.UnaryRow(c.v, kernel.Affine, row, row, args.Scale[channel], args.Shift[channel])
	}
	if c.PrologueRelu {
		elementwise.UnaryRow(c.v, kernel.Relu, row, row, 0, 0)
	}
}
