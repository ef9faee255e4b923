package vet

import (
	"go/token"
	"go/types"
	"maps"
)

// condition is a set of possible states of a variable's value at some point.
type condition uint8

const (
	alive    condition = 1 << iota // other code is responsible for it
	owned                          // this function must release it
	donated                        // given up to an operation
	released                       // given up by Release or Close
	none                           // nil
)

const deadBits = donated | released

// holding is the state of the value of a variable, field or element.
type holding struct {
	is       condition
	before   condition  // its condition if the pending error is not nil
	pending  *types.Var // the error of the call that gave it up or made it
	at       token.Pos  // where it was given up
	how      string     // by which operation
	made     token.Pos  // where this function got it
	deferred bool       // a deferred Release ends it
	always   bool       // a deferred function ends the value that the variable has then
	same     *types.Var // another name of the same value, which has the rest of its state
	of       *types.Var // the outputs that contain it, or the scope that made it
}

// atTheEnd returns its condition when the function has returned.
func (h holding) atTheEnd() condition {
	switch {
	case h.is&(alive|owned) == 0:
	case h.deferred:
		return h.is&^(alive|owned) | released
	case h.always:
		return h.is | released
	}
	return h.is
}

// state is the state at one point. A local variable without an entry is not
// followed; a field or element without an entry is alive.
type state map[*types.Var]holding

func (s state) clone() state { return maps.Clone(s) }

// root returns the variable that has the state of v's value.
func (s state) root(v *types.Var) *types.Var {
	for range 8 {
		h, ok := s[v]
		if !ok || h.same == nil {
			return v
		}
		v = h.same
	}
	return v
}

// part gives v a state of its own if it was another name.
func (s state) part(v *types.Var) {
	h := s[v]
	if h.same == nil {
		return
	}
	from := s.root(v)
	shared, ok := s[from]
	if !ok || shared.same != nil {
		delete(s, v)
		return
	}
	own := shared
	own.always = h.always
	if shared.is&owned != 0 {
		shared.is = shared.is&^owned | alive // the other name is responsible for it
		shared.before = shared.before&^owned | alive
		s[from] = shared
	}
	s[v] = own
}

// partFrom ends the names that other variables have for v, because v is
// assigned.
func (s state) partFrom(v *types.Var) {
	for w, h := range s {
		if h.same == v {
			s.part(w)
		}
	}
}

// join adds the state of another path. It reports whether anything changed.
func (s state) join(other state) bool {
	changed := false
	for v, a := range s {
		if b, ok := other[v]; ok && a.same != b.same {
			if _, there := other[a.same]; a.same != nil && !there { // the variable that it is another name of is not followed there
				delete(s, v)
				changed = true
				continue
			}
			other = other.clone()
			s.part(v)
			other.part(v)
			changed = true
		}
	}
	for v, b := range other {
		a, ok := s[v]
		if !ok {
			continue // it is not followed on one path
		}
		if j := a.join(b); j != a {
			s[v] = j
			changed = true
		}
	}
	for v := range s {
		if _, ok := other[v]; !ok {
			delete(s, v)
			changed = true
		}
	}
	return changed
}

func (a holding) join(b holding) holding {
	j := a
	j.is |= b.is
	switch {
	case a.pending == b.pending:
		j.before |= b.before
	case b.pending == nil:
		j.before |= b.is // its condition on the other path, whatever the error is
	case a.pending == nil:
		j.pending, j.before = b.pending, b.before|a.is
	default:
		j.pending = nil
	}
	if j.at == token.NoPos {
		j.at, j.how = b.at, b.how
	}
	if j.made == token.NoPos {
		j.made = b.made
	}
	j.deferred = a.deferred || b.deferred
	j.always = a.always || b.always
	if a.of != b.of {
		j.of = nil
	}
	return j
}

// failed returns the state on the branch on which err is not nil, succeeded on
// the one on which it is.
func (s state) failed(err *types.Var) state {
	out := s.clone()
	for v, h := range out {
		if h.pending == err {
			h.is, h.pending = h.before, nil
			out[v] = h
		}
	}
	return out
}

func (s state) succeeded(err *types.Var) state {
	out := s.clone()
	out.settle(err)
	return out
}

// disown makes other code responsible for every value.
func (s state) disown() {
	for v, h := range s {
		if h.is&owned != 0 {
			h.is = h.is&^owned | alive
			s[v] = h
		}
	}
}

// settle makes values that depend on err certain: it was assigned again, or
// found to be nil.
func (s state) settle(err *types.Var) {
	for v, h := range s {
		if h.pending == err {
			h.pending = nil
			s[v] = h
		}
	}
}
