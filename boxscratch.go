package tenure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// scratchOver finds the most scratch that any call of a program takes over a
// box. Kernels choose their tiles by size, so that a smaller call may take
// more. A call is bound for the upper corner of a box. Where its kernel bounds
// the scratch of all smaller sizes by no more than what was met already, the
// box is done; if not, it is cut in two, down to single sizes.
type scratchOver struct {
	*pass.Formulas
	sizer *exec.Sizer
	dims  []dimension
	box   []span
	sizes map[string]int64

	best  int64 // bytes per thread that some size takes
	at    []int // that size, nil where it was met before
	bound int64 // that no size exceeds, where that is more than was met
	left  int   // how often the call may still be bound
}

// mostBound is how often one call of the program is bound for a box.
const mostBound = 1 << 16

// search looks at every call. why is what is not known, "" if all is.
func (x *scratchOver) search(ctx context.Context) (why string) {
	seen := map[string]bool{}
	for _, k := range x.sizer.Calls() {
		c := x.sizer.Call(k)
		key, uses := x.key(c)
		if seen[key] {
			continue
		}
		seen[key] = true
		part := slices.Clone(x.box)
		for i := range part {
			if !slices.Contains(uses, x.dims[i].name) {
				part[i].lo = part[i].hi
			}
		}
		x.left = mostBound
		if err := x.call(ctx, k, c, part, true); err != nil {
			return fmt.Sprintf("scratch of %s: %v", c.Where(), err)
		}
	}
	return ""
}

// key returns a text that is the same for calls that take as much scratch, and
// the dimensions that this depends on.
func (x *scratchOver) key(c *ir.Call) (key string, uses []string) {
	var b strings.Builder
	b.WriteString(c.Op.Name)
	for _, a := range c.Attrs {
		fmt.Fprintf(&b, "|%s=%#v", a.Name, a.Value)
	}
	add := func(v *ir.Value) {
		if v == nil {
			b.WriteString("|_")
			return
		}
		fmt.Fprintf(&b, "|%s", v.Type.DType)
		for _, d := range x.Dims(v.ID) {
			fmt.Fprintf(&b, ",%s", d.Key())
			uses = append(uses, d.Symbols()...)
		}
		if v.Kind == ir.Weight {
			fmt.Fprintf(&b, "#%d", v.ID)
			if !x.IsSame(v.ID) {
				for i := range x.dims {
					uses = append(uses, x.dims[i].name)
				}
			}
		}
	}
	for _, a := range c.Args {
		add(a.Value)
	}
	for _, v := range c.Results {
		add(v)
	}
	return b.String(), uses
}

var errScratch = errors.New("more sizes than are compared")

// call searches a part of the box for one call. fresh says that it was not
// bound for the upper corner yet. The error is that of the context where this
// ends the search.
func (x *scratchOver) call(ctx context.Context, k int, c *ir.Call, part []span, fresh bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if fresh {
		n, err := x.bind(k, c, part)
		if err != nil {
			return err
		}
		if n > x.best {
			x.best, x.at = n, x.upper(part)
		}
	}
	longest := 0
	for i, s := range part {
		if s.hi-s.lo > part[longest].hi-part[longest].lo {
			longest = i
		}
	}
	if len(part) == 0 || part[longest].lo == part[longest].hi {
		return nil
	}
	most, known := x.sizer.Most(k, func(v *ir.Value, axis int) bool {
		_, fixed := x.Dims(v.ID)[axis].Value()
		return fixed
	})
	if known && most <= max(x.best, x.bound) {
		return nil
	}
	if x.left <= 0 {
		if !known {
			return errScratch
		}
		x.bound = max(x.bound, most)
		return nil
	}
	above, below := slices.Clone(part), slices.Clone(part)
	s := part[longest]
	cut := s.lo + (s.hi-s.lo)/2
	above[longest].lo, below[longest].hi = cut+1, cut
	// The task has the sizes of the upper corner, which is that of the upper
	// half, too.
	if err := x.call(ctx, k, c, above, false); err != nil {
		return err
	}
	return x.call(ctx, k, c, below, true)
}

func (x *scratchOver) upper(part []span) []int {
	at := make([]int, len(part))
	for i, s := range part {
		at[i] = x.dims[i].of(s, s.hi)
	}
	return at
}

func (x *scratchOver) setSizes(part []span) {
	for i, s := range part {
		n := s.hi
		if _, _, ok := x.dims[i].line(x.box[i]); !ok {
			n = x.dims[i].of(s, s.hi)
		}
		x.sizes[x.dims[i].name] = int64(n)
	}
}

// bind binds a call for the upper corner of a part, and returns its scratch.
func (x *scratchOver) bind(k int, c *ir.Call, part []span) (int64, error) {
	x.left--
	x.setSizes(part)
	var unknown error
	x.sizer.Set(func(v *ir.Value) op.Type {
		t, ok := x.TypeAt(v.ID, x.sizes)
		if !ok && unknown == nil {
			unknown = fmt.Errorf("no type of %s", v)
		}
		return t
	}, func(v *ir.Value) ([]byte, bool) {
		if v.Kind != ir.Weight {
			return nil, false
		}
		return x.ConstantAt(v.ID, x.sizes)
	})
	n, err := x.sizer.Scratch(k)
	if unknown != nil {
		return 0, unknown
	}
	return n, err
}
