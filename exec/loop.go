package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// placeLoop places what a loop carries: a parameter of the region, and the
// call's result, lie in one storage, into which the operand is copied first and
// what the region carries on after every round.
func (l *lowering) placeLoop(k int, c *ir.Call) error {
	region, carried := c.Regions[0], max(0, len(c.Args)-ir.LoopArgs)
	for i, p := range region.Params {
		l.loopOf[p] = k
		if !p.Type.IsStatic() {
			l.dynamic[p] = len(l.dynamic)
			l.places[p] = place{&storage{name: p.Name, space: plan.SpaceOwn, id: -1}, 0, 0}
			continue
		}
		n, err := bytesOf(p)
		if err != nil {
			return err
		}
		var to *storage
		if i >= ir.LoopArgs && c.Results[i-ir.LoopArgs] != nil {
			to = l.yields[c.Results[i-ir.LoopArgs]]
		}
		if to == nil {
			to = l.newStorage(p.Name, n)
		}
		l.places[p] = place{to, 0, n}
		if i >= ir.LoopArgs {
			l.carriers[to] = k
			l.carried[region.Results[i-ir.LoopArgs+1]] = to
		}
	}
	for i, v := range c.Results {
		switch {
		case v == nil:
		case !v.Type.IsStatic():
			l.placeDynamic(v)
		case i < carried && region.Params[ir.LoopArgs+i].Type.IsStatic():
			p := region.Params[ir.LoopArgs+i]
			if p.Type != v.Type {
				return fmt.Errorf("BUG: exec: %s is carried as %s", v, p.Type)
			}
			l.places[v] = l.places[p]
		default:
			n, err := bytesOf(v)
			if err != nil {
				return err
			}
			to := l.yields[v]
			if to == nil {
				to = l.newStorage(v.Name, n)
			}
			l.places[v] = place{to, 0, n}
		}
	}
	return nil
}

// isForeign reports whether v, which a loop carries on, must not lie in the
// storage: the loop carries another value there.
func (l *lowering) isForeign(v *ir.Value, c *storage) bool {
	own := l.carried[v]
	if own == nil || own == c {
		return false
	}
	k, carries := l.carriers[c]
	return carries && k == l.carriers[own]
}

// endLoop finds the lives of what a loop takes and carries. What stands
// outside is read again in every round, so it stays until the loop ends.
func (l *lowering) endLoop(c *ir.Call, end plan.Time) {
	region := c.Regions[0]
	inside := map[*ir.Value]bool{}
	for _, p := range region.Params {
		l.ends[p], inside[p] = end, true
	}
	definedInside(region, inside)
	for _, y := range region.Results {
		l.ends[y] = max(l.ends[y], end)
	}
	for v := range l.readInside(c) {
		if v != nil && !inside[v] {
			operand := false
			for _, a := range c.Args {
				operand = operand || a.Value == v
			}
			if !operand || readIn(region, v) {
				l.ends[v] = max(l.ends[v], end)
			}
		}
	}
}

func definedInside(b *ir.Block, found map[*ir.Value]bool) {
	for _, c := range b.Calls {
		for _, v := range given(c) {
			found[v] = true
		}
		for _, region := range c.Regions {
			definedInside(region, found)
		}
	}
}

// readIn reports whether a call in the block reads the value.
func readIn(b *ir.Block, v *ir.Value) bool {
	for _, y := range b.Results {
		if y == v {
			return true
		}
	}
	for _, c := range b.Calls {
		for _, a := range c.Args {
			if a.Value == v {
				return true
			}
		}
		for _, region := range c.Regions {
			if readIn(region, v) {
				return true
			}
		}
	}
	return false
}

// loop is where everything lies that a loop takes, carries and gives.
type loop struct {
	call         *ir.Call
	limit, runs  ref // operands; space "" for an absent one
	round, again ref // parameters
	next         ref // the condition that the region gives
	carry        []carry
	stacks       []stack
	dynamic      bool // it carries dynamic values
	idle         bool // no step of a round asks whether the run is to stop
}

// carry is one value that a loop carries.
type carry struct {
	from, at, next, result ref     // operand, parameter, result of the region and of the call
	first, then, last      op.Type // of the operand, the region's result and the call's
	spare                  int     // of a dynamic value: the number of one that holds what the region gives
}

// stack is one result that has a part from every round.
type stack struct {
	part, result ref
	typ          op.Type // of a part
	wanted       bool
}

// loop resolves the places of a loop.
func (l *lowering) loop(c *ir.Call, at func(*ir.Value) (ref, error)) (*loop, error) {
	var fault error
	find := func(v *ir.Value) ref {
		r, err := at(v)
		if err != nil && fault == nil {
			fault = err
		}
		return r
	}
	arg := func(i int) *ir.Value {
		if i < len(c.Args) {
			return c.Args[i].Value
		}
		return nil
	}
	region := c.Regions[0]
	p := &loop{call: c, limit: find(arg(0)), runs: find(arg(1)), round: find(region.Params[ir.LoopRound]),
		again: find(region.Params[ir.LoopRuns]), next: find(region.Results[0])}
	carried, spare := len(region.Params)-ir.LoopArgs, len(l.dynamic)
	for i, y := range region.Results[1:] {
		if i < carried {
			from := arg(ir.LoopArgs + i)
			v := carry{from: find(from), at: find(region.Params[ir.LoopArgs+i]), next: find(y), result: find(c.Results[i]), first: from.Type, then: y.Type}
			if c.Results[i] != nil {
				v.last = c.Results[i].Type
			}
			if v.at.dynamic >= 0 {
				v.spare, p.dynamic = spare, true
				spare++
			}
			p.carry = append(p.carry, v)
			continue
		}
		p.stacks = append(p.stacks, stack{find(y), find(c.Results[i]), y.Type, c.Results[i] != nil})
	}
	return p, fault
}
