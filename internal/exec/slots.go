package exec

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// A loop stacks results of its iterations. The bytes of an iteration's part are
// a storage of their own in every iteration, the slot of the stack: the part is
// computed there, if a step of the iteration computes it, and is copied there
// when the iteration ends if not.

// offerSlot lets the region of loop k compute its part of the call's result i
// in the slot, and so the values in whose bytes the part is computed in place.
func (l *lowering) offerSlot(k, i int) {
	region, stack := l.calls[k].Regions[0], l.calls[k].Results[i]
	v := region.Results[1+i]
	if !l.isStatic(v) || l.types.Of(v).DType.Size() == 0 {
		return
	}
	n, err := l.bytesOf(v)
	if err != nil || n == 0 {
		return
	}
	var slot place
	for l.canYield(v, region, n) {
		c := &l.calls[l.index.Def(v)]
		arg, kind, offset := -1, op.AliasKind(0), 0
		if len(c.Regions) == 0 {
			arg, kind, offset = l.bytesFor(l.index.Def(v), v.Index)
		}
		if kind != op.View {
			if slot.storage == nil {
				slot = place{storage: l.make(storage{name: stack.Name, space: plan.SpaceSlot, arg: stack.ID, size: n, id: -1, passed: true}), size: n}
			}
			l.of(v).yielded = slot
		}
		if arg < 0 || offset != 0 || kind != op.View && !l.takes(l.index.Def(v), arg, v.Index, kind) {
			return
		}
		v = c.Args[arg].Value
	}
}

// canYield reports whether a value of n bytes is computed by a call of the
// region, and is no loop state and no part of another stack.
func (l *lowering) canYield(v *ir.Value, region *ir.Block, n int64) bool {
	if v.Kind != ir.Result || !l.isStatic(v) || l.index.Calls[l.index.Def(v)].Block != region {
		return false
	}
	x := l.of(v)
	size, err := l.bytesOf(v)
	return err == nil && size == n && x.yielded.storage == nil && x.carried == nil
}

// slots are the operands and results that lie in the slot of a stack, which a
// runner points to its bytes at the beginning of every iteration.
type slots struct {
	id   int32 // of the stacked result
	list []pointed
}

// pointInSlot notes that bytes lie in the slot of the stack with an ID, of a
// loop that the runner is in.
func (r *Runner) pointInSlot(id int32, p pointed) {
	for _, s := range r.slots {
		if s.id == id {
			s.list = append(s.list, p)
			return
		}
	}
	panic("BUG: exec: a slot of a loop that was not entered")
}

// openSlots points what lies in slots to the parts of the iteration that
// begins. The buffer of a stack whose size is not known grows for it.
func (r *Runner) openSlots(s *loopState) error {
	for i := range s.stacks {
		c, d := &s.stacks[i], &s.stackData[i]
		if !c.inSlot {
			continue
		}
		result, n := d.result, int(c.part.size)
		at := int(s.count) * n
		if c.result.dynamic >= 0 {
			if err := r.reserve(s, i, c.typ, at, n); err != nil {
				return err
			}
			result = r.dynamic[c.result.dynamic].bytes()
		}
		for _, p := range d.slots.list {
			begin := at + int(p.offset)
			*p.data = result[begin : begin+int(p.size) : begin+int(p.size)]
		}
	}
	return nil
}
