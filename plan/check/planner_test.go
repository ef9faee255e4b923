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
	home   map[*ir.Value]plan.Value // places that are given from outside: outputs, results of branches
}

// planOf returns a valid plan, with all figures. Program results have to be
// values of their own, and so have results of regions.
func planOf(p *ir.Program, weights ir.Weights, choose func(n int) int) *plan.Plan {
	l := &planner{p: p, known: ir.Known(weights), choose: choose, step: map[*ir.Call]int{},
		places: map[*ir.Value]*plan.Value{}, home: map[*ir.Value]plan.Value{}, copied: map[*ir.Call]bool{},
		ends: map[*ir.Value]plan.Time{}}
	l.bump = choose(4) == 3
	p.Walk(func(_ *ir.Block, c *ir.Call) {
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
		d.Shapes = append(d.Shapes, plan.Shape{Name: v.Name, Type: v.Type.String()})
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

func (l *planner) place(c *ir.Call, r int, v *ir.Value) {
	if at, ok := l.home[v]; ok {
		l.put(v, at)
		return
	}
	sig := c.Sig(l.known)
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		kind, offset := sig.AliasOf(i, r)
		if kind == 0 || kind == op.View && l.copies(c) || kind != op.View && (l.choose(4) == 3 || !l.mayOverwrite(c, i, sig, kind)) {
			continue
		}
		from := l.places[a.Value]
		l.put(v, plan.Value{Space: from.Space, Arg: from.Arg, Offset: from.Offset + int64(offset)})
		return
	}
	at := plan.Value{Space: plan.SpaceArena, Size: bytesOf(v), Offset: 64 * int64(l.choose(3))}
	for !l.free(c, v, &at) {
		at.Offset += 64
	}
	l.put(v, at)
}

// copies chooses once per call: views of one call are all made or all copied.
func (l *planner) copies(c *ir.Call) bool {
	if _, chosen := l.copied[c]; !chosen {
		l.copied[c] = l.choose(4) == 3
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
		if y := l.places[a.Value]; kind != op.Same || other != op.Same || y.Offset != x.Offset || y.Size != x.Size {
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

func share(a, b *plan.Value) bool {
	if a.Space != b.Space || a.Space == plan.SpaceWeight || a.Space != plan.SpaceArena && a.Arg != b.Arg {
		return false
	}
	return max(a.Offset, b.Offset) < min(a.Offset+a.Size, b.Offset+b.Size)
}

// honest gives the plan, whose places and steps may be anything, the figures
// and claims that are true of it. It counts every block at every moment.
func honest(p *ir.Program, d *plan.Plan, weights ir.Weights) {
	var calls []*ir.Call
	p.Walk(func(_ *ir.Block, c *ir.Call) { calls = append(calls, c) })
	at := entries(p, d)
	d.ArenaBytes, d.IOBytes, d.WeightBytes, d.InPlace = 0, 0, 0, nil
	for _, v := range p.Body.Params {
		d.IOBytes += bytesOf(v)
	}
	for _, v := range p.Body.Results {
		if at[v].Space == plan.SpaceOutput {
			d.IOBytes += bytesOf(v)
		}
	}
	for _, v := range p.Weights {
		d.WeightBytes += bytesOf(v)
	}
	stateLives(d, calls, at)
	for i := range d.Values {
		if v := &d.Values[i]; v.Space != plan.SpaceInput && v.Space != plan.SpaceOutput {
			v.Arg = 0
		}
		if v := &d.Values[i]; v.Space == plan.SpaceArena && v.Size > 0 {
			d.ArenaBytes = max(d.ArenaBytes, (v.Offset+v.Size+63)/64*64)
		}
	}
	for i, v := range allValues(p) {
		statedLife(d, &d.Values[i], i < len(p.Body.Params)+len(p.Weights) && v.Def == nil)
	}
	d.Peak = plan.Peak{}
	for t := range d.LastTime() {
		bytes, live := liveAt(d, t)
		if bytes > d.Peak.Bytes {
			d.Peak = plan.Peak{Step: int(t / 2), Bytes: bytes, Live: live}
		}
	}
	d.LowerBoundBytes = d.Peak.Bytes
	for k, c := range calls {
		sig := c.Sig(ir.Known(weights))
		for r, v := range c.Results {
			for i, a := range c.Args {
				if a.Value == nil || v == nil {
					continue
				}
				x, y := at[v], at[a.Value]
				kind, offset := sig.AliasOf(i, r)
				if kind != 0 && x.Space == y.Space && (x.Arg == y.Arg || x.Space == plan.SpaceArena) && x.Offset == y.Offset+int64(offset) &&
					!slices.ContainsFunc(d.InPlace, func(e plan.InPlace) bool { return e.Call == k && e.Result == r }) {
					d.InPlace = append(d.InPlace, plan.InPlace{Call: k, Operand: i, Result: r, Value: v.Name, Of: a.Value.Name,
						Kind: plan.AliasKind(kind.String()), Bytes: bytesOf(v)})
				}
			}
		}
	}
}

// entries maps the values of the program to their entries.
func entries(p *ir.Program, d *plan.Plan) map[*ir.Value]*plan.Value {
	byID := map[int]*plan.Value{}
	for i := range d.Values {
		byID[d.Values[i].ID] = &d.Values[i]
	}
	at := map[*ir.Value]*plan.Value{}
	for _, v := range allValues(p) {
		at[v] = byID[v.ID]
	}
	return at
}

func allValues(p *ir.Program) []*ir.Value {
	var all []*ir.Value
	all = append(all, p.Body.Params...)
	all = append(all, p.Weights...)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, v := range c.Results {
			if v != nil {
				all = append(all, v)
			}
		}
	})
	return all
}

// stateLives fills in Start and End, going over everything until nothing
// changes.
func stateLives(d *plan.Plan, calls []*ir.Call, at map[*ir.Value]*plan.Value) {
	for i := range d.Values {
		d.Values[i].Start, d.Values[i].End = 0, 1
	}
	for i, s := range d.Steps {
		for _, v := range calls[s.Call].Results {
			if v != nil {
				at[v].Start, at[v].End = plan.Time(2*i+1), plan.Time(2*i+2)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		extend := func(v *ir.Value, end plan.Time) {
			if at[v].End < end {
				at[v].End, changed = end, true
			}
		}
		for i, s := range d.Steps {
			c := calls[s.Call]
			for _, a := range c.Args {
				if a.Value == nil {
					continue
				}
				end := plan.Time(2*i + 2)
				for _, v := range c.Results {
					if v != nil && share(at[v], at[a.Value]) {
						end = plan.Time(2*i + 1)
					}
				}
				extend(a.Value, end)
			}
			for _, region := range c.Regions {
				for n, y := range region.Results {
					if r := c.Results[n]; r != nil {
						extend(r, plan.Time(min(2*(i+inside(c))+2, 2*len(d.Steps))))
						extend(y, at[r].End)
					}
				}
			}
		}
	}
}

// statedLife is the life that a document states: inputs and weights are there
// all the time, and what lies in the bytes of an input, output or weight stays
// to the end.
func statedLife(d *plan.Plan, v *plan.Value, given bool) {
	end := plan.Time(2 * len(d.Steps))
	switch {
	case given:
		v.Start, v.End = 0, max(end, 1)
	case v.Space != plan.SpaceArena:
		v.End = max(v.End, end)
	}
}

func liveAt(d *plan.Plan, t plan.Time) (bytes int64, live []int) {
	taken := map[int64]bool{}
	for _, v := range d.Values {
		if v.Space != plan.SpaceArena || v.Size == 0 || t < v.Start || v.End <= t {
			continue
		}
		live = append(live, v.ID)
		for block := v.Offset / 64; block*64 < v.Offset+v.Size; block++ {
			taken[block] = true
		}
	}
	return int64(64 * len(taken)), live
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
	c.InPlace = append([]plan.InPlace(nil), d.InPlace...)
	c.Peak.Live = append([]int(nil), d.Peak.Live...)
	return &c
}

// saveMost is the choice of the planner that reuses all it can; shareNothing
// gives every value bytes of its own.
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
