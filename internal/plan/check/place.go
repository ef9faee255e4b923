package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// kind is a [plan.Space] as a number.
type kind uint8

const (
	nowhere kind = iota
	arena
	input
	output
	weight
	constant
	own
	slot
)

var spaces = [...]plan.Space{arena: plan.SpaceArena, input: plan.SpaceInput, output: plan.SpaceOutput,
	weight: plan.SpaceWeight, constant: plan.SpaceConstant, own: plan.SpaceOwn, slot: plan.SpaceSlot}

// kindOf returns nowhere for a space that does not exist.
func kindOf(s plan.Space) kind {
	switch s {
	case plan.SpaceArena:
		return arena
	case plan.SpaceInput:
		return input
	case plan.SpaceOutput:
		return output
	case plan.SpaceWeight:
		return weight
	case plan.SpaceConstant:
		return constant
	case plan.SpaceOwn:
		return own
	case plan.SpaceSlot:
		return slot
	}
	return nowhere
}

// space names one buffer.
type space struct {
	kind kind
	arg  int // as in [Bytes]
}

// place is a box of bytes of one space. Its map is to the bytes of a value that
// lies there.
type place struct {
	space
	lo, hi int64
	box    *box // nil for all bytes from lo to hi
}

// isSame reports whether two places are the same bytes.
func (p place) isSame(q place) bool {
	return p.space == q.space && p.lo == q.lo && p.hi == q.hi && (p.box == q.box || p.box != nil && q.box != nil && p.box.isSame(q.box))
}

// piece returns the bytes of the place, which hold those of c.
func (p place) piece(c content) piece {
	if p.box == nil {
		return piece{p.lo, c, box{run: p.hi - p.lo}}
	}
	return piece{p.lo, c, *p.box}
}

func (p place) bytes() Bytes { return Bytes{spaces[p.kind], p.arg, p.lo, p.hi, p.box != nil} }

// String is that of [Bytes].
func (p place) String() string { return p.bytes().String() }

// runs says in which runs of bytes the place is: "of 8 bytes, 3 of them 32
// apart".
func (p place) runs() string {
	if p.box == nil {
		return fmt.Sprintf("of %d bytes", p.hi-p.lo)
	}
	text := fmt.Sprintf("of %d bytes", p.box.run)
	for _, a := range slices.Backward(p.box.axes) {
		text += fmt.Sprintf(", %d of them %d apart", a.n, a.at)
	}
	return text
}

// stride gives the place of x its strides: those of a box of whole elements in
// row-major order, no two of which share bytes.
func (c *checker) stride(x *value, strides []int) *Violation {
	bits := int64(x.typ.DType.Bits())
	if x.unsized || !x.typ.IsStatic() || x.size == 0 || bits%8 != 0 || x.place.kind == own || x.place.kind == constant {
		return c.fault(Place, x, fmt.Sprintf("strides %v", strides), "none: its elements are not all in bytes of a plan")
	}
	sizes := x.typ.Shape.Sizes()
	if len(strides) != len(sizes) {
		return c.fault(Place, x, fmt.Sprintf("%d strides", len(strides)), fmt.Sprintf("one for each of %d axes", len(sizes)))
	}
	span, most := int64(1), (plan.MaxBytes-x.place.lo)/(bits/8) // elements
	for d := len(sizes) - 1; d >= 0; d-- {
		n, by := int64(sizes[d]), int64(strides[d])
		if by < 1 || n > 1 && (by < span || by > (most-span)/(n-1)) {
			return c.fault(Place, x, fmt.Sprintf("%d elements from one index of axis %d to the next", by, d),
				fmt.Sprintf("at least %d, and all bytes below %d", span, int64(plan.MaxBytes)))
		}
		span += (n - 1) * by
	}
	x.strides = strides
	p := c.placeIn(x, nil, sizes)
	if p.box == nil {
		return c.fault(Place, x, fmt.Sprintf("strides %v", strides), "none: its bytes are contiguous")
	}
	x.place.hi, x.place.box = p.hi, p.box
	return nil
}

// contiguousAround proves that the values have no gaps that a run copies as a
// whole: operands, results and parameters of a call with regions, and results
// of these.
func (c *checker) contiguousAround(call *ir.Call) *Violation {
	check := func(list []*ir.Value) *Violation {
		for _, v := range list {
			if v != nil && c.of(v).place.box != nil {
				return c.fault(Branch, c.of(v), "strides", "none: what a call with regions takes and returns is contiguous").in(c.of(v).place)
			}
		}
		return nil
	}
	for _, a := range call.Args {
		if fault := check([]*ir.Value{a.Value}); fault != nil {
			return fault
		}
	}
	for _, region := range call.Regions {
		if fault := check(region.Params); fault != nil {
			return fault
		}
		if fault := check(region.Results); fault != nil {
			return fault
		}
	}
	return check(call.Results)
}
