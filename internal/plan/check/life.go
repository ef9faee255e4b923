package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// lives proves that the document states the lives that were derived.
func (c *checker) lives() *Violation {
	c.ownEnds(c.program.Body, 0)
	c.step = -1
	last := plan.Time(2 * len(c.index.Calls))
	for i, x := range c.ordered {
		start, end := x.start, max(x.end, x.start+1)
		switch {
		case x.Kind == ir.Weight, x.Kind == ir.Param && !c.isInner(x.Value):
			start, end = 0, max(last, 1)
		case x.place.kind != arena && x.place.kind != own && x.place.kind != slot:
			end = max(end, last)
		}
		if v := &c.plan.Values[i]; v.Start != start || v.End != end {
			return c.fault(Figure, x, fmt.Sprintf("the life [%d,%d)", v.Start, v.End), fmt.Sprintf("[%d,%d)", start, end))
		}
	}
	return nil
}

// ownEnds derives until when the buffers of a block's own values stay: to the
// end of the last call of that block in which they are read. The first call of
// the block has the number k, and the result is the number after its calls.
func (c *checker) ownEnds(b *ir.Block, k int) int {
	for _, call := range b.Calls {
		end := plan.Time(2*c.lastInside(k) + 2)
		extend := func(v *ir.Value) {
			d := c.index.Def(v)
			if x := c.of(v); x.place.kind == own && v.Kind == ir.Result && c.index.Calls[d].Block == b {
				x.end = max(x.end, end)
			}
		}
		for v := range call.Uses() {
			extend(v)
		}
		for _, v := range call.Results {
			if v != nil {
				extend(v)
			}
		}
		k++
		for _, region := range call.Regions {
			k = c.ownEnds(region, k)
		}
	}
	return k
}

// lastInside returns the last step of call k and of the calls in its regions.
func (c *checker) lastInside(k int) int {
	return slices.Max(c.stepOf[k:c.index.Calls[k].End])
}

// isInner reports whether v is a parameter of a region.
func (c *checker) isInner(v *ir.Value) bool { return v.Kind == ir.Param && c.index.Def(v) >= 0 }
