package tenure

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// boxes make the promise for more sizes than are planned one by one. A box is a
// range of sizes for each dimension. The plan of its upper corner is made and
// proved like any other. If the corner's structure is proved to hold at every
// size of the box, and no size of a value to decrease anywhere, the storages of
// every size have room in the places of the corner's: the figures of the corner
// are those of the box. A box that is not proved is cut in two, down to a few
// sizes, which are planned one by one.
type boxes struct {
	model   *Model
	promise *promise
	options sessionOptions
	planned int            // sizes, one by one
	reasons map[string]int // of these, by why they are not proved by expressions
}

// sizeLimits say which sizes are planned one by one.
type sizeLimits struct {
	each int // all of so many; of more, those that are not proved by expressions. Sizes of 0 do not count: most bounds have one.
	few  int // all of a box of so many: that takes less time than the proof of the box
	most int // the most for a promise
}

var defaultLimits = sizeLimits{each: 4096, few: 24, most: 1 << 16}

// span is a range of the sizes of a dimension: those with the numbers base +
// step·k in rising order, for k from lo to hi.
type span struct{ lo, hi, base, step int }

// number returns how many sizes a dimension has.
func (d *dimension) number() int {
	if d.every {
		return d.most + 1
	}
	return len(d.sizes)
}

// nth returns size i of a dimension.
func (d *dimension) nth(i int) int {
	if d.every {
		return i
	}
	return d.sizes[i]
}

// of returns size k of a span.
func (d *dimension) of(s span, k int) int { return d.nth(s.base + s.step*k) }

// line reports whether the sizes of a span are first + stride·k. If not,
// expressions have the sizes themselves.
func (d *dimension) line(s span) (first, stride int, ok bool) {
	if d.every {
		return s.base, s.step, true
	}
	stride = 1
	if s.lo < s.hi {
		stride = d.of(s, s.lo+1) - d.of(s, s.lo)
	}
	first = d.of(s, s.lo) - stride*s.lo
	for k := s.lo; k <= s.hi; k++ {
		if d.of(s, k) != first+stride*k {
			return 0, 1, false
		}
	}
	return first, stride, true
}

// corner is the plan of the largest sizes of a box.
type corner struct {
	at        []int
	exe       *exec.Executable // nil where the model refuses the sizes
	structure *structure       // nil for a program that has none
}

// promiseBoxes makes the promise for all sizes.
func (m *Model) promiseBoxes(ctx context.Context, p *promise, o sessionOptions) error {
	b := &boxes{model: m, promise: p, options: o, reasons: map[string]int{}}
	whole := make([]span, len(p.sizes.dims))
	for i := range whole {
		whole[i] = span{hi: p.sizes.dims[i].number() - 1, step: 1}
	}
	if err := b.prove(ctx, whole, nil, "few sizes"); err != nil {
		return err
	}
	for reason, n := range b.reasons {
		p.figures.OneByOne = append(p.figures.OneByOne, plan.Pinned{Reason: reason, Sizes: n})
	}
	slices.SortFunc(p.figures.OneByOne, func(x, y plan.Pinned) int {
		if x.Sizes != y.Sizes {
			return y.Sizes - x.Sizes
		}
		return strings.Compare(x.Reason, y.Reason)
	})
	return nil
}

// prove makes the promise for a box. last is the plan of its upper corner, if
// it was made already, and why what was not proved of the box around it.
func (b *boxes) prove(ctx context.Context, box []span, last *corner, why string) error {
	if count(box) <= b.options.limits.few {
		return b.each(ctx, box, last, why)
	}
	dims := b.promise.sizes.dims
	for i, s := range box {
		if s.lo < s.hi && dims[i].of(s, s.lo) == 0 {
			return b.halves(ctx, box, i, s.lo, last, why)
		}
	}
	if last == nil {
		var err error
		if last, err = b.plan(ctx, b.upper(box), ""); err != nil {
			return err
		}
	}
	if last.exe == nil && b.refuses(box) {
		b.promise.figures.Refused += count(box) - 1
		return nil
	}
	why, open, err := b.over(ctx, box, last)
	if err != nil || why == "" {
		return err
	}
	if slices.Contains(never, why) {
		return b.each(ctx, box, last, why)
	}
	for i, s := range box {
		if s.lo < s.hi && (dims[i].of(s, s.lo) == 1 || s.step > 1 && s.lo <= 1) { // a quotient may be 0 or 1
			return b.halves(ctx, box, i, s.lo, last, why)
		}
	}
	var along []string
	if open != nil {
		if along = open.Along; b.residues(box, open.Modulus) >= 0 {
			return b.classes(ctx, box, b.residues(box, open.Modulus), open.Modulus, last, why)
		}
	}
	i := b.longest(box, along)
	return b.halves(ctx, box, i, box[i].lo+(box[i].hi-box[i].lo)/2, last, why)
}

// mostClasses is the most classes that a dimension is cut into at a time.
const mostClasses = 16

// residues returns a dimension whose sizes are to be cut into classes, because
// what was not proved depends on the rest of a division, -1 for none.
func (b *boxes) residues(box []span, modulus map[string]int64) int {
	for i, s := range box {
		if m := modulus[b.promise.sizes.dims[i].name]; m > 1 && m <= mostClasses && int64(s.hi-s.lo) > 2*m {
			return i
		}
	}
	return -1
}

// classes proves the parts of a box whose sizes of dimension i leave the same
// rest.
func (b *boxes) classes(ctx context.Context, box []span, i int, modulus map[string]int64, last *corner, why string) error {
	s, m := box[i], int(modulus[b.promise.sizes.dims[i].name])
	for r := range m {
		// The class of the largest size comes first.
		rest := ((s.hi-s.lo-r)%m + m) % m
		class := slices.Clone(box)
		class[i] = span{hi: (s.hi - s.lo - rest) / m, base: s.base + s.step*(s.lo+rest), step: s.step * m}
		if err := b.prove(ctx, class, last, why); err != nil {
			return err
		}
		last = nil
	}
	return nil
}

// longest returns the dimension with the most sizes of a box, among those that
// are named if one of them has several.
func (b *boxes) longest(box []span, along []string) int {
	best, most := 0, -1
	for i, s := range box {
		n := s.hi - s.lo
		if n > 0 && slices.Contains(along, b.promise.sizes.dims[i].name) {
			n += math.MaxInt / 2
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// halves proves the parts of a box above and up to a size of dimension i. The
// smaller sizes come first where the model refuses the largest: the structures
// that it has for them show which others it refuses.
func (b *boxes) halves(ctx context.Context, box []span, i, cut int, last *corner, why string) error {
	above, below := slices.Clone(box), slices.Clone(box)
	above[i].lo, below[i].hi = cut+1, cut
	if last != nil && last.exe == nil {
		if err := b.prove(ctx, below, nil, why); err != nil {
			return err
		}
		return b.prove(ctx, above, last, why)
	}
	if err := b.prove(ctx, above, last, why); err != nil {
		return err
	}
	return b.prove(ctx, below, nil, why)
}

// count returns the number of sizes of a box.
func count(box []span) int {
	n := 1
	for _, s := range box {
		k := s.hi - s.lo + 1
		if n > math.MaxInt/k {
			return math.MaxInt
		}
		n *= k
	}
	return n
}

// upper returns the largest sizes of a box.
func (b *boxes) upper(box []span) []int {
	at := make([]int, len(box))
	for i, s := range box {
		at[i] = b.promise.sizes.dims[i].of(s, s.hi)
	}
	return at
}

// each plans every size of a box.
func (b *boxes) each(ctx context.Context, box []span, last *corner, why string) error {
	if n := count(box); n > b.options.limits.most-b.planned {
		b.reasons[why] += min(n, math.MaxInt/2)
		return b.tooMany()
	}
	at := make([]int, len(box))
	var next func(i int) error
	next = func(i int) error {
		if i < len(box) {
			for n := box[i].hi; n >= box[i].lo; n-- {
				at[i] = b.promise.sizes.dims[i].of(box[i], n)
				if err := next(i + 1); err != nil {
					return err
				}
			}
			return nil
		}
		if last != nil && slices.Equal(at, last.at) {
			b.reasons[why]++
			return nil
		}
		_, err := b.plan(ctx, at, why)
		return err
	}
	return next(0)
}

// plan plans one size. why says why it is not a part of a box, "" where that is
// not known yet.
func (b *boxes) plan(ctx context.Context, at []int, why string) (*corner, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended.Error(ctx)
	}
	if b.planned++; b.planned > b.options.limits.most {
		return nil, b.tooMany()
	}
	if why != "" {
		b.reasons[why]++
	}
	exe, err := b.model.promiseSize(ctx, b.promise, at, b.options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.promise.figures.Where(at), err)
	}
	c := &corner{at: slices.Clone(at), exe: exe}
	if list := b.promise.structures.list; exe != nil && len(list) > 0 && list[0].Program() == exe.Program {
		c.structure = list[0] // the one used last
	}
	return c, nil
}

// tooMany is the error of ranges of which too few sizes are proved by
// expressions.
func (b *boxes) tooMany() error {
	var list []string
	reasons := slices.SortedFunc(maps.Keys(b.reasons), func(x, y string) int { return b.reasons[y] - b.reasons[x] })
	for _, reason := range reasons[:min(len(reasons), 3)] {
		list = append(list, fmt.Sprintf("%s: %d", reason, b.reasons[reason]))
	}
	total, factors := b.promise.sizes.total()
	return fmt.Errorf("got %.0f sizes (%s), of which too many are not proved together, want at most %d that are proved each by itself. What is not proved for a range, and of how many sizes: %s. Fewer sizes, by WithSizes or smaller bounds, can be promised: %w",
		total, factors, b.options.limits.most, strings.Join(list, "; "), ErrUnsupported)
}

// never are what keeps every box of a structure from being proved.
var never = []string{"a branch", "a loop", "possible types", "the value of an input", "sizes that depend on data", ownProgram}

const ownProgram = "a program of its own"

// over proves that the plan of the upper corner of a box is one for all of its
// sizes. why says what is not proved, "" if all is, and the formulas more about
// it, where it is no fault of the corner.
func (b *boxes) over(ctx context.Context, box []span, last *corner) (why string, open *pass.Formulas, err error) {
	switch {
	case last.exe == nil:
		return "the largest sizes are refused", nil, nil
	case last.structure == nil:
		return ownProgram, nil, nil
	}
	p, n := b.promise, count(box)
	params, ranges := b.expressions(box)
	b.model.compiling.Lock()
	f, why := last.structure.Over(params, ranges)
	x := &scratchOver{Formulas: f, sizer: last.exe.NewSizer(), dims: p.sizes.dims, box: box, sizes: map[string]int64{}}
	if why == "" {
		x.best = p.figures.Scratch.Bytes / int64(p.figures.Threads)
		why = x.search(ctx)
	}
	b.model.compiling.Unlock()
	if ctx.Err() != nil {
		return "", nil, ended.Error(ctx)
	}
	if why != "" {
		return why, f, nil
	}
	p.figures.Sizes += n - 1
	p.figures.Boxes++
	p.figures.ByExpressions += n - 1
	threads := int64(p.figures.Threads)
	if x.at != nil {
		if err := b.raiseScratch(ctx, x, last); err != nil {
			return "", nil, err
		}
	}
	if x.bound*threads > p.figures.Scratch.Bytes {
		p.figures.Scratch.Bytes, p.figures.Scratch.Bound = x.bound*threads, true
	}
	proof := last.exe.Proof()
	if most := proof.ArenaBytes + proof.IOBytes + p.figures.Scratch.Bytes; p.figures.Worst.Raise(most, last.at) {
		p.figures.Worst.Bound = most > proof.ArenaBytes+proof.IOBytes+proof.ScratchPerThread*threads
	}
	return "", nil, b.corners(ctx, box)
}

// expressions returns the dimensions of the inputs over a box, and the ranges
// of their symbols.
func (b *boxes) expressions(box []span) (params [][]*symbolic.Expr, ranges symbolic.Box) {
	sizes := b.promise.sizes
	ranges = symbolic.Box{}
	of := make([]*symbolic.Expr, len(box))
	for i, s := range box {
		d := &sizes.dims[i]
		of[i] = symbolic.Symbol(d.name)
		ranges[d.name] = symbolic.Range{Lo: int64(d.of(s, s.lo)), Hi: int64(d.of(s, s.hi))}
		if first, stride, ok := d.line(s); ok {
			of[i] = of[i].Mul(symbolic.Const(int64(stride))).Add(symbolic.Const(int64(first)))
			ranges[d.name] = symbolic.Range{Lo: int64(s.lo), Hi: int64(s.hi)}
		}
	}
	for _, places := range sizes.places {
		var dims []*symbolic.Expr
		for _, at := range places {
			sum := symbolic.Const(int64(at.fixed))
			for _, i := range at.terms {
				sum = sum.Add(of[i])
			}
			dims = append(dims, sum)
		}
		params = append(params, dims)
	}
	return params, ranges
}

// refuses reports whether the model is proved to refuse all sizes of a box: a
// call does that some structure has come to.
func (b *boxes) refuses(box []span) bool {
	b.model.compiling.Lock()
	defer b.model.compiling.Unlock()
	params, ranges := b.expressions(box)
	return slices.ContainsFunc(b.promise.structures.list, func(s *structure) bool { return s.Refuses(params, ranges) })
}

// raiseScratch raises the promised scratch to that of a size in a box. Unless
// the plan of this size takes as much, no size is known to.
func (b *boxes) raiseScratch(ctx context.Context, x *scratchOver, last *corner) error {
	p, threads := b.promise, int64(b.promise.figures.Threads)
	reached := slices.Equal(x.at, last.at) && last.exe.Proof().ScratchPerThread == x.best
	if !reached {
		types, err := p.sizes.types(x.at)
		if err != nil {
			return err
		}
		exe, err := b.model.planSize(ctx, types, b.options)
		if err != nil {
			return fmt.Errorf("%s: %w", p.figures.Where(x.at), err)
		}
		if exe != nil {
			reached = exe.Proof().ScratchPerThread == x.best
			p.holdings.Add(exe)
			exe.Yield()
		}
	}
	p.figures.Scratch.Raise(x.best*threads, x.at)
	p.figures.Scratch.Bound = !reached
	return nil
}

// mostLowered is the most dimensions of several sizes for which all corners of
// a box are planned.
const mostLowered = 6

// otherCorners lists the corners of a box but the upper one, each as the set of
// the dimensions that have their smallest size there, by bit. Of a box with
// several sizes of many dimensions, it lists those that lower one dimension,
// and the one that lowers all.
func otherCorners(box []span) (corners []uint64) {
	all, open := uint64(0), 0
	for i, s := range box[:min(len(box), 64)] {
		if s.lo == s.hi {
			continue
		}
		all |= 1 << i
		corners = append(corners, 1<<i)
		open++
	}
	switch {
	case open > mostLowered:
		return append(corners, all)
	case open > 0:
		corners = corners[:0]
		for which := all; which != 0; which = (which - 1) & all {
			corners = append(corners, which)
		}
	}
	return corners
}

// corners plans the other corners of a box that was proved, and compares them
// with the promise: neither the plans nor their proofs use expressions.
func (b *boxes) corners(ctx context.Context, box []span) error {
	p := b.promise
	for _, which := range otherCorners(box) {
		at := make([]int, len(box))
		for i, s := range box {
			n := s.hi
			if which>>i&1 != 0 {
				n = s.lo
			}
			at[i] = p.sizes.dims[i].of(s, n)
		}
		types, err := p.sizes.types(at)
		if err != nil {
			continue
		}
		exe, err := b.model.planSize(ctx, types, b.options)
		if exe == nil && err == nil {
			continue // the model refuses it
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.figures.Where(at), err)
		}
		proof := exe.Proof()
		p.holdings.Add(exe)
		exe.Yield()
		if proof.ArenaBytes > p.figures.Arena.Bytes || proof.IOBytes > p.figures.IO.Bytes || proof.ScratchPerThread*int64(p.figures.Threads) > p.figures.Scratch.Bytes {
			return fmt.Errorf("BUG: the plan for %s takes more than was proved for a range with it: %+v", p.figures.Where(at), proof)
		}
	}
	return nil
}

// total returns how many sizes there are, zeros aside, and of which dimensions.
func (s *sizes) total() (total float64, factors string) {
	total = 1
	for i, d := range s.dims {
		n := d.count()
		total *= float64(n)
		if i > 0 {
			factors += " × "
		}
		factors += fmt.Sprintf("%d of %q", n, d.name)
	}
	return total, factors
}

// planSize makes the executable of inputs of these types, nil where the model
// refuses them.
func (m *Model) planSize(ctx context.Context, types []op.Type, o sessionOptions) (*exec.Executable, error) {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	exe, _, err := m.compile(ctx, target{types: types}, o)
	if err != nil && refused(err) {
		return nil, nil
	}
	return exe, err
}
