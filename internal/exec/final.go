package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// sigOf returns the signature of the call that defines v.
func (l *lowering) sigOf(v *ir.Value) *op.Sig { return l.calls[l.index.Def(v)].sig }

// rootOf is [ir.RootOf] for a value of the program.
func (l *lowering) rootOf(v *ir.Value) (root *ir.Value, whole bool) { return ir.RootOf(v, l.sigOf) }

// checkFinal refuses a program in which a result has no bytes of its own: the
// pass Outputs makes a copy of it.
func (l *lowering) checkFinal() error {
	for k := range l.calls {
		c := &l.calls[k]
		if err := l.checkSizes(c.Call); err != nil {
			return fmt.Errorf("compile: %s: %w", c.Where(), err)
		}
		if !c.Op.Branch {
			continue
		}
		for _, region := range c.Regions {
			if err := l.checkRegion(c.Call, region); err != nil {
				return err
			}
		}
	}
	for i, fault := range ir.ResultFaults(l.program, l.sigOf) {
		if fault != "" {
			return notFinal("result %d, %s: %s", i, l.program.Body.Results[i], fault)
		}
	}
	return nil
}

// checkRegion is checkFinal for a region of a branch. Results whose size
// depends on data are computed in the call's bytes if they can be, and shared
// or copied when the region ends if not.
func (l *lowering) checkRegion(c *ir.Call, region *ir.Block) error {
	for i, fault := range ir.RegionFaults(region, l.sigOf) {
		if r := c.Results[i]; fault != "" && r != nil && l.isStatic(r) {
			return notFinal("result %d of a region of %s, %s: %s", i, c.Where(), region.Results[i], fault)
		}
	}
	return nil
}

// checkCarried refuses a loop whose region yields a value in the bytes of
// another value of the loop state: an iteration would read bytes that the end
// of the previous one has already overwritten.
func (l *lowering) checkCarried(c *ir.Call) error {
	region := c.Regions[0]
	params := region.Params[ir.LoopArgs:]
	for i, own := range params {
		if !l.isStatic(own) {
			continue // its buffer is shared, not copied
		}
		y := region.Results[1+i]
		at := l.of(y).place
		for _, p := range params {
			if p != own && l.isStatic(p) && at.overlaps(l.of(p).place) {
				return notFinal("result %d of the region of %s, %s: the loop carries %s in its bytes", 1+i, c.Where(), y, p)
			}
		}
	}
	return nil
}

// checkSizes checks that the results of a call's regions, and the operands of a
// loop, have a size where the program states one: only steps compare sizes when
// they run.
func (l *lowering) checkSizes(c *ir.Call) error {
	check := func(got, want *ir.Value) error {
		if want != nil && l.isStatic(want) && !l.isStatic(got) {
			return fmt.Errorf("got %s of %s, whose size depends on data, for %s of %s: %w", l.types.Of(got), got, l.types.Of(want), want, op.ErrUnsupported)
		}
		return nil
	}
	for _, region := range c.Regions {
		returned := region.Results
		if c.Op.Loop {
			returned = returned[1:]
		}
		for i, v := range returned {
			want := c.Results[i]
			if at := ir.LoopArgs + i; c.Op.Loop && at < len(region.Params) {
				want = region.Params[at]
				if err := check(c.Args[at].Value, want); err != nil {
					return err
				}
			}
			if err := check(v, want); err != nil {
				return err
			}
		}
	}
	return nil
}

func notFinal(format string, args ...any) error {
	return fmt.Errorf("compile: got "+format+", want bytes of its own (pass outputs makes a copy): %w", append(args, op.ErrUnsupported)...)
}
