package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// placeDynamic gives a value whose size depends on data as many bytes as it
// can take, if that is known, or a buffer of its own, made at its step. An
// output has a buffer of its own in any case; where its types are known the
// plan counts the largest.
func (l *lowering) placeDynamic(v *ir.Value) {
	l.dynamic[v] = len(l.dynamic)
	p, known := l.possible[v]
	switch {
	case !known || l.outputs[v] && p.Types == nil || v.Def.Op.Branch && !l.outputs[v] && !l.givesOwn(v):
		l.places[v] = place{&storage{name: v.Name, space: plan.SpaceOwn, id: -1}, 0, 0}
	case l.outputs[v]:
		l.places[v] = place{&storage{name: v.Name, space: plan.SpaceOwn, id: -1, size: p.Bytes}, 0, p.Bytes}
	case l.yields[v] != nil:
		l.places[v] = place{l.yields[v], 0, p.Bytes}
	default:
		l.places[v] = place{l.newStorage(v.Name, p.Bytes), 0, p.Bytes}
	}
}

// givesOwn reports whether every region of a branch computes what it gives as
// the value, so that it can do so in the value's bytes.
func (l *lowering) givesOwn(v *ir.Value) bool {
	for _, region := range v.Def.Regions {
		y := region.Results[v.Index]
		if l.faultIn(region, v.Index) != "" || !y.Type.IsStatic() && y.Def.Op.Branch && !l.givesOwn(y) {
			return false
		}
	}
	return true
}

// endDynamic sets when the buffers of a block's dynamic values are given
// back: after the call of that block in which they are used last, and those
// that the block returns when the results of the call around it hold them too.
func (l *lowering) endDynamic(b *ir.Block) {
	last := map[*ir.Value]*ir.Call{}
	for _, c := range b.Calls {
		for v := range l.readInside(c) {
			if last[v] != nil {
				last[v] = c
			}
		}
		for _, v := range c.Results {
			if v != nil && !v.Type.IsStatic() {
				last[v] = c
			}
		}
		for _, region := range c.Regions {
			l.endDynamic(region)
		}
	}
	for v, c := range last {
		if l.places[v].storage.space != plan.SpaceOwn {
			continue
		}
		l.ends[v] = max(l.ends[v], plan.Time(2*l.lastInside(c)+2))
		if slices.Contains(b.Results, v) {
			l.left[b] = append(l.left[b], l.dynamic[v])
		} else {
			l.freed[c] = append(l.freed[c], l.dynamic[v])
		}
	}
}

// readInside returns what the call and the calls in its regions read.
func (l *lowering) readInside(c *ir.Call) map[*ir.Value]bool {
	read := map[*ir.Value]bool{}
	for _, a := range c.Args {
		read[a.Value] = true
	}
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			for v := range l.readInside(inner) {
				read[v] = true
			}
		}
		for _, v := range region.Results {
			read[v] = true
		}
	}
	return read
}

// lateScratch finds what scratch the calls want that are bound when they run,
// where the types are known that their operands can have.
func (e *Executable) lateScratch(l *lowering, scratch []int64) error {
	for _, in := range e.code {
		if in.kind != run || !e.late[in.call] {
			continue
		}
		c := e.calls[in.call]
		for _, sig := range ir.PossibleSigs(c, l.known, l.possible) {
			results, ok, err := sig.Largest()
			if err != nil {
				return fmt.Errorf("%s: %w", describe(c), err)
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
			if t, err := compute.Bind(call); err == nil { // a run that comes to it gives the error
				scratch[in.call] = max(scratch[in.call], int64(t.Scratch))
			}
		}
	}
	return nil
}

// isUnsized reports whether nothing but a run says how many bytes v takes.
func (l *lowering) isUnsized(v *ir.Value) bool {
	switch space := l.places[v].storage.space; {
	case v.Type.IsStatic() || space == plan.SpaceArena:
		return false
	case space == plan.SpaceOutput:
		return l.possible[v].Types == nil
	}
	return true
}

// unpromised lists the values that the figures leave out.
func (l *lowering) unpromised() []plan.Unpromised {
	var list []plan.Unpromised
	for _, c := range l.calls {
		for _, v := range given(c) {
			if l.isUnsized(v) {
				list = append(list, plan.Unpromised{Value: v.Name, Node: c.Node, Reason: reasonOf(c)})
			}
		}
	}
	return list
}

func reasonOf(c *ir.Call) string {
	for _, a := range c.Args {
		if a.Value != nil && !a.Value.Type.IsStatic() {
			return "the size of " + a.Value.Name + " depends on data"
		}
	}
	if c.Op.Loop {
		return "the rounds of the loop decide its size"
	}
	if c.Op.Bound != nil {
		return "the output takes as many bytes as " + c.Op.Name + " gives"
	}
	return "the values of operands decide the size of what " + c.Op.Name + " gives"
}

// collectDynamic notes what a runner has to know of dynamic values.
func (e *Executable) collectDynamic(l *lowering) {
	e.dynamic = len(l.dynamic) + l.spares()
	e.isOutput, e.forOutput = make([]bool, e.dynamic), make([]bool, e.dynamic)
	for _, v := range l.program.Body.Results {
		n, ok := l.dynamic[v]
		if !ok {
			n = -1
		} else {
			e.isOutput[n] = true
			l.markOutput(e, v)
		}
		e.outDynamic = append(e.outDynamic, n)
		e.outTypes = append(e.outTypes, l.possible[v].Types)
	}
	for k, c := range l.calls {
		e.late = append(e.late, l.isLate(k))
		e.freed = append(e.freed, l.freed[c])
		var left [][]int
		for _, region := range c.Regions {
			left = append(left, l.left[region])
		}
		e.left = append(e.left, left)
	}
}

// spares returns how many dynamic values a loop carries at most: so many spare
// ones hold them between two rounds.
func (l *lowering) spares() (n int) {
	for _, c := range l.calls {
		if !c.Op.Loop {
			continue
		}
		carried := 0
		for _, p := range c.Regions[0].Params {
			if _, ok := l.dynamic[p]; ok {
				carried++
			}
		}
		n = max(n, carried)
	}
	return n
}

// purposeOf returns what the buffers of a dynamic value are for.
func (e *Executable) purposeOf(n int) memory.Purpose {
	if e.forOutput[n] {
		return memory.IO
	}
	return memory.Activations
}

// markOutput marks v, and the values whose buffers can become its own: what the
// regions of its call give, what a loop carries it in, and operands in whose
// bytes it may lie.
func (l *lowering) markOutput(e *Executable, v *ir.Value) {
	n, ok := l.dynamic[v]
	if !ok || e.forOutput[n] {
		return
	}
	e.forOutput[n] = true
	c, i := v.Def, v.Index
	if c == nil { // the parameter of a loop's region
		c = l.calls[l.loopOf[v]]
		i = slices.Index(c.Regions[0].Params, v) - ir.LoopArgs
	}
	if c.Op.Loop {
		region := c.Regions[0]
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
			if a.Value != nil && (rule.Arg == k || rule.Arg == op.EveryArg) && (rule.Result == i || rule.Result == op.EveryResult) {
				l.markOutput(e, a.Value)
			}
		}
	}
}
