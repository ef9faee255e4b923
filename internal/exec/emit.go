package exec

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// instr is one instruction of the step loop.
type instr struct {
	kind   instrKind
	call   int // for all but jump
	target int // where branch goes on when the condition is false, and jump always; a number for yieldResults, freeLeft and own
}

type instrKind uint8

const (
	run instrKind = iota
	branch
	jump
	yieldResults // what region target of the call returns becomes the call's results
	freeLeft     // release the own buffers that region target of the call has left
	free         // release the own buffers whose last use was the call
	own          // dynamic value target, a result of the program, moves to a buffer without another holder
	enter        // begin a loop; target is where its end is
	again        // end an iteration; target is where the next one begins
	leave        // end a loop
)

// emit appends the instructions of a block, whose first call has the number k,
// and returns the number after those of its calls. Views that were placed as
// views need none, nor do results whose parts lie in them.
func (e *Executable) emit(l *lowering, b *ir.Block, k int) (next int) {
	for _, c := range b.Calls {
		next = k + 1
		switch {
		case c.Op.Loop:
			at := len(e.code)
			e.code = append(e.code, instr{kind: enter, call: k})
			next = e.emit(l, c.Regions[0], next)
			e.steps[k].loop.polls = !e.pollsIn(at + 1)
			e.code = append(e.code, instr{kind: again, call: k, target: at + 1})
			e.code[at].target = len(e.code)
			e.code = append(e.code, instr{kind: leave, call: k})
		case c.Op.Branch:
			at := len(e.code)
			e.code = append(e.code, instr{kind: branch, call: k})
			next = e.emit(l, c.Regions[0], next)
			e.emitYield(k, 0)
			end := len(e.code)
			e.code = append(e.code, instr{kind: jump})
			e.code[at].target = len(e.code)
			next = e.emit(l, c.Regions[1], next)
			e.emitYield(k, 1)
			e.code[end].target = len(e.code)
		case !l.isPlacedView(k) && !l.isAssembled(k):
			e.code = append(e.code, instr{kind: run, call: k})
		}
		if len(e.steps[k].freed) > 0 {
			e.code = append(e.code, instr{kind: free, call: k})
		}
		k = next
	}
	return k
}

// pollsIn reports whether one of the instructions from at on certainly looks
// whether the run is to stop, as tasks do.
func (e *Executable) pollsIn(at int) bool {
	for _, in := range e.code[at:] {
		switch {
		case in.kind == run && !e.steps[in.call].dynamic:
			return true
		case in.kind == branch || in.kind == enter:
			return false // the following code may be skipped
		}
	}
	return false
}

func (e *Executable) emitYield(k, region int) {
	if len(e.steps[k].yields[region]) > 0 {
		e.code = append(e.code, instr{kind: yieldResults, call: k, target: region})
	}
	if len(e.steps[k].left[region]) > 0 {
		e.code = append(e.code, instr{kind: freeLeft, call: k, target: region})
	}
}

// emitOwn makes the dynamic results of the program own their bytes: views and
// what loops and branches pass on may be in a buffer with others.
func (e *Executable) emitOwn(l *lowering) {
	for i, v := range l.program.Body.Results {
		if n := e.results[i].dynamic; n >= 0 {
			e.code = append(e.code, instr{kind: own, call: l.index.Def(v), target: n})
		}
	}
}

// isPlacedView reports whether every result of call k is a view that lies
// where the operand's bytes are.
func (l *lowering) isPlacedView(k int) bool {
	c := &l.calls[k]
	if c.isDynamic() || len(c.Regions) > 0 {
		return false
	}
	for r, v := range c.Results {
		if v != nil && !l.isView(k, r) {
			return false
		}
	}
	return true
}

// isView reports whether result r of call k lies where its bytes are in the
// operand that it is a view or a box of.
func (l *lowering) isView(k, r int) bool {
	c := &l.calls[k]
	if c.isDynamic() {
		return false
	}
	if arg, kind, offset := l.bytesFor(k, r); kind == op.View {
		from, at := l.of(c.Args[arg].Value), l.of(c.Results[r])
		if at.storage != from.storage {
			return false
		}
		if from.layout == nil {
			return at.layout == nil && at.offset == from.offset+int64(offset)
		}
		if at.size == from.size {
			layout, ok := from.layout.Reshape(l.types.Of(c.Results[r]).Shape)
			return ok && at.offset == from.offset && (at.layout == layout || at.layout == nil && layout.IsContiguous())
		}
	}
	return l.liesInBox(k, r)
}
