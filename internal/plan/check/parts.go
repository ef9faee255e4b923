package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// view returns the content of n bytes of a value from the offset on.
func (x *value) view(offset, n int64) (content, []interval) {
	if x.parts == nil {
		return x.content.at(offset), nil
	}
	var parts []interval
	for _, part := range x.parts {
		lo, hi := max(part.lo, offset), min(part.hi, offset+n)
		if lo < hi {
			parts = append(parts, interval{lo - offset, hi - offset, part.content.at(lo - part.lo)})
		}
	}
	if len(parts) == 1 {
		return parts[0].content, nil
	}
	return x.content, parts
}

// partsOf returns where the operands of call k are in its result, nil where it
// is not put together of them. The next call overwrites the list.
func (c *checker) partsOf(k int) []int {
	call := c.index.Calls[k]
	if !call.Op.Alias.HasParts() || call.Results[0] == nil {
		return nil
	}
	c.starts = slices.Grow(c.starts[:0], len(call.Args))
	return c.sigs.Of(k).Pieces(c.starts[:0])
}

// partAt returns the bytes of x in the place of a result, in which it starts at
// the given byte.
func partAt(result *value, start int, x *value) place {
	lo := result.place.lo + int64(start)
	return place{result.place.space, lo, lo + x.size}
}

// isPartInPlace reports whether operand i of call k has bytes, and lies where
// it is a part of the result.
func (c *checker) isPartInPlace(k, i int) bool {
	starts := c.partsOf(k)
	return starts != nil && c.liesInPart(c.index.Calls[k].Call, starts, i)
}

// liesInPart is isPartInPlace for operands that are at the given starts.
func (c *checker) liesInPart(call *ir.Call, starts []int, i int) bool {
	if call.Args[i].Value == nil {
		return false
	}
	x := c.of(call.Args[i].Value)
	return x.size > 0 && x.place == partAt(c.of(call.Results[0]), starts[i], x)
}

// MaxParts is the most parts of other values that a value may hold, those of
// its parts among them and without empty ones. What is put together of more has
// bytes of its own: a proof of more takes long.
const MaxParts = 512

// assembled returns where the operands of a call are in its result, if that is
// followed as the parts that it is put together of.
func (c *checker) assembled(k int, call *ir.Call) []int {
	starts, n := c.partsOf(k), 0
	for _, a := range call.Args {
		if starts != nil && a.Value != nil && c.of(a.Value).size > 0 {
			n += max(1, len(c.of(a.Value).parts))
		}
	}
	if n > MaxParts {
		return nil
	}
	return starts
}

// assemble runs a call that puts its result together: rule 5. Operands that lie
// where they are parts of it stay, the others are copied there, so that the
// result holds what the operands do.
func (c *checker) assemble(call *ir.Call, starts []int) *Violation {
	x := c.of(call.Results[0])
	x.content, x.parts = content{root: x.ID}, nil
	var written []place
	at := x.place.lo
	for i, a := range call.Args {
		if a.Value == nil || c.of(a.Value).size == 0 {
			continue
		}
		y := c.of(a.Value)
		part := partAt(x, starts[i], y)
		if part.lo != at || part.hi > x.place.hi {
			return c.fault(Alias, x, fmt.Sprintf("operand %d (%s) in %s", i, y, part), fmt.Sprintf("the parts of the result one after the other, and this one from byte %d on", at))
		}
		at = part.hi
		x.hold(y, part.lo-x.place.lo)
		if y.place != part {
			written = append(written, part)
		}
	}
	if at != x.place.hi {
		return c.fault(Alias, x, fmt.Sprintf("parts up to byte %d", at), "parts for all of its bytes").in(x.place)
	}
	if len(written) == 0 {
		return nil // the bytes hold it already
	}
	if fault := c.writable(x); fault != nil {
		return fault
	}
	for i, a := range call.Args {
		if a.Value == nil || !overlap(c.of(a.Value).place, x.place) {
			continue
		}
		for _, w := range written {
			if y := c.of(a.Value); overlap(y.place, w) {
				return c.fault(Alias, x, fmt.Sprintf("bytes of operand %d (%s, %s) for a part that is copied", i, y, y.place), "others: it is read while they are written").in(w)
			}
		}
	}
	c.memory.put(x)
	return nil
}

// hold adds the content of y, from byte n of the value on.
func (x *value) hold(y *value, n int64) {
	if y.parts == nil {
		x.parts = append(x.parts, interval{n, n + y.size, y.content})
		return
	}
	for _, part := range y.parts {
		x.parts = append(x.parts, interval{n + part.lo, n + part.hi, part.content})
	}
}
