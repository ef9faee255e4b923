package pass

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// content returns the elements of result i of a call of constants, which
// becomes a constant: integers that come from sizes, on their way to a shape.
// It is nil where they are not known.
func (c *formulaCall) content(i int) []*symbolic.Expr {
	t := c.first[c.results[i]]
	if t.DType != dtype.I64 && t.DType != dtype.I32 && t.DType != dtype.Bool {
		return nil
	}
	n, ok := c.Elements(c.results[i]).Value()
	if !ok || n > mostContents {
		return nil
	}
	rule := contentRules[c.sig.Def.Name]
	if rule == nil {
		return nil
	}
	list := rule(c)
	if int64(len(list)) != n {
		return nil
	}
	return list
}

// movedContent is for calls that move elements of operand 0, to places that the
// other operands and the sizes decide, where all of these are numbers: the
// kernel moves the positions of the elements.
func movedContent(c *formulaCall) []*symbolic.Expr {
	list := c.ints(0)
	if list == nil {
		return nil
	}
	sig := &op.Sig{Def: c.sig.Def, Attrs: c.sig.Attrs, Args: make([]op.Type, len(c.args)), Results: make([]op.Type, len(c.results))}
	call := &op.Call{Sig: sig, In: make([]op.Arg, len(c.args)), Out: make([]op.Arg, len(c.results))}
	sig.Known = func(arg int) ([]byte, bool) { return call.In[arg].Data, arg > 0 && !call.In[arg].IsZero() }
	for arg, id := range c.args {
		if id == 0 {
			continue
		}
		t, ok := c.TypeAt(id, nil)
		data, known := c.known(arg)
		if arg == 0 {
			t.DType, data, known = dtype.I64, nil, true
			for at := range list {
				data = binary.LittleEndian.AppendUint64(data, uint64(at))
			}
		}
		if !ok || !known {
			return nil
		}
		sig.Args[arg] = t
		call.In[arg] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: append(alignedBytes(make([]uint64, len(data)/8+1))[:0], data...)}
	}
	if op.InferTypes(sig) != nil {
		return nil
	}
	for r, t := range sig.Results {
		n, err := t.Bytes()
		if err != nil {
			return nil
		}
		call.Out[r] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: alignedBytes(make([]uint64, n/8+1))[:n]}
	}
	if compute.Eval(call) != nil {
		return nil
	}
	var out []*symbolic.Expr
	for data := call.Out[0].Data; len(data) > 0; data = data[8:] {
		out = append(out, list[le64(data)])
	}
	return out
}

// contentRules return the elements of the first result of a call, in row-major
// order, nil where they are not known.
var contentRules = map[string]func(c *formulaCall) []*symbolic.Expr{
	"shape": func(c *formulaCall) []*symbolic.Expr {
		x := c.arg(0)
		if x == nil {
			return nil
		}
		lo, hi := c.sig.ShapeRange()
		return x[lo:hi]
	},
	"size":      func(c *formulaCall) []*symbolic.Expr { return []*symbolic.Expr{c.Elements(c.args[0])} },
	"identity":  sameContent,
	"copy":      sameContent,
	"reshape":   sameContent,
	"squeeze":   sameContent,
	"unsqueeze": sameContent,
	"flatten":   sameContent,
	"cast": func(c *formulaCall) []*symbolic.Expr {
		if dt := c.first[c.args[0]].DType; dt != dtype.I64 && dt != dtype.I32 {
			return nil
		}
		if c.first[c.results[0]].DType == dtype.I32 {
			for _, e := range c.ints(0) {
				if lo, hi, ok := e.Bounds(c.box); !ok || lo != int64(int32(lo)) || hi != int64(int32(hi)) {
					return nil
				}
			}
		}
		return c.ints(0)
	},
	"concat": func(c *formulaCall) []*symbolic.Expr {
		var all []*symbolic.Expr
		if len(c.arg(0)) != 1 {
			return nil
		}
		for i := range c.args {
			list := c.ints(i)
			if list == nil {
				return nil
			}
			all = append(all, list...)
		}
		return all
	},
	"gather":      movedContent,
	"slice":       movedContent,
	"transpose":   movedContent,
	"expand":      movedContent,
	"tile":        movedContent,
	"add":         elementwiseContent((*symbolic.Expr).Add),
	"sub":         elementwiseContent((*symbolic.Expr).Sub),
	"mul":         elementwiseContent((*symbolic.Expr).Mul),
	"reduce_prod": reducedContent((*symbolic.Expr).Mul, 1),
	"reduce_sum":  reducedContent((*symbolic.Expr).Add, 0),
}

func init() {
	contentRules["div"] = func(c *formulaCall) []*symbolic.Expr {
		return elementwiseContent(c.truncated)(c)
	}
	contentRules["max"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.larger)(c) }
	contentRules["min"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.smaller)(c) }
}

func init() {
	contentRules["equal"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.equal)(c) }
	contentRules["where"] = whereContent
}

// equal returns 1 for numbers that are the same at all sizes of the box, 0 for
// those that differ at each.
func (f *Formulas) equal(x, y *symbolic.Expr) *symbolic.Expr {
	lo, hi, ok := x.Sub(y).Bounds(f.box)
	switch {
	case !ok:
		return nil
	case lo == 0 && hi == 0:
		return symbolic.Const(1)
	case lo > 0 || hi < 0:
		return symbolic.Const(0)
	}
	return nil
}

// whereContent chooses among lists of as many elements, or of one.
func whereContent(c *formulaCall) []*symbolic.Expr {
	cond, x, y := c.ints(0), c.ints(1), c.ints(2)
	n := max(len(cond), len(x), len(y))
	out := make([]*symbolic.Expr, n)
	for _, list := range [][]*symbolic.Expr{cond, x, y} {
		if len(list) != n && len(list) != 1 {
			return nil
		}
	}
	for i := range 3 {
		if len(c.arg(i)) > 1 {
			return nil
		}
	}
	for i := range out {
		switch chosen, ok := cond[i%len(cond)].Value(); {
		case ok && chosen != 0:
			out[i] = x[i%len(x)]
		case ok:
			out[i] = y[i%len(y)]
		}
	}
	return out
}

func sameContent(c *formulaCall) []*symbolic.Expr { return c.ints(0) }

// truncated is the quotient of integers that are not negative.
func (f *Formulas) truncated(x, y *symbolic.Expr) *symbolic.Expr {
	if n, ok := y.Value(); ok && n > 0 && f.atLeast(x, 0) {
		return x.Floor(n)
	}
	if f.atLeast(y, 1) {
		return x.Over(y)
	}
	return nil
}

// elementwiseContent is for two operands of as many elements, or of one. A
// result that wraps around is no size, so that no call in a run that is
// accepted has it.
func elementwiseContent(f func(x, y *symbolic.Expr) *symbolic.Expr) func(c *formulaCall) []*symbolic.Expr {
	return func(c *formulaCall) []*symbolic.Expr {
		if len(c.args) != 2 || len(c.arg(0)) > 1 || len(c.arg(1)) > 1 {
			return nil
		}
		x, y := c.ints(0), c.ints(1)
		if x == nil || y == nil || len(x) != len(y) && len(x) != 1 && len(y) != 1 {
			return nil
		}
		out := make([]*symbolic.Expr, max(len(x), len(y)))
		if len(x) == 0 || len(y) == 0 {
			return nil
		}
		for i := range out {
			out[i] = f(x[i%len(x)], y[i%len(y)])
			if !c.fits(out[i], c.first[c.results[0]].DType) {
				out[i] = nil
			}
		}
		return out
	}
}

// fits reports whether a number is one of the type at all sizes of the box.
func (f *Formulas) fits(e *symbolic.Expr, dt dtype.DType) bool {
	lo, hi, ok := e.Bounds(f.box)
	return ok && (dt != dtype.I32 || lo == int64(int32(lo)) && hi == int64(int32(hi)))
}

func reducedContent(f func(x, y *symbolic.Expr) *symbolic.Expr, start int64) func(c *formulaCall) []*symbolic.Expr {
	return func(c *formulaCall) []*symbolic.Expr {
		list := c.ints(0)
		if list == nil || len(c.arg(0)) != 1 {
			return nil
		}
		all := symbolic.Const(start)
		for _, e := range list {
			all = f(all, e)
		}
		if !c.fits(all, c.first[c.results[0]].DType) {
			return nil
		}
		return []*symbolic.Expr{all} // over its only axis, with or without it in the result
	}
}
