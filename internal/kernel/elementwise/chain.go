package elementwise

import "github.com/tenure-go/tenure/internal/kernel"

// Chain computes elementwise float32 functions one after the other on pieces
// that stay in the first cache, so that memory is read and written once however
// many there are. Results are those of the functions alone, to the bit.
//
// The output may be any operand that has all elements: of a piece, every
// operand is read before the output is written, but for those that the last
// step reads while it writes.
type Chain struct {
	Elements int
	Operands []ChainOperand
	Steps    []ChainStep // the last one computes the result

	slots  int
	expand []int // per operand: the slot that its elements are laid out in, -1 for none
	spare  int   // the slot that a streamed result passes through

	lastUse, free []int // lists of Prepare
}

// ChainOperand is an operand whose element for element i of the result is
// i/Inner modulo Count: Inner 1 and Count Elements for a whole one, Count 1 for
// one number.
type ChainOperand struct{ Inner, Count int }

// ChainStep is op(a) or op(a, b). A and B are operands, or results of steps
// before as -1 (this one's predecessor), -2, ...
type ChainStep struct {
	IsBinary bool
	Unary    kernel.UnaryOp
	Binary   kernel.BinaryOp
	A, B     int
	P, Q     float32

	to int // slot
}

// MaxChainOperands is how many operands a chain may have.
const MaxChainOperands = 8

// chainPiece is the number of elements that are computed together: a few slots
// of it fill half of a first cache.
const chainPiece = 1 << 10

// Prepare works out where the results of the steps lie. A chain may be prepared
// again, with other sizes.
func (c *Chain) Prepare() {
	c.slots, c.expand = 0, c.expand[:0]
	for i, o := range c.Operands {
		c.expand = append(c.expand, -1)
		if !c.isWhole(i) && (o.Count > 1 || c.readAsRow(i)) {
			c.expand[i] = c.slots
			c.slots++
		}
	}
	fixed := c.slots
	lastUse, free := c.lastUse[:0], c.free[:0]
	for i := range c.Steps {
		lastUse = append(lastUse, 0)
		for _, a := range c.Steps[i].inputs() {
			if a < 0 {
				lastUse[i+a] = i
			}
		}
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		for _, a := range s.inputs() { // a result may overwrite its own operands
			if a < 0 && lastUse[i+a] == i {
				if to := c.Steps[i+a].to; len(free) == 0 || free[len(free)-1] != to {
					free = append(free, to)
				}
			}
		}
		if len(free) > 0 {
			s.to, free = free[len(free)-1], free[:len(free)-1]
			continue
		}
		s.to = c.slots
		c.slots++
	}
	if c.slots == fixed {
		c.slots++
	}
	c.spare = c.Steps[len(c.Steps)-1].to
	c.lastUse, c.free = lastUse, free
}

// inputs returns A and B; A twice where there is no B.
func (s *ChainStep) inputs() [2]int {
	if s.IsBinary {
		return [2]int{s.A, s.B}
	}
	return [2]int{s.A, s.A}
}

func (c *Chain) isWhole(operand int) bool {
	return c.Operands[operand] == ChainOperand{Inner: 1, Count: c.Elements}
}

func (c *Chain) isNumber(a int) bool { return a >= 0 && c.Operands[a].Count == 1 && !c.isWhole(a) }

// readAsRow reports whether one number is an operand of a function that has no
// form for it.
func (c *Chain) readAsRow(operand int) bool {
	for _, s := range c.Steps {
		if !s.IsBinary && s.A == operand || s.IsBinary && c.isNumber(s.A) && c.isNumber(s.B) && (s.A == operand || s.B == operand) {
			return true
		}
	}
	return false
}

// ScratchFloats returns the size of a worker's scratch.
func (c *Chain) ScratchFloats() int { return c.slots * chainPiece }

// MostChainScratchFloats bounds the scratch of a chain of so many operands and
// steps, of any sizes: a piece for each operand that is spread, and for each
// result.
func MostChainScratchFloats(operands, steps int) int { return (operands + steps) * chainPiece }

// Tiles returns the number of tiles.
func (c *Chain) Tiles() int { return kernel.CeilDiv(c.Elements, kernel.RangeElements) }

// Tile computes part t. With stream set the result is written past the caches;
// it may then be no operand.
func (c *Chain) Tile(v *kernel.Variant, t int, scratch, dst []float32, operands [][]float32, stream bool) {
	end := min((t+1)*kernel.RangeElements, c.Elements)
	for at := t * kernel.RangeElements; at < end; at += chainPiece {
		c.piece(v, at, min(chainPiece, end-at), scratch, dst, operands, stream)
	}
	if stream {
		StreamEnd(v)
	}
}

func (c *Chain) piece(v *kernel.Variant, at, n int, scratch, dst []float32, operands [][]float32, stream bool) {
	slot := func(i int) []float32 { return scratch[i*chainPiece:][:n] }
	for i, s := range c.expand {
		if s >= 0 {
			spread(slot(s), operands[i], c.Operands[i], at)
		}
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		row := func(a int) []float32 {
			switch {
			case a < 0:
				return slot(c.Steps[i+a].to)
			case c.expand[a] >= 0:
				return slot(c.expand[a])
			}
			return operands[a][at : at+n]
		}
		to := slot(s.to)
		if i == len(c.Steps)-1 && !stream {
			to = dst[at : at+n]
		}
		switch {
		case !s.IsBinary:
			UnaryRow(v, s.Unary, to, row(s.A), s.P, s.Q)
		case c.isNumber(s.B) && c.expand[s.B] < 0:
			BinaryRowVS(v, s.Binary, to, row(s.A), operands[s.B][0])
		case c.isNumber(s.A) && c.expand[s.A] < 0:
			binaryRowSV(v, s.Binary, to, operands[s.A][0], row(s.B))
		default:
			BinaryRowVV(v, s.Binary, to, row(s.A), row(s.B))
		}
	}
	if stream {
		StreamRow(v, dst[at:at+n], slot(c.spare))
	}
}

// spread lays out the elements of an operand from element at of the result on.
func spread(dst, src []float32, o ChainOperand, at int) {
	for len(dst) > 0 {
		from := at / o.Inner % o.Count
		if o.Inner == 1 {
			n := copy(dst, src[from:o.Count])
			dst, at = dst[n:], at+n
			continue
		}
		n := min(o.Inner-at%o.Inner, len(dst))
		fill32(dst[:n], src[from])
		dst, at = dst[n:], at+n
	}
}

func fill32(dst []float32, v float32) {
	for i := range dst {
		dst[i] = v
	}
}
