package pass

import "github.com/tenure-go/tenure/ir"

// Marks takes the marks away that donate operands which are read later: a
// program's text marks last uses, and other passes make calls that read what is
// donated part of calls behind it.
//
// Requires: nothing. Guarantees: the marks keep the verifier's rules for
// donations; it uses the verifier's own analysis.
//
// Left to other passes: marks that the text does not have, and the report of
// operands that have none (donate).
var Marks = Pass{Name: "marks", Doc: "drop marks of operands that are read later", Run: keepMarks}

func keepMarks(ctx *Context) error {
	marked := map[*ir.Call][]int{}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for i, a := range c.Args {
			if a.Donate {
				marked[c] = append(marked[c], i)
			}
		}
	})
	if len(marked) == 0 {
		return nil
	}
	marks := ir.NewDonations(ctx.Program, ctx.known)
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, i := range marked[c] {
			c.Args[i].Donate = false
		}
		for _, i := range marked[c] {
			_ = marks.Mark(c, i) // donate reports those that may not be
		}
	})
	return nil
}
