package pass

import (
	"errors"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Donate marks every last use whose bytes the operator table allows the
// result to take, and says why not for the rest.
//
// Requires: static types, outputs (a copy decides which use is the last), dce
// (a dead reader would be a later use). Guarantees: one operand at most is
// donated per result, and the program keeps the verifier's rules for donations;
// it uses the verifier's own analysis.
//
// Left to other passes: declining a right that would cost more than it saves
// (the planner). What puts elements into another order is marked only where the
// least memory is asked for, or where it takes no more time and the program has
// one set of sizes: whether it can depends on them.
var Donate = Pass{Name: "donate", Doc: "mark the last uses whose bytes a result may take", Run: donate}

func donate(ctx *Context) error {
	d := &donator{ctx: ctx, marks: ir.NewDonations(ctx.Program, ctx.known)}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		sig := c.Sig(ctx.known)
		if !sig.IsStatic() {
			d.index++
			return // what its results may overwrite is decided when it runs
		}
		for r, v := range c.Results {
			if v != nil {
				d.result(c, sig, r)
			}
		}
		d.index++
	})
	return nil
}

type donator struct {
	ctx   *Context
	marks *ir.Donations
	index int // of the call, in preorder
}

// result marks the operand whose bytes result r takes. Where there is none it
// reports why for each operand that the table would allow.
func (d *donator) result(c *ir.Call, sig *op.Sig, r int) {
	var refused []plan.Declined
	for i, a := range c.Args {
		if a.Value == nil || a.Value.Kind == ir.Weight {
			continue // that a weight is not overwritten is no news
		}
		kind, _ := sig.AliasOf(i, r)
		if kind == 0 {
			kind = aliasAlone(sig, i, r, d.ctx.LeastMemory, d.ctx.Fixed)
		}
		if kind == 0 {
			continue
		}
		if kind == op.View || a.Donate {
			return
		}
		err := d.marks.Mark(c, i)
		if err == nil {
			return
		}
		refused = append(refused, plan.Declined{Call: d.index, Op: c.Op.Name, Node: c.Node, Operand: i,
			Value: a.Value.Name, Reason: reasonOf(err), Bytes: bytesOf(a.Value.Type)})
	}
	d.ctx.Declined = append(d.ctx.Declined, refused...)
}

// aliasAlone is [op.Sig.AliasAlone] for the kinds that the pass marks.
func aliasAlone(s *op.Sig, arg, result int, leastMemory, fixed bool) op.AliasKind {
	kind := s.AliasAlone(arg, result)
	if kind == op.Permute && !leastMemory && !(fixed && s.IsShared(arg, result)) {
		return 0
	}
	return kind
}

// reasonOf puts a violation of the verifier into the words of the report.
func reasonOf(err error) string {
	var v *ir.Violation
	if !errors.As(err, &v) {
		return err.Error()
	}
	switch v.Invariant {
	case 12:
		return "its bytes are a weight's"
	case 13:
		return "its bytes are an input's that is not donated"
	case 14:
		return "what shares its bytes is read later"
	case 15:
		return "it is read later"
	case 18:
		return "its bytes are also another operand's"
	}
	return v.Err.Error()
}
