package vet

import (
	"go/token"
	"go/types"
	"maps"
)

// condition is a set of what a variable may be at some place.
type condition uint8

const (
	alive    condition = 1 << iota // a tensor that somebody else sees to
	owned                          // a tensor that this function has to see to
	donated                        // given up to an operation
	released                       // given up by Release
	none                           // nil
)

const deadBits = donated | released

// holding is what is known of one variable.
type holding struct {
	is       condition
	before   condition  // what it is if the pending error is not nil
	pending  *types.Var // the error of the call that gave it up or made it
	at       token.Pos  // where it was given up
	how      string     // by what
	made     token.Pos  // where this function got it
	deferred bool       // a deferred Release sees to it
}

// state is what is known of the function's variables at one place. A variable that is not in it is left alone.
type state map[*types.Var]holding

func (s state) clone() state { return maps.Clone(s) }

// join adds what another path knows. It reports whether anything is new.
func (s state) join(other state) bool {
	changed := false
	for v, b := range other {
		a, ok := s[v]
		if !ok {
			continue // one path has left it alone
		}
		j := a
		j.is |= b.is
		switch {
		case a.pending == b.pending:
			j.before |= b.before
		case b.pending == nil:
			j.before |= b.is // what the other path has, whatever the error is
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
		if j != a {
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

// failed is the state on the branch on which err is not nil, succeeded on the one on which it is.
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

// settle makes what hangs on err certain: it was assigned again, or found to be nil.
func (s state) settle(err *types.Var) {
	for v, h := range s {
		if h.pending == err {
			h.pending = nil
			s[v] = h
		}
	}
}
