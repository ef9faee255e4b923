package exec

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// joiner lets operands lie where they are parts of results, as those of concat
// and pad are, and results where they are boxes of operands, as those of slice
// and split are: nothing is copied then. To this end it joins the storages of
// the part and of the whole, if no byte of one is written while a value in the
// other needs it. The values of one storage keep their distances, or, where the
// part was contiguous and is so no more, get strides of the whole's; then all
// kernels that read or write them have to take these. Calls come in the
// program's order: a value that could be a part of several results becomes one
// of the first, and of others whose parts lie around it in the same way.
type joiner struct {
	*lowering
	users  [][]int          // by ID: the calls that read or define a value
	around []bool           // by ID: a call with regions takes, carries or returns it
	short  map[int64]string // reasons, by the bytes of pieces

	// For the types of now.
	counts  []int            // by ID: of how many parts a value is put together; 0 where that was not asked
	next    []*ir.Value      // by ID: the one after it in its storage
	reasons map[joint]string // why it is copied
	tried   []candidate

	// Of the join that is tried.
	before    []moved
	ins, outs []*shape.Layout
}

// moved is where a value was before a join.
type moved struct {
	v *ir.Value
	place
}

// newJoiner makes the joiner of a lowering, with what does not depend on types.
func newJoiner(l *lowering) *joiner {
	j := &joiner{lowering: l, users: make([][]int, len(l.values)), around: make([]bool, len(l.values)), short: map[int64]string{},
		counts: make([]int, len(l.values)), next: make([]*ir.Value, len(l.values)), reasons: map[joint]string{}}
	for k := range j.calls {
		for _, a := range j.calls[k].Args {
			if a.Value != nil {
				j.users[a.Value.ID] = append(j.users[a.Value.ID], k)
			}
		}
		for _, v := range j.calls[k].Results {
			if v != nil {
				j.users[v.ID] = append(j.users[v.ID], k)
			}
		}
		for _, region := range j.calls[k].Regions {
			for _, v := range slices.Concat(region.Params, region.Results, j.calls[k].Results) {
				if v != nil {
					j.around[v.ID] = true
				}
			}
		}
	}
	return j
}

// placeParts joins storages. It needs the places and the ends of all values,
// and reports whether it has changed places.
func (l *lowering) placeParts() (changed bool) {
	if len(l.joins) == 0 {
		return false
	}
	if l.joiner == nil {
		l.joiner = newJoiner(l)
	}
	j := l.joiner
	for _, k := range l.joins {
		c := &l.calls[k]
		if c.split {
			continue
		}
		c.parts, c.split = c.parts[:0], true
		if c.static && c.Results[0] != nil {
			if parts := c.sig.Parts(c.parts); parts != nil {
				c.parts = parts
			}
		}
	}
	j.collect()
	for _, k := range l.joins {
		c := &l.calls[k]
		for i := range c.Args {
			if j.isPart(k, i) && !j.liesInPart(k, i) {
				j.tryJoin(joint{k, i}, c.Args[i].Value, c.Results[0], c.partAt(i))
			}
		}
		for r := range c.Results {
			if arg, at := j.boxOf(k, r); arg >= 0 && !j.isView(k, r) {
				j.tryJoin(joint{k, ^r}, c.Results[r], c.Args[arg].Value, at)
			}
		}
	}
	changed = j.hasMade(false)
	if changed {
		l.storages = slices.DeleteFunc(l.storages, func(s *storage) bool { return s.joined })
	}
	if l.listing {
		j.report()
	}
	return changed
}

// tryJoin joins a part and a whole, unless there is a reason not to.
func (j *joiner) tryJoin(x joint, part, whole *ir.Value, at []int) {
	strided := !j.hasStrides(part, j.strides(whole))
	reason := j.limits.refuse(x, strided)
	if reason == "" {
		reason = j.join(x.call, part, whole, at)
	}
	if reason != "" {
		j.reasons[x] = reason
	}
	j.tried = append(j.tried, candidate{x, strided, reason == "", j.of(part).size})
}

// collect finds what lies in each storage.
func (j *joiner) collect() {
	clear(j.counts)
	clear(j.reasons)
	j.tried = j.tried[:0]
	for _, list := range [][]*ir.Value{j.program.Body.Params, j.defs} {
		for _, v := range list {
			s := j.of(v).storage
			j.next[v.ID] = nil
			if s.tail == nil {
				s.head = v
			} else {
				j.next[s.tail.ID] = v
			}
			s.tail = v
			s.values++
		}
	}
}

// in lists the values that lie in a storage.
func (j *joiner) in(s *storage) iter.Seq[*ir.Value] {
	return func(yield func(*ir.Value) bool) {
		for v := s.head; v != nil && yield(v); v = j.next[v.ID] {
		}
	}
}

// countParts returns of how many parts a value is put together.
func (j *joiner) countParts(v *ir.Value) int {
	if j.counts[v.ID] == 0 {
		j.counts[v.ID] = max(1, min(j.sumParts(v), check.MaxParts+1))
	}
	return j.counts[v.ID]
}

func (j *joiner) sumParts(v *ir.Value) (n int) {
	k := j.index.Def(v)
	if k < 0 || v.Kind != ir.Result {
		return 1
	}
	c := &j.calls[k]
	if len(c.Regions) > 0 || !c.static {
		return 1
	}
	if arg := j.viewOf(k, v.Index); arg >= 0 {
		return j.countParts(c.Args[arg].Value)
	}
	for i, a := range c.Args {
		if j.isPart(k, i) {
			n += j.countParts(a.Value)
		}
	}
	return n
}

// viewOf returns the operand of call k that result r is a view of, -1 for none.
func (l *lowering) viewOf(k, r int) (arg int) {
	arg, kind, _ := l.bytesFor(k, r)
	if arg >= 0 && kind != op.View { // a donated one, and maybe there is another one behind it
		arg, _ = l.calls[k].sig.ViewOf(r)
	}
	return arg
}

// partAt returns where operand i is in the result: the index of its first
// element.
func (c *call) partAt(i int) []int {
	rank := len(c.parts) / len(c.Args)
	return c.parts[i*rank : (i+1)*rank]
}

// isPart reports whether operand i of call k has bytes, and is a part of the
// result.
func (l *lowering) isPart(k, i int) bool {
	c := &l.calls[k]
	return len(c.parts) > 0 && c.Args[i].Value != nil && c.partAt(i)[0] >= 0 && l.of(c.Args[i].Value).size > 0 &&
		l.areAlike(c.Args[i].Value, c.Results[0])
}

// areAlike reports whether one value may be a box of another: they have as many
// axes and elements of the same whole bytes.
func (l *lowering) areAlike(v, w *ir.Value) bool {
	a, b := l.types.Of(v), l.types.Of(w)
	return a.DType == b.DType && a.DType.Size() > 0 && a.Shape.Rank() == b.Shape.Rank()
}

// liesInPart reports whether operand i of call k lies where it is a part of the
// result.
func (l *lowering) liesInPart(k, i int) bool {
	c := &l.calls[k]
	return l.liesAt(c.Args[i].Value, c.Results[0], c.partAt(i))
}

// boxOf returns the operand that result r of call k is a box of, and from which
// index on; -1 for none.
func (l *lowering) boxOf(k, r int) (arg int, at []int) {
	c := &l.calls[k]
	v := c.Results[r]
	if v == nil || !c.static || !c.Op.Alias.HasBoxes() || l.of(v).size == 0 {
		return -1, nil
	}
	b := &l.boxes[c.first+r]
	if !b.known {
		rank := c.sig.Results[r].Shape.Rank()
		b.known, b.at = true, slices.Grow(b.at[:0], rank)[:rank]
		if b.arg = c.sig.BoxOf(r, b.at); b.arg >= 0 && !l.areAlike(v, c.Args[b.arg].Value) {
			b.arg = -1
		}
	}
	if b.arg < 0 {
		return -1, nil
	}
	return b.arg, b.at
}

// boxed is the answer of boxOf, once it was asked for a result with elements.
type boxed struct {
	known bool
	arg   int
	at    []int
}

// liesInBox reports whether result r of call k lies where it is a box of an
// operand.
func (l *lowering) liesInBox(k, r int) bool {
	arg, at := l.boxOf(k, r)
	return arg >= 0 && l.liesAt(l.calls[k].Results[r], l.calls[k].Args[arg].Value, at)
}

// liesAt reports whether a part lies in the bytes of the whole, from the given
// index on.
func (l *lowering) liesAt(part, whole *ir.Value, at []int) bool {
	from, to := l.of(part), l.of(whole)
	return from.storage == to.storage && from.offset == to.offset+l.distance(whole, at) && l.hasStrides(part, l.strides(whole))
}

// strides returns the strides of a value, in elements.
func (l *lowering) strides(v *ir.Value) []int {
	if layout := l.of(v).layout; layout != nil {
		return layout.Strides()
	}
	return l.types.Of(v).Shape.Strides()
}

// distance returns how many bytes of a value are before the element with an
// index.
func (l *lowering) distance(v *ir.Value, at []int) int64 {
	n := 0
	for d, stride := range l.strides(v) {
		n += at[d] * stride
	}
	return int64(n * l.types.Of(v).DType.Size())
}

// hasStrides reports whether the elements of a value lie at the given
// distances.
func (l *lowering) hasStrides(v *ir.Value, strides []int) bool {
	own := l.strides(v)
	for d, n := range l.types.Of(v).Shape.Sizes() {
		if n > 1 && own[d] != strides[d] {
			return false
		}
	}
	return true
}

// join puts a part where it belongs in the whole, from the given index on: one
// of them is an operand of call k, the other a result. If it does not, it says
// why.
func (j *joiner) join(k int, part, whole *ir.Value, at []int) (reason string) {
	from, to := j.of(part), j.of(whole)
	a, b := from.storage, to.storage
	shift := to.offset + j.distance(whole, at) - from.offset // of a's values, to where they would lie in b
	if j.countParts(whole) > check.MaxParts {
		return fmt.Sprintf("the result has more than %d parts", check.MaxParts)
	}
	if a == b {
		return "it is another part of the same bytes"
	}
	for _, s := range []*storage{a, b} {
		if reason := j.keeps(s, a, j.index.Calls[k].Block); reason != "" {
			return reason
		}
	}
	strided := !j.hasStrides(part, j.strides(whole))
	if n := j.pieceOf(part, whole); strided && n < shortPiece && !j.leastMemory && !j.isReadByRows(k, a) {
		return j.shortPieces(n)
	}
	low, high := min(0, shift), max(b.size, a.size+shift)
	if strided {
		if part, at = j.wholeOf(part, whole, at); part == nil {
			return "its bytes are a part of others"
		}
		shift = to.offset + j.distance(whole, at)
		low, high = 0, b.size
	}
	growsA, growsB := strided || low < shift || high > shift+a.size, low < 0 || high > b.size
	switch {
	case a.space == plan.SpaceInput && b.space == plan.SpaceInput, a.space == plan.SpaceInput && growsA, b.space == plan.SpaceInput && growsB:
		return "its bytes and the result's would take more than the input's"
	case a.output && (b.output || growsA || b.space == plan.SpaceInput && !j.program.Body.Params[b.arg].Donated) || b.output && growsB, j.isReturned(a) && b.output, j.isReturned(b) && a.output:
		return "an output needs a buffer of its own"
	case growsA && growsB, growsB && b.space == plan.SpaceSlot:
		return "its bytes and the result's would take more than either"
	}
	elem := int64(whole.Type.DType.Size())
	if !j.isAligned(a, b, shift-low, elem) || !j.isAligned(b, a, -low, elem) {
		return "elements of other values in its bytes would not be aligned"
	}
	j.before = j.before[:0]
	inA := a.values
	if reason = j.move(a, b, part, whole, shift, low, strided); reason == "" {
		reason = j.fault(j.before[:inA], j.before[inA:], strided)
	}
	if reason != "" {
		for _, m := range j.before {
			j.of(m.v).place = m.place
		}
		return reason
	}
	j.merge(a, b, high-low)
	return ""
}

// wholeOf returns the value that has all bytes of a part's storage, in one
// piece: the part, or one that it is a box of. It is one that fits into the
// whole as the part does, and begins there at the index that is returned.
func (j *joiner) wholeOf(part, whole *ir.Value, at []int) (*ir.Value, []int) {
	from := j.of(part)
	for v := range j.in(from.storage) {
		x := j.of(v)
		if x.layout != nil || x.offset != 0 || x.size != from.storage.size || !j.areAlike(v, whole) || !j.hasStrides(part, j.strides(v)) {
			continue
		}
		begins, fits := slices.Clone(at), true
		rest := int(from.offset) / v.Type.DType.Size()
		for d, n := range j.types.Of(v).Shape.Sizes() {
			stride := j.strides(v)[d]
			begins[d] -= rest / stride
			rest %= stride
			fits = fits && begins[d] >= 0 && begins[d]+n <= j.types.Of(whole).Shape.Size(d)
		}
		if fits {
			return v, begins
		}
	}
	return nil, nil
}

// move moves the values of a to where they would lie in b, and those of b
// behind bytes that come before them. It keeps where they were.
func (j *joiner) move(a, b *storage, part, whole *ir.Value, shift, low int64, strided bool) (reason string) {
	for v := range j.in(a) {
		j.before = append(j.before, moved{v, j.of(v).place})
	}
	for v := range j.in(b) {
		j.before = append(j.before, moved{v, j.of(v).place})
	}
	elem := int64(part.Type.DType.Size())
	var outer *shape.Layout
	if strided {
		outer, _ = shape.Strided(j.types.Of(part).Shape, j.strides(whole)...)
	}
	start := shift + j.of(part).offset
	var empty []*ir.Value
	for n, m := range j.before {
		x := j.of(m.v)
		if x.size == 0 {
			empty = append(empty, m.v)
		}
		switch {
		case n >= a.values:
			x.offset -= low
		case !strided || x.size == 0:
			x.offset, x.storage = x.offset+shift-low, b
		case int64(m.v.Type.DType.Size()) != elem || x.offset%elem != 0:
			return "elements of another size lie in its bytes"
		default:
			typ := j.types.Of(m.v)
			strides, offset, ok := rebase(outer, typ.Shape, j.strides(m.v), int(x.offset/elem))
			if !ok {
				return "values in its bytes have axes that would be cut"
			}
			x.offset, x.storage, x.layout = start+int64(offset)*elem, b, nil
			if layout, err := shape.Strided(typ.Shape, strides...); err != nil || !layout.IsContiguous() {
				x.layout = layout
			}
		}
	}
	// A view without elements lies where it begins in its operand.
	slices.SortFunc(empty, func(v, w *ir.Value) int { return cmp.Compare(j.index.Def(v), j.index.Def(w)) })
	for _, v := range empty {
		if k := j.index.Def(v); k >= 0 && len(j.calls[k].Regions) == 0 && v.Kind == ir.Result {
			if arg, kind, offset := j.bytesFor(k, v.Index); kind == op.View {
				j.of(v).offset = j.of(j.calls[k].Args[arg].Value).offset + int64(offset)
			}
		}
	}
	return ""
}

// fault says why values may not lie where they have been moved: those of a and
// of b spoil one another, or the kernel of a call does not take the strides
// that those of a have now.
func (j *joiner) fault(a, b []moved, strided bool) (reason string) {
	for _, u := range a {
		for _, w := range b {
			if j.of(u.v).overlaps(j.of(w.v).place) && (j.spoils(u.v, w.v) || j.spoils(w.v, u.v)) {
				return "its bytes are needed for " + later(j.lowering, u.v, w.v).Name + " then"
			}
		}
	}
	if !strided {
		return ""
	}
	if !j.areToldApart(a) {
		return "what lies in its bytes could not be told apart"
	}
	for _, m := range a {
		if j.of(m.v).layout == m.layout {
			continue
		}
		if j.around[m.v.ID] {
			return "a branch or a loop passes it on"
		}
		for _, k := range j.users[m.v.ID] {
			if c := &j.calls[k]; !j.takesStrides(k, m.v) {
				return c.Op.Name + " needs it in one piece"
			}
		}
	}
	return ""
}

// areToldApart reports whether values that have got strides, and the parts that
// they are put together of, lie in a grid each, and whether those that shared
// no byte still can be seen not to.
func (j *joiner) areToldApart(list []moved) bool {
	for n, m := range list {
		x := j.of(m.v)
		if x.size == 0 {
			continue
		}
		if !x.place.isInGrid() {
			return false
		}
		for _, other := range list[:n] {
			if j.of(other.v).overlaps(x.place) && !other.place.overlaps(m.place) {
				return false
			}
		}
		k := j.index.Def(m.v)
		if k < 0 || m.v != j.calls[k].Results[0] {
			continue
		}
		for i := range j.calls[k].Args {
			if j.isPart(k, i) && !j.partPlace(k, i).isInGrid() {
				return false
			}
		}
	}
	return true
}

// takesStrides reports whether call k computes with the strides that its
// operands and results have now. One of them is v.
func (j *joiner) takesStrides(k int, v *ir.Value) bool {
	c := &j.calls[k]
	in := j.program.Body
	if def := j.index.Def(v); def >= 0 {
		in = j.index.Calls[def].Block
	}
	if len(c.Regions) > 0 || !c.static || j.index.Calls[k].Block != in {
		return false
	}
	if j.isPlacedView(k) {
		return true
	}
	for r, v := range c.Results {
		switch arg, kind, _ := j.bytesFor(k, r); {
		case kind == op.View:
			return false // it shares bytes, and is no view of them any more
		case (kind == op.Permute || kind == op.Narrow) && j.of(v).overlaps(j.of(c.Args[arg].Value).place):
			return false // the kernel takes the bytes in their order
		}
	}
	j.ins, j.outs = j.ins[:0], j.outs[:0]
	for _, a := range c.Args {
		j.ins = append(j.ins, j.layoutOf(a.Value))
	}
	for _, r := range c.Results {
		j.outs = append(j.outs, j.layoutOf(r))
	}
	return compute.Strided(c.sig, j.ins, j.outs)
}

// layoutOf returns the layout of a value that has strides, and nil for others.
func (l *lowering) layoutOf(v *ir.Value) *shape.Layout {
	if v == nil {
		return nil
	}
	return l.of(v).layout
}

// isReturned reports whether an input's bytes are those of an output: the input
// itself, or a view of it.
func (j *joiner) isReturned(s *storage) bool {
	if s.space != plan.SpaceInput {
		return false
	}
	for v := range j.in(s) {
		if slices.Contains(j.program.Body.Results, v) {
			return true
		}
	}
	return false
}

// later returns the value that is computed last.
func later(l *lowering, u, w *ir.Value) *ir.Value {
	if l.index.Def(u) > l.index.Def(w) {
		return u
	}
	return w
}

// keeps says why a storage is not joined with others, for a call of a block.
// The values of the part lie in a.
func (j *joiner) keeps(s, a *storage, block *ir.Block) (reason string) {
	switch {
	case s.space == plan.SpaceInput && !j.program.Body.Params[s.arg].Donated && (s == a || !j.isOnlyRead(a)):
		return "its bytes are an input's that is not donated"
	case s.space == plan.SpaceWeight:
		return "its bytes are a weight's"
	case s.space != plan.SpaceArena && s.space != plan.SpaceInput && s.space != plan.SpaceSlot:
		return "its size depends on data"
	case s.passed && (s.space == plan.SpaceInput || s.space == plan.SpaceSlot && s == a):
		return "a branch or a loop passes it on"
	}
	for v := range j.in(s) {
		in := j.program.Body
		if k := j.index.Def(v); k >= 0 {
			in = j.index.Calls[k].Block
		}
		switch {
		case in != block && !(s.passed && j.isInRegions(v, block)):
			return "a branch or a loop computes it"
		case j.of(v).dynamic >= 0:
			return "its size depends on data"
		}
	}
	return ""
}

// isInRegions reports whether a value exists only in regions of calls of a
// block. What the loop or branch writes then is written between two calls of
// the block.
func (j *joiner) isInRegions(v *ir.Value, block *ir.Block) bool {
	for k := range j.calls {
		if c := &j.calls[k]; len(c.Regions) > 0 && j.index.Calls[k].Block == block && j.index.IsInside(v, k) {
			return true
		}
	}
	return false
}

// isOnlyRead reports whether nothing is written into a storage but its first
// value: the others are views of it.
func (j *joiner) isOnlyRead(s *storage) bool {
	for v := range j.in(s) {
		if v != s.head && !j.isView(j.index.Def(v), v.Index) {
			return false
		}
	}
	return true
}

// isAligned reports whether the values of a storage stay on multiples of their
// elements when they are moved, and have no larger ones than an output, which
// may become of their bytes, or an input whose bytes the others are.
func (j *joiner) isAligned(s, other *storage, by, elem int64) bool {
	for v := range j.in(s) {
		size := int64(v.Type.DType.Size())
		if by%size != 0 || size > elem || other.space == plan.SpaceInput && size > int64(j.program.Body.Params[other.arg].Type.DType.Size()) {
			return false
		}
	}
	return true
}

// spoils reports whether the call that computes w writes into bytes of u while
// u is needed.
func (j *joiner) spoils(u, w *ir.Value) bool {
	start := plan.Time(2*j.index.Def(u) + 1)
	end := max(j.of(u).end, start+1) // inputs are donated where they are written: nothing needs them when they were read last
	if slices.Contains(j.program.Body.Results, u) || j.of(u).isOutput {
		end = plan.MaxTime
	}
	if j.index.Def(w) < 0 {
		return false
	}
	k := j.index.Def(w)
	written := plan.Time(2*k + 1)
	if written < start || written >= end || len(j.calls[k].Regions) == 0 && j.isView(k, w.Index) {
		return false
	}
	if c := &j.calls[k]; len(c.parts) > 0 && w == c.Results[0] {
		return j.assemblyMeets(k, u)
	}
	return true
}

// assemblyMeets reports whether call k, which puts its result together, writes
// bytes of u, which lie in those of the result: it copies the operands that do
// not lie there, and writes what is around all operands.
func (j *joiner) assemblyMeets(k int, u *ir.Value) bool {
	c := &j.calls[k]
	to, there := j.of(c.Results[0]).place, j.of(u).place
	sum := int64(0)
	for i, a := range c.Args {
		if !j.isPart(k, i) {
			continue
		}
		from := j.of(a.Value)
		sum += from.size
		part := j.partPlace(k, i)
		switch lies := j.liesInPart(k, i); {
		case !lies && part.overlaps(there):
			return true
		case lies && part.covers(there):
			return false
		}
	}
	return sum < to.size
}

// partPlace returns where operand i of call k is in the result.
func (j *joiner) partPlace(k, i int) place {
	c := &j.calls[k]
	to := j.of(c.Results[0])
	part := place{storage: to.storage, offset: to.offset + j.distance(c.Results[0], c.partAt(i)), size: j.of(c.Args[i].Value).size}
	if l, err := shape.Strided(j.types.Of(c.Args[i].Value).Shape, j.strides(c.Results[0])...); err == nil && !l.IsContiguous() {
		part.layout = l
	}
	return part
}

// merge makes a and b, whose values lie in b now, one storage of the given
// size.
func (j *joiner) merge(a, b *storage, size int64) {
	into, from := b, a
	if from.space == plan.SpaceInput || into.space == plan.SpaceArena && from.values > into.values {
		into, from = from, into
	}
	for _, m := range j.before {
		j.of(m.v).storage = into
	}
	if from.size == size && into.space == plan.SpaceArena {
		into.name, into.owner, into.size = from.name, from.owner, from.size
	}
	into.output, into.passed, from.joined = into.output || from.output, into.passed || from.passed, true
	j.next[into.tail.ID] = from.head
	into.tail, into.values = from.tail, into.values+from.values
	from.head, from.tail, from.values = nil, nil, 0
}

// report lists the values that lie where they are parts of others, and those
// that do not.
func (j *joiner) report() {
	for _, k := range j.joins {
		c := &j.calls[k]
		for i, a := range c.Args {
			switch {
			case !j.isPart(k, i):
			case j.liesInPart(k, i):
				j.inPlace = append(j.inPlace, plan.InPlace{Call: k, Operand: i, Value: c.Results[0].Name, Of: a.Value.Name,
					Kind: plan.AliasPart, Bytes: j.of(a.Value).size})
			default:
				j.decline(k, i, j.reasons[joint{k, i}])
			}
		}
		for r, v := range c.Results {
			arg, _ := j.boxOf(k, r)
			if _, kind, _ := j.bytesFor(k, r); arg < 0 || kind == op.View {
				continue // views are listed already
			}
			switch {
			case j.liesInBox(k, r):
				j.inPlace = append(j.inPlace, plan.InPlace{Call: k, Operand: arg, Result: r, Value: v.Name, Of: c.Args[arg].Value.Name,
					Kind: plan.AliasView, Bytes: j.of(v).size})
			default:
				j.decline(k, arg, j.reasons[joint{k, ^r}])
			}
		}
	}
	slices.SortStableFunc(j.inPlace, func(a, b plan.InPlace) int { return cmp.Compare(a.Call, b.Call) })
}

// isAssembled reports whether call k puts its result together of operands that
// all lie where they are parts of it: there is nothing to do.
func (l *lowering) isAssembled(k int) bool {
	c := &l.calls[k]
	if len(c.parts) == 0 {
		return false
	}
	sum := int64(0)
	for i := range c.Args {
		if !l.isPart(k, i) {
			continue
		}
		if !l.liesInPart(k, i) {
			return false
		}
		sum += l.of(c.Args[i].Value).size
	}
	return sum > 0 && sum == l.of(c.Results[0]).size
}
