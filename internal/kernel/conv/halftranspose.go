package conv

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// HalfTranspose is a transposed convolution of 16-bit floats. A tile is a part
// of a smaller one of float32: of a run of outputs along one axis, for which
// the inputs that reach them are widened into scratch. Its results are rounded
// once.
type HalfTranspose struct {
	Type dtype.DType

	v        *kernel.Variant // of Prepare
	whole    *Transpose
	axis     int // that is cut
	cuts     []transposeCut
	parts    []Transpose // by the kind of a cut
	rowParts int         // tiles that share a box: each computes some of the channels
	place    halfPlaces
}

// HalfTransposeArgs are the operands. Bias may be nil.
type HalfTransposeArgs struct {
	Out, In, Weights, Bias []uint16
}

// transposeCut is a run of outputs along the axis that is cut, and the inputs
// that reach them. Cuts of one kind differ in where they begin alone.
type transposeCut struct {
	out, in axisRun
	pad     int // before the outputs
	kind    int
}

// Prepare works out the tiles of a transposed convolution, which is not
// prepared, but for its sizes. It keeps it.
func (h *HalfTranspose) Prepare(v *kernel.Variant, c *Transpose) {
	h.v, h.whole = v, c
	c.Prepare(v)
	for h.axis = 0; h.axis < MaxSpatial-1 && c.axes[h.axis].Out == 1; {
		h.axis++
	}
	perGroup, out := c.OutChannels/c.Group, c.axes[h.axis].Out
	other := max(1, c.out/max(1, out))
	size := min(max(1, out), max(c.axes[h.axis].Stride, 2*halfFloats/max(1, other*max(1, perGroup))))
	for size > 2*c.axes[h.axis].Stride && c.Batch*c.Group*c.blocks*kernel.CeilDiv(out, size) < kernel.WantedTiles {
		size = kernel.CeilDiv(size, 2)
	}
	size = kernel.EvenTile(out, size, 1)
	h.cuts, h.parts, h.rowParts, h.place = h.cuts[:0], h.parts[:0], 1, halfPlaces{}
	var in, region, scratch int
	for at := 0; at < out; at += size {
		k := h.cutAt(at, min(size, out-at))
		if k.kind == len(h.parts) {
			h.addPart(&k)
			part := &h.parts[k.kind]
			h.rowParts = max(h.rowParts, part.blocks)
			in, region, scratch = max(in, part.InChannels*part.in), max(region, perGroup*part.out), max(scratch, part.ScratchBytes()/4)
		}
		h.cuts = append(h.cuts, k)
	}
	p := &h.place
	p.out = in
	p.bias = p.out + region
	p.part = p.bias + perGroup
	p.end = p.part + scratch
}

// cutAt returns what reaches n outputs from one on.
func (h *HalfTranspose) cutAt(at, n int) transposeCut {
	a := &h.whole.axes[h.axis]
	begin := at + a.PadBefore // outputs count from the first one of input 0
	lo := max(0, kernel.CeilDiv(max(0, begin-(a.Kernel-1)*a.Dilation), a.Stride))
	hi := lo
	if last := begin + n - 1; last >= 0 {
		hi = max(lo, min(a.In, last/a.Stride+1))
	}
	k := transposeCut{out: axisRun{at: at, n: n}, in: axisRun{at: lo, n: hi - lo}, pad: begin - lo*a.Stride}
	if hi == lo {
		k.in.at, k.pad = 0, 0
	}
	k.kind = len(h.parts)
	for _, other := range h.cuts {
		if other.out.n == n && other.in.n == k.in.n && other.pad == k.pad {
			k.kind = other.kind
		}
	}
	return k
}

// addPart prepares the float32 convolution of cuts of one kind.
func (h *HalfTranspose) addPart(k *transposeCut) {
	c := h.whole
	h.parts = slices.Grow(h.parts, 1)[:len(h.parts)+1]
	part := &h.parts[k.kind]
	to := Transpose{
		Batch: 1, Group: 1, InChannels: c.InChannels / c.Group, OutChannels: c.OutChannels / c.Group,
		Axes: append(part.Axes[:0], c.axes[:]...), Act: c.Act, WeightType: h.Type,
	}
	a := &to.Axes[h.axis]
	a.In, a.Out, a.PadBefore = k.in.n, k.out.n, k.pad
	*part = to
	part.Prepare(h.v)
}

// ScratchBytes returns the size of the scratch that Tile needs, per worker.
func (h *HalfTranspose) ScratchBytes() int { return 4 * h.place.end }

// Tiles returns the number of tiles.
func (h *HalfTranspose) Tiles() int {
	if h.whole.out == 0 {
		return 0
	}
	return h.whole.Batch * h.whole.Group * len(h.cuts) * h.rowParts
}

// Tile computes part t. scratch holds at least ScratchBytes()/4 floats.
func (h *HalfTranspose) Tile(t int, scratch []float32, args *HalfTransposeArgs) {
	c, p := h.whole, &h.place
	rowPart := t % h.rowParts
	t /= h.rowParts
	k := &h.cuts[t%len(h.cuts)]
	t /= len(h.cuts)
	group, batch := t%c.Group, t/c.Group
	part := &h.parts[k.kind]
	first, end := rowPart*part.blocks/h.rowParts, (rowPart+1)*part.blocks/h.rowParts
	row := first * part.channels
	rows := min(end*part.channels, part.OutChannels) - row
	if rows <= 0 {
		return
	}
	var in, out halfBox
	for i := range c.axes {
		in.n[i], out.n[i] = c.axes[i].In, c.axes[i].Out
	}
	in.at[h.axis], in.n[h.axis] = k.in.at, k.in.n
	out.at[h.axis], out.n[h.axis] = k.out.at, k.out.n
	with := TransposeArgs{In: scratch[:p.out], Out: scratch[p.out:p.bias], HalfWeights: args.Weights[group*part.InChannels*part.OutChannels*c.taps:]}
	in.widen(h.v, h.Type, with.In, args.In[batch*c.InSteps.Batch+group*part.InChannels*c.InSteps.Channel:], &c.InSteps, 0, part.InChannels)
	if args.Bias != nil {
		with.Bias = scratch[p.bias:p.part][:part.OutChannels]
		elementwise.Widen(h.v, h.Type, with.Bias, args.Bias[group*part.OutChannels:], 0, 1)
	}
	for i := first; i < end; i++ {
		part.Tile(i, scratch[p.part:], &with)
	}
	out.round(h.v, h.Type, args.Out[batch*c.OutSteps.Batch+group*part.OutChannels*c.OutSteps.Channel:], with.Out, &c.OutSteps, row, rows)
}
