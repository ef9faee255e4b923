package ir

import (
	"slices"
)

// state is what a variable has at some place of the program.
type state struct {
	now, from *Value
	rest      *rest
}

// control rewrites a call with regions. What these write of values around them
// becomes results of the call and, of a loop, its state.
func (f *functionalizer) control(c *Call) {
	for i := range c.Args {
		if c.Args[i].View {
			f.fail(c, 24, "%s takes operand %d as a view: a branch or a loop takes values, want no mark", c, i)
		}
		c.Args[i].Value = f.read(c.Args[i].Value)
	}
	for _, x := range slices.Clone(f.order) {
		f.flush(x)
	}
	outer := f.writtenIn(c)
	carried := len(c.Results) // of the results: new ones are behind them
	switch {
	case c.Op.Branch:
	case c.Op.Loop:
		for len(c.Args) < LoopArgs {
			c.Args = append(c.Args, Operand{})
		}
		carried = len(c.Args) - LoopArgs
		for _, x := range outer {
			c.Args = append(c.Args, Operand{Value: x.now})
		}
	case len(outer) > 0 || f.writesParams(c):
		f.fail(c, 24, "%s writes values that it does not define, in a region that is neither a branch nor a loop: want them returned by the region", c)
		return
	}
	saved := f.save()
	for _, region := range c.Regions {
		at := carried
		if c.Op.Loop {
			at++ // behind the condition
			for _, x := range outer {
				p := f.value(Param, x.value.Name, x.value.Type)
				p.Index = len(region.Params)
				region.Params = append(region.Params, p)
				x.now = p
			}
		}
		now := f.block(region, outer)
		region.Results = slices.Insert(region.Results, min(at, len(region.Results)), now...)
		f.restore(saved)
	}
	var results []*Value
	for _, x := range outer {
		r := f.value(Result, x.value.Name, x.value.Type)
		r.Def, x.now = c, r
		results = append(results, r)
	}
	c.Results = slices.Insert(c.Results, carried, results...)
	for i, v := range c.Results {
		if v != nil {
			v.Index = i
		}
	}
	f.out = append(f.out, c)
}

// writtenIn returns the roots that the regions of a call write and do not
// define.
func (f *functionalizer) writtenIn(c *Call) (outer []*variable) {
	defined := definedIn(c)
	for _, region := range c.Regions {
		walk(region, func(_ *Block, in *Call) {
			for _, v := range in.Writes {
				if v == nil {
					continue
				}
				for f.parents[v] != nil {
					v = f.parents[v]
				}
				if x := f.variable(v); !defined[v] && !slices.Contains(outer, x) {
					outer = append(outer, x)
				}
			}
		})
	}
	return outer
}

// writesParams reports whether the regions of a call write their parameters.
func (f *functionalizer) writesParams(c *Call) (writes bool) {
	for _, region := range c.Regions {
		walk(region, func(_ *Block, in *Call) {
			for _, v := range in.Writes {
				for v != nil && f.parents[v] != nil {
					v = f.parents[v]
				}
				writes = writes || slices.Contains(region.Params, v) && v != nil
			}
		})
	}
	return writes
}

// definedIn returns the values that the regions of a call define.
func definedIn(c *Call) map[*Value]bool {
	defined := map[*Value]bool{}
	note := func(values []*Value) {
		for _, v := range values {
			if v != nil {
				defined[v] = true
			}
		}
	}
	for _, region := range c.Regions {
		note(region.Params)
		walk(region, func(_ *Block, in *Call) {
			note(in.Results)
			for _, r := range in.Regions {
				note(r.Params)
			}
		})
	}
	return defined
}

// save returns the state of all variables.
func (f *functionalizer) save() []state {
	list := make([]state, len(f.order))
	for i, x := range f.order {
		list[i] = state{x.now, x.from, x.rest}
	}
	return list
}

// restore ends a region: what it made is not visible any more.
func (f *functionalizer) restore(list []state) {
	for i, x := range f.order[:len(list)] {
		x.now, x.from, x.rest, x.dirty = list[i].now, list[i].from, list[i].rest, nil
	}
	for _, x := range f.order[len(list):] {
		delete(f.vars, x.value)
	}
	f.order = f.order[:len(list)]
}
