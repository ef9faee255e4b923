package pass

import (
	"math/bits"
	"slices"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/op"
)

// changes is what a structure needs to take, for the next sizes, only the steps
// whose operands have other types or bytes than for the sizes before, and to
// compare only the answers that depend on these. All other steps would have the
// outcome of before, and all other guards the answer.
//
// It requires that each value has its type, and each constant its bytes, from
// one step, and that steps and guards that read them come later. Then what is
// in the tables after all steps is what each step would find there when the
// steps are taken in turn, and a step that is left out leaves its results where
// they are. Structures for which that does not hold, such as those of programs
// that were folded more than once, take all steps.
type changes struct {
	possible bool
	readers  [][]int   // by ID: the steps that read the value, in ascending order
	always   []int     // steps that enter the value of an input
	pending  []uint64  // a bit for each step that is to be taken
	isNew    []bool    // by ID: the type or the bytes are other ones than for the sizes before
	list     []int     // the IDs for which isNew is true
	results  []op.Type // of the step that is taken, before it
	stamps   []int     // of the constants that it makes

	// What all steps take of the allowance.
	bytes, work int64

	valid bool // the tables are those of sizes for which everything held
}

// changesOf finds the readers of each value. All steps have been taken.
func (s *Structure) changesOf() changes {
	c := changes{readers: make([][]int, len(s.types)), isNew: make([]bool, len(s.types)), pending: make([]uint64, (len(s.steps)+63)/64)}
	writer := make([]int, len(s.types)) // by ID: the number of the step, counted from 1
	write := func(at, id int) bool {
		if id == 0 {
			return true
		}
		known := writer[id] != 0 || slices.Contains(s.params, id)
		writer[id] = at + 1
		return !known
	}
	for at, st := range s.steps {
		switch st := st.(type) {
		case *frozen:
			c.always = append(c.always, at)
			if !write(at, st.made) {
				return changes{}
			}
		case *visit:
			if st.failed || st.asks && st.outcome != computed {
				return changes{}
			}
			for _, id := range slices.Concat(st.results, st.made) {
				if !write(at, id) {
					return changes{}
				}
			}
			if st.fixed {
				continue
			}
			for _, id := range slices.Concat(append(st.regions, st.args)...) {
				if list := c.readers[id]; id != 0 && (len(list) == 0 || list[len(list)-1] != at) {
					c.readers[id] = append(list, at)
				}
			}
		default:
			return changes{}
		}
	}
	before := func(id, at int) bool { return writer[id] <= at }
	for id, list := range c.readers {
		if len(list) > 0 && !before(id, list[0]) {
			return changes{}
		}
	}
	c.possible = true
	for _, cp := range s.copies {
		c.possible = c.possible && writer[cp.id] == 0
	}
	for _, g := range s.guards {
		c.possible = c.possible && before(g.a, g.at) && before(g.b, g.at)
	}
	for _, g := range s.constant {
		c.possible = c.possible && before(g.id, g.at)
	}
	return c
}

// note marks a value as another one, and the steps that read it as ones to be
// taken.
func (c *changes) note(id int) {
	if c.isNew[id] {
		return
	}
	c.isNew[id] = true
	c.list = append(c.list, id)
	for _, at := range c.readers[id] {
		c.pending[at/64] |= 1 << (at % 64)
	}
}

// concerns reports whether the types or the bytes of a call are other ones.
func (c *changes) concerns(call *shadow) bool {
	for _, id := range call.args {
		if c.isNew[id] {
			return true
		}
	}
	for _, id := range call.results {
		if c.isNew[id] {
			return true
		}
	}
	for _, region := range call.regions {
		for _, id := range region {
			if c.isNew[id] {
				return true
			}
		}
	}
	return false
}

// fit is [Structure.fitAll], from the sizes before where that can be done.
func (s *Structure) fit(params []op.Type, value func(int) []byte) (why string) {
	c := &s.changes
	valid := c.valid && s.ignored == nil && len(params) == len(s.params)
	c.valid = false
	if !valid || !s.fitChanges(params, value) {
		why = s.fitAll(params, value)
		c.valid = c.possible && why == "" && s.sumAllowance()
		return why
	}
	if invariant.Enabled {
		s.checkChanges(params, value)
	}
	c.valid = true
	return ""
}

// sumAllowance finds what all steps take of the allowance. It is false where
// that depends on their order.
func (s *Structure) sumAllowance() bool {
	c := &s.changes
	c.bytes, c.work = 0, 0
	for _, st := range s.steps {
		v, ok := st.(*visit)
		if ok && (v.filled || v.asks && v.outcome != computed) {
			return false
		}
		if ok && v.asks {
			c.bytes, c.work = c.bytes+v.bytes, c.work+v.work
		}
	}
	return true
}

// fitChanges takes the steps whose operands are other ones, and compares the
// answers that depend on them. It is false where something differs, or might.
func (s *Structure) fitChanges(params []op.Type, value func(int) []byte) bool {
	c := &s.changes
	for _, id := range c.list {
		c.isNew[id] = false
	}
	c.list = c.list[:0]
	clear(c.pending)
	s.slab.reset()
	for i, id := range s.params {
		if params[i] == s.types[id] {
			continue
		}
		if !alike(params[i], s.firstParams[i]) {
			return false
		}
		s.types[id] = params[i]
		c.note(id)
	}
	s.value = value
	defer func() { s.value = nil }()
	for _, at := range c.always {
		c.pending[at/64] |= 1 << (at % 64)
	}
	for n := range c.pending {
		for c.pending[n] != 0 {
			bit := bits.TrailingZeros64(c.pending[n])
			c.pending[n] &^= 1 << bit
			if !s.retakeStep(s.steps[64*n+bit]) {
				return false
			}
		}
	}
	return c.bytes <= s.allowance.bytes && c.work <= s.allowance.work && s.holdChanges()
}

// retakeStep takes a step, and notes which of its results are other ones. It is
// false where the outcome differs, or might.
func (s *Structure) retakeStep(st step) bool {
	c, left := &s.changes, s.allowance
	if f, ok := st.(*frozen); ok {
		typ, stamp := s.types[f.made], s.stamps[f.made]
		if f.take(s, &left) != "" {
			return false
		}
		if s.types[f.made] != typ || s.stamps[f.made] != stamp {
			c.note(f.made)
		}
		return true
	}
	v := st.(*visit)
	c.results, c.stamps = c.results[:0], c.stamps[:0]
	for i, id := range v.results {
		c.results, c.stamps = append(c.results, s.types[id]), append(c.stamps, s.stamps[v.made[i]])
		s.types[id] = v.before[i]
	}
	if v.asks {
		c.bytes, c.work = c.bytes-v.bytes, c.work-v.work
	}
	if v.take(s, &left) != "" || v.filled || v.asks && v.outcome != computed {
		return false
	}
	if v.asks {
		c.bytes, c.work = c.bytes+v.bytes, c.work+v.work
	}
	for i, id := range v.results {
		if id == 0 {
			continue
		}
		other := s.types[id] != c.results[i]
		if other {
			c.note(id)
		}
		if made := v.made[i]; made != 0 && (other || s.stamps[made] != c.stamps[i]) {
			c.note(made)
		}
	}
	return true
}

// holdChanges compares the answers about values that are other ones.
func (s *Structure) holdChanges() bool {
	c := &s.changes
	for _, cp := range s.copies {
		if s.types[cp.id] != s.types[cp.of] {
			s.types[cp.id] = s.types[cp.of]
			c.note(cp.id)
		}
	}
	for i := range s.guards {
		if g := &s.guards[i]; (c.isNew[g.a] || c.isNew[g.b]) && s.answer(*g) != g.answer {
			return false
		}
	}
	for i := range s.constant {
		if g := &s.constant[i]; c.isNew[g.id] && !s.isConstant(g) {
			return false
		}
	}
	return s.holdViews(c) == "" && s.aliases.fit(s, c) == ""
}

// checkChanges panics unless all steps find what the changes have found.
func (s *Structure) checkChanges(params []op.Type, value func(int) []byte) {
	types, data := slices.Clone(s.types), make([][]byte, len(s.data))
	for id := range data {
		data[id] = slices.Clone(s.data[id])
	}
	if why := s.fitAll(params, value); why != "" {
		invariant.Failf("pass: the steps that concern changes hold, and not all: %s", why)
	}
	for id := range types {
		if types[id] != s.types[id] || !slices.Equal(data[id], s.data[id]) {
			invariant.Failf("pass: got %s %x of value %d from the sizes before, want %s %x", types[id], data[id], id, s.types[id], s.data[id])
		}
	}
}
