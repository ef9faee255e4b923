package pass

import (
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
)

// maxDeciding is the most elements of an operand that is taken for one that
// decides a shape: sizes, axes, pads, scales.
const maxDeciding = 64

// Deciders returns the parameters whose values decide the size of some value
// of the program: those from which an operand comes that a shape rule would
// have to know, or a kernel although the sizes are known. The condition of a
// branch is no such operand where the types are known that its regions return:
// the plan has a place for either. Nil means that no parameter decides, or that
// types are static.
//
// Requires: fold.
func Deciders(ctx *Context) []*ir.Value {
	p, found := ctx.Program, map[*ir.Value]bool{}
	open := ctx.openBranches()
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		if !areStatic(c) || c.Op.Bound != nil || c.Op.Branch && !open[c] {
			return
		}
		opens := opensTypes(c)
		for i, a := range c.Args {
			decides := opens && (i > 0 || len(c.Args) == 1 || c.Op.Name == "range") || compute.NeedsValue(c.Op.Name, i)
			if c.Op.Loop && i >= ir.LoopArgs {
				decides = false // an iteration sees the loop state of the one before
			}
			if a.Value != nil && decides && isSmall(ctx, a.Value) {
				ancestors(a.Value, found)
			}
		}
	})
	var list []*ir.Value
	for _, v := range p.Body.Params {
		if found[v] && isSmall(ctx, v) {
			list = append(list, v)
		}
	}
	return list
}

func isSmall(ctx *Context, v *ir.Value) bool { return ctx.is(atMost, v, nil, maxDeciding, 0) }

// opensTypes reports whether the call has results of unknown size. Where its
// operands have sizes it is the first one of a chain, the one to help.
func opensTypes(c *ir.Call) bool {
	return slices.ContainsFunc(c.Results, func(r *ir.Value) bool { return r != nil && !r.Type.IsStatic() })
}

// areStatic reports whether all operands of the call have sizes.
func areStatic(c *ir.Call) bool {
	return !slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return a.Value != nil && !a.Value.Type.IsStatic() })
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
	ctx.vary(w)
	ctx.recordFrozen(param, w, bytes)
	replacer{param: w}.apply(ctx.Program.Body)
	return nil
}
