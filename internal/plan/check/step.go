package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// run simulates all steps: rules 2, 4, 5, 6 and 7.
func (c *checker) run() *Violation {
	c.impure = -1
	return c.block(c.program.Body)
}

// block runs the calls of a block, in the order of the steps.
func (c *checker) block(b *ir.Block) *Violation {
	for range b.Calls {
		c.step = c.next
		c.next++
		if v := c.call(b); v != nil {
			return v
		}
	}
	return nil
}

// call runs the call of the current step, which has to be one of block b.
func (c *checker) call(b *ir.Block) *Violation {
	k := c.step // a layout runs the calls in the program's order
	if c.plan != nil {
		if v := c.documented(b); v != nil {
			return v
		}
		k = c.plan.Steps[c.step].Call
	}
	call := c.index.Calls[k].Call
	c.stepOf[k] = c.step
	if call.Op.Impure {
		if k < c.impure {
			return c.fault(Order, nil, fmt.Sprintf("impure call %d after impure call %d", k, c.impure), "the order of the program")
		}
		c.impure = k
	}
	if v := c.read(call); v != nil {
		return v
	}
	if call.Op.Loop {
		return c.loop(k, call)
	}
	if len(call.Regions) > 0 {
		return c.branch(call)
	}
	return c.compute(k, call)
}

// documented proves the document's entries for the current step: a call of
// block b.
func (c *checker) documented(b *ir.Block) *Violation {
	s := &c.plan.Steps[c.step]
	if s.Call >= len(c.index.Calls) {
		return c.fault(Order, nil, fmt.Sprintf("call %d", s.Call), fmt.Sprintf("one of %d", len(c.index.Calls)))
	}
	k, call := s.Call, c.index.Calls[s.Call].Call
	if s.Op != call.Op.Name || s.Node != call.Node {
		return c.fault(Document, nil, fmt.Sprintf("call %d as %q, node %q", k, s.Op, s.Node), fmt.Sprintf("%q, node %q", call.Op.Name, call.Node))
	}
	if c.index.Calls[k].Block != b {
		return c.fault(Order, nil, fmt.Sprintf("call %d, which is in another block", k), "a call of the block that is being run")
	}
	if want := call.OperandIDs(); !slices.Equal(s.Reads, want) {
		return c.fault(Document, nil, fmt.Sprintf("call %d as reading values %v", k, s.Reads), fmt.Sprint(want))
	}
	return nil
}

// read proves rule 4 for the operands of a call.
func (c *checker) read(call *ir.Call) *Violation {
	for i, a := range call.Args {
		if a.Value == nil {
			continue
		}
		x := c.of(a.Value)
		if x.content.root == 0 {
			return c.fault(Order, x, fmt.Sprintf("operand %d before the step that computes it", i), "it computed")
		}
		if bad, actual, found := c.memory.lacks(x.place, x); found {
			return c.holds(Read, x, bad, actual)
		}
		if fault := c.isFreed(Read, x); fault != nil {
			return fault
		}
	}
	return nil
}

// compute runs a call without regions.
func (c *checker) compute(k int, call *ir.Call) *Violation {
	if starts := c.assembled(k, call); starts != nil {
		return c.assemble(call, starts)
	}
	inPlace := true // all results are views in their operand's bytes
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.of(v)
		of, offset, fault := c.viewed(k, call, r)
		if fault != nil {
			return fault
		}
		x.content, x.parts = content{root: v.ID}, nil
		if of != nil {
			x.content, x.parts = of.view(offset, x.size)
		}
		if fault := c.placeInWeight(x); fault != nil {
			return fault
		}
		inPlace = inPlace && of != nil && x.place.space == of.place.space && x.place.lo == of.place.lo+offset
	}
	if inPlace {
		return nil
	}
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		if fault := c.writable(c.of(v)); fault != nil {
			return fault
		}
		if fault := c.alias(k, call, r); fault != nil {
			return fault
		}
	}
	for _, v := range call.Results {
		if v != nil {
			c.memory.put(c.of(v))
		}
	}
	return nil
}

// viewed returns the operand that result r is a view of, nil for none, and
// where the result starts in it.
func (c *checker) viewed(k int, call *ir.Call, r int) (of *value, offset int64, fault *Violation) {
	if !c.sigs.Of(k).IsStatic() {
		return nil, 0, nil // the run decides, over buffers that no other value is planned in
	}
	for i, a := range call.Args {
		if a.Value == nil {
			continue
		}
		kind, offset := c.sigs.Of(k).AliasOf(i, r)
		if kind != op.View {
			continue
		}
		of, x := c.of(a.Value), c.of(call.Results[r])
		if offset < 0 || int64(offset) > of.size || x.size > of.size-int64(offset) {
			return nil, 0, c.fault(Alias, x, fmt.Sprintf("a view of bytes [%d,%d) of operand %d", offset, int64(offset)+x.size, i),
				fmt.Sprintf("bytes within its %d", of.size))
		}
		return of, int64(offset), nil
	}
	return nil, 0, nil
}

// placeInWeight proves that a result that is planned in a weight's bytes is a
// view of a weight, and completes its place: the document does not say which
// weight it is.
func (c *checker) placeInWeight(x *value) *Violation {
	if x.place.kind != weight {
		return nil
	}
	if c.values[x.content.root].Kind != ir.Weight {
		return c.fault(Place, x, "a place in a weight", "another space, or a view of a weight")
	}
	x.place.arg = x.content.root
	return nil
}

// writable proves rule 6.
func (c *checker) writable(x *value) *Violation {
	if x.size == 0 {
		return nil
	}
	switch {
	case x.place.kind == weight:
		return c.fault(Write, x, "a write into a weight", "other bytes: weights are never written").in(x.place)
	case x.place.kind == input && !c.donated(x.place):
		return c.fault(Write, x, "a write into an input that is not donated", "other bytes").in(x.place)
	}
	return nil
}

// aliasOf returns how a result may lie in an operand's bytes, and from which
// byte on.
func aliasOf(s *op.Sig, arg, result int) (kind op.AliasKind, offset int) {
	if kind, offset = s.AliasOf(arg, result); kind == 0 {
		kind = s.AliasAlone(arg, result)
	}
	return kind, offset
}

// alias proves rule 5 for result r.
func (c *checker) alias(k int, call *ir.Call, r int) *Violation {
	x := c.of(call.Results[r])
	for _, v := range call.Results[:r] {
		if v != nil && overlap(x.place, c.of(v).place) {
			return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of result %s", v), "bytes of its own").in(x.place)
		}
	}
	var shared *value // the first operand in these bytes
	var sharedKind op.AliasKind
	for i, a := range call.Args {
		if a.Value == nil || !overlap(x.place, c.of(a.Value).place) {
			continue
		}
		y := c.of(a.Value)
		kind, offset := aliasOf(c.sigs.Of(k), i, r)
		if kind == 0 || !c.sigs.Of(k).IsStatic() {
			return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s)", i, y, y.place), "none: the operator may not overwrite that operand").in(x.place)
		}
		if want := y.place.lo + int64(offset); x.place.lo != want {
			return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s) from %d on", i, y, y.place, x.place.lo),
				fmt.Sprintf("them from %d on: the operator allows %s", want, kind)).in(x.place)
		}
		if shared != nil && (kind != op.Same || sharedKind != op.Same) {
			return c.fault(Alias, x, fmt.Sprintf("bytes of the operands %s (%s) and %s (%s)", shared, sharedKind, y, kind),
				"those of one operand, or the operator to allow same for both").in(x.place)
		}
		shared, sharedKind = y, kind
	}
	return nil
}

// branch runs a call of which one region is chosen at run time: rule 7.
func (c *checker) branch(call *ir.Call) *Violation {
	if !call.Op.Branch || len(call.Regions) != 2 || len(call.Regions[0].Params)+len(call.Regions[1].Params) > 0 {
		return c.fault(Branch, nil, "an operator with regions that may run many times", "one that runs one of two regions once")
	}
	at, entry := c.step, c.memory
	var joined contents
	for i, region := range call.Regions {
		c.memory = entry.clone()
		if v := c.block(region); v != nil {
			return v
		}
		c.step = at
		if v := c.branchResults(call, region); v != nil {
			return v
		}
		if i == 0 {
			joined = c.memory
		} else {
			joined.join(c.memory)
		}
	}
	c.memory = joined
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.of(v)
		for _, other := range call.Results[:r] {
			if other != nil && overlap(x.place, c.of(other).place) {
				return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of result %s", other), "bytes of its own").in(x.place)
			}
		}
		x.content = content{root: v.ID}
		x.end = plan.Time(2 * c.next) // it is there when the branches end, whether or not it is read then
		c.memory.put(x)
	}
	return nil
}

// branchResults proves that a branch leaves its results where those of the
// call are planned.
func (c *checker) branchResults(call *ir.Call, region *ir.Block) *Violation {
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		x, y := c.of(v), c.of(region.Results[r])
		if fault := c.writable(x); fault != nil {
			return fault
		}
		if x.unsized || x.place.kind == output && !x.typ.IsStatic() {
			// The run moves or copies it there.
			if bad, actual, found := c.memory.lacks(y.place, y); found {
				return c.holds(Branch, y, bad, actual)
			}
			if fault := c.isFreed(Branch, y); fault != nil {
				return fault
			}
			continue
		}
		left := *y
		left.place = x.place
		left.place.hi = min(x.place.hi, x.place.lo+y.extent()) // the other region may return more
		if bad, actual, found := c.memory.lacks(left.place, y); found {
			return c.holds(Branch, &left, bad, actual)
		}
	}
	return nil
}
