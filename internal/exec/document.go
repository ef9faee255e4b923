package exec

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// document is the plan of an executable, written when it is read first.
type document struct {
	once sync.Once
	plan *plan.Plan
	err  error
}

// Plan returns the plan, which must not be changed. The first call writes
// and proves the document, and may read the weights' bytes, so the same weights
// must not be packed at the same time. An error is a fault of Tenure.
func (e *Executable) Plan() (*plan.Plan, error) {
	e.document.once.Do(func() { e.document.plan, e.document.err = e.structure.document(e) })
	return e.document.plan, e.document.err
}

// document lowers the program once more, now for a reader.
func (s *structure) document(e *Executable) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, p := s.lowering, s.program
	l.listing = true
	defer func() { l.listing = false }()
	if err := l.lower(e.types, ir.Known(e.weights)); err != nil {
		return nil, err
	}
	problem := l.problem()
	l.settle(e.offsets)
	d := l.document(problem, e, s.options)
	if !slices.Equal(e.types, s.types) {
		p = p.With(e.types)
		d.Model = p.Hash()
	}
	if err := check.Check(p, d, e.weights); err != nil {
		return nil, fmt.Errorf("BUG: the plan does not hold: %w", err)
	}
	return d, nil
}

// document writes the plan down.
func (l *lowering) document(problem *plan.Problem, e *Executable, o Options) *plan.Plan {
	d := &plan.Plan{
		Format:          plan.Format,
		Model:           l.program.Hash(),
		ArenaBytes:      e.ArenaBytes,
		Threads:         max(o.Threads, 1),
		MaxConcurrent:   max(o.MaxConcurrent, 1),
		Unpromised:      l.unpromised(),
		LowerBoundBytes: mostLive(problem),
		InPlace:         slices.Clone(l.inPlace),
		Declined:        l.allDeclined(o.Declined),
		Copies:          l.ordered(o.Copies),
		Packed:          e.packing.report,
	}
	for _, v := range l.program.Body.Params {
		d.Shapes = append(d.Shapes, plan.Shape{Name: v.Name, Type: l.types.Of(v).String(), Donated: v.Donated})
		d.IOBytes += l.of(v).size
	}
	for _, v := range l.program.Body.Results {
		if l.of(v).storage.space == plan.SpaceOutput {
			d.IOBytes += l.of(v).size
		}
	}
	for k, c := range l.calls {
		d.Steps = append(d.Steps, plan.Step{Call: k, Op: c.Op.Name, Node: c.Node, Reads: c.OperandIDs(), Scratch: e.scratch[k], Moved: l.moved(k)})
		d.ScratchPerThread = max(d.ScratchPerThread, e.scratch[k])
	}
	d.ScratchBytes = d.ScratchPerThread * int64(d.Threads)
	for _, w := range d.Packed {
		d.WeightBytes += w.Bytes - w.Unloaded
	}
	l.documentValues(d)
	d.Peak = peakOf(d)
	return d
}

// moved returns how many bytes a call that computes nothing writes: those of
// its results, but for parts that are there and for views.
func (l *lowering) moved(k int) (sum int64) {
	c := &l.calls[k]
	if !c.Op.Moves() || !c.static || len(c.Regions) > 0 || l.isPlacedView(k) {
		return 0
	}
	for _, v := range c.Results {
		if v != nil {
			sum += l.of(v).size
		}
	}
	for i := range c.Args {
		if l.isPart(k, i) && l.liesInPart(k, i) {
			sum -= l.of(c.Args[i].Value).size
		}
	}
	return sum
}

// mostLive returns the most bytes of the arena that live at one time.
func mostLive(p *plan.Problem) (most int64) {
	for _, level := range p.LiveBytes() {
		most = max(most, level.Bytes)
	}
	return most
}

// allDeclined lists the operands that the passes and the lowering declined to
// reuse, in the program's order, each once per call, with its bytes for these
// sizes.
func (l *lowering) allDeclined(before []plan.Declined) []plan.Declined {
	list := slices.Concat(before, l.declined)
	for i := range list {
		d := &list[i]
		d.Bytes = l.of(l.calls[d.Call].Args[d.Operand].Value).size
	}
	slices.SortStableFunc(list, func(a, b plan.Declined) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Operand, b.Operand))
	})
	return slices.CompactFunc(list, func(a, b plan.Declined) bool { return a.Call == b.Call && a.Operand == b.Operand })
}

// ordered returns the copies in the program's order.
func (l *lowering) ordered(copies []plan.Copy) []plan.Copy {
	copies = slices.Clone(copies)
	at := map[string]int{}
	for _, v := range l.defs {
		at[v.Name] = l.index.Def(v)
		for i := range copies {
			if copies[i].Value == v.Name && l.isStatic(v) {
				copies[i].Bytes = l.of(v).size
			}
		}
	}
	slices.SortStableFunc(copies, func(a, b plan.Copy) int { return cmp.Compare(at[a.Value], at[b.Value]) })
	return copies
}

// documentValues lists where the values lie and when.
func (l *lowering) documentValues(d *plan.Plan) {
	add := func(v *ir.Value) {
		at := l.of(v).place
		start, end := l.life(v)
		e := plan.Value{ID: v.ID, Name: v.Name, Type: l.types.Of(v).String(), Space: at.storage.space, Arg: at.storage.arg,
			Offset: at.offset, Size: at.size, Start: start, End: end}
		if e.Space == plan.SpaceArena || e.Space == plan.SpaceInput {
			e.Offset += at.storage.start
		}
		if at.layout != nil {
			for _, n := range at.layout.Strides() {
				e.Strides = append(e.Strides, int64(n))
			}
		}
		d.Values = append(d.Values, e)
	}
	for _, v := range l.program.Body.Params {
		add(v)
	}
	for _, v := range l.program.Weights {
		add(v)
		d.WeightBytes += l.of(v).size
	}
	for _, c := range l.calls {
		for v := range c.Defs() {
			add(v)
		}
	}
}
