package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// numberDynamic numbers a value whose size depends on data.
func (l *lowering) numberDynamic(v *ir.Value) {
	l.of(v).dynamic = l.dynamic
	l.dynamic++
}

// placeDynamic places a value whose size depends on data: in as many bytes as
// it can take, if that is known, or in a buffer of its own, made at its step.
// An output has a buffer of its own in any case; where its types are known the
// plan counts the largest.
func (l *lowering) placeDynamic(v *ir.Value) {
	l.numberDynamic(v)
	p, x := l.possible.Of(v), l.of(v)
	switch {
	case p.Bytes < 0 || x.isOutput && p.Types == nil || v.Def.Op.Branch && !x.isOutput && !l.isComputedInRegions(v):
		x.place = place{storage: l.make(storage{name: v.Name, space: plan.SpaceOwn, id: -1})}
	case x.isOutput:
		x.place = place{storage: l.make(storage{name: v.Name, space: plan.SpaceOwn, id: -1, size: p.Bytes}), size: p.Bytes}
	case x.yielded.storage != nil:
		x.place = place{storage: x.yielded.storage, offset: x.yielded.offset, size: p.Bytes}
	default:
		x.place = l.newStorage(v, p.Bytes)
	}
}

// yieldDynamic lets the regions of a branch return its result r, whose size
// depends on data, in the bytes that are planned for it.
func (l *lowering) yieldDynamic(c *call, r int) {
	at := l.of(c.Results[r]).place
	if at.storage.space != plan.SpaceArena {
		return
	}
	for _, region := range c.Regions {
		l.of(region.Results[r]).yielded, at.storage.passed = at, true
	}
}

// isComputedInRegions reports whether every region of a branch computes its
// result as the value, so that it can do so in the value's bytes.
func (l *lowering) isComputedInRegions(v *ir.Value) bool {
	for _, region := range v.Def.Regions {
		y := region.Results[v.Index]
		if ir.RegionFaults(region, l.sigOf)[v.Index] != "" || !l.isStatic(y) && y.Def.Op.Branch && !l.isComputedInRegions(y) {
			return false
		}
	}
	return true
}

// dynamicScratch finds the scratch of the calls that are bound when they run,
// where the types are known that their operands can have.
func (e *Executable) dynamicScratch(l *lowering) error {
	for _, in := range e.code {
		if in.kind != run || !e.steps[in.call].dynamic {
			continue
		}
		c := e.steps[in.call].call
		for _, sig := range l.possible.Sigs(c, l.known) {
			results, ok, err := sig.Largest()
			if err != nil {
				return fmt.Errorf("%s: %w", c.Where(), err)
			}
			if !ok {
				continue
			}
			call := &op.Call{Sig: sig, Node: c.Node, In: make([]op.Arg, len(sig.Args)), Out: make([]op.Arg, len(results))}
			for i, t := range sig.Args {
				call.In[i].Type = t
			}
			for i, t := range results {
				call.Out[i].Type = t
			}
			if t, err := compute.Bind(call); err == nil { // a run that comes to it returns the error
				e.scratch[in.call] = max(e.scratch[in.call], int64(t.Scratch))
			}
		}
	}
	return nil
}

// isUnsized reports whether nothing but a run says how many bytes v takes.
func (l *lowering) isUnsized(v *ir.Value) bool {
	switch space := l.of(v).storage.space; {
	case l.isStatic(v) || space == plan.SpaceArena:
		return false
	case space == plan.SpaceOutput:
		return l.possible.Of(v).Types == nil
	}
	return true
}

// unpromised lists the values that the figures leave out.
func (l *lowering) unpromised() []plan.Unpromised {
	var list []plan.Unpromised
	for _, c := range l.calls {
		for v := range c.Defs() {
			if l.isUnsized(v) {
				list = append(list, plan.Unpromised{Value: v.Name, Node: c.Node, Reason: l.reasonOf(c.Call)})
			}
		}
	}
	return list
}

func (l *lowering) reasonOf(c *ir.Call) string {
	for _, a := range c.Args {
		if a.Value != nil && !l.isStatic(a.Value) {
			return "the size of " + a.Value.Name + " depends on data"
		}
	}
	if c.Op.Loop {
		return "the iterations of the loop decide its size"
	}
	if c.Op.Bound != nil {
		return "the output takes as many bytes as " + c.Op.Name + " returns"
	}
	return "the values of operands decide the size of what " + c.Op.Name + " returns"
}

// collectDynamic collects the facts about dynamic values that a runner needs.
func (e *Executable) collectDynamic(l *lowering) {
	e.dynamic = make([]dynamicInfo, l.dynamic+l.spares())
	for n := range e.dynamic {
		e.dynamic[n].purpose = memory.Activations
	}
	e.results = make([]resultInfo, 0, len(l.program.Body.Results))
	for _, v := range l.program.Body.Results {
		n := l.of(v).dynamic
		if n >= 0 {
			e.dynamic[n].isResult = true
			l.markOutput(e, v)
		}
		e.results = append(e.results, resultInfo{dynamic: n, types: l.possible.Of(v).Types})
	}
}

// spares returns how many dynamic values a loop carries at most: so many spare
// ones have them between two iterations.
func (l *lowering) spares() (n int) {
	for _, c := range l.calls {
		if !c.Op.Loop {
			continue
		}
		carried := 0
		for _, p := range c.Regions[0].Params {
			if l.of(p).dynamic >= 0 {
				carried++
			}
		}
		n = max(n, carried)
	}
	return n
}

// markOutput marks v, and the values whose buffers can become its own: results
// of its call's regions, the loop state that becomes v, and operands in whose
// bytes it may lie.
func (l *lowering) markOutput(e *Executable, v *ir.Value) {
	n := l.of(v).dynamic
	if n < 0 || e.dynamic[n].purpose == memory.IO {
		return
	}
	e.dynamic[n].purpose = memory.IO
	c, i := l.calls[l.index.Def(v)], v.Index
	if c.Op.Loop {
		region := c.Regions[0]
		if v.Kind == ir.Param {
			i -= ir.LoopArgs
		}
		if at := ir.LoopArgs + i; i >= 0 && at < len(region.Params) { // parts are copied
			l.markOutput(e, region.Params[at])
			l.markOutput(e, region.Results[1+i])
		}
		return
	}
	for _, region := range c.Regions {
		l.markOutput(e, region.Results[i])
	}
	for _, rule := range c.Op.Alias.Rules() {
		for k, a := range c.Args {
			if a.Value != nil && rule.Names(k, i) {
				l.markOutput(e, a.Value)
			}
		}
	}
}
