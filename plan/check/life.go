package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// lives proves that the document states the lives that were derived.
func (c *checker) lives() *Violation {
	c.ownEnds(c.program.Body)
	c.step = -1
	last := plan.Time(2 * len(c.calls))
	for i, x := range c.ordered {
		start, end := x.start, max(x.end, x.start+1)
		switch {
		case x.Kind == ir.Weight, x.Kind == ir.Param && !c.isInner(x.Value):
			start, end = 0, max(last, 1)
		case x.place.Space != plan.SpaceArena && x.place.Space != plan.SpaceOwn:
			end = max(end, last)
		}
		if v := &c.plan.Values[i]; v.Start != start || v.End != end {
			return c.fault(Figure, x, fmt.Sprintf("the life [%d,%d)", v.Start, v.End), fmt.Sprintf("[%d,%d)", start, end))
		}
	}
	return nil
}

// ownEnds derives until when the buffers of a block's own values stay: to the
// end of the last call of that block in which they are read.
func (c *checker) ownEnds(b *ir.Block) {
	given := map[*ir.Value]bool{}
	for _, call := range b.Calls {
		end := plan.Time(2*c.lastInside(call) + 2)
		extend := func(v *ir.Value) {
			if x := c.values[v]; given[v] && x.place.Space == plan.SpaceOwn {
				x.end = max(x.end, end)
			}
		}
		eachRead(call, extend)
		for _, v := range call.Results {
			if v != nil {
				given[v] = true
				extend(v)
			}
		}
		for _, region := range call.Regions {
			c.ownEnds(region)
		}
	}
}

// eachRead calls f for what the call and the calls in its regions read, and
// for what the regions return.
func eachRead(call *ir.Call, f func(*ir.Value)) {
	for _, a := range call.Args {
		if a.Value != nil {
			f(a.Value)
		}
	}
	for _, region := range call.Regions {
		for _, inner := range region.Calls {
			eachRead(inner, f)
		}
		for _, v := range region.Results {
			f(v)
		}
	}
}

// lastInside returns the last step of the call and of those in its regions.
func (c *checker) lastInside(call *ir.Call) int {
	last := c.stepOf[c.index[call]]
	for _, region := range call.Regions {
		for _, inner := range region.Calls {
			last = max(last, c.lastInside(inner))
		}
	}
	return last
}

// isInner reports whether v is a parameter of a region.
func (c *checker) isInner(v *ir.Value) bool { _, ok := c.loopOf[v]; return ok }
