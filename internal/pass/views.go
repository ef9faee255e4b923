package pass

import "github.com/tenure-go/tenure/ir"

// Views removes calls that only rename their operand, and makes
// chains of views start at their root.
//
// Requires: fold (types are inferred). Guarantees: no call remains whose
// result is a whole view of an operand of the same type (identity, a reshape
// to the same shape, a slice of everything, a padding by nothing); a reshape
// of a reshape reads the first one's operand.
//
// Left to other passes: the calls that are no longer read (dce).
var Views = Pass{Name: "views", Doc: "remove calls that compute nothing, shorten chains of views", Run: views}

func views(ctx *Context) error {
	replaced := replacer{}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			c.Args[i].Value = replaced.of(c.Args[i].Value)
		}
		if len(c.Results) != 1 || c.Results[0] == nil || len(c.Regions) > 0 || c.Op.Impure {
			return
		}
		arg, whole := ctx.wholeView(c)
		if arg < 0 || c.Args[arg].Donate {
			return
		}
		if whole {
			replaced[c.Results[0]] = c.Args[arg].Value
			return
		}
		if c.Op.Name == "reshape" {
			skipInnerReshape(ctx, c)
		}
	})
	replaced.apply(ctx.Program.Body)
	return nil
}

// skipInnerReshape makes a reshape to constant dimensions read the operand of
// the whole view below it. A target with 0 or -1 depends on its operand's
// shape, so the target must be spelled out first: the result type does that.
func skipInnerReshape(ctx *Context, c *ir.Call) {
	inner := c.Args[0].Value.Def
	if inner == nil || inner.Op.Name != "reshape" || inner.Args[0].Donate || !isStatic(c.Results[0]) {
		return
	}
	if target := c.Args[1].Value; !ctx.isKnown(target) || !ctx.is(spelledOut, target, c.Results[0], 0, 0) {
		return
	}
	if isStatic(inner.Args[0].Value) && !isStatic(inner.Results[0]) {
		return // only a run knows whether both have as many elements
	}
	c.Args[0].Value = inner.Args[0].Value
}
