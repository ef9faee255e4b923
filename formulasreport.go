package tenure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// report writes down what a survey found.
func (s *survey) report() *plan.Formulas {
	f := &plan.Formulas{Sizes: len(s.order), Every: s.every, Structures: []plan.StructureFormulas{}, Pinned: []plan.Exception{}, Refused: []plan.Exception{}, Lines: []plan.Line{}}
	for i, name := range s.dims {
		f.Dims = append(f.Dims, plan.DimRange{Name: name, Lo: s.ranges[i].Lo, Hi: s.ranges[i].Hi})
	}
	refused := map[string]int{} // places in f.Refused
	for _, x := range s.order {
		if x.Failed != "" {
			// Errors of one kind differ in their numbers.
			kind := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, x.Failed)
			if _, ok := refused[kind]; !ok {
				refused[kind] = len(f.Refused)
				f.Refused = append(f.Refused, plan.Exception{Reason: x.Failed, First: x.text})
			}
			f.Refused[refused[kind]].Sizes++
			continue
		}
		if x.PerRun > f.Worst.PerRun || f.Worst.Sizes == "" {
			f.Worst = x.FiguresAt
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.pinned)) {
		f.Pinned = append(f.Pinned, *s.pinned[reason])
	}
	for _, st := range s.structures {
		f.Structures = append(f.Structures, st.report(s))
	}
	for i, line := range s.lines {
		if line != nil {
			f.Lines = append(f.Lines, s.line(i, line))
		}
	}
	return f
}

func (f *formulated) report(s *survey) plan.StructureFormulas {
	r := plan.StructureFormulas{Sizes: f.sizes, First: f.first, Exact: f.exact, Over: f.over, Moments: []plan.Moment{}, Underived: []string{}}
	text := func(e *symbolic.Expr) string {
		if e == nil {
			return ""
		}
		return e.String()
	}
	r.Inputs, r.Outputs = text(f.inputs), text(f.outputs)
	if !f.differs {
		r.Weights = text(f.weights.Add(symbolic.Const(f.packed)))
	}
	if !f.derived {
		r.Underived = append(r.Underived, f.Underived...)
		if len(f.Underived) == 0 {
			r.Underived = append(r.Underived, "a program with branches")
		}
		return r
	}
	values := map[int]*ir.Value{}
	f.program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, v := range c.Results {
			if v != nil {
				values[v.ID] = v
			}
		}
	})
	for i, m := range f.moments {
		if f.worst[i] == 0 {
			continue
		}
		moment := plan.Moment{Where: m.Call.Where(), Bytes: f.bytes[i].String(), Sizes: f.worst[i], First: f.firsts[i]}
		at := map[string]int64{}
		for j, name := range s.dims {
			at[name] = int64(s.ranges[j].Hi)
		}
		ids := slices.Clone(m.Values)
		slices.SortStableFunc(ids, func(a, b int) int {
			x, _ := f.Bytes(a).Eval(at)
			y, _ := f.Bytes(b).Eval(at)
			return cmp.Compare(y, x)
		})
		for _, id := range ids {
			moment.Values = append(moment.Values, fmt.Sprintf("%s  %s", f.Bytes(id), values[id].Name))
		}
		r.Moments = append(r.Moments, moment)
	}
	return r
}

// numberOf returns the place of a moment among those that the report lists.
func (f *formulated) numberOf(moment int) int {
	n := 0
	for i := range moment {
		if f.worst[i] > 0 {
			n++
		}
	}
	return n
}

// line is the figures along a dimension, with the sizes at which something
// changes.
func (s *survey) line(i int, found []*surveyed) plan.Line {
	l := plan.Line{Dim: s.dims[i], Breakpoints: []plan.Breakpoint{}, Scratch: []plan.Segment{}}
	if len(s.dims) > 1 {
		l.Others = s.text(found[0].sizes, s.dims[i])
	}
	var sizes []int
	var scratch []int64
	for _, x := range found {
		p := x.FiguresAt
		p.Size = int(x.sizes[s.dims[i]])
		if p.Structure >= 0 && p.Moment >= 0 {
			p.Moment = s.structures[p.Structure].numberOf(p.Moment)
		}
		if n := len(l.Points); n == 0 || s.condition(l.Points[n-1]) != s.condition(p) {
			l.Breakpoints = append(l.Breakpoints, plan.Breakpoint{Size: p.Size, What: s.condition(p)})
		}
		l.Points = append(l.Points, p)
		if p.Failed == "" {
			sizes, scratch = append(sizes, p.Size), append(scratch, p.Scratch)
		}
	}
	l.Scratch = append(l.Scratch, plan.Segments(sizes, scratch)...)
	return l
}

// condition says by which formula the arena of a set of sizes goes.
func (s *survey) condition(p plan.FiguresAt) string {
	switch {
	case p.Failed != "":
		return "no plan"
	case p.Structure < 0:
		return "a program for these sizes alone"
	case p.Moment < 0:
		return fmt.Sprintf("structure %d", p.Structure+1)
	}
	return fmt.Sprintf("structure %d, arena by %s", p.Structure+1, string(rune('A'+min(p.Moment, 25))))
}
