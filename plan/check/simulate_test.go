package check_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// The simulator runs a plan on bytes that carry a stamp, (value, offset),
// instead of data, along every path of branches. Its kernels do the worst that
// the operator table lets them: they read all of an operand before every
// element that they write and once more at the end, except where the table says
// that an element of the result needs only the same element of the operand; and
// they go over the elements in either direction.

type stamp struct {
	root   *ir.Value
	offset int64
}

type address struct {
	space  plan.Space
	arg    int
	offset int64
}

type simulator struct {
	p     *ir.Program
	d     *plan.Plan
	known func(*ir.Value) ([]byte, bool)
	calls []*ir.Call
	at    map[*ir.Value]*plan.Value
	ideal map[*ir.Value][]stamp // what the value is where nothing shares bytes

	memory   map[address]stamp
	computed map[*ir.Value]bool
	path     int // bit i: which region of the i-th branch runs
	branches int // seen so far
	reverse  bool
	effect   int // the impure call that ran last
}

// simulate returns an error where any path of the plan reads, writes or
// returns a byte that it must not.
func simulate(p *ir.Program, d *plan.Plan, weights ir.Weights) error {
	d = clonePlan(d)
	s := &simulator{p: p, d: d, known: ir.Known(weights), at: entries(p, d), ideal: map[*ir.Value][]stamp{}}
	branches := 0
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		s.calls = append(s.calls, c)
		branches += min(len(c.Regions), 1)
	})
	if end, err := s.structure(p.Body, 0); err != nil || end != len(d.Steps) {
		return fmt.Errorf("steps: %d of %d, %w", end, len(d.Steps), err)
	}
	for _, v := range allValues(p) {
		s.idealise(v)
		if err := s.inBounds(v); err != nil {
			return err
		}
	}
	for path := range 1 << branches {
		for _, reverse := range []bool{false, true} {
			s.path, s.branches, s.reverse = path, 0, reverse
			if err := s.run(); err != nil {
				return fmt.Errorf("path %b, reverse %v: %w", path, reverse, err)
			}
		}
	}
	return nil
}

// structure: the steps from lo on are the calls of the block in some order,
// each followed by those of its regions.
func (s *simulator) structure(b *ir.Block, lo int) (hi int, err error) {
	left := slices.Clone(b.Calls)
	for len(left) > 0 {
		if lo == len(s.d.Steps) || s.d.Steps[lo].Call >= len(s.calls) {
			return lo, errors.New("no such call")
		}
		c := s.calls[s.d.Steps[lo].Call]
		i := slices.Index(left, c)
		if i < 0 {
			return lo, errors.New("a call of another block, or one that is there twice")
		}
		left = slices.Delete(left, i, i+1)
		lo++
		for _, region := range c.Regions {
			if lo, err = s.structure(region, lo); err != nil {
				return lo, err
			}
		}
	}
	return lo, nil
}

// viewOf returns the operand that result r is a view of.
func (s *simulator) viewOf(c *ir.Call, r int) (of *ir.Value, offset int64) {
	sig := c.Sig(s.known)
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if kind, off := sig.AliasOf(i, r); kind == op.View {
			return a.Value, int64(off)
		}
	}
	return nil, 0
}

func (s *simulator) idealise(v *ir.Value) {
	n := bytesOf(v)
	if v.Def != nil && len(v.Def.Regions) == 0 {
		if of, offset := s.viewOf(v.Def, v.Index); of != nil {
			s.ideal[v] = s.ideal[of][offset : offset+n]
			return
		}
	}
	stamps := make([]stamp, n)
	for k := range stamps {
		stamps[k] = stamp{v, int64(k)}
	}
	s.ideal[v] = stamps
}

func (s *simulator) inBounds(v *ir.Value) error {
	x := s.at[v]
	need := elementAlign(v)
	var owner *ir.Value
	space := s.d.ArenaBytes
	switch x.Space {
	case plan.SpaceArena:
	case plan.SpaceInput, plan.SpaceOutput:
		owners := s.p.Body.Params
		if x.Space == plan.SpaceOutput {
			owners = s.p.Body.Results
		}
		if x.Arg >= len(owners) {
			return fmt.Errorf("%s: no %s %d", v, x.Space, x.Arg)
		}
		owner = owners[x.Arg]
		space = bytesOf(owner)
	case plan.SpaceWeight:
		// The document does not say which: the one whose bytes it is.
		if v.Kind == ir.Weight {
			owner = v
		} else if n := len(s.ideal[v]); n > 0 && s.ideal[v][0].root.Kind == ir.Weight {
			owner = s.ideal[v][0].root
		} else {
			return fmt.Errorf("%s: not of a weight", v)
		}
		x.Arg = owner.ID
		space = bytesOf(owner)
	default:
		return fmt.Errorf("%s: space %q", v, x.Space)
	}
	switch {
	case x.Size != bytesOf(v) || x.Offset < 0 || x.Offset > space-x.Size:
		return fmt.Errorf("%s: %d bytes at %d of %d", v, x.Size, x.Offset, space)
	case x.Offset%need != 0 || owner != nil && need > elementAlign(owner):
		return fmt.Errorf("%s: not aligned", v)
	case v.Kind == ir.Param && (x.Space != plan.SpaceInput || x.Offset != 0 || owner != v):
		return fmt.Errorf("input %s is not where it comes in", v)
	case v.Kind == ir.Weight && (x.Space != plan.SpaceWeight || x.Offset != 0):
		return fmt.Errorf("weight %s is not where it comes in", v)
	}
	return nil
}

func elementAlign(v *ir.Value) int64 {
	switch dt := v.Type.DType; dt {
	case dtype.C64:
		return 4
	case dtype.C128:
		return 8
	default:
		return max(int64(dt.Size()), 1)
	}
}

func (s *simulator) byteOf(v *ir.Value, k int64) address {
	x := s.at[v]
	a := address{x.Space, x.Arg, x.Offset + k}
	if x.Space == plan.SpaceArena {
		a.arg = 0
	}
	return a
}

func (s *simulator) run() error {
	s.memory, s.computed, s.effect = map[address]stamp{}, map[*ir.Value]bool{}, -1
	for _, v := range append(slices.Clone(s.p.Body.Params), s.p.Weights...) {
		for k, st := range s.ideal[v] {
			s.memory[s.byteOf(v, int64(k))] = st
		}
		s.computed[v] = true
	}
	if err := s.steps(0, len(s.d.Steps)); err != nil {
		return err
	}
	owner := map[address]*ir.Value{}
	for i, v := range s.p.Body.Results {
		x := s.at[v]
		own := x.Space == plan.SpaceOutput && x.Arg == i && x.Offset == 0
		returned := x.Space == plan.SpaceInput && s.p.Body.Params[x.Arg].Donated && x.Offset == 0 && x.Size == bytesOf(s.p.Body.Params[x.Arg])
		if !own && !returned {
			return fmt.Errorf("output %d (%s) is in %s %d", i, v, x.Space, x.Arg)
		}
		if err := s.holds(v, v); err != nil {
			return err
		}
		for k := range bytesOf(v) {
			if owner[s.byteOf(v, k)] != nil {
				return fmt.Errorf("outputs %s and %s share bytes", owner[s.byteOf(v, k)], v)
			}
			owner[s.byteOf(v, k)] = v
		}
	}
	return nil
}

// holds: the bytes of the place of v are those of value of.
func (s *simulator) holds(v, of *ir.Value) error {
	for k := range bytesOf(v) {
		if err := s.holdsByte(v, of, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulator) holdsByte(v, of *ir.Value, k int64) error {
	if got, want := s.memory[s.byteOf(v, k)], s.ideal[of][k]; got != want {
		return fmt.Errorf("byte %d of the place of %s: got %s+%d, want %s+%d", k, v, got.root, got.offset, want.root, want.offset)
	}
	return nil
}

func (s *simulator) steps(lo, hi int) error {
	for i := lo; i < hi; i++ {
		c := s.calls[s.d.Steps[i].Call]
		for _, a := range c.Args {
			if a.Value != nil && !s.computed[a.Value] {
				return fmt.Errorf("step %d reads %s, which is not there", i, a.Value)
			}
		}
		if k := s.d.Steps[i].Call; c.Op.Impure {
			if k < s.effect {
				return fmt.Errorf("step %d: effects in another order than the program's", i)
			}
			s.effect = k
		}
		err := s.reads(c, -1, 0)
		if len(c.Regions) > 0 && err == nil {
			i, err = s.branch(c, i)
		} else if err == nil {
			err = s.compute(c)
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i, c, err)
		}
		for _, v := range c.Results {
			if v == nil {
				continue
			}
			s.computed[v] = true
			if err := s.holds(v, v); err != nil {
				return fmt.Errorf("step %d (%s): result: %w", i, c, err)
			}
		}
	}
	return nil
}

// reads reads the operands: all of them, or for result r those bytes that the
// kernel still needs at element k.
func (s *simulator) reads(c *ir.Call, r int, k int64) error {
	sig := c.Sig(s.known)
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if r >= 0 {
			if kind, _ := sig.AliasOf(i, r); kind != 0 && kind != op.View {
				size := max(int64(a.Value.Type.DType.Size()), 1)
				for b := range size {
					if k < 0 {
						break
					}
					if err := s.holdsByte(a.Value, a.Value, k*size+b); err != nil {
						return err
					}
				}
				continue
			}
		}
		if err := s.holds(a.Value, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// last as an element means that all are written.
const last = -1

func (s *simulator) compute(c *ir.Call) error {
	inPlace := true
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		of, offset := s.viewOf(c, r)
		inPlace = inPlace && of != nil && s.byteOf(of, offset) == s.byteOf(v, 0)
	}
	if inPlace {
		return nil
	}
	for r, v := range c.Results {
		if v == nil || bytesOf(v) == 0 {
			continue
		}
		if x := s.at[v]; x.Space == plan.SpaceWeight || x.Space == plan.SpaceInput && !s.p.Body.Params[x.Arg].Donated {
			return fmt.Errorf("%s is written into %s %d", v, x.Space, x.Arg)
		}
		size := max(int64(v.Type.DType.Size()), 1)
		elements := bytesOf(v) / size
		for n := range elements {
			k := n
			if s.reverse {
				k = elements - 1 - n
			}
			if err := s.reads(c, r, k); err != nil {
				return err
			}
			for b := range size {
				s.memory[s.byteOf(v, k*size+b)] = s.ideal[v][k*size+b]
			}
		}
		if err := s.reads(c, r, last); err != nil {
			return err
		}
	}
	return nil
}

// branch runs one region of the call of step i and returns the last step of
// both.
func (s *simulator) branch(c *ir.Call, i int) (end int, err error) {
	chosen := s.path >> s.branches & 1
	s.branches++
	lo := i + 1
	for n, region := range c.Regions {
		hi, err := s.structure(region, lo)
		if err != nil {
			return i, err
		}
		if n == chosen {
			if err := s.steps(lo, hi); err != nil {
				return i, err
			}
			if err := s.leave(c, region); err != nil {
				return i, err
			}
		} else {
			s.skip(region)
		}
		lo = hi
	}
	return lo - 1, nil
}

// skip counts the branches in a region that does not run, so that the bits of
// the path stay in place.
func (s *simulator) skip(b *ir.Block) {
	for _, c := range b.Calls {
		if len(c.Regions) > 0 {
			s.branches++
		}
		for _, region := range c.Regions {
			s.skip(region)
		}
	}
}

// leave turns what the region returns into the results of the call.
func (s *simulator) leave(c *ir.Call, region *ir.Block) error {
	written := map[address]bool{}
	for i, v := range c.Results {
		if v == nil {
			continue
		}
		for k := range bytesOf(v) {
			to := s.byteOf(v, k)
			if got, want := s.memory[to], s.ideal[region.Results[i]][k]; got != want || written[to] {
				return fmt.Errorf("the branch leaves %s+%d, want %s+%d", got.root, got.offset, want.root, want.offset)
			}
			if to.space == plan.SpaceWeight || to.space == plan.SpaceInput && !s.p.Body.Params[to.arg].Donated {
				return fmt.Errorf("%s lies in %s", v, to.space)
			}
			written[to] = true
		}
	}
	for _, v := range c.Results {
		if v == nil {
			continue
		}
		for k := range bytesOf(v) {
			s.memory[s.byteOf(v, k)] = s.ideal[v][k]
		}
	}
	return nil
}
