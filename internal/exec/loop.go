package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// placeLoop places the state of loop k: a parameter of the region and the
// call's result lie in the same bytes, into which the operand is copied first,
// unless they are its own, and the next state after every iteration.
func (l *lowering) placeLoop(k int) error {
	c := l.calls[k].Call
	region, carried := c.Regions[0], max(0, len(c.Args)-ir.LoopArgs)
	for i, p := range region.Params {
		if i < ir.LoopArgs {
			if err := l.placeParam(p, nil); err != nil {
				return err
			}
			continue
		}
		if err := l.placeState(k, i); err != nil {
			return err
		}
		if l.isStatic(p) {
			l.of(region.Results[i-ir.LoopArgs+1]).carried = p
		}
	}
	for i, v := range c.Results {
		switch {
		case v == nil:
		case !l.isStatic(v):
			l.placeDynamic(v)
		case i < carried && l.isStatic(region.Params[ir.LoopArgs+i]):
			p := region.Params[ir.LoopArgs+i]
			if l.types.Of(p) != l.types.Of(v) {
				return fmt.Errorf("BUG: exec: %s is carried as %s", v, l.types.Of(p))
			}
			l.of(v).place = l.of(p).place
			l.of(p).storage.output = l.of(p).storage.output || l.of(v).isOutput
		default:
			n, err := l.bytesOf(v)
			if err != nil {
				return err
			}
			l.of(v).place = l.yieldedOrNew(v, v, n)
		}
		if v != nil && i >= carried {
			l.offerSlot(k, i)
		}
	}
	return nil
}

// placeParam places a parameter of a loop's region, which the loop carries for
// the result, if that is not nil.
func (l *lowering) placeParam(p, result *ir.Value) error {
	if !l.isStatic(p) {
		l.numberDynamic(p)
		l.of(p).place = place{storage: l.make(storage{name: p.Name, space: plan.SpaceOwn, id: -1})}
		return nil
	}
	n, err := l.bytesOf(p)
	if err != nil {
		return err
	}
	l.of(p).place = l.yieldedOrNew(result, p, n)
	return nil
}

// yieldedOrNew returns the place of n bytes in which the region around it
// returns a value, which may be nil, or else a new storage for another one.
func (l *lowering) yieldedOrNew(returned, v *ir.Value, n int64) place {
	if returned != nil && l.of(returned).yielded.storage != nil {
		at := l.of(returned).yielded
		return place{storage: at.storage, offset: at.offset, size: n}
	}
	at := l.newStorage(v, n)
	at.storage.passed = true
	return at
}

// isForeign reports whether the value that becomes parameter p of a loop's
// region in the next iteration, nil for none, must not lie at a place: the loop
// carries another value there.
func (l *lowering) isForeign(p *ir.Value, at place) bool {
	if p == nil {
		return false
	}
	for _, q := range l.calls[l.index.Def(p)].Regions[0].Params[ir.LoopArgs:] {
		if q != p && l.isStatic(q) && l.of(q).overlaps(at) {
			return true
		}
	}
	return false
}

// loop is where everything lies that a loop takes, carries and returns.
type loop struct {
	call             *ir.Call
	limit, runs      ref // operands; space "" for an absent one
	iteration, again ref // parameters
	next             ref // the condition that the region returns
	carry            []carry
	stacks           []stack
	dynamic          bool // it carries dynamic values
	polls            bool // no step of an iteration looks whether the run is to stop, so the end of the iteration does
}

// carry is one value that a loop carries.
type carry struct {
	from, at, next, result ref     // operand, parameter, result of the region and of the call
	first, then, last      op.Type // of the operand, the region's result and the call's
	spare                  int     // of a dynamic value: the number of one that has the region's result
}

// stack is one result that has a part from every iteration.
type stack struct {
	part, result ref
	typ          op.Type // of a part
	wanted       bool
	id           int32 // of the result; 0 where it is not wanted
	inSlot       bool  // an iteration computes its part where it is in the result
}

// loop resolves the places of a loop.
func (l *lowering) loop(c *ir.Call) *loop {
	arg := func(i int) *ir.Value {
		if i < len(c.Args) {
			return c.Args[i].Value
		}
		return nil
	}
	region := c.Regions[0]
	p := &loop{call: c, limit: l.ref(arg(0)), runs: l.ref(arg(1)), iteration: l.ref(region.Params[ir.LoopIteration]),
		again: l.ref(region.Params[ir.LoopRuns]), next: l.ref(region.Results[0])}
	carried, spare := len(region.Params)-ir.LoopArgs, l.dynamic
	for i, y := range region.Results[1:] {
		if i >= carried {
			s := stack{part: l.ref(y), result: l.ref(c.Results[i]), typ: l.types.Of(y)}
			if v := c.Results[i]; v != nil {
				s.wanted, s.id = true, int32(v.ID)
				s.inSlot = s.part.space == slotSpace && s.part.arg == s.id
			}
			p.stacks = append(p.stacks, s)
			continue
		}
		from := arg(ir.LoopArgs + i)
		v := carry{from: l.ref(from), at: l.ref(region.Params[ir.LoopArgs+i]), next: l.ref(y), result: l.ref(c.Results[i]), first: l.types.Of(from), then: l.types.Of(y)}
		if c.Results[i] != nil {
			v.last = l.types.Of(c.Results[i])
		}
		if v.at.dynamic >= 0 {
			v.spare, p.dynamic = spare, true
			spare++
		}
		p.carry = append(p.carry, v)
	}
	return p
}
