package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
)

// A result that a loop stacks has one part per iteration. The bytes of the
// iteration that runs are a space of their own, the slot: an iteration writes
// there what the run would have to copy there otherwise.
//
// They are no other value's. The result holds itself, for the proof, from
// before the first iteration until after the last one, so that nothing else is
// written into its bytes, and nothing but itself could be read from them. The
// parts of two iterations share no byte: each begins where the one before it
// ends, and all have one size. So it is left to prove that what lies in a slot
// is not read after the iteration: the space holds nothing when the next one
// begins, and no value outlives an iteration but loop state, which lies
// elsewhere.

// stacksOf returns the IDs of the results that loops stack.
func stacksOf(x *ir.Index) (ids []int) {
	for _, call := range x.Calls {
		if !call.Op.Loop {
			continue
		}
		for _, v := range call.Results[min(len(call.Results), max(0, len(call.Args)-ir.LoopArgs)):] {
			if v != nil {
				ids = append(ids, v.ID)
			}
		}
	}
	return ids
}

// fitsSlot proves that a value in a slot is one of an iteration, and lies
// within the part that the iteration returns, which is all of the slot.
func (c *checker) fitsSlot(x *value) *Violation {
	stack := c.values[x.place.arg].Value
	k := c.index.Def(stack)
	part := c.of(c.index.Calls[k].Regions[0].Results[1+stack.Index])
	switch {
	case !c.index.IsInside(x.Value, k) || c.index.Def(x.Value) == k:
		return c.fault(Place, x, x.place.String(), "another place: only what an iteration computes lies there").in(x.place)
	case !x.typ.IsStatic() || !part.typ.IsStatic() || part.typ.DType.Bits()%8 != 0:
		return c.fault(Place, x, x.place.String(), "another place: sizes there are known, and elements whole bytes").in(x.place)
	case !part.place.isSame(place{space: x.place.space, hi: part.size}):
		return c.fault(Place, x, fmt.Sprintf("%s, which the iteration returns, in %s", part, part.place), "it in all of the iteration's part").in(x.place)
	case x.place.hi > part.size:
		return c.fault(Place, x, x.place.String(), fmt.Sprintf("bytes within its %d", part.size)).in(x.place)
	case alignment(x.typ.DType) > alignment(part.typ.DType):
		return c.fault(Place, x, fmt.Sprintf("elements of %s", x.typ.DType),
			fmt.Sprintf("elements that need no more alignment than the part's, of %s", part.typ.DType)).in(x.place)
	}
	return nil
}

// forgetSlots lets the slots of a loop's stacks be those of another iteration.
func (c *checker) forgetSlots(call *ir.Call, carried int) {
	for _, v := range call.Results[carried:] {
		if v != nil {
			c.memory.forget(space{slot, v.ID})
		}
	}
}
