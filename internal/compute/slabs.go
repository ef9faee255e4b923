package compute

import (
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// apart says along which axes a call falls apart: what it computes for one
// index of such an axis is a call of the same operator, in which the axis has
// one element.
type apart struct {
	// loops returns how many such axes there are, outermost first.
	loops func(s *op.Sig) int

	// axis returns which axis of an operand, or of a result, one of these is;
	// -1 where every index needs all of it.
	axis func(s *op.Sig, isResult bool, i, loop int) int
}

// rulesApart has the operators whose calls fall apart.
var rulesApart = map[*op.Def]*apart{}

func registerApart(rule *apart, names ...string) bool {
	for _, name := range names {
		rulesApart[builtin(name)] = rule
	}
	return true
}

const (
	mostFaces = 32 // parts of a call that are under way at once

	// Calls that fall apart into very many very small ones take longer than a
	// copy of their operands.
	fewSlabs  = 64
	slabBytes = 64
)

// rounds returns along how many of the axes a call has to fall apart so that
// what is left of every operand and result is contiguous; -1 if that is never
// so, or takes too long.
func (r *apart) rounds(s *op.Sig, in, out []*shape.Layout) int {
	if len(s.Results) == 0 || !s.Results[0].IsStatic() {
		return -1
	}
	for n, count := 0, 1; n <= r.loops(s); n++ {
		if n > 0 {
			count *= r.size(s, n-1)
		}
		if !r.leaves(s, false, in, n) || !r.leaves(s, true, out, n) {
			continue
		}
		if n > 0 && (r.dividesBytes(s, false, s.Args, n) || r.dividesBytes(s, true, s.Results, n)) {
			return -1
		}
		if count > fewSlabs && r.bytesLeft(s, n) < slabBytes {
			return -1
		}
		return n
	}
	return -1
}

// leaves reports whether the layouts are contiguous inside the first n loops.
func (r *apart) leaves(s *op.Sig, isResult bool, layouts []*shape.Layout, n int) bool {
	for i, l := range layouts {
		if l == nil || l.IsContiguous() {
			continue
		}
		taken := uint64(0)
		for loop := range n {
			if axis := r.axis(s, isResult, i, loop); axis >= 0 {
				taken |= 1 << axis
			}
		}
		sizes, strides, step := l.Shape().Sizes(), l.Strides(), 1
		for k := len(sizes) - 1; k >= 0; k-- {
			if sizes[k] == 1 || taken>>k&1 != 0 {
				continue
			}
			if strides[k] != step {
				return false
			}
			step *= sizes[k]
		}
	}
	return true
}

// dividesBytes reports whether elements of less than a byte are cut.
func (r *apart) dividesBytes(s *op.Sig, isResult bool, types []op.Type, n int) bool {
	for i, t := range types {
		for loop := range n {
			if !t.IsZero() && t.DType.Size() == 0 && r.axis(s, isResult, i, loop) >= 0 {
				return true
			}
		}
	}
	return false
}

// size returns the size of a loop.
func (r *apart) size(s *op.Sig, loop int) int {
	for i, t := range s.Results {
		if axis := r.axis(s, true, i, loop); !t.IsZero() && axis >= 0 {
			return t.Shape.Size(axis)
		}
	}
	for i, t := range s.Args {
		if axis := r.axis(s, false, i, loop); !t.IsZero() && axis >= 0 {
			return t.Shape.Size(axis)
		}
	}
	return 1
}

// bytesLeft returns the bytes of the larger one of operand 0 and result 0 in
// one round of the first n loops.
func (r *apart) bytesLeft(s *op.Sig, n int) int {
	left := func(isResult bool, t op.Type) int {
		elements := t.Shape.NumElements()
		for loop := range n {
			if axis := r.axis(s, isResult, 0, loop); axis >= 0 {
				elements /= max(1, t.Shape.Size(axis))
			}
		}
		return elements * t.DType.Size()
	}
	return max(left(true, s.Results[0]), left(false, s.Args[0]))
}

// slabs runs a call on the contiguous pieces of its operands and results, which
// lie with strides: each piece is a call of its own, of smaller sizes, for the
// same kernel.
type slabs struct {
	rule    *apart
	sig     op.Sig // of a piece
	loops   []int  // sizes of the loops, without those of one index
	args    []slabArg
	count   int    // pieces
	tiles   int    // of a piece
	each    int    // pieces of a face, one after the other
	faces   []face // at most mostFaces; each is used by one tile, or by those of one piece
	serial  bool   // the kernel writes its own fields in tiles: there is one face
	failed  error
	layouts [2][]*shape.Layout
}

// slabArg is how an operand or a result is cut.
type slabArg struct {
	bytes int   // of a piece
	steps []int // bytes from one piece to the next, by loop
	moves bool  // there are several pieces
}

// face is a task for one piece after the other.
type face struct {
	task  Task
	call  op.Call
	index []int // of the piece, by loop
	at    []int // where it begins in the bytes of operands and results
}

// writesItself is a kernel that writes its own fields in tiles, so that two
// calls of it cannot be under way at once.
type writesItself interface{ writesItself() }

// check reports whether a call whose operands or results have gaps is taken,
// and whether a kernel that takes strides walks these.
func (k *slabs) check(c *op.Call) (walks, ok bool) {
	for side, args := range [2][]op.Arg{c.In, c.Out} {
		k.layouts[side] = k.layouts[side][:0]
		for i := range args {
			k.layouts[side] = append(k.layouts[side], args[i].Layout)
		}
	}
	if !Strided(c.Sig, k.layouts[0], k.layouts[1]) {
		return false, false
	}
	of := walkers[c.Def]
	return of != nil && of(c.Sig, k.layouts[0], k.layouts[1]), true
}

func (k *slabs) Refill(t *Task) error {
	c := t.Call
	k.rule = rulesApart[c.Def]
	_, k.serial = t.Kernel.(writesItself)
	rounds := -1
	if k.rule != nil {
		rounds = k.rule.rounds(c.Sig, k.layouts[0], k.layouts[1])
	}
	if rounds < 0 {
		return unsupported(c)
	}
	if err := k.cut(c, rounds); err != nil || k.count == 0 {
		return err
	}
	k.growFaces(t, 1)
	first := &k.faces[0].task
	first.Tiles, first.Scratch, first.Forms = 0, 0, t.Forms
	if err := t.Kernel.Refill(first); err != nil {
		return err
	}
	t.Forms, k.tiles = first.Forms, first.Tiles
	t.Scratch = first.Scratch
	k.divide(t)
	return nil
}

// cut sets the loops and the pieces.
func (k *slabs) cut(c *op.Call, rounds int) error {
	k.sig.Def, k.sig.Attrs = c.Def, c.Attrs
	k.loops, k.count = k.loops[:0], 1
	for loop := range rounds {
		n := k.rule.size(c.Sig, loop)
		k.loops = append(k.loops, n)
		k.count *= n
	}
	k.args = slices.Grow(k.args[:0], len(c.In)+len(c.Out))[:len(c.In)+len(c.Out)]
	var err error
	k.sig.Args, err = k.cutSide(c, k.sig.Args[:0], c.In, c.Sig.Args, k.args[:len(c.In)], false)
	if err == nil {
		k.sig.Results, err = k.cutSide(c, k.sig.Results[:0], c.Out, c.Sig.Results, k.args[len(c.In):], true)
	}
	return err
}

// cutSide cuts the operands or the results, and appends the types of their
// pieces to types.
func (k *slabs) cutSide(c *op.Call, types []op.Type, args []op.Arg, whole []op.Type, cuts []slabArg, isResult bool) ([]op.Type, error) {
	var buf [kernel.MaxRank]int
	for i := range args {
		a, cut := &args[i], &cuts[i]
		cut.steps, cut.bytes, cut.moves = cut.steps[:0], len(a.Data), false
		if i >= len(whole) {
			types = append(types, op.Type{})
		} else {
			types = append(types, whole[i])
		}
		for loop := range k.loops {
			axis := -1
			if !a.IsZero() {
				axis = k.rule.axis(c.Sig, isResult, i, loop)
			}
			step := 0
			if axis >= 0 && a.Shape.Size(axis) > 1 && elements(a) > 0 {
				step, cut.moves = stridesOf(a)[axis]*a.DType.Size(), true
			}
			cut.steps = append(cut.steps, step)
		}
		if a.IsZero() {
			continue
		}
		sizes := append(buf[:0], a.Shape.Sizes()...)
		for loop := range k.loops {
			if axis := k.rule.axis(c.Sig, isResult, i, loop); axis >= 0 {
				sizes[axis] = 1
			}
		}
		of, err := shape.Of(sizes...)
		if err != nil {
			return nil, err
		}
		types[i] = op.Type{DType: a.DType, Shape: of}
		if cut.bytes, err = types[i].Bytes(); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// growFaces makes n faces for the pieces. What there was before is reused.
func (k *slabs) growFaces(t *Task, n int) {
	for len(k.faces) < n {
		k.faces = slices.Grow(k.faces, 1)
		k.faces = k.faces[:len(k.faces)+1]
	}
	c := t.Call
	if k.sig.Known == nil {
		k.sig.Known = func(arg int) ([]byte, bool) {
			if t.Call.Known == nil || arg >= len(t.Call.In) || k.args[arg].moves {
				return nil, false
			}
			return t.Call.Known(arg)
		}
	}
	for i := range k.faces[:n] {
		f := &k.faces[i]
		f.call.Sig, f.call.Node, f.call.Draws = &k.sig, c.Node, c.Draws
		f.call.In, f.call.Out = piecesOf(f.call.In, k.sig.Args, len(c.In)), piecesOf(f.call.Out, k.sig.Results, len(c.Out))
		f.index = slices.Grow(f.index[:0], len(k.loops))[:len(k.loops)]
		f.at = slices.Grow(f.at[:0], len(k.args))[:len(k.args)]
		f.task.Call, f.task.Kernel, f.task.variant = &f.call, t.Kernel, t.variant
		f.task.setEnds(t.Kernel)
	}
}

func piecesOf(args []op.Arg, types []op.Type, n int) []op.Arg {
	args = slices.Grow(args[:0], n)[:n]
	for i := range args {
		args[i] = op.Arg{Type: types[i]}
	}
	return args
}

// divide decides how many faces there are, and the tiles.
func (k *slabs) divide(t *Task) {
	switch {
	case k.serial:
		k.each = k.count
	case k.count <= mostFaces && k.tiles > 1:
		k.each = 1
	default:
		most := 1
		for _, a := range k.args {
			if a.moves {
				most = max(most, a.bytes)
			}
		}
		n := mostFaces
		if k.tiles <= 1 {
			n = max(1, min(n, k.count/max(1, copySpan/most)))
		}
		k.each = kernel.CeilDiv(k.count, n)
	}
	n := kernel.CeilDiv(k.count, k.each)
	k.growFaces(t, n)
	for i := range k.faces[:n] {
		k.faces[i].task.Tiles, k.faces[i].task.Scratch = k.tiles, t.Scratch
	}
	if t.Tiles = n; k.each == 1 {
		t.Tiles = n * k.tiles
	}
}

// begin sets a face to a piece.
func (k *slabs) begin(c *op.Call, f *face, piece int) {
	clear(f.at)
	for loop := len(k.loops) - 1; loop >= 0; loop-- {
		f.index[loop] = piece % k.loops[loop]
		piece /= k.loops[loop]
		for i := range k.args {
			f.at[i] += f.index[loop] * k.args[i].steps[loop]
		}
	}
	for i := range k.args {
		k.point(c, f, i)
	}
}

// point sets the bytes of an operand or a result of a face.
func (k *slabs) point(c *op.Call, f *face, i int) {
	from, to := c.In, f.call.In
	a := &k.args[i]
	at := f.at[i]
	if i >= len(from) {
		i -= len(from)
		from, to = c.Out, f.call.Out
	}
	if !a.moves {
		to[i].Data = from[i].Data
		return
	}
	to[i].Data = from[i].Data[at : at+a.bytes : at+a.bytes]
}

// next sets a face to the next piece.
func (k *slabs) next(c *op.Call, f *face) {
	for loop := len(k.loops) - 1; loop >= 0; loop-- {
		f.index[loop]++
		if f.index[loop] < k.loops[loop] {
			for i := range k.args {
				f.at[i] += k.args[i].steps[loop]
			}
			break
		}
		f.index[loop] = 0
		for i := range k.args {
			f.at[i] -= (k.loops[loop] - 1) * k.args[i].steps[loop]
		}
	}
	for i := range k.args {
		if k.args[i].moves {
			k.point(c, f, i)
		}
	}
}

// Start starts the pieces, one after the other. A kernel keeps nothing of it
// that differs between them.
func (k *slabs) Start(t *Task) error {
	k.failed = nil
	if s, ok := t.Kernel.(starter); ok && !k.serial {
		f := &k.faces[0]
		k.begin(t.Call, f, 0)
		for range k.count {
			if err := s.Start(&f.task); err != nil {
				return err
			}
			k.next(t.Call, f)
		}
	}
	if k.each == 1 {
		for i := range k.count {
			k.begin(t.Call, &k.faces[i], i)
		}
	}
	return nil
}

func (k *slabs) Tile(t *Task, tile int, scratch []byte) {
	if k.each == 1 {
		f := &k.faces[tile/k.tiles]
		t.Kernel.Tile(&f.task, tile%k.tiles, scratch)
		return
	}
	f, first := &k.faces[tile], tile*k.each
	k.begin(t.Call, f, first)
	for piece := first; piece < min(first+k.each, k.count); piece++ {
		if piece > first {
			k.next(t.Call, f)
		}
		if k.serial {
			if k.failed = f.task.run(scratch); k.failed != nil {
				return
			}
			continue
		}
		for i := range k.tiles {
			t.Kernel.Tile(&f.task, i, scratch)
		}
	}
}

func (k *slabs) Finish(t *Task) error {
	end, ok := t.Kernel.(finisher)
	if !ok || k.serial {
		return k.failed
	}
	f := &k.faces[0]
	k.begin(t.Call, f, 0)
	for range k.count {
		if err := end.Finish(&f.task); err != nil {
			return err
		}
		k.next(t.Call, f)
	}
	return nil
}
