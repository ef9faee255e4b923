package pass

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// functions are the elementwise operators on floats that a table may stand for:
// element k of the result follows from element k of the operands.
var functions = map[string]bool{}

func init() {
	for _, name := range []string{"relu", "leaky_relu", "sigmoid", "hard_sigmoid", "hard_swish", "tanh", "gelu", "erf", "exp", "log", "sqrt", "abs", "neg",
		"elu", "selu", "celu", "softplus", "softsign", "mish", "swish", "thresholded_relu", "reciprocal", "floor", "ceil", "round", "sign", "clip", "pow",
		"add", "sub", "mul", "div", "max", "min", "sin", "cos"} {
		if op.Builtin().Lookup(name) == nil {
			panic("BUG: pass: no operator " + name)
		}
		functions[name] = true
	}
}

// tableBody is a group of elementwise calls that have one operand which is not
// constant.
type tableBody struct {
	q     *quantiser
	leaf  *ir.Value // dequantised
	calls []*ir.Call
	rank  int // the largest of constants
}

// function makes c a lookup of the integers of which x follows by elementwise
// functions, or says why not.
func (q *quantiser) function(c *ir.Call, x *ir.Value, y *number) (why string) {
	b := tableBody{q: q}
	if !functions[x.Def.Op.Name] || !b.add(x) || b.leaf == nil {
		return notQuantised
	}
	n := q.numberOf(b.leaf)
	if r := rank(b.leaf); b.rank > 0 && (r < 0 || b.rank > r) {
		return notQuantised
	}
	data, ok := b.fill(n, y)
	if !ok {
		return "its table cannot be computed"
	}
	q.become(c, "lookup", nil, n.q, q.tableOf(y.dt, data))
	return ""
}

// add adds the calls that v follows from. It is false where there is more than
// one operand that is not constant.
func (b *tableBody) add(v *ir.Value) bool {
	if v == b.leaf {
		return true
	}
	if k, ok := b.q.floats(v); ok && len(k) == 1 && v.Type.Shape.IsStatic() {
		b.rank = max(b.rank, rank(v))
		return true
	}
	if n := b.q.numberOf(v); n.isPlain() {
		if b.leaf != nil {
			return false
		}
		b.leaf = v
		return true
	}
	c := v.Def
	if c == nil || !functions[c.Op.Name] || v.Type.DType != dtype.F32 || !b.q.isInside(c) || len(c.Results) != 1 {
		return false
	}
	if slices.Contains(b.calls, c) {
		return true
	}
	for _, a := range c.Args {
		if a.Donate || a.Value != nil && !b.add(a.Value) {
			return false
		}
	}
	b.calls = append(b.calls, c)
	return true
}

// fill computes the table by the kernels of the calls.
func (b *tableBody) fill(n, y *number) (data []byte, ok bool) {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(256)}
	known := map[*ir.Value]op.Arg{}
	x := make([]byte, 4*256)
	lo, hi := n.limits()
	for i := lo; i <= hi; i++ {
		binary.LittleEndian.PutUint32(x[4*int(byte(i)):], math.Float32bits(n.at(i)))
	}
	known[b.leaf] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: x}
	one := op.Type{DType: dtype.F32, Shape: shape.MustOf()}
	for _, c := range b.calls {
		sig := &op.Sig{Def: c.Op, Attrs: c.Attrs, Args: make([]op.Type, len(c.Args)), Results: make([]op.Type, 1)}
		call := &op.Call{Sig: sig, Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, 1)}
		for i, a := range c.Args {
			if a.Value == nil {
				continue
			}
			arg, has := known[a.Value]
			if !has {
				k, _ := b.q.floats(a.Value)
				arg = op.Arg{Type: one, Layout: shape.RowMajor(one.Shape), Data: binary.LittleEndian.AppendUint32(make([]byte, 0, 4), math.Float32bits(k[0]))}
			}
			call.In[i], sig.Args[i] = arg, arg.Type
		}
		sig.Known = func(i int) ([]byte, bool) { return call.In[i].Data, call.In[i].Data != nil }
		if sig.Infer() != nil {
			return nil, false
		}
		out := sig.Results[0]
		size, err := out.Bytes()
		if err != nil || out.DType != dtype.F32 {
			return nil, false
		}
		call.Out[0] = op.Arg{Type: out, Layout: shape.RowMajor(out.Shape), Data: make([]byte, size)}
		if compute.Eval(call) != nil {
			return nil, false
		}
		known[c.Results[0]] = call.Out[0]
	}
	last := known[b.calls[len(b.calls)-1].Results[0]]
	if len(last.Data) != 4*256 {
		return nil, false
	}
	data = make([]byte, 256)
	for i := range data {
		data[i] = byte(y.of(math.Float32frombits(binary.LittleEndian.Uint32(last.Data[4*i:]))))
	}
	return data, true
}
