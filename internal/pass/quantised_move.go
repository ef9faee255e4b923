package pass

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// movers are the operators whose results are elements of operand 0, and those
// that may have more elements than it.
var (
	movers = map[string]bool{"identity": true, "reshape": true, "flatten": true, "squeeze": true, "unsqueeze": true, "transpose": true, "slice": true,
		"split": true, "gather": true, "gather_elements": true, "gather_nd": true, "depth_to_space": true, "space_to_depth": true,
		"reverse_sequence": true, "max_pool": true}
	growers = map[string]bool{"expand": true, "tile": true, "resize": true, "pad": true}
)

// move makes a call that moves dequantised numbers move the integers, and
// dequantises what it moved. It is true where that takes the place of the call.
func (q *quantiser) move(c *ir.Call) bool {
	name := c.Op.Name
	if name == "concat" {
		return q.concat(c)
	}
	if !movers[name] && !growers[name] || len(c.Args) == 0 {
		return false
	}
	n := q.numberOf(c.Args[0].Value)
	if n == nil || name != "transpose" && !n.isPlain() || !isByte(n.dt) || growers[name] && !q.isQuantised(c.Results[0]) {
		return false
	}
	args := make([]*ir.Value, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.Value
	}
	args[0] = n.q
	switch name {
	case "max_pool":
		if len(c.Results) > 1 || mayMissAll(c) {
			return false
		}
	case "resize":
		if attrsOf(c).Str("mode") != "nearest" || attrsOf(c).Str("coordinate_transformation_mode") == "tf_crop_and_resize" {
			return false
		}
	case "pad":
		value, ok := q.padding(c, n)
		if !ok {
			return false
		}
		for len(args) < 3 {
			args = append(args, nil)
		}
		args[2] = value
	case "transpose":
		if n.axis >= 0 {
			perm, err := c.Sig(nil).Perm(rank(c.Args[0].Value))
			if err != nil {
				return false
			}
			n.axis = slices.Index(perm, n.axis)
		}
	}
	if !q.over(c, n, args) {
		return false
	}
	q.taken[name]++
	return true
}

// mayMissAll reports whether a window of a pool may lie outside the input with
// all its taps: they step over an input that is smaller than their dilation.
// The maximum is then less than any that integers stand for.
func mayMissAll(c *ir.Call) bool {
	sig := attrsOf(c)
	wide := func(n int64) bool { return n > 1 }
	return slices.ContainsFunc(sig.Ints("dilations"), wide)
}

// padding is what a pad puts around integers: the integer of a number that has
// one.
func (q *quantiser) padding(c *ir.Call, n *number) (*ir.Value, bool) {
	if attrsOf(c).Str("mode") != "constant" {
		return nil, true
	}
	value := float32(0)
	if len(c.Args) > 2 && c.Args[2].Value != nil {
		v, ok := q.floats(c.Args[2].Value)
		if !ok || len(v) != 1 {
			return nil, false
		}
		value = v[0]
	}
	if n.at(n.of(value)) != value {
		return nil, false
	}
	if value == 0 {
		return q.zeroOf(n), true
	}
	return q.constant("pad", op.Type{DType: n.dt, Shape: n.scale.Type.Shape}, []byte{byte(n.of(value))}), true
}

// isQuantised reports whether all readers of a value quantise it.
func (q *quantiser) isQuantised(v *ir.Value) bool {
	return len(q.readers[v]) == q.uses[v] && !slices.ContainsFunc(q.readers[v], func(c *ir.Call) bool { return c.Op.Name != "quantize_linear" })
}

// concat joins integers of equal scales; those of others are looked up in a
// table first, where all readers quantise the result.
func (q *quantiser) concat(c *ir.Call) bool {
	r := c.Results[0]
	var parts []*number
	same := true
	for _, a := range c.Args {
		n := q.numberOf(a.Value)
		if !n.isPlain() {
			return false
		}
		parts = append(parts, n)
		same = same && n.sameAs(parts[0])
	}
	to := parts[0]
	if !same {
		if !q.isQuantised(r) || len(q.readers[r]) == 0 {
			return false
		}
		for i, reader := range q.readers[r] {
			y := q.resultOf(reader)
			if !y.isPlain() || i > 0 && !y.sameAs(to) {
				return false
			}
			to = y
		}
	}
	args := make([]*ir.Value, len(parts))
	for i, n := range parts {
		if args[i] = n.q; !n.sameAs(to) {
			args[i] = q.emit(c, "lookup", nil, op.Type{DType: to.dt, Shape: n.q.Type.Shape}, n.q, q.table(n, to, to.of))
		}
	}
	n := *to
	n.q = nil
	if !q.over(c, &n, args) {
		return false
	}
	q.taken["concat"]++
	return true
}

// over makes c work on integers, and its results the dequantised ones of what
// it gives then. It is false where the operator does not take the integers.
func (q *quantiser) over(c *ir.Call, n *number, args []*ir.Value) bool {
	made := &ir.Call{Op: c.Op, Attrs: c.Attrs, Node: c.Node, Results: make([]*ir.Value, len(c.Results))}
	setArgs(made, args)
	for i, r := range c.Results {
		if r == nil {
			continue
		}
		made.Results[i] = q.ctx.Program.NewValue(ir.Result, "", op.Type{DType: n.dt, Shape: r.Type.Shape})
		made.Results[i].Def, made.Results[i].Index = made, i
	}
	sig := made.Sig(q.ctx.known)
	if err := sig.Infer(); err != nil {
		return false
	}
	q.kept = append(q.kept, made)
	var attrs op.Attrs
	if n.axis >= 0 {
		attrs = attrs.With("axis", int64(n.axis))
	}
	for i, r := range c.Results {
		if r == nil {
			continue
		}
		d := &ir.Call{Op: dequantizeOp, Attrs: attrs, Results: []*ir.Value{r}, Node: c.Node}
		if setArgs(d, []*ir.Value{made.Results[i], n.scale}); n.zero != nil {
			d.Args = append(d.Args, ir.Operand{Value: n.zero})
		}
		r.Def, r.Index = d, 0
		q.kept, q.blocks[d] = append(q.kept, d), q.now
	}
	return true
}

var dequantizeOp = op.Builtin().Lookup("dequantize_linear")
