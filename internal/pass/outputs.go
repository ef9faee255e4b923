package pass

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Outputs puts every result of the program, and of every region, into bytes of
// its own, by a copy where there is no other way.
//
// Requires: static types. Guarantees: no program result is a weight, a
// parameter that is not donated, a part of a larger value, or in the bytes of
// another result; every result of a region is computed in that region, is no
// view, and appears once. Each copy is reported.
//
// Left to other passes: where the results lie (the planner).
var Outputs = Pass{Name: "outputs", Doc: "put every output into bytes of its own", Run: outputs}

func outputs(ctx *Context) error {
	sig := func(v *ir.Value) *op.Sig { return v.Def.Sig(ctx.known) }
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, region := range c.Regions {
			ctx.ownResults(region, ir.RegionFaults(region, sig))
		}
	})
	ctx.ownResults(ctx.Program.Body, ir.ResultFaults(ctx.Program, sig))
	return nil
}

// ownResults copies the results of a block that have no bytes of their own.
func (c *Context) ownResults(b *ir.Block, faults []string) {
	for i, v := range b.Results {
		if faults[i] != "" {
			b.Results[i] = c.copyAtEnd(b, v, faults[i])
		}
	}
}

var copyOp = op.Builtin().Lookup("copy")

// copyAtEnd appends a copy of v to the block and returns its result.
func (c *Context) copyAtEnd(b *ir.Block, v *ir.Value, reason string) *ir.Value {
	r := c.newLike(v)
	r.Name = fmt.Sprintf("%s.copy%d", v.Name, r.ID)
	r.Def = &ir.Call{Op: copyOp, Args: []ir.Operand{{Value: v}}, Results: []*ir.Value{r}}
	b.Calls = append(b.Calls, r.Def)
	c.Copies = append(c.Copies, plan.Copy{Value: r.Name, Reason: reason, Bytes: bytesOf(v.Type)})
	return r
}
