package exec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// joiner makes operands parts of results that are put together of them, as
// those of concat are: the operand is computed in the result's bytes, and
// nothing is copied. To this end it joins the storages of both at a fixed
// distance, if no byte of one is written while a value in the other needs it.
// Calls come in the program's order: a value that could be a part of several
// results becomes one of the first, and of others whose parts lie around it in
// the same way.
type joiner struct {
	*lowering
	counts  []int                    // by ID: of how many parts a value is put together
	values  map[*storage][]*ir.Value // that lie in each
	reasons map[[2]int]string        // by call and operand: why it is copied

	// Of the join that is tried.
	a, b  *storage
	shift int64 // of a's values, to where they would lie in b
}

// placeParts joins storages. It needs the places and the ends of all values,
// and reports whether it has changed places.
func (l *lowering) placeParts() (changed bool) {
	if len(l.joins) == 0 {
		return false
	}
	j := &joiner{lowering: l, counts: make([]int, len(l.values)), values: map[*storage][]*ir.Value{}, reasons: map[[2]int]string{}}
	for _, k := range l.joins {
		if c := &l.calls[k]; c.static && c.Results[0] != nil {
			c.parts = c.sig.Pieces(nil)
		}
	}
	for _, v := range l.program.Body.Params {
		if v.Donated {
			j.values[l.of(v).storage] = append(j.values[l.of(v).storage], v)
		}
	}
	for _, v := range l.defs {
		s := l.of(v).storage
		j.values[s] = append(j.values[s], v)
		j.counts[v.ID] = j.countParts(v)
	}
	for _, k := range l.joins {
		for i := range l.calls[k].Args {
			if !j.isPart(k, i) || j.liesInPart(k, i) {
				continue
			}
			if reason := j.join(k, i); reason != "" {
				j.reasons[[2]int{k, i}] = reason
			} else {
				changed = true
			}
		}
	}
	l.storages = slices.DeleteFunc(l.storages, func(s *storage) bool { return s.joined })
	j.report()
	return changed
}

// countParts counts the parts of a value, whose operands have been counted.
func (j *joiner) countParts(v *ir.Value) int {
	c := &j.calls[j.index.Def(v)]
	if len(c.Regions) > 0 || v.Kind != ir.Result || !c.static {
		return 1
	}
	if arg, _ := c.sig.ViewOf(v.Index); arg >= 0 {
		return max(1, j.counts[c.Args[arg].Value.ID])
	}
	n := 0
	for i, a := range c.Args {
		if j.isPart(j.index.Def(v), i) {
			n += max(1, j.counts[a.Value.ID])
		}
	}
	return max(1, min(n, check.MaxParts+1))
}

// isPart reports whether operand i of call k has bytes, and is one piece of the
// result.
func (l *lowering) isPart(k, i int) bool {
	c := &l.calls[k]
	return c.parts != nil && c.Args[i].Value != nil && l.of(c.Args[i].Value).size > 0
}

// liesInPart reports whether operand i of call k lies where it is a part of the
// result.
func (l *lowering) liesInPart(k, i int) bool {
	c := &l.calls[k]
	from, to := l.of(c.Args[i].Value), l.of(c.Results[0])
	return from.storage == to.storage && from.offset == to.offset+int64(c.parts[i])
}

// join joins the storages of operand i of call k and of the result. If it does
// not, it says why.
func (j *joiner) join(k, i int) (reason string) {
	c := &j.calls[k]
	from, to := j.of(c.Args[i].Value), j.of(c.Results[0])
	j.a, j.b, j.shift = from.storage, to.storage, to.offset+int64(c.parts[i])-from.offset
	if j.counts[c.Results[0].ID] > check.MaxParts {
		return fmt.Sprintf("the result has more than %d parts", check.MaxParts)
	}
	if j.a == j.b {
		return "it is another part of the same bytes"
	}
	for _, s := range []*storage{j.a, j.b} {
		if reason := j.keeps(s, j.index.Calls[k].Block); reason != "" {
			return reason
		}
	}
	low, high := min(0, j.shift), max(j.b.size, j.a.size+j.shift)
	growsA, growsB := low < j.shift || high > j.shift+j.a.size, low < 0 || high > j.b.size
	switch {
	case j.a.space == plan.SpaceInput && j.b.space == plan.SpaceInput, j.a.space == plan.SpaceInput && growsA, j.b.space == plan.SpaceInput && growsB:
		return "its bytes and the result's would take more than the input's"
	case j.a.output && (j.b.output || growsA) || j.b.output && growsB, j.isReturned(j.a) && j.b.output, j.isReturned(j.b) && j.a.output:
		return "an output needs a buffer of its own"
	case growsA && growsB:
		return "its bytes and the result's would take more than either"
	}
	elem := int64(c.Results[0].Type.DType.Size())
	if !j.isAligned(j.a, j.b, j.shift-low, elem) || !j.isAligned(j.b, j.a, -low, elem) {
		return "elements of other values in its bytes would not be aligned"
	}
	for _, u := range j.values[j.a] {
		for _, w := range j.values[j.b] {
			if j.meet(u, w) && (j.spoils(u, w) || j.spoils(w, u)) {
				return "its bytes are needed for " + later(j.lowering, u, w).Name + " then"
			}
		}
	}
	j.merge(low, high)
	return ""
}

// isReturned reports whether an input's bytes are those of an output: the input
// itself, or a view of it.
func (j *joiner) isReturned(s *storage) bool {
	return s.space == plan.SpaceInput && slices.ContainsFunc(j.values[s], func(v *ir.Value) bool { return slices.Contains(j.program.Body.Results, v) })
}

// later returns the value that is computed last.
func later(l *lowering, u, w *ir.Value) *ir.Value {
	if l.index.Def(u) > l.index.Def(w) {
		return u
	}
	return w
}

// keeps says why a storage is not joined with others, for a call of a block.
func (j *joiner) keeps(s *storage, block *ir.Block) (reason string) {
	switch {
	case s.space == plan.SpaceInput && !j.program.Body.Params[s.arg].Donated:
		return "its bytes are an input's that is not donated"
	case s.space == plan.SpaceWeight:
		return "its bytes are a weight's"
	case s.space != plan.SpaceArena && s.space != plan.SpaceInput:
		return "its size depends on data"
	case s.passed:
		return "a branch or a loop passes it on"
	}
	for _, v := range j.values[s] {
		in := j.program.Body
		if k := j.index.Def(v); k >= 0 {
			in = j.index.Calls[k].Block
		}
		switch {
		case in != block:
			return "a branch or a loop computes it"
		case j.of(v).dynamic >= 0:
			return "its size depends on data"
		}
	}
	return ""
}

// isAligned reports whether the values of a storage stay on multiples of their
// elements when they are moved, and have no larger ones than an output, which
// may become of their bytes, or an input whose bytes the others are.
func (j *joiner) isAligned(s, other *storage, by, elem int64) bool {
	for _, v := range j.values[s] {
		size := int64(v.Type.DType.Size())
		if by%size != 0 || size > elem || other.space == plan.SpaceInput && size > int64(j.program.Body.Params[other.arg].Type.DType.Size()) {
			return false
		}
	}
	return true
}

// offset returns where a value of a or b would lie in b.
func (j *joiner) offset(v *ir.Value) int64 {
	x := j.of(v)
	if x.storage == j.a {
		return x.offset + j.shift
	}
	return x.offset
}

// meet reports whether a value of a and one of b would share a byte.
func (j *joiner) meet(u, w *ir.Value) bool {
	ulow, wlow := j.offset(u), j.offset(w)
	return max(ulow, wlow) < min(ulow+j.of(u).size, wlow+j.of(w).size)
}

// spoils reports whether the call that computes w writes into bytes of u while
// u is needed.
func (j *joiner) spoils(u, w *ir.Value) bool {
	start, end := j.life(u)
	if j.of(u).storage.space == plan.SpaceInput {
		end = max(j.of(u).end, start+1) // it is donated: nothing needs it when it was read last
	}
	if slices.Contains(j.program.Body.Results, u) || j.of(u).isOutput {
		end = plan.MaxTime
	}
	if j.index.Def(w) < 0 {
		return false
	}
	written := plan.Time(2*j.index.Def(w) + 1)
	if written < start || written >= end {
		return false
	}
	k := j.index.Def(w)
	if _, kind, _ := j.bytesFor(k, w.Index); kind == op.View {
		return !j.isPlacedView(k)
	}
	c := &j.calls[k]
	if c.parts == nil {
		return true
	}
	low, high := j.offset(u), j.offset(u)+j.of(u).size
	for i, a := range c.Args {
		if a.Value == nil || j.of(a.Value).size == 0 {
			continue
		}
		part := j.offset(w) + int64(c.parts[i])
		if s := j.of(a.Value).storage; (s == j.a || s == j.b) && j.offset(a.Value) == part {
			continue // it is there already
		}
		if max(low, part) < min(high, part+j.of(a.Value).size) {
			return true
		}
	}
	return false
}

// merge makes a and b one storage, from the byte low of b to the byte high.
func (j *joiner) merge(low, high int64) {
	into, from, by, own := j.b, j.a, j.shift-low, -low
	if from.space == plan.SpaceInput || into.space != plan.SpaceInput && len(j.values[from]) > len(j.values[into]) {
		into, from, by, own = from, into, own, by
	}
	if own != 0 {
		for _, v := range j.values[into] {
			j.of(v).offset += own
		}
	}
	for _, v := range j.values[from] {
		x := j.of(v)
		x.storage, x.offset = into, x.offset+by
	}
	if from.size == high-low && into.space == plan.SpaceArena {
		into.name, into.owner, into.size = from.name, from.owner, from.size
	}
	into.output, from.joined = into.output || from.output, true
	j.values[into] = append(j.values[into], j.values[from]...)
	delete(j.values, from)
}

// report lists the operands that lie in their results, and those that do not.
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
				j.decline(k, i, j.reasons[[2]int{k, i}])
			}
		}
	}
	slices.SortStableFunc(j.inPlace, func(a, b plan.InPlace) int { return cmp.Compare(a.Call, b.Call) })
}

// isAssembled reports whether call k puts its result together of operands that
// all lie where they are parts of it: there is nothing to do.
func (l *lowering) isAssembled(k int) bool {
	c := &l.calls[k]
	if c.parts == nil {
		return false
	}
	some := false
	for i, a := range c.Args {
		if a.Value == nil || l.of(a.Value).size == 0 {
			continue
		}
		if !l.liesInPart(k, i) {
			return false
		}
		some = true
	}
	return some
}
