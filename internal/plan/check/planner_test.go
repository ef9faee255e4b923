package check_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// A planner makes plans for the tests: it places values one by one, first
// fit, and has nothing in common with what makes real plans. choose(n)
// returns a number below n wherever there is a choice; 0 is the choice that
// saves most.
type planner struct {
	p      *ir.Program
	known  func(*ir.Value) ([]byte, bool)
	choose func(n int) int
	calls  []*ir.Call
	step   map[*ir.Call]int
	places map[*ir.Value]*plan.Value
	placed []*ir.Value
	copied map[*ir.Call]bool
	bump   bool // nothing of the arena is used twice, but by views and in place
	ends   map[*ir.Value]plan.Time
	inner  map[*ir.Call]*ir.Block
	home   map[*ir.Value]plan.Value // places that are given from outside: outputs, results of branches
}

// planOf returns a valid plan, with all figures. Program results have to be
// values of their own, and so have results of regions.
func planOf(p *ir.Program, weights ir.Weights, choose func(n int) int) *plan.Plan {
	l := &planner{p: p, known: ir.Known(weights), choose: choose, step: map[*ir.Call]int{},
		places: map[*ir.Value]*plan.Value{}, home: map[*ir.Value]plan.Value{}, copied: map[*ir.Call]bool{},
		ends: map[*ir.Value]plan.Time{}, inner: map[*ir.Call]*ir.Block{}}
	l.bump = choose(4) == 3
	p.Walk(func(b *ir.Block, c *ir.Call) {
		l.inner[c] = b
		l.step[c] = len(l.calls)
		l.calls = append(l.calls, c)
	})
	for i, v := range p.Body.Params {
		l.put(v, plan.Value{Space: plan.SpaceInput, Arg: i})
	}
	for _, v := range p.Weights {
		l.put(v, plan.Value{Space: plan.SpaceWeight})
	}
	for i, v := range p.Body.Results {
		l.home[v] = plan.Value{Space: plan.SpaceOutput, Arg: i}
	}
	for n, c := range slices.Backward(l.calls) {
		l.placeParts(n, c)
	}
	for _, c := range l.calls {
		for r, v := range c.Results {
			if v != nil {
				l.place(c, r, v)
			}
		}
		for _, region := range c.Regions {
			for i, y := range region.Results {
				if c.Results[i] != nil {
					l.home[y] = *l.places[c.Results[i]]
				}
			}
		}
	}
	d := &plan.Plan{Format: plan.Format, Model: p.Hash(), Threads: 1, MaxConcurrent: 1}
	for _, v := range p.Body.Params {
		d.Shapes = append(d.Shapes, plan.Shape{Name: v.Name, Type: v.Type.String(), Donated: v.Donated})
	}
	for k, c := range l.calls {
		d.Steps = append(d.Steps, plan.Step{Call: k, Op: c.Op.Name, Node: c.Node, Reads: c.OperandIDs()})
	}
	for _, v := range l.placed {
		d.Values = append(d.Values, *l.places[v])
	}
	honest(p, d, weights)
	return d
}

func bytesOf(v *ir.Value) int64 {
	n, err := v.Type.Bytes()
	if err != nil {
		panic(err)
	}
	return int64(n)
}

func (l *planner) put(v *ir.Value, at plan.Value) {
	at.ID, at.Name, at.Type, at.Size = v.ID, v.Name, v.Type.String(), bytesOf(v)
	l.places[v] = &at
	l.placed = append(l.placed, v)
}

// until returns when v is read last, in half-steps of the program's order.
func (l *planner) until(v *ir.Value) plan.Time {
	if _, known := l.ends[v]; !known {
		l.ends[v] = l.lastRead(v)
	}
	return l.ends[v]
}

func (l *planner) lastRead(v *ir.Value) plan.Time {
	end := plan.Time(2 * len(l.calls))
	for _, r := range l.p.Body.Results {
		if r == v {
			return end + 2
		}
	}
	end = 0
	if v.Def != nil {
		end = plan.Time(2*l.step[v.Def] + 2)
	}
	for k, c := range l.calls {
		for _, a := range c.Args {
			if a.Value == v {
				end = max(end, plan.Time(2*k+2))
			}
		}
		for _, region := range c.Regions {
			for i, y := range region.Results {
				if y == v && c.Results[i] != nil {
					end = max(end, l.until(c.Results[i]))
				}
				if c.Results[i] == v {
					end = max(end, plan.Time(2*(k+inside(c))+2))
				}
			}
		}
	}
	return end
}

// inside counts the calls in the regions of a call.
func inside(c *ir.Call) (n int) {
	for _, region := range c.Regions {
		for _, call := range region.Calls {
			n += 1 + inside(call)
		}
	}
	return n
}

// placeParts may give the operands of a call places in that of its result,
// which is far from all others unless it is an output.
func (l *planner) placeParts(n int, c *ir.Call) {
	sig := c.Sig(l.known)
	starts := sig.Parts(nil)
	if starts == nil || l.choose(4) == 3 {
		return
	}
	rank := c.Results[0].Type.Shape.Rank()
	to, ok := l.home[c.Results[0]]
	if !ok {
		to = plan.Value{Space: plan.SpaceArena, Offset: 1 << 16 * int64(n+1)}
	}
	for i, a := range c.Args {
		v := a.Value
		if _, known := l.home[v]; known || v.Def == nil || len(v.Def.Regions) > 0 || l.choose(4) == 3 {
			continue
		}
		if l.isView(v.Def, v.Index) || l.inner[v.Def] != l.inner[c] || bytesOf(v) == 0 || starts[i*rank] < 0 {
			continue
		}
		l.home[v], l.home[c.Results[0]] = within(to, c.Results[0].Type, v.Type, starts[i*rank:(i+1)*rank]), to
	}
}

// isView reports whether result r of a call may be a view or box of an operand.
func (l *planner) isView(c *ir.Call, r int) bool {
	sig := c.Sig(l.known)
	if arg, _ := sig.ViewOf(r); arg >= 0 {
		return true
	}
	return sig.IsStatic() && sig.BoxOf(r, make([]int, c.Results[r].Type.Shape.Rank())) >= 0
}

// viewIn returns the place of result r as a view or box of an operand.
func (l *planner) viewIn(c *ir.Call, r int) (at plan.Value, ok bool) {
	sig, v := c.Sig(l.known), c.Results[r]
	if arg, offset := sig.ViewOf(r); arg >= 0 {
		of := c.Args[arg].Value
		at = *l.places[of]
		if at.Strides == nil || offset == 0 && bytesOf(v) == bytesOf(of) {
			at.Strides, ok = stridesIn(&at, of.Type, v.Type)
			at.Offset += int64(offset)
			return at, ok
		}
	}
	index := make([]int, v.Type.Shape.Rank())
	if arg := sig.BoxOf(r, index); arg >= 0 && bytesOf(v) > 0 {
		of := c.Args[arg].Value
		return within(*l.places[of], of.Type, v.Type, index), true
	}
	return plan.Value{}, false
}

func (l *planner) place(c *ir.Call, r int, v *ir.Value) {
	if at, ok := l.home[v]; ok {
		l.put(v, at)
		return
	}
	if l.isView(c, r) && !l.copies(c) {
		at, _ := l.viewIn(c, r)
		l.put(v, plan.Value{Space: at.Space, Arg: at.Arg, Offset: at.Offset, Strides: at.Strides})
		return
	}
	sig := c.Sig(l.known)
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		kind, offset := sig.AliasOf(i, r)
		if kind == 0 && sig.AliasAlone(i, r) == op.Narrow {
			kind = op.Narrow
		}
		from := l.places[a.Value]
		if kind == 0 || kind == op.View || kind == op.Narrow && from.Strides != nil || l.choose(4) == 3 || !l.mayOverwrite(c, i, sig, kind) {
			continue
		}
		l.put(v, plan.Value{Space: from.Space, Arg: from.Arg, Offset: from.Offset + int64(offset), Strides: from.Strides})
		return
	}
	at := plan.Value{Space: plan.SpaceArena, Size: bytesOf(v), Type: v.Type.String(), Offset: 64 * int64(l.choose(3))}
	if l.choose(6) == 1 && len(c.Regions) == 0 {
		at.Strides = l.anyStrides(v.Type)
	}
	for !l.free(c, v, &at) {
		at.Offset += 64
	}
	l.put(v, at)
}

// anyStrides returns strides of a value that is computed into a place of its
// own, nil if it has no elements. Each is a multiple of the next, so that views
// of the value have a frame with it.
func (l *planner) anyStrides(t op.Type) []int64 {
	sizes := t.Shape.Sizes()
	strides, list := make([]int64, len(sizes)), make([]int, len(sizes))
	span, step := int64(1), int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		step *= (span+step-1)/step + int64(l.choose(3))
		strides[d] = step
		span += int64(sizes[d]-1) * strides[d]
		list[d] = int(strides[d])
	}
	if t.DType.Size() == 0 || t.Shape.NumElements() == 0 || isRowMajor(sizes, list) {
		return nil
	}
	return strides
}

// copies chooses once per call: views of one call are all made or all copied.
func (l *planner) copies(c *ir.Call) bool {
	if _, chosen := l.copied[c]; !chosen {
		l.copied[c] = l.choose(4) == 3
		for r, v := range c.Results {
			if v == nil {
				continue
			}
			_, known := l.home[v]
			_, ok := l.viewIn(c, r)
			l.copied[c] = l.copied[c] || known || !ok
		}
	}
	return l.copied[c]
}

// mayOverwrite: nothing in the bytes of operand i is read after call c, nor
// by another operand.
func (l *planner) mayOverwrite(c *ir.Call, i int, sig *op.Sig, kind op.AliasKind) bool {
	x := l.places[c.Args[i].Value]
	if x.Space == plan.SpaceWeight || x.Space == plan.SpaceInput && !l.p.Body.Params[x.Arg].Donated {
		return false
	}
	for _, v := range l.placed {
		if share(l.places[v], x) && l.until(v) > plan.Time(2*l.step[c]+2) {
			return false
		}
	}
	for j, a := range c.Args {
		if j == i || a.Value == nil || !share(l.places[a.Value], x) {
			continue
		}
		other, _ := sig.AliasOf(j, 0)
		if y := l.places[a.Value]; kind != op.Same || other != op.Same || y.Offset != x.Offset || y.Size != x.Size || !slices.Equal(y.Strides, x.Strides) {
			return false
		}
	}
	for _, v := range c.Results {
		if v != nil && l.places[v] != nil && share(l.places[v], x) {
			return false
		}
	}
	return true
}

// free: no value that is needed while v is lies in the bytes.
func (l *planner) free(c *ir.Call, v *ir.Value, at *plan.Value) bool {
	for _, u := range l.placed {
		x := l.places[u]
		if share(x, at) && (l.bump || l.until(u) > plan.Time(2*l.step[c])) {
			return false
		}
	}
	return true
}

// share reports whether the extents of two values share bytes.
func share(a, b *plan.Value) bool {
	if a.Space != b.Space || a.Space == plan.SpaceWeight || a.Space != plan.SpaceArena && a.Arg != b.Arg {
		return false
	}
	return max(a.Offset, b.Offset) < min(a.Offset+a.Extent(), b.Offset+b.Extent())
}

// clonePlan copies what mutants change.
func clonePlan(d *plan.Plan) *plan.Plan {
	c := *d
	c.Shapes = append([]plan.Shape(nil), d.Shapes...)
	c.Steps = append([]plan.Step(nil), d.Steps...)
	for i := range c.Steps {
		c.Steps[i].Reads = append([]int(nil), d.Steps[i].Reads...)
	}
	c.Values = append([]plan.Value(nil), d.Values...)
	for i := range c.Values {
		c.Values[i].Strides = slices.Clone(c.Values[i].Strides)
	}
	c.InPlace = append([]plan.InPlace(nil), d.InPlace...)
	c.Peak.Live = append([]int(nil), d.Peak.Live...)
	return &c
}

// saveMost is the choice of the planner that reuses all it can; with
// shareNothing every value has bytes of its own.
func saveMost(int) int       { return 0 }
func shareNothing(n int) int { return n - 1 }

func parse(t testing.TB, text string) *ir.Program {
	t.Helper()
	p, err := ir.Parse(text, testOps)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	return p
}
