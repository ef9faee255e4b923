package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// loop runs the region of a loop twice, as if another iteration followed the
// first: values from outside, and the loop state, have to be there in every
// iteration. The run copies operands to the places of the state, and the next
// state after every iteration: rule 7.
func (c *checker) loop(k int, call *ir.Call) *Violation {
	region, carried := call.Regions[0], max(0, len(call.Args)-ir.LoopArgs)
	at, first, impure := c.step, c.next, c.impure
	if fault := c.contiguousAround(call); fault != nil {
		return fault
	}
	if fault := c.loopPlaces(k, call, carried); fault != nil {
		return fault
	}
	c.loops = append(c.loops, span{c.stepOf[k], plan.Time(2 * (c.stepOf[k] + c.index.Calls[k].End - k))})
	defer func() { c.loops = c.loops[:len(c.loops)-1] }()
	for i, v := range call.Results {
		if v != nil && c.isFilled(call, i) { // from the first iteration on
			x := c.of(v)
			c.hold(x, content{root: v.ID}, nil)
			c.memory.put(x)
		}
	}
	var after contents // what every number of iterations leaves
	for iteration := range 3 {
		c.forgetSlots(call, carried)
		for _, p := range region.Params {
			x := c.of(p)
			c.hold(x, content{root: p.ID}, nil)
			c.memory.put(x)
		}
		if iteration == 0 {
			after = c.memory.clone()
		} else {
			after.join(&c.memory)
		}
		if iteration == 2 {
			break
		}
		c.next, c.impure = first, impure
		if fault := c.block(region); fault != nil {
			return fault
		}
		c.step = at
		if fault := c.carriedOn(call, carried); fault != nil {
			return fault
		}
	}
	c.memory = after
	c.forgetSlots(call, carried)
	for i, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.of(v)
		if c.isFilled(call, i) {
			if bad, found := c.memory.lacks(x); found {
				return c.holds(Branch, x, bad)
			}
		}
		c.hold(x, content{root: v.ID}, nil)
		x.end = plan.Time(2 * c.next)
		c.memory.put(x)
	}
	return nil
}

// isFilled reports whether result i of a loop has a place that the run fills
// while the loop goes on or when it ends: not the one in which it is carried.
func (c *checker) isFilled(call *ir.Call, i int) bool {
	if i >= len(call.Args)-ir.LoopArgs {
		return true
	}
	p := c.of(call.Regions[0].Params[ir.LoopArgs+i])
	return p.unsized && !c.of(call.Results[i]).unsized
}

// loopPlaces proves that the state and the results of a loop lie in bytes of
// their own, or in those of the state's first value where the operator allows
// it, and a result where the loop carries it.
func (c *checker) loopPlaces(k int, call *ir.Call, carried int) *Violation {
	region := call.Regions[0]
	var own []*value
	add := func(x *value, from int) *Violation { // from is the operand in all of whose bytes it may lie, -1 for none
		if fault := c.writable(x); fault != nil {
			return fault
		}
		for _, y := range own {
			if c.overlap(x.place, y.place) {
				return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of %s", y), "bytes of its own").in(x.place)
			}
		}
		for i, a := range call.Args {
			if a.Value != nil && c.overlap(x.place, c.of(a.Value).place) && (i != from || !x.place.isSame(c.of(a.Value).place)) {
				return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s)", i, a.Value), "others, or all of those of its first value, which the loop may overwrite").in(x.place)
			}
		}
		own = append(own, x)
		return nil
	}
	for i, p := range region.Params {
		from := -1
		if r := i - ir.LoopArgs; r >= 0 && call.Results[r] != nil {
			if kind, _ := aliasOf(c.sigs.Of(k), i, r); kind == op.Same && c.sigs.Of(k).IsStatic() {
				from = i
			}
		}
		if fault := add(c.of(p), from); fault != nil {
			return fault
		}
	}
	for i, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.of(v)
		if !x.unsized && !c.isFilled(call, i) {
			if p := c.of(region.Params[ir.LoopArgs+i]); !x.place.isSame(p.place) {
				return c.fault(Branch, x, x.place.String(), fmt.Sprintf("the place of %s, %s, in which the loop carries it", p, p.place))
			}
			continue
		}
		if fault := add(x, -1); fault != nil {
			return fault
		}
	}
	return nil
}

// carriedOn proves that the region leaves its results, and that copying one
// value to its place in the state spoils no other.
func (c *checker) carriedOn(call *ir.Call, carried int) *Violation {
	region := call.Regions[0]
	for i, v := range region.Results {
		y := c.of(v)
		if y.content.root == 0 {
			return c.fault(Order, y, "a result of the region before the step that computes it", "it computed")
		}
		if bad, found := c.memory.lacks(y); found {
			return c.holds(Branch, y, bad)
		}
		if fault := c.isFreed(Branch, y); fault != nil {
			return fault
		}
		if i == 0 || i > carried || c.of(region.Params[ir.LoopArgs+i-1]).unsized {
			continue // not carried, or, into a buffer, before others are copied
		}
		for j, p := range region.Params[ir.LoopArgs:] {
			x := c.of(p)
			if x.unsized {
				continue // its buffer is shared, not copied
			}
			if c.overlap(x.place, y.place) && (j != i-1 || !x.place.isSame(y.place)) {
				return c.fault(Alias, y, fmt.Sprintf("bytes in which the loop carries %s", x), "others, or all of those in which it is carried itself").in(y.place)
			}
		}
	}
	return nil
}

// loopEnds derives the lives that a loop prolongs: of values from outside that
// an iteration reads, and of the region's parameters and results.
func (c *checker) loopEnds(k int, call *ir.Call) {
	region := call.Regions[0]
	starts, end := plan.Time(2*c.stepOf[k]+1), plan.Time(2*c.lastInside(k)+2)
	for v := range region.Uses() {
		if !c.index.IsInside(v, k) {
			c.of(v).end = max(c.of(v).end, end)
		}
	}
	for _, v := range region.Params {
		c.of(v).start, c.of(v).end = starts, end
	}
	for _, v := range region.Results {
		c.of(v).end = max(c.of(v).end, end)
	}
}
