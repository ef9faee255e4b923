package pass

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Outputs gives every result of the program, and of every region, bytes of
// its own, by a copy where there is no other way.
//
// Requires: static types. Guarantees: no program result is a weight, a
// parameter that is not donated, a part of a larger value, or in the bytes of
// another result; every result of a region is computed in that region, is no
// view, and appears once. Each copy is reported.
//
// What it leaves: where the results lie (the planner).
var Outputs = Pass{Name: "outputs", Doc: "give every output bytes of its own", Run: outputs}

func outputs(ctx *Context) error {
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, region := range c.Regions {
			ownRegionResults(ctx, region)
		}
	})
	return ownProgramResults(ctx)
}

func ownRegionResults(ctx *Context, b *ir.Block) {
	local := map[*ir.Value]bool{}
	for _, c := range b.Calls {
		for i, r := range c.Results {
			if arg, _ := placedView(c.Sig(ctx.known), i); r != nil && arg < 0 {
				local[r] = true
			}
		}
	}
	for i, v := range b.Results {
		if local[v] {
			delete(local, v) // a second appearance is a copy
			continue
		}
		b.Results[i] = ctx.copyAtEnd(b, v, "a branch gives a value that is not its own")
	}
}

func ownProgramResults(ctx *Context) error {
	b := ctx.Program.Body
	taken := map[*ir.Value]bool{} // storage roots that a result lies in
	for i, v := range b.Results {
		root, whole := ctx.rootOf(v)
		reason := ""
		switch {
		case root.Kind == ir.Weight:
			reason = "the output is a weight"
		case root.Kind == ir.Param && !root.Donated:
			reason = "the output is an input that was not donated"
		case taken[root]:
			reason = "the output shares its bytes with another output"
		case !whole:
			reason = "the output is a part of a larger value"
		}
		if reason != "" {
			b.Results[i] = ctx.copyAtEnd(b, v, reason)
			continue
		}
		taken[root] = true
	}
	return nil
}

// rootOf follows views down to the value that owns the bytes, and reports
// whether v is all of them.
func (c *Context) rootOf(v *ir.Value) (root *ir.Value, whole bool) {
	whole = true
	for v.Def != nil {
		arg, offset := placedView(v.Def.Sig(c.known), v.Index)
		if arg < 0 {
			break
		}
		of := v.Def.Args[arg].Value
		n, _ := v.Type.Bytes()
		m, _ := of.Type.Bytes()
		whole = whole && offset == 0 && n == m
		v = of
	}
	return v, whole
}

// placedView is viewedArg for calls of which every size is known. What others
// give lies in bytes of its own: whether it is a view is seen when they run.
func placedView(s *op.Sig, result int) (arg, offsetBytes int) {
	if !s.IsStatic() {
		return -1, 0
	}
	return viewedArg(s, result)
}

var copyOp = op.Builtin().Lookup("copy")

// copyAtEnd appends a copy of v to the block and returns its result.
func (c *Context) copyAtEnd(b *ir.Block, v *ir.Value, reason string) *ir.Value {
	r := c.Program.NewValue(ir.Result, "", v.Type)
	r.Name = fmt.Sprintf("%s.copy%d", v.Name, r.ID)
	r.Def = &ir.Call{Op: copyOp, Args: []ir.Operand{{Value: v}}, Results: []*ir.Value{r}}
	b.Calls = append(b.Calls, r.Def)
	n, _ := v.Type.Bytes()
	c.Copies = append(c.Copies, plan.Copy{Value: r.Name, Reason: reason, Bytes: int64(n)})
	return r
}
