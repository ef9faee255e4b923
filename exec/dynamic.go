package exec

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
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
// back: after the call of that block in which they are used last. One that
// the block returns becomes the result of the call around it.
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
		if !slices.Contains(b.Results, v) {
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
	e.dynamic = len(l.dynamic)
	for k, c := range l.calls {
		e.late = append(e.late, l.isLate(k))
		e.freed = append(e.freed, l.freed[c])
	}
	for _, v := range l.program.Body.Results {
		n, ok := l.dynamic[v]
		if !ok {
			n = -1
		}
		e.outDynamic = append(e.outDynamic, n)
	}
}
