package check_test

import (
	"cmp"
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
	ideal map[*ir.Value][]stamp   // the value if no bytes were shared
	bytes map[*ir.Value][]address // of its place, in its row-major order

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
	s := &simulator{p: p, d: d, known: ir.Known(weights), at: entries(p, d), ideal: map[*ir.Value][]stamp{}, bytes: map[*ir.Value][]address{}}
	branches := 0
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		s.calls = append(s.calls, c)
		branches += min(len(c.Regions), 1)
	})
	if end, err := s.structure(p.Body, 0); err != nil || end != len(d.Steps) {
		return fmt.Errorf("steps: %d of %d, %w", end, len(d.Steps), err)
	}
	for _, v := range allValues(p) {
		s.locate(v)
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

// viewOf returns the operand that result r is a view of, or in a box of whose
// bytes it lies, and for each byte of the result that of the operand.
func (s *simulator) viewOf(c *ir.Call, r int) (of *ir.Value, image []int64) {
	sig := c.Sig(s.known)
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if kind, off := sig.AliasOf(i, r); kind == op.View {
			for k := range bytesOf(c.Results[r]) {
				image = append(image, int64(off)+k)
			}
			return a.Value, image
		}
	}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if image := boxOf(c, sig, i, r); len(image) > 0 && s.liesIn(c.Results[r], a.Value, image) {
			return a.Value, image
		}
	}
	return nil, nil
}

// liesIn reports whether each byte of v is a byte of the place of another
// value.
func (s *simulator) liesIn(v, of *ir.Value, image []int64) bool {
	for k, n := range image {
		if s.byteOf(v, int64(k)) != s.byteOf(of, n) {
			return false
		}
	}
	return true
}

// locate finds the bytes of a value's place.
func (s *simulator) locate(v *ir.Value) {
	x := s.at[v]
	for _, at := range offsets(x) {
		a := address{x.Space, x.Arg, at}
		if x.Space == plan.SpaceArena {
			a.arg = 0
		}
		s.bytes[v] = append(s.bytes[v], a)
	}
}

func (s *simulator) idealise(v *ir.Value) {
	stamps := make([]stamp, bytesOf(v))
	for k := range stamps {
		stamps[k] = stamp{v, int64(k)}
	}
	if v.Def != nil && len(v.Def.Regions) == 0 {
		if of, image := s.viewOf(v.Def, v.Index); of != nil {
			for k, n := range image {
				stamps[k] = s.ideal[of][n]
			}
		}
		for i := range s.putTogether(v.Def) {
			for k, n := range partOf(v.Def, v.Def.Sig(s.known), i) {
				stamps[n] = s.ideal[v.Def.Args[i].Value][k]
			}
		}
	}
	s.ideal[v] = stamps
}

// putTogether returns the operands of a call that are parts of its result, and
// whether each lies there. It returns none if none does, unless the result is
// its operands, one after the other.
func (s *simulator) putTogether(c *ir.Call) map[int]bool {
	sig, any := c.Sig(s.known), false
	parts := map[int]bool{}
	for i := range c.Args {
		if image := partOf(c, sig, i); image != nil {
			parts[i] = s.liesIn(c.Args[i].Value, c.Results[0], image)
			any = any || parts[i]
		}
	}
	if !any && !isOfPieces(c, sig) {
		return nil
	}
	return parts
}

// isOfPieces reports whether the operands of a call are all of its result, in
// one piece each.
func isOfPieces(c *ir.Call, sig *op.Sig) bool {
	at := sig.Parts(nil)
	if len(at) == 0 {
		return false
	}
	rank, sum := len(at)/len(c.Args), int64(0)
	for i := range c.Args {
		image := partOf(c, sig, i)
		if at[i*rank] < 0 || len(image) > 0 && image[len(image)-1]-image[0] != int64(len(image)-1) {
			return false
		}
		sum += int64(len(image))
	}
	return sum == bytesOf(c.Results[0])
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
		for k := range s.bytes[v] {
			s.bytes[v][k].arg = owner.ID
		}
	default:
		return fmt.Errorf("%s: space %q", v, x.Space)
	}
	switch {
	case x.Size != bytesOf(v) || x.Offset < 0 || x.Offset > space-x.Size:
		return fmt.Errorf("%s: %d bytes at %d of %d", v, x.Size, x.Offset, space)
	case !slices.IsSortedFunc(s.bytes[v], func(a, b address) int { return cmp.Compare(a.offset, b.offset) }) ||
		len(slices.Compact(slices.Clone(s.bytes[v]))) != len(s.bytes[v]):
		return fmt.Errorf("%s: bytes out of order, or twice", v)
	case x.Size > 0 && s.bytes[v][x.Size-1].offset >= space:
		return fmt.Errorf("%s: ends behind byte %d", v, space)
	case x.Strides != nil && s.isAround(v):
		return fmt.Errorf("%s: strides around a region", v)
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

func (s *simulator) byteOf(v *ir.Value, k int64) address { return s.bytes[v][k] }

// isAround reports whether v is an operand or a result of a call with regions,
// or the result of a region.
func (s *simulator) isAround(v *ir.Value) bool {
	return slices.ContainsFunc(s.calls, func(c *ir.Call) bool {
		if len(c.Regions) == 0 {
			return false
		}
		around := slices.Contains(c.Results, v) || slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return a.Value == v })
		for _, region := range c.Regions {
			around = around || slices.Contains(region.Results, v)
		}
		return around
	})
}
