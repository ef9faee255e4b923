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
	ideal map[*ir.Value][]stamp // the value if no bytes were shared

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
	if v.Def != nil && s.isPutTogether(v.Def) {
		s.ideal[v] = nil
		for _, a := range v.Def.Args {
			s.ideal[v] = append(s.ideal[v], s.ideal[a.Value]...)
		}
		return
	}
	stamps := make([]stamp, n)
	for k := range stamps {
		stamps[k] = stamp{v, int64(k)}
	}
	s.ideal[v] = stamps
}

// isPutTogether reports whether the result of a call is its operands, one after
// the other.
func (s *simulator) isPutTogether(c *ir.Call) bool {
	return c.Sig(s.known).Pieces(nil) != nil
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
