package pass

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// maxDeciding is the most elements of an operand that is taken for one that
// decides a shape: sizes, axes, pads, scales.
const maxDeciding = 64

// Deciders returns the parameters whose values decide the size of some value
// of the program: those from which an operand comes that a shape rule would
// have to know. Nil means that no parameter does, or that types are static.
//
// Requires: fold.
func Deciders(p *ir.Program) []*ir.Value {
	found := map[*ir.Value]bool{}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		if !opensTypes(c) || c.Op.Bound != nil {
			return
		}
		for i, a := range c.Args {
			if a.Value == nil || i == 0 && len(c.Args) > 1 && c.Op.Name != "range" || !isSmall(a.Value) {
				continue
			}
			ancestors(a.Value, found)
		}
	})
	var list []*ir.Value
	for _, v := range p.Body.Params {
		if found[v] && isSmall(v) {
			list = append(list, v)
		}
	}
	return list
}

func isSmall(v *ir.Value) bool {
	return v.Type.IsStatic() && v.Type.Shape.NumElements() <= maxDeciding
}

// opensTypes reports whether the call has results of unknown size although
// its operands have sizes: the first such call of a chain is the one to help.
func opensTypes(c *ir.Call) bool {
	for _, a := range c.Args {
		if a.Value != nil && !a.Value.Type.IsStatic() {
			return false
		}
	}
	return slices.ContainsFunc(c.Results, func(r *ir.Value) bool { return r != nil && !r.Type.IsStatic() })
}

// ancestors adds the parameters from which v is computed.
func ancestors(v *ir.Value, found map[*ir.Value]bool) {
	if found[v] {
		return
	}
	found[v] = true
	if v.Def == nil {
		return
	}
	for _, a := range v.Def.Args {
		if a.Value != nil {
			ancestors(a.Value, found)
		}
	}
}

// Freeze replaces what reads a parameter by a constant with its value. The
// parameter stays: it is the program's interface.
func Freeze(ctx *Context, param *ir.Value, data []byte) error {
	w, bytes, err := ctx.newWeight(param.Name+".value", param.Type)
	if err != nil {
		return err
	}
	copy(bytes, data)
	replacer{param: w}.apply(ctx.Program.Body)
	return nil
}
