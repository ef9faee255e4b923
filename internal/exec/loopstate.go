package exec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// loopState is a loop in a run.
type loopState struct {
	*loop
	limitData, runsData, iterationData, againData, nextData []byte
	carryData                                               []struct{ from, at, next, result []byte }
	stackData                                               []stackData
	parts                                                   []op.Type // per stack: that of the first iteration

	count, most int64
}

// stackData are the bytes of a part and of the stack.
type stackData struct {
	part, result []byte
	slots        slots
}

// newLoopState points a loop of the runner to its bytes.
func (r *Runner) newLoopState(p *loop) *loopState {
	s := &loopState{loop: p, carryData: make([]struct{ from, at, next, result []byte }, len(p.carry)),
		stackData: make([]stackData, len(p.stacks)), parts: make([]op.Type, len(p.stacks))}
	for i, c := range p.stacks { // before what may lie in them
		if c.inSlot {
			s.stackData[i].slots.id = c.id
			r.slots = append(r.slots, &s.stackData[i].slots)
		}
	}
	r.pointRaw(&s.limitData, p.limit)
	r.pointRaw(&s.runsData, p.runs)
	r.pointRaw(&s.iterationData, p.iteration)
	r.pointRaw(&s.againData, p.again)
	r.pointRaw(&s.nextData, p.next)
	for i, c := range p.carry {
		d := &s.carryData[i]
		r.pointRaw(&d.from, c.from)
		r.pointRaw(&d.at, c.at)
		r.pointRaw(&d.next, c.next)
		r.pointRaw(&d.result, c.result)
	}
	for i, c := range p.stacks {
		d := &s.stackData[i]
		r.pointRaw(&d.part, c.part)
		r.pointRaw(&d.result, c.result)
	}
	return s
}

// enter begins a loop and reports whether there is a first iteration.
func (r *Runner) enter(s *loopState) (bool, error) {
	s.count, s.most = 0, math.MaxInt64
	if s.limit.space != nowhere {
		limit, err := r.one("the limit", s.limit, s.limitData)
		if err != nil {
			return false, err
		}
		s.most = int64(binary.LittleEndian.Uint64(limit))
	}
	runs := true
	if s.runs.space != nowhere {
		holds, err := r.one("the condition", s.runs, s.runsData)
		if err != nil {
			return false, err
		}
		runs = holds[0] != 0
	}
	for i := range s.carry {
		c, d := &s.carry[i], &s.carryData[i]
		if c.at.dynamic < 0 {
			copy(d.at, d.from) // of one size: their types are equal
		} else if err := r.assign(c.at.dynamic, c.from, d.from, c.first); err != nil {
			return false, err
		}
	}
	for i := range s.stacks {
		if c := &s.stacks[i]; c.wanted && c.result.dynamic >= 0 {
			if err := r.startStack(s, i); err != nil {
				return false, err
			}
		}
	}
	return r.nextIteration(s, runs)
}

// nextIteration tells the region the number of the next iteration, if there may
// be one and it is to run.
func (r *Runner) nextIteration(s *loopState, runs bool) (bool, error) {
	if !runs || s.count >= s.most {
		return false, nil
	}
	binary.LittleEndian.PutUint64(s.iterationData, uint64(s.count))
	s.againData[0] = 1
	return true, r.openSlots(s)
}

// again ends an iteration and reports whether another one follows. What the
// iteration returned for stacks and dynamic values, which lies anywhere, is
// taken before the places are overwritten in which the loop carries the others.
func (r *Runner) again(done <-chan struct{}, k int) (bool, error) {
	s := r.steps[k].loop
	if s.polls {
		select {
		case <-done:
			return false, compute.ErrStopped
		default:
		}
	}
	holds := s.nextData
	if s.next.dynamic >= 0 {
		var err error
		if holds, err = r.one("the condition", s.next, nil); err != nil {
			return false, err
		}
	}
	runs := holds[0] != 0
	for i := range s.stacks {
		c := &s.stacks[i]
		if !c.wanted || c.inSlot {
			continue // it is there
		}
		part := s.stackData[i].part
		if c.part.dynamic >= 0 {
			part = r.dynamic[c.part.dynamic].bytes()
		}
		if c.result.dynamic < 0 {
			copy(s.stackData[i].result[int(s.count)*len(part):], part)
		} else if err := r.push(s, i, part); err != nil {
			return false, err
		}
	}
	if s.dynamic {
		if err := r.carryOn(s); err != nil {
			return false, err
		}
	}
	r.wrote = r.wrote || r.exe.steps[k].writes
	for i := range s.carry {
		if d := &s.carryData[i]; s.carry[i].at.dynamic < 0 {
			copy(d.at, d.next) // of one size: their types are equal
		}
	}
	r.drop(r.exe.steps[k].left[0])
	s.count++
	return r.nextIteration(s, runs)
}

// carryOn makes the dynamic values that an iteration returned those that the
// loop carries. They pass through spare ones: the region may return one that is
// carried as another.
func (r *Runner) carryOn(s *loopState) error {
	for i := range s.carry {
		if c := &s.carry[i]; c.at.dynamic >= 0 {
			r.dynamic[c.spare].init(&r.buffers, r.exe.dynamic[c.at.dynamic].purpose)
			if err := r.assign(c.spare, c.next, s.carryData[i].next, c.then); err != nil {
				return err
			}
		}
	}
	for i := range s.carry {
		if c := &s.carry[i]; c.at.dynamic >= 0 {
			if err := r.dynamic[c.at.dynamic].move(&r.dynamic[c.spare]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave moves the loop state that has buffers of its own to the call's results.
func (r *Runner) leave(s *loopState) error {
	for i := range s.carry {
		c := &s.carry[i]
		if c.at.dynamic < 0 {
			continue
		}
		from := &r.dynamic[c.at.dynamic]
		switch {
		case c.result.dynamic >= 0:
			if err := r.dynamic[c.result.dynamic].move(from); err != nil {
				return err
			}
		case c.result.space != nowhere && from.typ() != c.last:
			return fmt.Errorf("loop: result %d: got %s, want %s: %w", i, from.typ(), c.last, shape.ErrShape)
		default:
			copy(s.carryData[i].result, from.bytes()) // none where it is not wanted
			from.drop()
		}
	}
	for i := range s.stacks {
		if c := &s.stacks[i]; c.wanted && c.result.dynamic >= 0 {
			if err := r.endStack(s, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// startStack allocates a stack for as many iterations as are known to come.
func (r *Runner) startStack(s *loopState, i int) error {
	const mostAhead = 1 << 10 // a limit may be far above the number of iterations that the condition allows
	c := &s.stacks[i]
	r.dynamic[c.result.dynamic].drop()
	if !c.typ.IsStatic() {
		return nil
	}
	t, err := stackOf(c.typ, int(min(max(s.most, 0), mostAhead)))
	if err != nil {
		return err
	}
	return r.dynamic[c.result.dynamic].set(t)
}

// push adds a part to a stack, whose buffer grows twofold. Its type is that of
// the buffer until the loop ends.
func (r *Runner) push(s *loopState, i int, part []byte) error {
	c := &s.stacks[i]
	typ, d := c.typ, &r.dynamic[c.result.dynamic]
	if c.part.dynamic >= 0 {
		typ = r.dynamic[c.part.dynamic].typ()
	}
	if s.count == 0 {
		s.parts[i] = typ
	} else if typ != s.parts[i] {
		return fmt.Errorf("loop: got %s from iteration %d, want a part of %s as from those before: %w", typ, s.count, s.parts[i], shape.ErrShape)
	}
	at := int(s.count) * len(part)
	if err := r.reserve(s, i, typ, at, len(part)); err != nil {
		return err
	}
	copy(d.bytes()[at:], part)
	return nil
}

// reserve makes room in the buffer of a stack for a part of n bytes, from byte
// at on.
func (r *Runner) reserve(s *loopState, i int, typ op.Type, at, n int) error {
	d := &r.dynamic[s.stacks[i].result.dynamic]
	if at+n <= len(d.bytes()) {
		return nil
	}
	t, err := stackOf(typ, int(max(2*s.count, 8)))
	if err != nil {
		return err
	}
	return d.grow(t, at)
}

// endStack leaves the iterations that there were.
func (r *Runner) endStack(s *loopState, i int) error {
	c := &s.stacks[i]
	typ := s.parts[i]
	if s.stacks[i].inSlot {
		typ = s.stacks[i].typ
	} else if s.count == 0 {
		var err error
		if typ, err = s.call.EmptyPart(i, s.stacks[i].typ); err != nil {
			return err
		}
	}
	t, err := stackOf(typ, int(s.count))
	if err != nil {
		return err
	}
	return r.dynamic[c.result.dynamic].cut(t)
}

// stackOf is the type of so many parts.
func stackOf(part op.Type, iterations int) (op.Type, error) {
	sh, err := shape.Of(append([]int{iterations}, part.Shape.Sizes()...)...)
	return op.Type{DType: part.DType, Shape: sh}, err
}
