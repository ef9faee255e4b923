package exec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
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
		case i < carried:
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
	limit, runs  ref // operands; space "" for an absent one
	round, again ref // parameters
	next         ref // the condition that the region gives
	carry        []carry
	stacks       []stack
}

// carry is one value that a loop carries.
type carry struct {
	from, at, next, result ref     // operand, parameter, result of the region and of the call
	first, then            op.Type // of the operand and the region's result
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
	p := &loop{limit: find(arg(0)), runs: find(arg(1)), round: find(region.Params[ir.LoopRound]),
		again: find(region.Params[ir.LoopRuns]), next: find(region.Results[0])}
	carried := len(region.Params) - ir.LoopArgs
	for i, y := range region.Results[1:] {
		if i < carried {
			from := arg(ir.LoopArgs + i)
			p.carry = append(p.carry, carry{find(from), find(region.Params[ir.LoopArgs+i]), find(y), find(c.Results[i]), from.Type, y.Type})
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
	carryData                                           []struct{ from, at, next []byte }
	stackData                                           []struct{ part, result []byte }

	count, most int64
}

// newLooping points a loop of the runner to its bytes.
func (r *Runner) newLooping(p *loop) *looping {
	s := &looping{loop: p, carryData: make([]struct{ from, at, next []byte }, len(p.carry)), stackData: make([]struct{ part, result []byte }, len(p.stacks))}
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
		return r.dynamic[at.dynamic].data
	}
	return placed
}

// enter begins a loop and reports whether there is a first round.
func (r *Runner) enter(s *looping) (bool, error) {
	s.count, s.most = 0, math.MaxInt64
	if s.limit.space != "" {
		s.most = int64(binary.LittleEndian.Uint64(r.bytesOf(s.limit, s.limitData)))
	}
	runs := s.runs.space == "" || r.bytesOf(s.runs, s.runsData)[0] != 0
	for i, c := range s.carry {
		d := &s.carryData[i]
		if err := r.carryTo(c.at, d.at, c.from, d.from, c.first, false); err != nil {
			return false, err
		}
	}
	for i, c := range s.stacks {
		if c.wanted && c.result.dynamic >= 0 {
			r.dynamic[c.result.dynamic].drop()
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
func (r *Runner) again(s *looping) (bool, error) {
	runs := r.bytesOf(s.next, s.nextData)[0] != 0
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
	for i, c := range s.carry {
		d := &s.carryData[i]
		if err := r.carryTo(c.at, d.at, c.next, d.next, c.then, true); err != nil {
			return false, err
		}
	}
	s.count++
	return runs && r.nextRound(s), nil
}

// leave gives what was carried in buffers of its own to the call's results.
func (r *Runner) leave(s *looping) error {
	for _, c := range s.carry {
		if c.at.dynamic < 0 {
			continue
		}
		from := &r.dynamic[c.at.dynamic]
		if c.result.dynamic < 0 {
			from.drop()
			continue
		}
		to := &r.dynamic[c.result.dynamic]
		to.drop()
		*to, *from = *from, held{}
	}
	for i, c := range s.stacks {
		if !c.wanted || c.result.dynamic < 0 {
			continue
		}
		if err := r.endStack(s, i); err != nil {
			return err
		}
	}
	return nil
}

// carryTo puts a value where the loop carries it. A buffer of the value's own
// moves, or is held by both where the value lives on.
func (r *Runner) carryTo(at ref, placed []byte, from ref, data []byte, typ op.Type, move bool) error {
	if at.dynamic < 0 {
		copy(placed, r.bytesOf(from, data)) // of one size: their types are equal
		return nil
	}
	to := &r.dynamic[at.dynamic]
	if from.dynamic >= 0 {
		h := &r.dynamic[from.dynamic]
		switch {
		case h.buf != nil && move:
			to.drop()
			*to, *h = *h, held{}
			return nil
		case h.buf != nil:
			if err := h.buf.Retain(); err != nil {
				return err
			}
			to.drop()
			*to = *h
			return nil
		}
		typ, data = h.typ, h.data
	}
	if err := to.fill(typ, memory.Activations); err != nil {
		return err
	}
	copy(to.data, data)
	return nil
}

// partType is the type of what a round stacks, now.
func (r *Runner) partType(c stack) op.Type {
	if c.part.dynamic >= 0 {
		return r.dynamic[c.part.dynamic].typ
	}
	return c.typ
}

// startStack makes room for as many rounds as are known to come.
func (r *Runner) startStack(s *looping, i int) error {
	const mostAhead = 1 << 10 // a limit may be far above what the condition lets through
	c := s.stacks[i]
	if !c.typ.IsStatic() {
		return nil
	}
	t, err := stackOf(c.typ, int(min(max(s.most, 0), mostAhead)))
	if err != nil {
		return err
	}
	return r.dynamic[c.result.dynamic].fill(t, purposeOf(c.result))
}

// push adds a part to a stack, whose buffer grows twofold.
func (r *Runner) push(s *looping, i int, part []byte) error {
	c := s.stacks[i]
	typ, h := r.partType(c), &r.dynamic[c.result.dynamic]
	if s.count > 0 && len(h.typ.Shape.Sizes()) > 0 {
		if before, err := stackOf(typ, h.typ.Shape.Size(0)); err != nil || before != h.typ {
			return fmt.Errorf("loop: got %s from round %d, want a part of %s as from those before: %w", typ, s.count, h.typ, shape.ErrShape)
		}
	}
	at := int(s.count) * len(part)
	if need := at + len(part); need > len(h.data) {
		t, err := stackOf(typ, int(max(2*s.count, 8)))
		if err != nil {
			return err
		}
		old := *h
		*h = held{}
		defer old.drop()
		if err := h.fill(t, purposeOf(c.result)); err != nil {
			return err
		}
		copy(h.data, old.data[:at])
	} else if s.count == 0 {
		t, err := stackOf(typ, 0)
		if len(part) > 0 {
			t, err = stackOf(typ, len(h.data)/len(part))
		}
		if err != nil {
			return err
		}
		h.typ = t
	}
	copy(h.data[at:], part)
	return nil
}

// endStack leaves the rounds that there were.
func (r *Runner) endStack(s *looping, i int) error {
	c := s.stacks[i]
	h := &r.dynamic[c.result.dynamic]
	typ := c.typ
	if s.count > 0 {
		sizes := h.typ.Shape.Dims()[1:]
		sh, err := shape.FromDims(sizes...)
		if err != nil {
			return err
		}
		typ = op.Type{DType: c.typ.DType, Shape: sh}
	} else if typ.Shape == nil {
		return fmt.Errorf("loop: got no round that gives a value of type %s, want one or a known rank: %w", typ, op.ErrUnsupported)
	}
	t, err := stackOf(typ, int(s.count))
	if err != nil {
		return err
	}
	return h.cut(t)
}

// stackOf is the type of so many parts. Sizes that are not known are 0.
func stackOf(part op.Type, rounds int) (op.Type, error) {
	sizes := []int{rounds}
	for _, d := range part.Shape.Dims() {
		n, _ := d.Size()
		sizes = append(sizes, n)
	}
	sh, err := shape.Of(sizes...)
	return op.Type{DType: part.DType, Shape: sh}, err
}
