package exec

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
)

// placeDynamic gives a value whose size depends on data the bytes that the
// operator bounds it by, or a buffer of its own, made at its step.
func (l *lowering) placeDynamic(k, r int, v *ir.Value) error {
	l.dynamic[v] = len(l.dynamic)
	if !l.outputs[v] && len(l.calls[k].Regions) == 0 {
		types, bounded, err := l.sigs[k].Largest()
		if err != nil {
			return err
		}
		if bounded {
			n, err := types[r].Bytes()
			if err != nil {
				return err
			}
			l.places[v] = place{l.newClass(v.Name, int64(n)), 0, int64(n)}
			return nil
		}
	}
	l.places[v] = place{&class{name: v.Name, space: plan.SpaceOwn, id: -1}, 0, 0}
	return nil
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
		if l.places[v].class.space != plan.SpaceOwn {
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

// unpromised lists the values that the figures leave out.
func (l *lowering) unpromised() []plan.Unpromised {
	var list []plan.Unpromised
	for _, c := range l.calls {
		for _, v := range given(c) {
			if v.Type.IsStatic() || l.places[v].class.space == plan.SpaceArena {
				continue
			}
			list = append(list, plan.Unpromised{Value: v.Name, Node: c.Node, Reason: reasonOf(c)})
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
			e.isOutput[n], e.forOutput[n] = true, true
		}
		e.outDynamic = append(e.outDynamic, n)
	}
	for k, c := range l.calls {
		e.late = append(e.late, l.isLate(k))
		e.freed = append(e.freed, l.freed[c])
		var left [][]int
		for _, region := range c.Regions {
			left = append(left, l.left[region])
			l.forOutputs(e, c, region)
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

// forOutputs marks what a region gives to a call's results that are outputs.
func (l *lowering) forOutputs(e *Executable, c *ir.Call, region *ir.Block) {
	given := region.Results
	if c.Op.Loop {
		given = given[1:]
	}
	for i, v := range c.Results {
		to, ok := l.dynamic[v]
		from, dynamic := l.dynamic[given[i]]
		if v != nil && ok && dynamic && e.forOutput[to] {
			e.forOutput[from] = true
		}
	}
}
