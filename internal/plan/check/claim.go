package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// claims proves rule 10.
func (c *checker) claims() *Violation {
	for _, list := range []func() *Violation{c.inPlace, c.declined, c.copies} {
		if v := list(); v != nil {
			return v
		}
	}
	return nil
}

// inPlace proves that the list of results in place has an entry for each of
// them, in the program's order, and each is true.
func (c *checker) inPlace() *Violation {
	list := c.plan.InPlace
	for i := range list {
		if v := c.claim(&list[i]); v != nil {
			return v
		}
	}
	for k, call := range c.index.Calls {
		for r, v := range call.Results {
			if v == nil || !c.liesInOperand(k, r) {
				continue
			}
			if len(list) == 0 || list[0].Call != k || list[0].Result != r {
				c.step = c.stepOf[k]
				return c.fault(Claim, c.of(v), "no entry in its place in the list of results in place", "one: it lies in the bytes of an operand")
			}
			list = list[1:]
		}
		parts, _ := c.partsOf(k)
		for i := range parts {
			if !parts[i].liesIn() {
				continue
			}
			if len(list) == 0 || list[0].Call != k || list[0].Operand != parts[i].arg || list[0].Kind != plan.AliasPart {
				c.step = c.stepOf[k]
				return c.fault(Claim, parts[i].value, "no entry in its place in the list of results in place", "one: it lies where it is a part of the result")
			}
			list = list[1:]
		}
	}
	if len(list) > 0 {
		c.step = -1
		return c.fault(Claim, nil, fmt.Sprintf("result %d of call %d as in place", list[0].Result, list[0].Call), "each result that is, once")
	}
	return nil
}

// liesInOperand reports whether result r of call k lies in the bytes of an
// operand, in a way that the operator allows. One without bytes does where it
// is a view.
func (c *checker) liesInOperand(k, r int) bool {
	sig, call := c.sigs.Of(k), c.index.Calls[k]
	if !sig.IsStatic() || call.Op.Branch {
		return false
	}
	x := c.of(call.Results[r])
	for i, a := range call.Args {
		if a.Value == nil {
			continue
		}
		if kind, at, ok := c.placeInOperand(k, i, r); ok && kind != 0 && (x.size > 0 || kind == op.View) && x.place.isSame(at) {
			return true
		}
	}
	return false
}

// declined proves that each entry of the list of declined operands, in the
// program's order, is one that its call could have taken and did not.
func (c *checker) declined() *Violation {
	for i := range c.plan.Declined {
		p := &c.plan.Declined[i]
		c.step = -1
		if i > 0 {
			before := &c.plan.Declined[i-1]
			if cmp.Or(cmp.Compare(before.Call, p.Call), cmp.Compare(before.Operand, p.Operand)) >= 0 {
				return c.fault(Claim, nil, fmt.Sprintf("operand %d of call %d as declined after operand %d of call %d", p.Operand, p.Call, before.Operand, before.Call), "the program's order, each once")
			}
		}
		if p.Call >= len(c.index.Calls) {
			return c.fault(Claim, nil, fmt.Sprintf("a declined operand of call %d", p.Call), fmt.Sprintf("one of %d", len(c.index.Calls)))
		}
		call := c.index.Calls[p.Call]
		c.step = c.stepOf[p.Call]
		if p.Op != call.Op.Name || p.Node != call.Node || p.Operand >= len(call.Args) || call.Args[p.Operand].Value == nil {
			return c.fault(Claim, nil, fmt.Sprintf("operand %d of %q, node %q as declined", p.Operand, p.Op, p.Node), "one of the call")
		}
		y := c.of(call.Args[p.Operand].Value)
		if p.Value != y.Name || p.Bytes != y.size {
			return c.fault(Claim, y, fmt.Sprintf("%q with %d bytes as declined", p.Value, p.Bytes), fmt.Sprintf("%q with %d", y.Name, y.size))
		}
		if !c.couldTake(p.Call, p.Operand) {
			return c.fault(Claim, y, fmt.Sprintf("operand %d as declined", p.Operand), "one that a result could have overwritten, and does not")
		}
	}
	return nil
}

// couldTake reports whether the operator could write a result of call k into
// the operand's bytes, and the result does not lie there.
func (c *checker) couldTake(k, operand int) bool {
	call := c.index.Calls[k]
	y := c.of(call.Args[operand].Value)
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		kind, _ := aliasOf(c.sigs.Of(k), operand, r)
		if kind == 0 && c.boxOf(k, operand, r) != nil {
			kind = op.Same // it could lie in a box
		}
		if kind != 0 && kind != op.View && !c.overlap(c.of(v).place, y.place) {
			return true
		}
	}
	parts, _ := c.partsOf(k)
	return slices.ContainsFunc(parts, func(p part) bool { return p.arg == operand && !p.liesIn() })
}

// copies proves that each entry of the list of copies, in the program's order,
// is the result of a call that copies.
func (c *checker) copies() *Violation {
	c.step = -1
	list := c.plan.Copies
	for _, call := range c.index.Calls {
		if len(list) == 0 || call.Op.Name != "copy" || call.Results[0] == nil || call.Results[0].Name != list[0].Value {
			continue
		}
		x, p := c.of(call.Results[0]), &list[0]
		size := x.size
		if !x.typ.IsStatic() {
			size = 0 // it is known when the call has run
		}
		if p.Node != call.Node || p.Bytes != size {
			return c.fault(Claim, x, fmt.Sprintf("a copy of %d bytes, node %q", p.Bytes, p.Node), fmt.Sprintf("%d, node %q", size, call.Node))
		}
		list = list[1:]
	}
	if len(list) > 0 {
		return c.fault(Claim, nil, fmt.Sprintf("%q as a copy", list[0].Value), "results of calls that copy, in the program's order, each once")
	}
	return nil
}

// claim proves that an entry of the list of results in place is true.
func (c *checker) claim(p *plan.InPlace) *Violation {
	c.step = -1
	if p.Call >= len(c.index.Calls) {
		return c.fault(Claim, nil, fmt.Sprintf("call %d", p.Call), fmt.Sprintf("one of %d", len(c.index.Calls)))
	}
	call := c.index.Calls[p.Call]
	c.step = c.stepOf[p.Call]
	if p.Operand >= len(call.Args) || p.Result >= len(call.Results) || call.Args[p.Operand].Value == nil || call.Results[p.Result] == nil {
		return c.fault(Claim, nil, fmt.Sprintf("operand %d and result %d", p.Operand, p.Result), "those of the call")
	}
	x, y := c.of(call.Results[p.Result]), c.of(call.Args[p.Operand].Value)
	if p.Kind == plan.AliasPart {
		return c.claimPart(p, x, y)
	}
	if p.Value != x.Name || p.Of != y.Name || p.Bytes != x.size {
		return c.fault(Claim, x, fmt.Sprintf("%q in %q, %d bytes", p.Value, p.Of, p.Bytes), fmt.Sprintf("%q in %q, %d bytes", x.Name, y.Name, x.size))
	}
	kind, at, ok := c.placeInOperand(p.Call, p.Operand, p.Result)
	if plan.AliasKind(kind.String()) != p.Kind {
		return c.fault(Claim, x, fmt.Sprintf("%s of operand %d (%s)", p.Kind, p.Operand, y), fmt.Sprintf("%s, as the operator has it", kind))
	}
	if !ok || !x.place.isSame(at) {
		return c.fault(Claim, x, fmt.Sprintf("%s in %s", x, x.place), fmt.Sprintf("it %d bytes into %s, in %s", max(0, at.lo-y.place.lo), y, y.place))
	}
	return nil
}

// claimPart proves that an entry for an operand that lies in the result is
// true.
func (c *checker) claimPart(p *plan.InPlace, x, y *value) *Violation {
	if p.Value != x.Name || p.Of != y.Name || p.Bytes != y.size {
		return c.fault(Claim, x, fmt.Sprintf("%q with the part %q, %d bytes", p.Value, p.Of, p.Bytes), fmt.Sprintf("%q with %q, %d bytes", x.Name, y.Name, y.size))
	}
	if p.Result != 0 || !c.isPartInPlace(p.Call, p.Operand) {
		return c.fault(Claim, x, fmt.Sprintf("operand %d (%s, %s) as a part of it", p.Operand, y, y.place), "one that lies where it is in the result")
	}
	return nil
}
