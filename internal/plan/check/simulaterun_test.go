package check_test

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

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
		own := x.Space == plan.SpaceOutput && x.Arg == i && x.Offset == 0 && x.Strides == nil
		returned := x.Space == plan.SpaceInput && s.p.Body.Params[x.Arg].Donated && x.Offset == 0 && x.Strides == nil && 2*x.Size >= bytesOf(s.p.Body.Params[x.Arg])
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
			kind, _ := sig.AliasOf(i, r)
			if kind == 0 {
				kind = sig.AliasAlone(i, r)
			}
			if kind != 0 && kind != op.View && kind != op.Permute {
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

// inOrder reports whether result r lies in an operand with larger elements: one
// thread computes it then, in the order of its elements.
func (s *simulator) inOrder(c *ir.Call, r int) bool {
	sig := c.Sig(s.known)
	for i, a := range c.Args {
		if a.Value != nil && sig.AliasAlone(i, r) == op.Narrow && bytesOf(c.Results[r]) > 0 && s.byteOf(a.Value, 0) == s.byteOf(c.Results[r], 0) {
			return true
		}
	}
	return false
}

// last as an element means that all are written.
const last = -1

func (s *simulator) compute(c *ir.Call) error {
	inPlace := true
	left := map[*ir.Value]bool{} // results that the kernel leaves in their operand
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		of, image := s.viewOf(c, r)
		lies := of != nil && s.liesIn(v, of, image)
		left[v] = lies && c.Op.Alias.HasBoxes() && s.at[v].Space != plan.SpaceWeight
		if inPlace = inPlace && lies; of != nil && !lies && s.touches(v, of) {
			return fmt.Errorf("%s is a view of %s and lies elsewhere in its bytes", v, of)
		}
	}
	if inPlace {
		return nil
	}
	parts := s.putTogether(c)
	there := s.partsThere(c, parts) // bytes of the result that need not be written
	if parts != nil && int64(len(there)) == bytesOf(c.Results[0]) {
		return nil
	}
	for r, v := range c.Results {
		if v == nil || bytesOf(v) == 0 || left[v] {
			continue
		}
		if x := s.at[v]; x.Space == plan.SpaceWeight || x.Space == plan.SpaceInput && !s.p.Body.Params[x.Arg].Donated {
			return fmt.Errorf("%s is written into %s %d", v, x.Space, x.Arg)
		}
		size := max(int64(v.Type.DType.Size()), 1)
		elements := bytesOf(v) / size
		for n := range elements {
			k := n
			if s.reverse && !s.inOrder(c, r) {
				k = elements - 1 - n
			}
			if there[k*size] {
				continue
			}
			if err := s.reads(c, r, k); err != nil {
				return err
			}
			for b := range size {
				if parts != nil && s.isOfOperand(c, s.byteOf(v, k*size+b)) {
					return fmt.Errorf("a part of %s is copied over an operand", v)
				}
				s.memory[s.byteOf(v, k*size+b)] = s.ideal[v][k*size+b]
			}
		}
		if err := s.reads(c, r, last); err != nil {
			return err
		}
	}
	return nil
}

// partsThere returns the bytes of a call's result whose operands lie there.
func (s *simulator) partsThere(c *ir.Call, parts map[int]bool) map[int64]bool {
	there := map[int64]bool{}
	for i, lies := range parts {
		if lies {
			for _, n := range partOf(c, c.Sig(s.known), i) {
				there[n] = true
			}
		}
	}
	return there
}

// touches reports whether two values share bytes.
func (s *simulator) touches(v, w *ir.Value) bool {
	return slices.ContainsFunc(s.bytes[v], func(a address) bool { return slices.Contains(s.bytes[w], a) })
}

// isOfOperand reports whether a byte is in the place of an operand of the call.
func (s *simulator) isOfOperand(c *ir.Call, at address) bool {
	return slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return a.Value != nil && slices.Contains(s.bytes[a.Value], at) })
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

// leave makes the region's results those of the call.
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
