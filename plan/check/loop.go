package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// loop runs the region of a loop twice, as if another round followed the
// first: what stands outside, and what is carried, has to be there in every
// round. The run copies operands to where they are carried, and after every
// round what the region carries on: rule 7.
func (c *checker) loop(k int, call *ir.Call) *Violation {
	region, carried := call.Regions[0], max(0, len(call.Args)-ir.LoopArgs)
	at, first, impure := c.step, c.next, c.impure
	if fault := c.loopPlaces(k, call, carried); fault != nil {
		return fault
	}
	c.loops = append(c.loops, span{c.stepOf[k], plan.Time(2 * (c.next + callsIn(region)))})
	defer func() { c.loops = c.loops[:len(c.loops)-1] }()
	for i, v := range call.Results {
		if v != nil && c.isFilled(call, i) { // from the first round on
			x := c.values[v]
			x.content = content{root: v}
			c.memory.set(x.place, x.content)
		}
	}
	var after contents // what every number of rounds leaves
	for round := range 3 {
		for _, p := range region.Params {
			x := c.values[p]
			x.content = content{root: p}
			c.memory.set(x.place, x.content)
		}
		if after == nil {
			after = c.memory.clone()
		} else {
			after.join(c.memory)
		}
		if round == 2 {
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
	for i, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.values[v]
		if c.isFilled(call, i) {
			if bad, held, found := c.memory.differ(x.place, x.content); found {
				return c.holds(Branch, x, bad, held)
			}
		}
		x.content = content{root: v}
		x.end = plan.Time(2 * c.next)
		c.memory.set(x.place, x.content)
	}
	return nil
}

// callsIn counts the calls of a block and of the regions in it.
func callsIn(b *ir.Block) int {
	n := len(b.Calls)
	for _, call := range b.Calls {
		for _, region := range call.Regions {
			n += callsIn(region)
		}
	}
	return n
}

// isFilled reports whether result i of a loop has a place that the run fills
// while the loop goes on or when it ends: not the one in which it is carried.
func (c *checker) isFilled(call *ir.Call, i int) bool {
	if i >= len(call.Args)-ir.LoopArgs {
		return true
	}
	p := c.values[call.Regions[0].Params[ir.LoopArgs+i]]
	return p.unsized && !c.values[call.Results[i]].unsized
}

// loopPlaces proves that what a loop takes and gives lies in bytes of its own,
// and a result where the loop carries it.
func (c *checker) loopPlaces(k int, call *ir.Call, carried int) *Violation {
	region := call.Regions[0]
	var own []*value
	add := func(x *value) *Violation {
		if fault := c.writable(x); fault != nil {
			return fault
		}
		for _, y := range own {
			if overlap(x.place, y.place) {
				return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of %s", y), "bytes of its own").in(x.place)
			}
		}
		for i, a := range call.Args {
			if a.Value != nil && overlap(x.place, c.values[a.Value].place) {
				return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s)", i, a.Value), "others: operands are copied").in(x.place)
			}
		}
		own = append(own, x)
		return nil
	}
	for _, p := range region.Params {
		if fault := add(c.values[p]); fault != nil {
			return fault
		}
	}
	for i, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.values[v]
		if !x.unsized && !c.isFilled(call, i) {
			if p := c.values[region.Params[ir.LoopArgs+i]]; x.place != p.place {
				return c.fault(Branch, x, x.place.String(), fmt.Sprintf("the place of %s, %s, in which the loop carries it", p, p.place))
			}
			continue
		}
		if fault := add(x); fault != nil {
			return fault
		}
	}
	return nil
}

// carriedOn proves that the region leaves what it gives, and that copying one
// value to where it is carried spoils no other.
func (c *checker) carriedOn(call *ir.Call, carried int) *Violation {
	region := call.Regions[0]
	for i, v := range region.Results {
		y := c.values[v]
		if y.content.root == nil {
			return c.fault(Order, y, "a result of the region before the step that computes it", "it computed")
		}
		if bad, held, found := c.memory.differ(y.place, y.content); found {
			return c.holds(Branch, y, bad, held)
		}
		if fault := c.isGivenBack(Branch, y); fault != nil {
			return fault
		}
		if i == 0 || i > carried || c.values[region.Params[ir.LoopArgs+i-1]].unsized {
			continue // not carried, or, into a buffer, before others are copied
		}
		for j, p := range region.Params[ir.LoopArgs:] {
			x := c.values[p]
			if x.unsized {
				continue // it is held, not copied
			}
			if overlap(x.place, y.place) && (j != i-1 || x.place != y.place) {
				return c.fault(Alias, y, fmt.Sprintf("bytes in which the loop carries %s", x), "others, or all of those in which it is carried itself").in(y.place)
			}
		}
	}
	return nil
}

// loopEnds derives the lives that a loop prolongs: of what stands outside and
// is read in a round, of what the region takes, and of what it gives.
func (c *checker) loopEnds(k int, call *ir.Call) {
	region := call.Regions[0]
	starts, last := plan.Time(2*c.stepOf[k]+1), c.stepOf[k]
	inside := map[*ir.Value]bool{}
	var read []*ir.Value
	var walk func(b *ir.Block)
	walk = func(b *ir.Block) {
		for _, v := range b.Params {
			inside[v] = true
		}
		for _, inner := range b.Calls {
			for _, v := range inner.Results {
				inside[v] = true
			}
			for _, a := range inner.Args {
				if a.Value != nil {
					read = append(read, a.Value)
				}
			}
			last = max(last, c.stepOf[c.index[inner]])
			for _, r := range inner.Regions {
				walk(r)
			}
		}
		read = append(read, b.Results...)
	}
	walk(region)
	end := plan.Time(2*last + 2)
	for _, v := range read {
		if !inside[v] {
			c.values[v].end = max(c.values[v].end, end)
		}
	}
	for _, v := range region.Params {
		c.values[v].start, c.values[v].end = starts, end
	}
	for _, v := range region.Results {
		c.values[v].end = max(c.values[v].end, end)
	}
}
