package check

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
)

// hold makes x the content, or the parts, and finds where in its place they
// are. It is false where the place and a part have no frame in common.
func (c *checker) hold(x *value, content content, parts []piece) bool {
	x.content, x.parts, x.laid = content, parts, nil
	if x.place.box == nil {
		return true
	}
	whole := x.place.piece(content)
	if parts == nil {
		x.laid = []piece{whole}
		return true
	}
	whole.content.offset = 0
	to := whole.inverse(nil)
	for i := range parts {
		var ok bool
		if x.laid, ok = c.memory.work.through(x.laid, &parts[i], &to); !ok {
			return false
		}
	}
	return true
}

// numLaid returns how many pieces laidAt knows.
func (x *value) numLaid() int {
	if x.laid != nil {
		return len(x.laid)
	}
	return len(x.parts)
}

// laidAt returns the pieces of the place of a value that holds parts, or lies
// with gaps.
func (x *value) laidAt(i int) piece {
	if x.laid != nil {
		return x.laid[i]
	}
	p := x.parts[i]
	p.lo += x.place.lo
	return p
}

// contentIn returns the content of the bytes of a value that are in the box,
// whose image are the bytes of a view. It is false where it is not known.
func (c *checker) contentIn(x *value, b *piece) (content, []piece, bool) {
	if x.parts == nil && b.axes == nil || b.run == 0 {
		return x.content.at(b.lo), nil, true
	}
	var parts []piece
	if x.parts == nil {
		whole := piece{0, x.content, box{run: x.size}}
		parts, _ = c.memory.work.through(nil, &whole, b)
		return x.content, parts, true
	}
	for i := range x.parts {
		var ok bool
		if parts, ok = c.memory.work.through(parts, &x.parts[i], b); !ok {
			return content{}, nil, false
		}
	}
	if len(parts) == 1 && parts[0].axes == nil {
		return parts[0].content, nil, true
	}
	return x.content, parts, true
}

// boxIn returns the box of the given sizes of a value's bytes, or of its
// place's, from the element with the index at on. The image are the bytes of a
// value of these sizes.
func (c *checker) boxIn(x *value, inPlace bool, at, sizes []int) piece {
	w := c.memory.work
	elem := int64(x.typ.DType.Size())
	w.begin(elem)
	var lo int64
	step, inner := elem, elem // of the next axis
	frame := x.typ.Shape.Sizes()
	for d := len(frame) - 1; d >= 0; d-- {
		by := step
		if inPlace && x.strides != nil {
			by = int64(x.strides[d]) * elem
		}
		if at != nil {
			lo += int64(at[d]) * by
		}
		w.add(int64(sizes[d]), by, inner)
		inner *= int64(sizes[d])
		step *= int64(frame[d])
	}
	return piece{lo: lo, box: w.end()}
}

// placeIn returns the place of the box of a value that boxIn finds.
func (c *checker) placeIn(x *value, at, sizes []int) place {
	b := c.boxIn(x, true, at, sizes)
	p := place{space: x.place.space, lo: x.place.lo + b.lo, hi: x.place.lo + b.hi()}
	if b.axes != nil {
		p.box = &b.box
	}
	return p
}

// isBoxOf reports whether the sizes are those of a box of x from the index at
// on, of elements that are as large.
func (x *value) isBoxOf(y *value, at []int) bool {
	from, sizes := y.typ.Shape.Sizes(), x.typ.Shape.Sizes()
	if len(from) != len(sizes) || len(at) != len(sizes) || x.typ.DType.Bits() != y.typ.DType.Bits() || x.typ.DType.Bits()%8 != 0 {
		return false
	}
	for d, n := range sizes {
		if at[d] < 0 || n > from[d]-at[d] {
			return false
		}
	}
	return true
}

// part is an operand that is a part of a result.
type part struct {
	*value
	arg int
	own piece // the bytes of the result that it is; the image are its own
	at  place // where these are
}

// partsOf returns the operands with elements that are parts of the result of
// call k, and whether they are all of it in one piece each, one after the
// other. There are none where it is not put together of them. The next call
// overwrites the list.
func (c *checker) partsOf(k int) (parts []part, pieces bool) {
	call := c.index.Calls[k]
	if !call.Op.Alias.HasParts() || call.Results[0] == nil {
		return nil, false
	}
	sig, x := c.sigs.Of(k), c.of(call.Results[0])
	c.starts = sig.Parts(c.starts[:0])
	if len(c.starts) == 0 || x.unsized {
		return nil, false
	}
	rank := x.typ.Shape.Rank()
	c.parts, pieces = c.parts[:0], true
	var end int64
	for i, a := range call.Args {
		at := c.starts[i*rank : (i+1)*rank]
		if a.Value == nil || at[0] < 0 || c.of(a.Value).size == 0 {
			continue
		}
		y := c.of(a.Value)
		if !y.isBoxOf(x, at) {
			return nil, false
		}
		sizes := y.typ.Shape.Sizes()
		p := part{value: y, arg: i, own: c.boxIn(x, false, at, sizes)}
		if x.place.box != nil {
			p.at = c.placeIn(x, at, sizes)
		} else {
			p.at = place{space: x.place.space, lo: x.place.lo + p.own.lo, hi: x.place.lo + p.own.hi()}
			if p.own.axes != nil {
				p.at.box = &box{p.own.run, p.own.axes}
			}
		}
		pieces = pieces && p.own.axes == nil && p.own.lo == end
		end = p.own.hi()
		c.parts = append(c.parts, p)
	}
	return c.parts, pieces && end == x.size
}

// liesIn reports whether the operand lies where it is a part of the result.
func (p *part) liesIn() bool { return p.place.isSame(p.at) }

// isPartInPlace reports whether operand i of call k has bytes, and lies where
// it is a part of the result.
func (c *checker) isPartInPlace(k, i int) bool {
	parts, _ := c.partsOf(k)
	for j := range parts {
		if parts[j].arg == i {
			return parts[j].liesIn()
		}
	}
	return false
}

// MaxParts is the most parts of other values that a value may hold, those of
// its parts among them and without empty ones. What is put together of more has
// bytes of its own: a proof of more takes long.
const MaxParts = 512

// assemble runs a call that puts its result together, if that is followed:
// where each part is one piece, or one of them lies where it is one.
func (c *checker) assemble(k int, call *ir.Call) (followed bool, fault *Violation) {
	parts, pieces := c.partsOf(k)
	n, inPlace := 0, false
	for i := range parts {
		n += max(1, len(parts[i].parts))
		inPlace = inPlace || parts[i].liesIn()
	}
	if n > MaxParts || !pieces && !inPlace {
		return false, nil
	}
	x := c.of(call.Results[0])
	var rest []piece
	if !pieces {
		if rest, fault = c.around(x, parts); fault != nil {
			return true, fault
		}
	}
	held := make([]piece, 0, n+len(rest))
	for i := range parts {
		known := true
		if held, known = c.holdPart(held, &parts[i]); !known && inPlace {
			return true, c.fault(Alias, x, fmt.Sprintf("the parts of operand %d (%s) as parts of it", parts[i].arg, &parts[i]), "parts that have a frame in common with it")
		} else if !known {
			return false, nil
		}
	}
	if !c.hold(x, content{root: x.ID}, append(held, rest...)) {
		return true, c.fault(Alias, x, "parts that have no frame in common with its place", "another place").in(x.place)
	}
	return true, c.writeParts(call, parts, rest)
}

// around returns the bytes of a result that are in none of its parts, which it
// holds itself.
func (c *checker) around(x *value, parts []part) (rest []piece, fault *Violation) {
	rest = []piece{{0, content{root: x.ID}, box{run: x.size}}}
	for i := range parts {
		y, left := &parts[i], sizeOf(rest)
		var next []piece
		for j := range rest {
			next, _ = c.memory.work.without(next, &rest[j], &y.own)
		}
		if rest = next; left-sizeOf(rest) != y.size {
			return nil, c.fault(Alias, x, fmt.Sprintf("operand %d (%s) in %s", y.arg, y, y.at), "parts of the result that share no bytes")
		}
	}
	return rest, nil
}

// writeParts runs a call whose result is known: rule 5. Operands that lie where
// they are parts of it stay, the others are copied there, and the rest is
// written around them.
func (c *checker) writeParts(call *ir.Call, parts []part, rest []piece) *Violation {
	x := c.of(call.Results[0])
	var written []place
	for i := range parts {
		if !parts[i].liesIn() {
			written = append(written, parts[i].at)
		}
	}
	if len(rest) > 0 {
		around := value{Value: x.Value, place: x.place}
		_ = c.hold(&around, content{root: x.ID}, rest) // as it was found for x
		for i := range around.numLaid() {
			written = append(written, around.laidPlace(i))
		}
	}
	if len(written) == 0 {
		return nil // the bytes hold it already
	}
	if fault := c.writable(x); fault != nil {
		return fault
	}
	for i, a := range call.Args {
		if a.Value == nil || !c.overlap(c.of(a.Value).place, x.place) {
			continue
		}
		for _, at := range written {
			if y := c.of(a.Value); c.overlap(y.place, at) {
				return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s) for a part that is written", i, y, y.place), "others: it is read while they are written").in(at)
			}
		}
	}
	c.memory.put(x)
	return nil
}

// laidPlace returns the place of a piece that laidAt returns.
func (x *value) laidPlace(i int) place {
	p := x.laidAt(i)
	at := place{space: x.place.space, lo: p.lo, hi: p.hi()}
	if p.axes != nil {
		at.box = &p.box
	}
	return at
}

// sizeOf returns the bytes of pieces that share none.
func sizeOf(list []piece) (n int64) {
	for i := range list {
		n += list[i].size()
	}
	return n
}

// holdPart adds the content of a part to that of the result. It is false where
// it is not known.
func (c *checker) holdPart(held []piece, y *part) ([]piece, bool) {
	if y.parts == nil {
		part := y.own
		part.content = y.content
		return append(held, part), true
	}
	to := y.own.inverse(nil)
	for i := range y.parts {
		var ok bool
		if held, ok = c.memory.work.through(held, &y.parts[i], &to); !ok {
			return nil, false
		}
	}
	return held, true
}
