package exec

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/ir"
)

// joint names what may be joined at a call: operand at, a part of the result,
// or result ^at, a box of an operand.
type joint struct{ call, at int }

// candidate is a joint that a lowering has tried.
type candidate struct {
	joint
	strided bool  // it would give, or gave, values strides
	made    bool  // it lies in place
	bytes   int64 // of the part
}

// limit keeps a lowering from making joins. It is found for the first sizes of
// a structure and holds for all of them.
type limit struct {
	strided bool           // only those that give values strides
	reason  string         // for the report
	but     map[joint]bool // these are made all the same
}

// limits are those of a structure.
type limits []limit

// The reasons of limits.
const (
	unproved = "no proof of its strides was found"
	larger   = "more bytes would live at one time"
)

// refuse returns the reason of a limit that keeps a join from being made, ""
// for none.
func (l limits) refuse(x joint, strided bool) (reason string) {
	for _, limit := range l {
		if (strided || !limit.strided) && !limit.but[x] {
			return limit.reason
		}
	}
	return ""
}

// candidates returns those of the last lowering.
func (l *lowering) candidates() []candidate {
	if l.joiner == nil || len(l.joins) == 0 {
		return nil
	}
	return l.joiner.tried
}

// hasMade reports whether the last lowering has made a join that a limit would
// keep it from.
func (l *lowering) hasMade(strided bool) bool {
	return slices.ContainsFunc(l.candidates(), func(x candidate) bool { return x.made && (x.strided || !strided) })
}

// mostTries bounds the lowerings that look for the joins that are made all the
// same.
const mostTries = 32

// widen lets the last limit keep the lowering from fewer joins, as long as ok
// holds of what it makes then. The larger parts come first. What it has no
// tries left for is not made.
func (l *lowering) widen(from []candidate, ok func() (bool, error)) error {
	last := &l.limits[len(l.limits)-1]
	last.but = map[joint]bool{}
	list := slices.DeleteFunc(slices.Clone(from), func(x candidate) bool { return last.strided && !x.strided })
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) })
	tries := mostTries
	var try func(list []candidate) error
	try = func(list []candidate) error {
		if tries == 0 || len(list) == 0 {
			return nil
		}
		tries--
		for _, x := range list {
			last.but[x.joint] = true
		}
		if good, err := ok(); good || err != nil {
			return err
		}
		for _, x := range list {
			delete(last.but, x.joint)
		}
		if len(list) == 1 {
			return nil
		}
		half := (len(list) + 1) / 2
		if err := try(list[:half]); err != nil {
			return err
		}
		return try(list[half:])
	}
	half := (len(list) + 1) / 2 // all of them are known not to do
	if err := try(list[:half]); err != nil {
		return err
	}
	return try(list[half:])
}

// lowerLeast is lower, without joins that make more bytes live at one time than
// there are without them: a box that lives long keeps all bytes that it spans,
// and, where the least memory is asked for, a whole that lives from its first
// part on.
func (s *structure) lowerLeast(types ir.Types, table ir.Weights) (*Executable, error) {
	e, err := s.lower(types, table)
	l := s.lowering
	if err != nil || s.options.limits != nil || !l.hasMade(false) {
		return e, err
	}
	live := func() (int64, error) {
		_, err := s.lower(types, table)
		return mostLive(l.problem()), err
	}
	tried, strided := slices.Clone(l.candidates()), l.hasMade(true)
	least, best := mostLive(l.problem()), limits(nil)
	before := slices.Clip(l.limits)
	for _, without := range []limit{{reason: larger, strided: true}, {reason: larger}} {
		if without.strided && !strided || !without.strided && !l.leastMemory {
			continue
		}
		l.limits = append(before, without)
		now, err := live()
		if err != nil {
			return nil, err
		}
		if now < least {
			least, best = now, l.limits
		}
	}
	if l.limits = before; best != nil {
		l.limits = best
		err := l.widen(tried, func() (bool, error) {
			now, err := live()
			if now > least {
				return false, err
			}
			least = now
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return s.lower(types, table)
}

// isLimitedFor reports whether the limits do for values of these types, too:
// fewer bytes live at one time than without those that are to make them fewer.
func (s *structure) isLimitedFor(types ir.Types, table ir.Weights) (bool, error) {
	l := s.lowering
	isLarger := func(x limit) bool { return x.reason == larger }
	if !slices.ContainsFunc(l.limits, isLarger) {
		return true, nil
	}
	found, limited := l.limits, mostLive(l.problem())
	l.limits = slices.DeleteFunc(slices.Clone(found), isLarger)
	_, err := s.lower(types, table)
	l.limits = found
	if err != nil || mostLive(l.problem()) < limited {
		return false, err
	}
	_, err = s.lower(types, table)
	return true, err
}

// limitUnproved keeps the lowering from joins that give values strides for
// which the checker has no proof. There is none for all that the last lowering
// made.
func (s *structure) limitUnproved(ctx context.Context, types ir.Types, table ir.Weights) error {
	l := s.lowering
	l.limits = nil
	if _, err := s.lower(types, table); err != nil {
		return err
	}
	l.limits = limits{{strided: true, reason: unproved}}
	return l.widen(slices.Clone(l.candidates()), func() (bool, error) {
		e, err := s.lower(types, table)
		if err != nil {
			return false, err
		}
		placed, err := solve.Solve(ctx, l.problem(), solve.Options{Effort: -1})
		if err != nil {
			return false, err
		}
		s.settle(e, placed)
		e.scratch = make([]int64, len(e.steps))
		s.lay(e)
		err = s.prover.Prove(types, &s.layout, table)
		if violation := new(check.Violation); errors.As(err, &violation) {
			return false, nil
		}
		return err == nil, err
	})
}
