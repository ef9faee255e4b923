package exec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// placeLoop places what a loop carries: a parameter of the region, and the
// call's result, lie in one class, into which the operand is copied first and
// what the region carries on after every round.
func (l *lowering) placeLoop(k int, c *ir.Call) error {
	region, carried := c.Regions[0], max(0, len(c.Args)-ir.LoopArgs)
	for i, p := range region.Params {
		l.loopOf[p] = k
		if !p.Type.IsStatic() {
			l.dynamic[p] = len(l.dynamic)
			l.places[p] = place{&class{name: p.Name, space: plan.SpaceOwn, id: -1}, 0, 0}
			continue
		}
		n, err := bytesOf(p)
		if err != nil {
			return err
		}
		var to *class
		if i >= ir.LoopArgs && c.Results[i-ir.LoopArgs] != nil {
			to = l.yields[c.Results[i-ir.LoopArgs]]
		}
		if to == nil {
			to = l.newClass(p.Name, n)
		}
		l.places[p] = place{to, 0, n}
		if i >= ir.LoopArgs {
			l.carriers[to] = k
			l.carried[region.Results[i-ir.LoopArgs+1]] = to
		}
	}
	for i, v := range c.Results {
		switch {
		case v == nil:
		case !v.Type.IsStatic():
			if err := l.placeDynamic(k, i, v); err != nil {
				return err
			}
		case i < carried && region.Params[ir.LoopArgs+i].Type.IsStatic():
			p := region.Params[ir.LoopArgs+i]
			if p.Type != v.Type {
				return fmt.Errorf("BUG: exec: %s is carried as %s", v, p.Type)
			}
			l.places[v] = l.places[p]
		default:
			n, err := bytesOf(v)
			if err != nil {
				return err
			}
			to := l.yields[v]
			if to == nil {
				to = l.newClass(v.Name, n)
			}
			l.places[v] = place{to, 0, n}
		}
	}
	return nil
}

// isForeign reports whether v, which a loop carries on, must not lie in the
// class: the loop carries another value there.
func (l *lowering) isForeign(v *ir.Value, c *class) bool {
	own := l.carried[v]
	if own == nil || own == c {
		return false
	}
	k, carries := l.carriers[c]
	return carries && k == l.carriers[own]
}

// endLoop finds the lives of what a loop takes and carries. What stands
// outside is read again in every round, so it stays until the loop ends.
func (l *lowering) endLoop(c *ir.Call, end plan.Time) {
	region := c.Regions[0]
	inside := map[*ir.Value]bool{}
	for _, p := range region.Params {
		l.ends[p], inside[p] = end, true
	}
	definedInside(region, inside)
	for _, y := range region.Results {
		l.ends[y] = max(l.ends[y], end)
	}
	for v := range l.readInside(c) {
		if v != nil && !inside[v] {
			operand := false
			for _, a := range c.Args {
				operand = operand || a.Value == v
			}
			if !operand || readIn(region, v) {
				l.ends[v] = max(l.ends[v], end)
			}
		}
	}
}

func definedInside(b *ir.Block, found map[*ir.Value]bool) {
	for _, c := range b.Calls {
		for _, v := range given(c) {
			found[v] = true
		}
		for _, region := range c.Regions {
			definedInside(region, found)
		}
	}
}

// readIn reports whether a call in the block reads the value.
func readIn(b *ir.Block, v *ir.Value) bool {
	for _, y := range b.Results {
		if y == v {
			return true
		}
	}
	for _, c := range b.Calls {
		for _, a := range c.Args {
			if a.Value == v {
				return true
			}
		}
		for _, region := range c.Regions {
			if readIn(region, v) {
				return true
			}
		}
	}
	return false
}

// loop is where everything lies that a loop takes, carries and gives.
type loop struct {
	call         *ir.Call
	limit, runs  ref // operands; space "" for an absent one
	round, again ref // parameters
	next         ref // the condition that the region gives
	carry        []carry
	stacks       []stack
	idle         bool // no step of a round asks whether the run is to stop
}

// carry is one value that a loop carries.
type carry struct {
	from, at, next, result ref     // operand, parameter, result of the region and of the call
	first, then, last      op.Type // of the operand, the region's result and the call's
	spare                  int     // of a dynamic value: the number of one that holds what the region gives
}

// stack is one result that has a part from every round.
type stack struct {
	part, result ref
	typ          op.Type // of a part
	wanted       bool
}

// loop resolves the places of a loop.
func (l *lowering) loop(c *ir.Call, at func(*ir.Value) (ref, error)) (*loop, error) {
	var fault error
	find := func(v *ir.Value) ref {
		r, err := at(v)
		if err != nil && fault == nil {
			fault = err
		}
		return r
	}
	arg := func(i int) *ir.Value {
		if i < len(c.Args) {
			return c.Args[i].Value
		}
		return nil
	}
	region := c.Regions[0]
	p := &loop{call: c, limit: find(arg(0)), runs: find(arg(1)), round: find(region.Params[ir.LoopRound]),
		again: find(region.Params[ir.LoopRuns]), next: find(region.Results[0])}
	carried, spare := len(region.Params)-ir.LoopArgs, len(l.dynamic)
	for i, y := range region.Results[1:] {
		if i < carried {
			from := arg(ir.LoopArgs + i)
			v := carry{from: find(from), at: find(region.Params[ir.LoopArgs+i]), next: find(y), result: find(c.Results[i]), first: from.Type, then: y.Type}
			if c.Results[i] != nil {
				v.last = c.Results[i].Type
			}
			if v.at.dynamic >= 0 {
				v.spare = spare
				spare++
			}
			p.carry = append(p.carry, v)
			continue
		}
		p.stacks = append(p.stacks, stack{find(y), find(c.Results[i]), y.Type, c.Results[i] != nil})
	}
	return p, fault
}

// looping is a loop in a run.
type looping struct {
	*loop
	limitData, runsData, roundData, againData, nextData []byte
	carryData                                           []struct{ from, at, next, result []byte }
	stackData                                           []struct{ part, result []byte }
	parts                                               []op.Type // per stack: what the first round gave

	count, most int64
}

// newLooping points a loop of the runner to its bytes.
func (r *Runner) newLooping(p *loop) *looping {
	s := &looping{loop: p, carryData: make([]struct{ from, at, next, result []byte }, len(p.carry)),
		stackData: make([]struct{ part, result []byte }, len(p.stacks)), parts: make([]op.Type, len(p.stacks))}
	r.pointRaw(&s.limitData, p.limit)
	r.pointRaw(&s.runsData, p.runs)
	r.pointRaw(&s.roundData, p.round)
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

// bytesOf returns the bytes of a value now: where its size depends on data
// they are elsewhere in each round.
func (r *Runner) bytesOf(at ref, placed []byte) []byte {
	if at.dynamic >= 0 {
		return r.dynamic[at.dynamic].bytes()
	}
	return placed
}

// enter begins a loop and reports whether there is a first round.
func (r *Runner) enter(s *looping) (bool, error) {
	s.count, s.most = 0, math.MaxInt64
	if s.limit.space != "" {
		limit, err := r.one("the limit", s.limit, s.limitData)
		if err != nil {
			return false, err
		}
		s.most = int64(binary.LittleEndian.Uint64(limit))
	}
	runs := true
	if s.runs.space != "" {
		holds, err := r.one("the condition", s.runs, s.runsData)
		if err != nil {
			return false, err
		}
		runs = holds[0] != 0
	}
	for i, c := range s.carry {
		d := &s.carryData[i]
		if c.at.dynamic < 0 {
			copy(d.at, d.from) // of one size: their types are equal
		} else if err := r.pass(c.at.dynamic, c.from, d.from, c.first); err != nil {
			return false, err
		}
	}
	for i, c := range s.stacks {
		if c.wanted && c.result.dynamic >= 0 {
			if err := r.startStack(s, i); err != nil {
				return false, err
			}
		}
	}
	return runs && r.nextRound(s), nil
}

// nextRound gives the region its number, if there may be another round.
func (r *Runner) nextRound(s *looping) bool {
	if s.count >= s.most {
		return false
	}
	binary.LittleEndian.PutUint64(s.roundData, uint64(s.count))
	s.againData[0] = 1
	return true
}

// again ends a round and reports whether another one follows. What the round
// gave is taken before anything is overwritten.
func (r *Runner) again(done <-chan struct{}, k int) (bool, error) {
	s := r.loops[k]
	if s.idle {
		select {
		case <-done:
			return false, compute.ErrStopped
		default:
		}
	}
	holds, err := r.one("the condition", s.next, s.nextData)
	if err != nil {
		return false, err
	}
	runs := holds[0] != 0
	for i, c := range s.stacks {
		if !c.wanted {
			continue
		}
		part := r.bytesOf(c.part, s.stackData[i].part)
		if c.result.dynamic < 0 {
			copy(s.stackData[i].result[int(s.count)*len(part):], part)
		} else if err := r.push(s, i, part); err != nil {
			return false, err
		}
	}
	if err := r.carryOn(s); err != nil {
		return false, err
	}
	r.drop(r.exe.left[k][0])
	s.count++
	return runs && r.nextRound(s), nil
}

// carryOn puts what a round gave where the loop carries it. Dynamic values
// pass through spare ones: the region may give what another one carries.
func (r *Runner) carryOn(s *looping) error {
	for i, c := range s.carry {
		d := &s.carryData[i]
		if c.at.dynamic < 0 {
			copy(d.at, d.next) // of one size: their types are equal
		} else if err := r.pass(c.spare, c.next, d.next, c.then); err != nil {
			return err
		}
	}
	for _, c := range s.carry {
		if c.at.dynamic >= 0 {
			if err := r.dynamic[c.at.dynamic].move(&r.dynamic[c.spare]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave gives what was carried in buffers of its own to the call's results.
func (r *Runner) leave(s *looping) error {
	for i, c := range s.carry {
		if c.at.dynamic < 0 {
			continue
		}
		from := &r.dynamic[c.at.dynamic]
		switch {
		case c.result.dynamic >= 0:
			if err := r.dynamic[c.result.dynamic].move(from); err != nil {
				return err
			}
		case c.result.space != "" && from.typ() != c.last:
			return fmt.Errorf("loop: result %d: got %s, want %s: %w", i, from.typ(), c.last, shape.ErrShape)
		default:
			copy(s.carryData[i].result, from.bytes()) // none where it is not wanted
			from.drop()
		}
	}
	for i, c := range s.stacks {
		if c.wanted && c.result.dynamic >= 0 {
			if err := r.endStack(s, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// startStack makes room for as many rounds as are known to come.
func (r *Runner) startStack(s *looping, i int) error {
	const mostAhead = 1 << 10 // a limit may be far above what the condition lets through
	c := s.stacks[i]
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
func (r *Runner) push(s *looping, i int, part []byte) error {
	c := s.stacks[i]
	typ, h := c.typ, &r.dynamic[c.result.dynamic]
	if c.part.dynamic >= 0 {
		typ = r.dynamic[c.part.dynamic].typ()
	}
	if s.count == 0 {
		s.parts[i] = typ
	} else if typ != s.parts[i] {
		return fmt.Errorf("loop: got %s from round %d, want a part of %s as from those before: %w", typ, s.count, s.parts[i], shape.ErrShape)
	}
	at := int(s.count) * len(part)
	if at+len(part) > len(h.bytes()) {
		t, err := stackOf(typ, int(max(2*s.count, 8)))
		if err != nil {
			return err
		}
		if err := h.grow(t, at); err != nil {
			return err
		}
	}
	copy(h.bytes()[at:], part)
	return nil
}

// endStack leaves the rounds that there were.
func (r *Runner) endStack(s *looping, i int) error {
	c := s.stacks[i]
	typ := s.parts[i]
	if s.count == 0 {
		var err error
		if typ, err = s.call.EmptyPart(i); err != nil {
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
func stackOf(part op.Type, rounds int) (op.Type, error) {
	sh, err := shape.Of(append([]int{rounds}, part.Shape.Sizes()...)...)
	return op.Type{DType: part.DType, Shape: sh}, err
}
