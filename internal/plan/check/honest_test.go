package check_test

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// honest sets the figures and claims of the plan, whose places and steps may be
// anything, to the true ones. It counts every block at every moment.
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
	stateLives(d, calls, at, ir.Known(weights))
	for i := range d.Values {
		if v := &d.Values[i]; v.Space != plan.SpaceInput && v.Space != plan.SpaceOutput {
			v.Arg = 0
		}
		if v := &d.Values[i]; v.Space == plan.SpaceArena && v.Size > 0 {
			d.ArenaBytes = max(d.ArenaBytes, (v.Offset+v.Extent()+63)/64*64)
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
				kind := kindIn(c, sig, i, r, at[v], at[a.Value])
				if kind != 0 && !slices.ContainsFunc(d.InPlace, func(e plan.InPlace) bool { return e.Call == k && e.Result == r }) {
					d.InPlace = append(d.InPlace, plan.InPlace{Call: k, Operand: i, Result: r, Value: v.Name, Of: a.Value.Name,
						Kind: plan.AliasKind(kind.String()), Bytes: bytesOf(v)})
				}
			}
		}
		for i, a := range c.Args {
			if a.Value == nil || c.Results[0] == nil {
				continue
			}
			if x, y := at[c.Results[0]], at[a.Value]; liesInPart(c, sig, i, x, y) {
				d.InPlace = append(d.InPlace, plan.InPlace{Call: k, Operand: i, Value: x.Name, Of: y.Name, Kind: plan.AliasPart, Bytes: bytesOf(a.Value)})
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

// partly reports whether some results of a call are views in their operand's
// bytes, and others are not.
func partly(c *ir.Call, at map[*ir.Value]*plan.Value, known func(*ir.Value) ([]byte, bool)) bool {
	views, others, sig := false, false, c.Sig(known)
	for r, v := range c.Results {
		if v == nil || bytesOf(v) == 0 || len(c.Regions) > 0 {
			continue
		}
		is := false
		for i, a := range c.Args {
			is = is || a.Value != nil && kindIn(c, sig, i, r, at[v], at[a.Value]) == op.View
		}
		views, others = views || is, others || !is
	}
	return views && others
}

// stateLives fills in Start and End, going over everything until nothing
// changes.
func stateLives(d *plan.Plan, calls []*ir.Call, at map[*ir.Value]*plan.Value, known func(*ir.Value) ([]byte, bool)) {
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
					if v != nil && !partly(c, at, known) && shareBytes(at[v], at[a.Value]) {
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
// all the time, and a value in the bytes of an input, output or weight stays to
// the end.
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
		for block := v.Offset / 64; block*64 < v.Offset+v.Extent(); block++ {
			taken[block] = true
		}
	}
	return int64(64 * len(taken)), live
}
