package exec

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// A donated input that no step reads any more, and that no result lies in, has
// bytes to spare. Storages of the arena that are written after that moment lie
// in them where the arena needs fewer bytes for it.

// spare is a donated input with bytes to spare from a moment on.
type spare struct {
	of    *storage
	elem  int64 // size of its elements
	from  plan.Time
	taken []lent
}

// lent is a range of a spare that a storage lies in.
type lent struct {
	storage  *storage
	at       int64
	from, to plan.Time
}

// mostLent bounds the storages that are moved.
const mostLent = 64

// useSpares moves storages of the arena into spare bytes of donated inputs. It
// takes the pieces of the arena's storages, and collects them again.
func (l *lowering) useSpares() {
	spares := l.findSpares()
	if len(spares) == 0 || l.apart {
		return
	}
	before := mostLive(l.problem())
	var moved []lent
	for range mostLent {
		x, to := l.nextLent(spares)
		if to == nil {
			break
		}
		to.taken = append(to.taken, x)
		moved = append(moved, x)
		s := x.storage
		s.space, s.arg, s.start = plan.SpaceInput, to.of.arg, x.at
		l.collectAgain()
	}
	if len(moved) == 0 || mostLive(l.problem()) < before {
		return
	}
	for _, x := range moved {
		x.storage.space, x.storage.arg, x.storage.start = plan.SpaceArena, 0, 0
	}
	l.collectAgain()
}

// collectAgain collects the pieces of the arena's storages anew.
func (l *lowering) collectAgain() {
	for _, s := range l.storages {
		s.first, s.count = 0, 0
	}
	l.pieces = l.pieces[:0]
	l.collectPieces()
}

// findSpares returns the donated inputs that have bytes to spare.
func (l *lowering) findSpares() (list []*spare) {
	for _, v := range l.program.Body.Params {
		if x := l.of(v); v.Donated && x.size > 0 {
			list = append(list, &spare{of: x.storage, elem: int64(l.types.Of(v).DType.Size()), from: x.end})
		}
	}
	list = slices.DeleteFunc(list, func(x *spare) bool {
		return x.of.output || x.of.passed || slices.ContainsFunc(l.program.Body.Results, func(v *ir.Value) bool { return l.of(v).storage == x.of })
	})
	if len(list) == 0 { // as where every donated input is a state that comes back
		return nil
	}
	last := map[*storage]plan.Time{}
	for _, v := range l.defs {
		s := l.of(v).storage
		last[s] = max(last[s], l.of(v).end)
	}
	for _, x := range list {
		x.from = max(x.from, last[x.of])
	}
	return list
}

// nextLent returns the largest storage that lives when the most bytes of the
// arena do and that fits into a spare, and that spare.
func (l *lowering) nextLent(spares []*spare) (x lent, to *spare) {
	var peak plan.Time
	var most int64
	for _, level := range l.problem().LiveBytes() {
		if level.Bytes > most {
			peak, most = level.At, level.Bytes
		}
	}
	elems, fixed := map[*storage]int64{}, map[*storage]bool{}
	for _, v := range l.defs {
		s := l.of(v).storage
		elems[s] = max(elems[s], int64(l.types.Of(v).DType.Size()))
		fixed[s] = fixed[s] || l.of(v).dynamic >= 0 || v.Kind == ir.Param
	}
	for _, s := range l.storages {
		if s.space != plan.SpaceArena || s.passed || fixed[s] || s.size == 0 || to != nil && s.size <= x.storage.size {
			continue
		}
		y := lent{storage: s, from: plan.MaxTime}
		for _, p := range l.pieces[s.first : s.first+s.count] {
			y.from, y.to = min(y.from, p.Start), max(y.to, p.End)
		}
		if y.from > peak || y.to <= peak {
			continue
		}
		for _, in := range spares {
			if at := in.room(y); at >= 0 && elems[s] <= in.elem {
				y.at = at
				x, to = y, in
				break
			}
		}
	}
	return x, to
}

// room returns where a storage lies in the spare for its life, -1 for nowhere.
func (s *spare) room(x lent) (at int64) {
	if x.from < s.from {
		return -1
	}
	for _, t := range s.taken { // in no order: behind each is tried
		if x.from < t.to && t.from < x.to && at < t.at+t.storage.size {
			at = (t.at + t.storage.size + plan.DefaultAlign - 1) &^ (plan.DefaultAlign - 1)
		}
	}
	if at+x.storage.size > s.of.size {
		return -1
	}
	return at
}
