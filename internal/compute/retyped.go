package compute

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// retyped runs the kernels of an operator on other element types than those of
// the call. Where the call falls apart, it runs on one piece after the other:
// the operands of a piece are converted into scratch, the operator runs there,
// and its results are converted back. A call that does not fall apart is one
// piece, and its scratch has whole operands and results: a way for types that
// are rare where they stand.
type retyped struct {
	args, results []dtype.DType // of the kernels
	outer         *op.Call      // nothing but its sizes, and what it knows

	loops  []int // sizes of the axes along which the call is cut; the last one into blocks
	block  int
	blocks int
	count  int // pieces
	each   int // pieces of a tile
	cuts   []retypedArg
	bytes  int // of scratch, before that of the kernels

	parts  [2]retypedPart // of the pieces with a whole block, and of those with what is left of the axis
	faces  []retypedFace  // one per tile
	serial bool           // the kernels write their own fields: there is one tile
	failed error
}

// retypedArg is how an operand or a result is cut and converted.
type retypedArg struct {
	converted, moves bool
	steps            []int  // bytes from one index of each loop to the next
	bytes            [2]int // of a piece of either part
	place            int    // in scratch, if it is converted
}

// retypedPart is what the pieces of one size have in common.
type retypedPart struct {
	sig    op.Sig
	kernel Kernel
	tiles  int
	wide   []int // bytes of operands and results as the kernels see them
}

// retypedFace has a task for one piece after the other.
type retypedFace struct {
	tasks [2]Task
	calls [2]op.Call
}

// retypedPiece is about how many elements of the larger one of operand 0 and
// result 0 a piece has, and retypedLeast how many it has at least.
const (
	retypedPiece = 16 << 10
	retypedLeast = 1 << 10
)

// converted binds the call to the kernels of its operator for other element
// types.
func converted(c *op.Call, args, results []dtype.DType) (Kernel, error) {
	k := &retyped{args: args, results: results, outer: c}
	for i := range k.parts {
		p := &k.parts[i]
		p.sig = op.Sig{Def: c.Def, Attrs: c.Attrs, Known: k.known}
		whole := op.Call{Sig: &p.sig, Node: c.Node}
		for j := range c.In {
			p.sig.Args = append(p.sig.Args, op.Type{DType: args[j], Shape: c.In[j].Shape})
			whole.In = append(whole.In, op.Arg{Type: p.sig.Args[j]})
		}
		for j := range c.Out {
			p.sig.Results = append(p.sig.Results, op.Type{DType: results[j], Shape: c.Out[j].Shape})
			whole.Out = append(whole.Out, op.Arg{Type: p.sig.Results[j]})
		}
		k.cuts = make([]retypedArg, len(c.In)+len(c.Out))
		of, err := binders[c.Def](&whole)
		if err != nil {
			return nil, err
		}
		p.kernel = of
		k.serial = k.serial || writesFields(of)
	}
	return k, nil
}

// writesFields reports whether two runs of a kernel cannot be under way at
// once.
func writesFields(k Kernel) bool {
	_, starts := k.(starter)
	_, ends := k.(finisher)
	_, writes := k.(writesItself)
	return starts || ends || writes
}

// writesItself: the faces are those of one run.
func (k *retyped) writesItself() {}

// known returns the values of operands that are neither converted nor cut.
func (k *retyped) known(arg int) ([]byte, bool) {
	if k.outer.Known == nil || arg >= len(k.outer.In) || k.outer.In[arg].DType != k.args[arg] || k.cuts[arg].moves {
		return nil, false
	}
	return k.outer.Known(arg)
}

func (k *retyped) Refill(t *Task) error {
	c := t.Call
	k.outer = c
	k.cutLoops(c)
	if err := k.cutArgs(c); err != nil {
		return err
	}
	k.each = kernel.CeilDiv(k.count, mostFaces)
	if k.serial {
		k.each = k.count
	}
	tiles := kernel.CeilDiv(k.count, k.each)
	k.growFaces(t, tiles)
	t.Tiles, t.Scratch = tiles, 0
	for i := range k.parts {
		first := &k.faces[0].tasks[i]
		if err := first.size(); err != nil {
			return err
		}
		k.parts[i].tiles = first.Tiles
		t.Scratch = max(t.Scratch, k.bytes+first.Scratch)
	}
	for i := range k.faces[:tiles] {
		for j := range k.parts {
			f := &k.faces[i].tasks[j]
			f.Tiles, f.Scratch, f.empty = k.parts[j].tiles, t.Scratch-k.bytes, k.faces[0].tasks[j].empty
		}
	}
	return nil
}

// cutLoops decides along which axes the call is cut, and how finely.
func (k *retyped) cutLoops(c *op.Call) {
	rule := rulesApart[c.Def]
	k.loops, k.block, k.blocks, k.count = k.loops[:0], 1, 1, 1
	if rule == nil || !c.Results[0].IsStatic() {
		return
	}
	left := max(elements(&c.In[0]), elements(&c.Out[0]))
	for loop := range rule.loops(c.Sig) {
		size := rule.size(c.Sig, loop)
		if size == 0 || !k.isCutInOrder(c, rule, loop) {
			break
		}
		k.count *= k.blocks
		k.loops, k.blocks, k.block = append(k.loops, size), size, 1
		if left /= size; left <= retypedPiece {
			k.chooseBlock(size, max(1, left))
			break
		}
	}
	k.count *= k.blocks
}

// chooseBlock cuts the last axis into blocks, of so many elements for each of
// its indices.
func (k *retyped) chooseBlock(size, elements int) {
	k.block = kernel.EvenTile(size, max(1, retypedPiece/elements), 1)
	if outer := k.count; outer*kernel.CeilDiv(size, k.block) < kernel.WantedTiles {
		k.block = min(k.block, max(1, retypedLeast/elements, size*outer/kernel.WantedTiles))
	}
	k.blocks = kernel.CeilDiv(size, k.block)
}

// isCutInOrder reports whether pieces are contiguous when the call is cut along
// one more axis: axes before it that are not cut have one element.
func (k *retyped) isCutInOrder(c *op.Call, rule *apart, loop int) bool {
	for side, args := range [2][]op.Arg{c.In, c.Out} {
		for i := range args {
			if args[i].IsZero() {
				continue
			}
			last := rule.axis(c.Sig, side == 1, i, loop)
			for axis := range max(0, last) {
				cut := args[i].Shape.Size(axis) == 1
				for before := range loop {
					cut = cut || rule.axis(c.Sig, side == 1, i, before) == axis
				}
				if !cut {
					return false
				}
			}
			if last >= 0 && args[i].DType.Size() == 0 {
				return false // elements of less than a byte
			}
		}
	}
	return true
}

// cutArgs sets how operands and results are cut, their types and their places.
func (k *retyped) cutArgs(c *op.Call) error {
	k.bytes = 0
	for i := range k.cuts {
		a, types, isResult, at := k.arg(c, i)
		cut := &k.cuts[i]
		cut.steps, cut.moves, cut.converted = cut.steps[:0], false, false
		if a.IsZero() {
			continue
		}
		cut.converted = a.DType != types[at]
		var buf [kernel.MaxRank]int
		wide := 0
		for p := range k.parts {
			sizes := append(buf[:0], a.Shape.Sizes()...)
			k.cutSizes(c, cut, sizes, p, isResult, at)
			of, err := shape.Of(sizes...)
			if err != nil {
				return err
			}
			part := &k.parts[p]
			part.wide = slices.Grow(part.wide, len(k.cuts))[:len(k.cuts)]
			to := part.sig.Args
			if isResult {
				to = part.sig.Results
			}
			to[at] = op.Type{DType: types[at], Shape: of}
			if part.wide[i], err = to[at].Bytes(); err != nil {
				return err
			}
			if cut.bytes[p], err = (op.Type{DType: a.DType, Shape: of}).Bytes(); err != nil {
				return err
			}
			wide = max(wide, part.wide[i])
		}
		if cut.place = k.bytes; cut.converted {
			k.bytes += (wide + 63) &^ 63
		}
	}
	return nil
}

// arg returns operand or result i of all, the types of the kernels' operands or
// results, and its number among those.
func (k *retyped) arg(c *op.Call, i int) (a *op.Arg, types []dtype.DType, isResult bool, at int) {
	if i < len(c.In) {
		return &c.In[i], k.args, false, i
	}
	return &c.Out[i-len(c.In)], k.results, true, i - len(c.In)
}

// cutSizes makes the sizes of an operand those of a piece of part p, and sets
// the steps from piece to piece.
func (k *retyped) cutSizes(c *op.Call, cut *retypedArg, sizes []int, p int, isResult bool, at int) {
	cut.steps = cut.steps[:0]
	args := c.In
	if isResult {
		args = c.Out
	}
	whole := args[at].Shape.Sizes()
	for loop := range k.loops {
		axis, step := rulesApart[c.Def].axis(c.Sig, isResult, at, loop), 0
		if axis >= 0 && whole[axis] > 1 {
			step = kernel.Product(whole[axis+1:]) * args[at].DType.Size()
			cut.moves = true
			switch rest := k.loops[loop] % k.block; {
			case loop < len(k.loops)-1:
				sizes[axis] = 1
			case p == 1 && rest != 0:
				sizes[axis] = rest
			default:
				sizes[axis] = k.block
			}
		}
		cut.steps = append(cut.steps, step)
	}
}

// growFaces makes n faces. What there was before is reused.
func (k *retyped) growFaces(t *Task, n int) {
	for len(k.faces) < n {
		k.faces = append(k.faces, retypedFace{})
	}
	c := t.Call
	for i := range k.faces[:n] {
		f := &k.faces[i]
		for p := range k.parts {
			part, call, task := &k.parts[p], &f.calls[p], &f.tasks[p]
			call.Sig, call.Node, call.Draws = &part.sig, c.Node, c.Draws
			call.In, call.Out = piecesOf(call.In, part.sig.Args, len(c.In)), piecesOf(call.Out, part.sig.Results, len(c.Out))
			for j := range c.In {
				if !k.cuts[j].converted && !k.cuts[j].moves {
					call.In[j].Data = c.In[j].Data
				}
			}
			task.Call, task.Kernel, task.variant = call, part.kernel, t.variant
			task.setEnds(part.kernel)
		}
	}
}

func (k *retyped) Start(*Task) error {
	k.failed = nil
	return nil
}

func (k *retyped) Finish(*Task) error { return k.failed }

func (k *retyped) Tile(t *Task, tile int, scratch []byte) {
	f, first := &k.faces[tile], tile*k.each
	for piece := first; piece < min(first+k.each, k.count); piece++ {
		p := 0
		if len(k.loops) > 0 && piece%k.blocks == k.blocks-1 {
			p = 1
		}
		k.point(t, &f.calls[p], p, piece, scratch, piece == first)
		if task := &f.tasks[p]; k.serial {
			if err := task.run(scratch[k.bytes:]); err != nil {
				k.failed = err
				return
			}
		} else {
			for i := range task.Tiles {
				task.Kernel.Tile(task, i, scratch[k.bytes:])
			}
		}
		k.bring(t, &f.calls[p], p, piece)
	}
}

// point sets the bytes of operands and results of a piece, and converts
// operands, those that do not move for the first piece of a tile.
func (k *retyped) point(t *Task, call *op.Call, p, piece int, scratch []byte, first bool) {
	c := t.Call
	for i := range k.cuts {
		cut := &k.cuts[i]
		outer, _, isResult, at := k.arg(c, i)
		if outer.IsZero() {
			continue
		}
		inner := &call.In
		if isResult {
			inner = &call.Out
		}
		to := &(*inner)[at]
		from := k.piece(outer, cut, p, piece)
		if !cut.converted {
			to.Data = from
			continue
		}
		to.Data = scratch[cut.place:][:k.parts[p].wide[i]]
		if !isResult && (first || cut.moves) {
			elementwise.Cast(t.variant, to.Data, to.DType, from, outer.DType, 0, elements(to), elementwise.CastMode{})
		}
	}
}

// piece returns the bytes of an operand or a result that a piece has.
func (k *retyped) piece(a *op.Arg, cut *retypedArg, p, piece int) []byte {
	if !cut.moves || len(a.Data) == 0 {
		return a.Data
	}
	last := len(k.loops) - 1
	at := piece % k.blocks * k.block * cut.steps[last]
	piece /= k.blocks
	for loop := last - 1; loop >= 0; loop-- {
		at += piece % k.loops[loop] * cut.steps[loop]
		piece /= k.loops[loop]
	}
	return a.Data[at:][:cut.bytes[p]:cut.bytes[p]]
}

// bring converts the results of a piece back.
func (k *retyped) bring(t *Task, call *op.Call, p, piece int) {
	c := t.Call
	for i := range c.Out {
		cut, from := &k.cuts[len(c.In)+i], &call.Out[i]
		if cut.converted && wanted(c, i) {
			to := k.piece(&c.Out[i], cut, p, piece)
			elementwise.Cast(t.variant, to, c.Out[i].DType, from.Data, from.DType, 0, elements(from), elementwise.CastMode{})
		}
	}
}
