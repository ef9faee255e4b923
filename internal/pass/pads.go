package pass

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
)

// Pads moves the zeros that a pad puts around the spatial axes of a value into
// the pads of the convolutions and pools that read it, so that the padded value
// does not exist: exporters write a pad of its own where the two ends of an
// axis differ. A pool takes zeros where it counts them: an average of whole
// windows, and a maximum of what a relu made. A maximum takes minus infinity,
// too. A pool of an image without elements is refused, so that only a pad makes
// one of it.
//
// Requires: fold (the pads are constants), views. Guarantees: no pad of
// constant extents, which do not depend on the sizes of inputs, that all of its
// readers can take in has a reader.
//
// Left to other passes: the pad itself, which nothing reads then (dce).
var Pads = Pass{Name: "pads", Doc: "move pads into the convolutions and pools that read them", Run: movePads}

func movePads(ctx *Context) error {
	m := &padMover{ctx: ctx, uses: countUses(ctx.Program), readers: map[*ir.Value][]*ir.Call{}}
	var pads []*ir.Call
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		if c.Op.Name == "pad" {
			pads = append(pads, c)
		}
		for _, a := range c.Args {
			if a.Value != nil {
				m.readers[a.Value] = append(m.readers[a.Value], c)
			}
		}
	})
	for _, c := range slices.Backward(pads) { // the last of several goes first
		m.move(c)
	}
	return nil
}

type padMover struct {
	ctx     *Context
	uses    map[*ir.Value]int
	readers map[*ir.Value][]*ir.Call
}

// padding is what a pad puts around spatial axes.
type padding struct {
	ends []int64 // all begins, then all ends
	zero bool    // with +0, not with minus infinity
	relu bool    // of a result of relu
}

// move makes the readers of a pad read its operand, if all of them can.
func (m *padMover) move(c *ir.Call) {
	p, ok := m.paddingOf(c)
	if !ok || len(m.readers[c.Results[0]]) != m.uses[c.Results[0]] {
		return
	}
	r, x := c.Results[0], c.Args[0].Value
	taken := make([]taking, len(m.readers[r]))
	for i, reader := range m.readers[r] {
		if taken[i], ok = m.take(reader, r, p); !ok {
			return
		}
	}
	for i, reader := range m.readers[r] {
		reader.Args[0].Value = x
		if !explicitPads(attrsOf(reader).Str("auto_pad")) {
			reader.Attrs = reader.Attrs.With("auto_pad", "NOTSET")
		}
		reader.Attrs = reader.Attrs.With("pads", taken[i].pads)
		if taken[i].counts {
			reader.Attrs = reader.Attrs.With("count_include_pad", int64(1))
		}
	}
	at := slices.Index(m.readers[x], c)
	m.readers[x] = slices.Concat(m.readers[x][:at], m.readers[x][at+1:], m.readers[r])
	m.uses[x] += m.uses[r] - 1
}

// paddingOf reads a pad with constants around spatial axes.
func (m *padMover) paddingOf(c *ir.Call) (p padding, ok bool) {
	x := c.Args[0].Value
	pads, ok := m.ints(c, 1)
	if !ok || attrsOf(c).Str("mode") != "constant" || len(m.readers[c.Results[0]]) == 0 {
		return p, false
	}
	axes, some := m.ints(c, 3)
	n := rank(x)
	switch {
	case some:
	case len(c.Args) > 3 && c.Args[3].Value != nil:
		return p, false
	default:
		n = len(pads) / 2
		for i := range n {
			axes = append(axes, int64(i))
		}
	}
	if n < 3 || len(pads) != 2*len(axes) {
		return p, false
	}
	p.ends = make([]int64, 2*(n-2))
	for i, axis := range axes {
		if axis < 0 {
			axis += int64(n)
		}
		for side, pad := range [2]int64{pads[i], pads[len(axes)+i]} {
			switch {
			case pad < 0 || pad > 0 && axis < 2:
				return p, false
			case axis >= 2:
				p.ends[side*(n-2)+int(axis)-2] += pad
			}
		}
	}
	p.relu = x.Def != nil && x.Def.Op.Name == "relu"
	p.zero, ok = m.value(c)
	return p, ok
}

// ints returns the numbers of an operand that is a constant.
func (m *padMover) ints(c *ir.Call, arg int) (list []int64, ok bool) {
	if arg >= len(c.Args) || c.Args[arg].Value == nil || !m.ctx.isKnown(c.Args[arg].Value) {
		return nil, false
	}
	v := c.Args[arg].Value
	if m.ctx.varies(v) { // with the sizes of inputs: a program for each of these would be too many
		return nil, false
	}
	data, ok := m.ctx.constant(v)
	if !ok {
		return nil, false
	}
	switch v.Type.DType {
	case dtype.I64:
		for ; len(data) > 0; data = data[8:] {
			list = append(list, int64(binary.LittleEndian.Uint64(data)))
		}
	case dtype.I32:
		for ; len(data) > 0; data = data[4:] {
			list = append(list, int64(int32(binary.LittleEndian.Uint32(data))))
		}
	default:
		return nil, false
	}
	return list, true
}

// value reads what a pad puts around its operand: zero, or minus infinity.
func (m *padMover) value(c *ir.Call) (zero, ok bool) {
	if len(c.Args) < 3 || c.Args[2].Value == nil {
		return true, true
	}
	v := c.Args[2].Value
	if !m.ctx.isKnown(v) || m.ctx.varies(v) {
		return false, false
	}
	if x, is := m.ctx.scalar(v); is && math.IsInf(x, -1) {
		return false, true
	}
	data, ok := m.ctx.constant(v)
	return true, ok && !slices.ContainsFunc(data, func(b byte) bool { return b != 0 })
}

// taking is what a reader has then.
type taking struct {
	pads   []int64
	counts bool // an average counts the pads
}

// take returns the pads of a reader that takes a padding in.
func (m *padMover) take(reader *ir.Call, r *ir.Value, p padding) (t taking, ok bool) {
	if name := reader.Op.Name; name != "conv" && name != "average_pool" && name != "max_pool" {
		return t, false
	}
	sig := attrsOf(reader)
	own := orZeros(sig.Ints("pads"), len(p.ends))
	if reader.Args[0].Value != r || len(own) != len(p.ends) || !explicitPads(sig.Str("auto_pad")) && sig.Str("auto_pad") != "VALID" {
		return t, false
	}
	for _, a := range reader.Args[1:] {
		if a.Value == r {
			return t, false
		}
	}
	for i, pad := range own {
		t.pads = append(t.pads, pad+p.ends[i])
	}
	switch reader.Op.Name {
	case "conv":
		return t, p.zero
	case "average_pool":
		t.counts = true
		counted := sig.Int("count_include_pad") != 0 || !slices.ContainsFunc(own, func(pad int64) bool { return pad != 0 })
		return t, p.zero && counted && m.fits(reader, t.pads) && m.hasElements(r.Def.Args[0].Value)
	case "max_pool":
		return t, len(reader.Results) == 1 && (!p.zero || p.relu && allOnes(sig.Ints("dilations"))) && m.fits(reader, t.pads) && m.hasElements(r.Def.Args[0].Value)
	}
	return t, false
}

// hasElements reports whether a value is known to have elements.
func (m *padMover) hasElements(v *ir.Value) bool {
	return isStatic(v) && !m.ctx.is(atMost, v, nil, 0, 0)
}

// fits reports whether pads are shorter than the windows of a pool, none of
// which reaches past them.
func (m *padMover) fits(pool *ir.Call, pads []int64) bool {
	sig := attrsOf(pool)
	kernel := sig.Ints("kernel_shape")
	if 2*len(kernel) != len(pads) || sig.Int("ceil_mode") != 0 {
		return false
	}
	dilations := orOnes(sig.Ints("dilations"), len(kernel))
	for i, pad := range pads {
		axis := i % len(kernel)
		if pad >= (kernel[axis]-1)*dilations[axis]+1 {
			return false
		}
	}
	return true
}
