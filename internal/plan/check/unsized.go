package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// measure finds the bytes of a value: those of its type, or the most that it
// can take where it lies in the arena or is an output of one of several known
// types.
func (c *checker) measure(x *value, space plan.Space) error {
	_, carried := c.index.LoopOf(x.Value)
	if x.typ.IsStatic() || x.Kind != ir.Result && !carried {
		n, err := x.typ.Bytes()
		x.size = int64(n)
		return err
	}
	p := c.possible.Of(x.Value)
	known := p.Bytes >= 0
	if space == plan.SpaceOutput && known && p.Types != nil {
		x.size = p.Bytes
		return nil
	}
	if space != plan.SpaceArena {
		x.unsized = true
		return nil
	}
	if !known {
		return fmt.Errorf("type %s in the %s: got no bound of its size, want one", x.typ, space)
	}
	x.size = p.Bytes
	return nil
}

// placeUnsized lets one byte of a value of unknown size stand for its
// buffer: the simulation follows contents through it as through any other.
func (c *checker) placeUnsized(x *value) {
	x.place.hi = x.place.lo + 1
	if x.place.kind == own {
		x.place.arg = x.ID
	}
}

// extent is the bytes of the value's place.
func (x *value) extent() int64 {
	if x.unsized {
		return 1
	}
	return x.size
}

// unpromised proves that the document names the values that its figures leave
// out, in their order, and no other.
func (c *checker) unpromised() *Violation {
	list := c.plan.Unpromised
	for k, call := range c.index.Calls {
		for v := range call.Defs() {
			x := c.of(v)
			if !x.unsized {
				continue
			}
			if len(list) == 0 || list[0].Value != v.Name || list[0].Node != call.Node {
				return c.fault(Document, x, "no entry in its place in the list of unpromised values", fmt.Sprintf("one with node %q (call %d): its size depends on data", call.Node, k))
			}
			list = list[1:]
		}
	}
	if len(list) > 0 {
		return c.fault(Document, nil, fmt.Sprintf("%q as an unpromised value", list[0].Value), "only those whose size depends on data, once each")
	}
	return nil
}

// isFreed proves that a buffer whose size depends on data is still there when
// step c.next-1 ends, and when the loops end that read it again in every
// iteration.
func (c *checker) isFreed(rule Rule, x *value) *Violation {
	if !x.unsized || x.place.kind != own {
		return nil
	}
	need, what := plan.Time(2*c.next), "step"
	for _, loop := range c.loops {
		if c.madeAt(x) <= loop.step && loop.end > need {
			need, what = loop.end, "loop"
		}
	}
	if x.freed < need {
		return c.fault(rule, x, fmt.Sprintf("its buffer freed at %d", x.freed), fmt.Sprintf("it kept to the end of the %s, %d", what, need))
	}
	return nil
}

// madeAt returns the step of the call that defines x, as a result or as a
// parameter of its region; -1 if x is there before the first one.
func (c *checker) madeAt(x *value) int {
	if k := c.index.Def(x.Value); k >= 0 {
		return c.stepOf[k]
	}
	return -1
}
