package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// checkFinal refuses a program in which a result has no bytes of its own: the
// pass Outputs gives it some by a copy.
func (l *lowering) checkFinal() error {
	for _, c := range l.calls {
		if err := checkSizes(c); err != nil {
			return fmt.Errorf("compile: %s: %w", describe(c), err)
		}
		if !c.Op.Branch {
			continue
		}
		for _, region := range c.Regions {
			if err := l.checkRegion(c, region); err != nil {
				return err
			}
		}
	}
	taken := map[*ir.Value]bool{}
	for i, v := range l.program.Body.Results {
		root, whole := l.rootOf(v)
		fault := ""
		switch {
		case root.Kind == ir.Weight:
			fault = "a weight"
		case root.Kind == ir.Param && !root.Donated:
			fault = "an input that is not donated"
		case taken[root]:
			fault = "another result"
		case !whole:
			fault = "a larger value"
		}
		if fault != "" {
			return notFinal("result %d, %s, in the bytes of %s", i, v, fault)
		}
		taken[root] = true
	}
	return nil
}

// checkRegion is checkFinal for a region of a branch. Results whose size
// depends on data are computed in the call's bytes if they can be, and shared or
// copied when the region ends if not.
func (l *lowering) checkRegion(c *ir.Call, region *ir.Block) error {
	for i, v := range region.Results {
		if r := c.Results[i]; r == nil || !r.Type.IsStatic() {
			continue
		}
		if fault := l.faultIn(region, i); fault != "" {
			return notFinal("result %d of a region of %s, %s, %s", i, describe(c), v, fault)
		}
	}
	return nil
}

// checkCarried refuses a loop whose region carries on a value in the bytes in
// which the loop carries another one: a round would read what the end of the
// one before has already overwritten.
func (l *lowering) checkCarried(c *ir.Call) error {
	region := c.Regions[0]
	params := region.Params[ir.LoopArgs:]
	for i, own := range params {
		if !own.Type.IsStatic() {
			continue // it is held, not copied
		}
		y := region.Results[1+i]
		at := l.places[y]
		for _, p := range params {
			if p != own && at.size > 0 && at.storage == l.places[p].storage {
				return notFinal("result %d of the region of %s, %s, in the bytes in which the loop carries %s", 1+i, describe(c), y, p)
			}
		}
	}
	return nil
}

// checkSizes checks that what a call's regions give, and what a loop takes, has
// a size where the program says one: only steps compare sizes when they run.
func checkSizes(c *ir.Call) error {
	check := func(got, want *ir.Value) error {
		if want != nil && want.Type.IsStatic() && !got.Type.IsStatic() {
			return fmt.Errorf("got %s of %s, whose size depends on data, for %s of %s: %w", got.Type, got, want.Type, want, op.ErrUnsupported)
		}
		return nil
	}
	for _, region := range c.Regions {
		given := region.Results
		if c.Op.Loop {
			given = given[1:]
		}
		for i, v := range given {
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

// faultIn says why result i of a region of a branch has no bytes of its own;
// it is empty if it has.
func (l *lowering) faultIn(region *ir.Block, i int) string {
	v := region.Results[i]
	if v.Def == nil || !slices.Contains(region.Calls, v.Def) {
		return "which is not computed there"
	}
	if arg, kind, _ := l.bytesFor(l.index[v.Def], v.Def, v.Index); arg >= 0 && kind == op.View {
		return "which is a view"
	}
	if slices.Contains(region.Results[:i], v) {
		return "which it gives twice"
	}
	return ""
}

func notFinal(format string, args ...any) error {
	return fmt.Errorf("compile: got "+format+", want bytes of its own (pass outputs makes a copy): %w", append(args, op.ErrUnsupported)...)
}

// rootOf follows views down to the value that owns the bytes, and reports
// whether v is all of them.
func (l *lowering) rootOf(v *ir.Value) (root *ir.Value, whole bool) {
	whole = true
	for v.Def != nil {
		arg, kind, offset := l.bytesFor(l.index[v.Def], v.Def, v.Index)
		if kind != op.View {
			break
		}
		of := v.Def.Args[arg].Value
		n, _ := v.Type.Bytes()
		m, _ := of.Type.Bytes()
		v, whole = of, whole && offset == 0 && n == m
	}
	return v, whole
}
