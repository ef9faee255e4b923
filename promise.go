package tenure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// promise is the promise of a session with bounds for all their sizes. Its
// structures are its own, and their placements stay: a size that was proved
// once is placed in as many bytes by every run.
type promise struct {
	sizes    *sizes
	capacity solve.Capacity
	boxed    bool // it is made for boxes of sizes
	figures  plan.Range

	structures structures
	givenUp    structures // of runs that give inputs up
	worst      []op.Type  // of inputs, where the arena is the largest
	worstExe   *exec.Executable
	holdings   exec.Holdings
}

// mostRefusals is how many refused sizes a promise lists.
const mostRefusals = 5

// PlanUpTo returns the promise for runs of all sizes up to the bounds that the
// options state ([WithUpTo], [WithSizes]), before any run: one figure each for
// arena, scratch, inputs and outputs, which no size exceeds and some size
// reaches, but for one that says that it is a bound ([plan.RangeFigure]). The
// plan of every size is made and proved, or of the corners of boxes of many
// sizes, which takes as long as the first runs of all of these wait for their
// plans together.
func (m *Model) PlanUpTo(ctx context.Context, opts ...SessionOption) (*plan.Range, error) {
	if err := ended.Missing(ctx); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := m.retain("plan"); err != nil {
		return nil, err
	}
	p, err := m.promise(ctx, o)
	if err = errors.Join(err, m.release()); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return p.document(), nil
}

// Promise returns the session's promise for all sizes up to its bounds, nil for
// a session without bounds ([WithUpTo]).
func (s *Session) Promise() *plan.Range {
	if s.none() || s.opts.promise == nil {
		return nil
	}
	return s.opts.promise.document()
}

// promise makes the promise of sessions of these options.
func (m *Model) promise(ctx context.Context, o sessionOptions) (*promise, error) {
	sizes, err := m.sizesOf(o.bounds)
	if err != nil {
		return nil, err
	}
	p := &promise{sizes: sizes, structures: structures{stay: true}, figures: plan.Range{Threads: o.threads, MaxConcurrent: o.maxConcurrent, GivesBack: o.giveBack}}
	for _, d := range sizes.dims {
		p.figures.Dims = append(p.figures.Dims, plan.RangeDim{Name: d.name, Most: d.most, Sizes: d.sizes})
	}
	o.promise = p
	if n, most := sizes.number(), int64(1<<62); n > float64(most) {
		_, factors := sizes.total()
		return nil, fmt.Errorf("got %.0f sizes (%s), want at most %d: %w", n, factors, most, ErrUnsupported)
	}
	total, _ := sizes.total()
	if p.boxed = total > float64(o.limits.each); p.boxed {
		err = m.promiseBoxes(ctx, p, o)
	} else {
		err = m.promiseEach(ctx, p, o)
	}
	if err != nil {
		return nil, err
	}
	if p.figures.Sizes == 0 {
		first := p.figures.Refusals[0]
		return nil, fmt.Errorf("got bounds within which the model takes no size: %s: %s: %w", p.figures.Where(first.At), first.Reason, inputError{ErrShape})
	}
	p.capacity.Fixed = true
	p.finish()
	return p, nil
}

// promiseEach makes the promise of the plans of all sizes.
func (m *Model) promiseEach(ctx context.Context, p *promise, o sessionOptions) error {
	for at := range p.sizes.all() {
		if err := ctx.Err(); err != nil {
			return ended.Error(ctx)
		}
		if _, err := m.promiseSize(ctx, p, at, o); err != nil {
			return fmt.Errorf("%s: %w", p.figures.Where(at), err)
		}
	}
	return nil
}

// promiseSize makes and proves the plan of inputs of these sizes, and takes its
// figures over. The executable is nil where the model refuses the sizes.
func (m *Model) promiseSize(ctx context.Context, p *promise, at []int, o sessionOptions) (*exec.Executable, error) {
	types, err := p.sizes.types(at)
	var exe *exec.Executable
	if err == nil {
		m.compiling.Lock()
		defer m.compiling.Unlock()
		exe, _, err = m.compile(ctx, target{types: types}, o)
	}
	if err != nil && refused(err) {
		p.figures.Refused++
		if len(p.figures.Refusals) < mostRefusals {
			p.figures.Refusals = append(p.figures.Refusals, plan.Refusal{At: slices.Clone(at), Reason: err.Error()})
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return exe, p.add(exe, types, at)
}

// refused reports whether an error is that of the model, with which a run of
// these sizes ends too, and says nothing about others: of its shape rules, or
// of the values that it computes from the sizes.
func refused(err error) bool {
	var broken *ir.Violation
	var unproved *check.Violation
	if errors.As(err, &broken) || errors.As(err, &unproved) || strings.Contains(err.Error(), "BUG:") {
		return false
	}
	return !slices.ContainsFunc([]error{ErrUnsupported, ErrLimit, ErrCorrupt, ErrClosed, context.Canceled, context.DeadlineExceeded}, func(kind error) bool {
		return errors.Is(err, kind)
	})
}

// add adds a proved plan.
func (p *promise) add(exe *exec.Executable, types []op.Type, at []int) error {
	f := &p.figures
	proof := exe.Proof()
	scratch := proof.ScratchPerThread * int64(f.Threads)
	f.Sizes++
	if f.Arena.Raise(proof.ArenaBytes, at) {
		p.capacity.Bytes = proof.ArenaBytes
		p.worst, p.worstExe = types, exe
	}
	f.Scratch.Raise(scratch, at)
	f.IO.Raise(proof.IOBytes, at)
	f.Worst.Raise(proof.ArenaBytes+scratch+proof.IOBytes, at)
	p.holdings.Add(exe)
	list, err := exe.Unpromised()
	if err != nil {
		return err
	}
	for _, u := range list {
		if !slices.ContainsFunc(f.Unpromised, func(known plan.Unpromised) bool { return known.Value == u.Value && known.Node == u.Node }) {
			f.Unpromised = append(f.Unpromised, u)
		}
	}
	exe.Yield()
	return nil
}

// finish completes the figures.
func (p *promise) finish() {
	f, made := &p.figures, p.structures.figures
	f.WeightBytes = p.holdings.Bytes()
	f.Structures, f.Instances = made.Kept, made.Instances
	for reason, n := range made.Pinned {
		f.Pinned = append(f.Pinned, plan.Pinned{Reason: reason, Sizes: n})
	}
	slices.SortFunc(f.Pinned, func(a, b plan.Pinned) int { return strings.Compare(a.Reason, b.Reason) })
}

// document returns a copy of the figures, which is the caller's.
func (p *promise) document() *plan.Range {
	f := p.figures
	f.Dims, f.Pinned, f.Refusals, f.Unpromised = slices.Clone(f.Dims), slices.Clone(f.Pinned), slices.Clone(f.Refusals), slices.Clone(f.Unpromised)
	f.OneByOne = slices.Clone(f.OneByOne)
	for _, figure := range []*plan.RangeFigure{&f.Arena, &f.Scratch, &f.IO, &f.Worst} {
		figure.At = slices.Clone(figure.At)
	}
	return &f
}

// known returns the executable of the largest arena, if the target is of its
// sizes: the promise is reached.
func (p *promise) known(t target) *exec.Executable {
	if p.capacity.Fixed && t.donations() == nil && slices.Equal(t.types, p.worst) {
		return p.worstExe
	}
	return nil
}

// holds reports whether a plan takes no more memory than was promised.
func (p *promise) holds(exe *exec.Executable) bool {
	return !p.capacity.Fixed || exe.ArenaBytes <= p.figures.Arena.Bytes && exe.ScratchBytes <= p.figures.Scratch.Bytes
}

// errBeyondPromise is the error of runs that give inputs up and whose plan
// takes more memory than was promised.
var errBeyondPromise = errors.New("the plan of a run that gives up inputs takes more than the promise")

// check returns an error for a plan that takes more memory than was promised.
func (p *promise) check(t target, exe *exec.Executable) error {
	if p.holds(exe) {
		return nil
	}
	taken := fmt.Sprintf("got %d bytes of arena and %d of scratch, want at most %d and %d", exe.ArenaBytes, exe.ScratchBytes, p.figures.Arena.Bytes, p.figures.Scratch.Bytes)
	if t.donations() == nil {
		return fmt.Errorf("BUG: a plan within the bounds of a promise: %s", taken)
	}
	return fmt.Errorf("%w: %s: %w", errBeyondPromise, taken, ErrLimit)
}
