package exec

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// Moment is a time of a run at which the set of storages that live in the arena
// is no part of that of another time.
type Moment struct {
	Call *ir.Call // that writes its results then

	// Values has for each storage a value by ID that takes as many bytes as
	// live of it then, or more: see Exact. They are in ascending order.
	Values []int

	// Exact says that each of the values takes as many bytes as live, at all
	// sizes that the structure has. If not, only parts of some value live,
	// which may begin elsewhere at other sizes.
	Exact bool
}

// Moments returns the moments of which the arena's lower bound is the largest,
// for any sizes of the structure: the bytes of each value in whole blocks,
// summed over the moment. The largest moment is the bound where all moments are
// exact, and else at least the bound. It is false for a program with regions.
func (e *Executable) Moments() ([]Moment, bool, error) {
	s := e.structure
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lowering
	if err := l.lower(e.types, ir.Known(e.weights)); err != nil {
		return nil, false, err
	}
	var all []Moment
	for k, c := range l.calls {
		if len(c.Regions) > 0 {
			return nil, false, nil
		}
		all = append(all, l.momentAt(k))
	}
	return largestSets(all), true, nil
}

// momentAt finds what lives when call k has written its results.
func (l *lowering) momentAt(k int) Moment {
	m := Moment{Call: l.calls[k].Call, Exact: true}
	now := plan.Time(2*k + 1)
	whole := map[*storage]bool{} // storages that live, and whether all of their bytes do
	for _, v := range l.defs {
		at := l.of(v).place
		if at.storage.space != plan.SpaceArena || at.size == 0 {
			continue
		}
		if start, end := l.life(v); start <= now && now < end {
			whole[at.storage] = whole[at.storage] || l.isAll(v)
		}
	}
	for s, all := range whole {
		m.Values = append(m.Values, s.owner.ID)
		m.Exact = m.Exact && all
	}
	slices.Sort(m.Values)
	return m
}

// isAll reports whether a value takes all bytes of its storage, at all sizes of
// the structure: it was made for the value, or the value lies in the bytes of
// an operand that does, as a view of all of it or in its place.
func (l *lowering) isAll(v *ir.Value) bool {
	for {
		k := l.index.Def(v)
		c := l.calls[k]
		arg, _, offset := l.bytesFor(k, slices.Index(c.Results, v))
		if arg < 0 || l.of(c.Args[arg].Value).storage != l.of(v).storage {
			return l.of(v).storage.owner == v
		}
		from := l.of(c.Args[arg].Value).place
		if offset != 0 || from.size != l.of(v).size {
			return false
		}
		v = c.Args[arg].Value
	}
}

// largestSets leaves out the moments whose values are all among those of
// another one.
func largestSets(all []Moment) (kept []Moment) {
	for i, m := range all {
		part := len(m.Values) == 0 || slices.ContainsFunc(all[:i], func(o Moment) bool { return isPart(m.Values, o.Values) && (o.Exact || !m.Exact) }) ||
			slices.ContainsFunc(all[i+1:], func(o Moment) bool {
				return len(o.Values) > len(m.Values) && isPart(m.Values, o.Values) && (o.Exact || !m.Exact)
			})
		if !part {
			kept = append(kept, m)
		}
	}
	return kept
}

// isPart reports whether all of a are in b. Both are in ascending order.
func isPart(a, b []int) bool {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok {
			return false
		}
	}
	return true
}

// Bytes are figures of an executable that its document has too.
type Bytes struct {
	LowerBound int64 // of the arena: the most bytes that live at one time
	IO         int64 // inputs and outputs
	Weights    int64 // weights and constants, as they lie in memory
}

// Bytes computes the figures without writing the document.
func (e *Executable) Bytes() (Bytes, error) {
	s := e.structure
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lowering
	if err := l.lower(e.types, ir.Known(e.weights)); err != nil {
		return Bytes{}, err
	}
	b := Bytes{LowerBound: mostLive(l.problem())}
	for _, v := range l.program.Body.Params {
		b.IO += l.of(v).size
	}
	for _, v := range l.program.Body.Results {
		if l.of(v).storage.space == plan.SpaceOutput {
			b.IO += l.of(v).size
		}
	}
	for _, v := range l.program.Weights {
		b.Weights += l.of(v).size
	}
	for _, w := range e.packing.report {
		b.Weights += w.Bytes - w.Unloaded
	}
	return b, nil
}
