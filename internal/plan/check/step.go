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
		if bad, found := c.memory.lacks(x); found {
			return c.holds(Read, x, bad)
		}
		if fault := c.isFreed(Read, x); fault != nil {
			return fault
		}
	}
	return nil
}

// compute runs a call without regions.
func (c *checker) compute(k int, call *ir.Call) *Violation {
	if call.Op.Alias.HasParts() {
		if followed, fault := c.assemble(k, call); followed {
			return fault
		}
	}
	inPlace, left := true, uint64(0) // all results are views in their operand's bytes; those that the kernel leaves there
	views, computed := false, false
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		lies, fault := c.viewed(k, call, r)
		if fault != nil {
			return fault
		}
		inPlace = inPlace && lies
		if c.of(v).size > 0 {
			views, computed = views || lies, computed || !lies
		}
		if lies && call.Op.Alias.HasBoxes() && r < 64 && c.of(v).place.kind != weight {
			left |= 1 << r
		}
	}
	c.partly[k] = views && computed
	if inPlace {
		return nil
	}
	for r, v := range call.Results {
		if v == nil || left>>r&1 != 0 {
			continue
		}
		if fault := c.writable(c.of(v)); fault != nil {
			return fault
		}
		if fault := c.alias(k, call, r); fault != nil {
			return fault
		}
	}
	for r, v := range call.Results {
		if v != nil && left>>r&1 == 0 {
			c.memory.put(c.of(v))
		}
	}
	return nil
}

// viewed finds what result r holds: what an operand does that it is a view of,
// or a box of which it lies in; otherwise itself. It reports whether the result
// lies in the operand's bytes, so that nothing has to be written.
func (c *checker) viewed(k int, call *ir.Call, r int) (lies bool, fault *Violation) {
	x, sig := c.of(call.Results[r]), c.sigs.Of(k)
	if !sig.IsStatic() { // the run decides, over buffers that no other value is planned in
		c.hold(x, content{root: x.ID}, nil)
		return false, c.placeInWeight(x)
	}
	for i, a := range call.Args {
		if a.Value == nil || !c.views[k] {
			continue
		}
		kind, offset := sig.AliasOf(i, r)
		if kind != op.View {
			continue
		}
		of := c.of(a.Value)
		if offset < 0 || int64(offset) > of.size || x.size > of.size-int64(offset) {
			return false, c.fault(Alias, x, fmt.Sprintf("a view of bytes [%d,%d) of operand %d", offset, int64(offset)+x.size, i),
				fmt.Sprintf("bytes within its %d", of.size))
		}
		_, at, ok := c.placeAs(kind, offset, k, i, r)
		return c.hasContent(x, of, &piece{lo: int64(offset), box: box{run: x.size}}, at, ok)
	}
	if of, at := c.boxed(k, call, r); of >= 0 {
		y := c.of(call.Args[of].Value)
		b := c.boxIn(y, false, at, x.typ.Shape.Sizes())
		return c.hasContent(x, y, &b, c.placeIn(y, at, x.typ.Shape.Sizes()), true)
	}
	c.hold(x, content{root: x.ID}, nil)
	return false, c.placeInWeight(x)
}

// hasContent makes the result x hold what its operand does in a box of its
// bytes. It reports whether x lies in the place at of this box, if there is
// one; elsewhere x may hold itself.
func (c *checker) hasContent(x, of *value, b *piece, at place, isPlace bool) (lies bool, fault *Violation) {
	content, parts, known := c.contentIn(of, b)
	if known = known && c.hold(x, content, parts); !known {
		content.root = x.ID
		c.hold(x, content.at(-content.offset), nil)
	}
	if fault := c.placeInWeight(x); fault != nil {
		return false, fault
	}
	lies = isPlace && x.place.isSame(at)
	if lies && !known {
		return false, c.fault(Alias, x, fmt.Sprintf("a box of operand %s", of), "one that has a frame in common with the operand's parts").in(x.place)
	}
	return lies, nil
}

// boxed returns the operand in a box of whose bytes result r lies, and the
// index in it of the result's first element; -1 if there is none. The next call
// overwrites the list.
func (c *checker) boxed(k int, call *ir.Call, r int) (arg int, at []int) {
	x := c.of(call.Results[r])
	if !call.Op.Alias.HasBoxes() || x.size == 0 {
		return -1, nil
	}
	for i, a := range call.Args {
		if a.Value == nil {
			continue
		}
		y := c.of(a.Value)
		if y.place.kind != x.place.kind || x.place.lo < y.place.lo || y.place.hi < x.place.hi {
			continue
		}
		if at := c.boxOf(k, i, r); at != nil {
			place, of := x.place, c.placeIn(y, at, x.typ.Shape.Sizes())
			if place.kind == weight {
				place.arg = of.arg // it is not known yet
			}
			if place.isSame(of) {
				return i, at
			}
		}
	}
	return -1, nil
}

// boxOf returns the index in operand i of the first element of result r, if the
// result is a box of the operand; else nil. The next call overwrites the list.
func (c *checker) boxOf(k, i, r int) []int {
	call := c.index.Calls[k]
	x, y := c.of(call.Results[r]), c.of(call.Args[i].Value)
	if !call.Op.Alias.HasBoxes() || x.size == 0 || x.unsized || y.unsized {
		return nil
	}
	c.starts = slices.Grow(c.starts[:0], op.MaxRank)
	at := c.starts[:x.typ.Shape.Rank()]
	if c.sigs.Of(k).BoxOf(r, at) != i || !x.isBoxOf(y, at) {
		return nil
	}
	return at
}

// placeInOperand returns the place of result r of call k if it lies in the
// bytes of operand i, and how; it is false where it may not.
func (c *checker) placeInOperand(k, i, r int) (kind op.AliasKind, at place, ok bool) {
	kind, offset := aliasOf(c.sigs.Of(k), i, r)
	return c.placeAs(kind, offset, k, i, r)
}

// placeAs is placeInOperand for the kind and offset of the operator.
func (c *checker) placeAs(kind op.AliasKind, offset, k, i, r int) (op.AliasKind, place, bool) {
	call := c.index.Calls[k]
	x, y := c.of(call.Results[r]), c.of(call.Args[i].Value)
	switch {
	case (kind == op.View || kind == op.Permute || kind == op.Narrow) && y.place.box == nil:
		lo := y.place.lo + int64(offset)
		return kind, place{space: y.place.space, lo: lo, hi: lo + x.size}, true
	case kind == op.Same, kind == op.Accumulate, kind == op.Update, kind == op.View && offset == 0 && x.size == y.size:
		return kind, y.place, true
	case kind == op.Permute, kind == op.Narrow:
		return kind, place{}, false // alone in the order of its bytes
	}
	if box := c.boxOf(k, i, r); box != nil {
		return op.View, c.placeIn(y, box, x.typ.Shape.Sizes()), true
	}
	return kind, place{}, false
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
		if v != nil && c.overlap(x.place, c.of(v).place) {
			return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of result %s", v), "bytes of its own").in(x.place)
		}
	}
	var shared *value // the first operand in these bytes
	var sharedKind op.AliasKind
	for i, a := range call.Args {
		if a.Value == nil || !c.overlap(x.place, c.of(a.Value).place) {
			continue
		}
		y := c.of(a.Value)
		kind, offset := aliasOf(c.sigs.Of(k), i, r)
		if kind == 0 || !c.sigs.Of(k).IsStatic() {
			return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s)", i, y, y.place), "none: the operator may not overwrite that operand").in(x.place)
		}
		if _, at, ok := c.placeAs(kind, offset, k, i, r); !ok {
			return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s)", i, y, y.place), fmt.Sprintf("none: the operator allows %s only of contiguous bytes", kind)).in(x.place)
		} else if !x.place.isSame(at) {
			return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s) from %d on", i, y, y.place, x.place.lo),
				fmt.Sprintf("them from %d on%s: the operator allows %s", at.lo, asStrided(x.place, at), kind)).in(x.place)
		}
		if shared != nil && (kind != op.Same || sharedKind != op.Same) {
			return c.fault(Alias, x, fmt.Sprintf("bytes of the operands %s (%s) and %s (%s)", shared, sharedKind, y, kind),
				"those of one operand, or the operator to allow same for both").in(x.place)
		}
		shared, sharedKind = y, kind
	}
	return nil
}

// asStrided says that a place has other strides than it should, if it has any.
func asStrided(got, want place) string {
	if got.box == nil && want.box == nil {
		return ""
	}
	return fmt.Sprintf(", in runs %s", want.runs())
}

// branch runs a call of which one region is chosen at run time: rule 7.
func (c *checker) branch(call *ir.Call) *Violation {
	if !call.Op.Branch || len(call.Regions) != 2 || len(call.Regions[0].Params)+len(call.Regions[1].Params) > 0 {
		return c.fault(Branch, nil, "an operator with regions that may run many times", "one that runs one of two regions once")
	}
	at, entry := c.step, c.memory
	if fault := c.contiguousAround(call); fault != nil {
		return fault
	}
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
			joined.join(&c.memory)
		}
	}
	c.memory = joined
	for r, v := range call.Results {
		if v == nil {
			continue
		}
		x := c.of(v)
		for _, other := range call.Results[:r] {
			if other != nil && c.overlap(x.place, c.of(other).place) {
				return c.fault(Alias, x, fmt.Sprintf("bytes that are also those of result %s", other), "bytes of its own").in(x.place)
			}
		}
		c.hold(x, content{root: v.ID}, nil)
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
			if bad, found := c.memory.lacks(y); found {
				return c.holds(Branch, y, bad)
			}
			if fault := c.isFreed(Branch, y); fault != nil {
				return fault
			}
			continue
		}
		left := x.place
		left.hi = min(x.place.hi, x.place.lo+y.extent()) // the other region may return more
		if bad, found := c.memory.lacksFirst(y, left); found {
			return c.holds(Branch, y, bad)
		}
	}
	return nil
}
