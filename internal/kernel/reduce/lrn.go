package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// LRN divides each element of src [Outer, Channels, Inner] by
// (Bias + Alpha/Size * s)^Beta, where s is the sum of the squares of the Size
// channels around its own, (Size-1)/2 before it and Size/2 after it. Channels
// that do not exist count as zeros.
//
// A tile computes all channels of a block of columns. It keeps the squares that
// later channels need in scratch, so that the output may be the operand's
// bytes.
type LRN struct {
	Outer, Channels, Inner, Size int
	Alpha, Beta, Bias            float64
}

const (
	mostColumns = 256      // of a block
	lrnElements = 16 << 10 // of the squares of a block: they stay in a cache
	columnUnit  = 16       // the width of a block is a multiple of it
)

// before and after return how many channels around a channel count.
func (l *LRN) before() int { return min((l.Size-1)/2, l.Channels) }
func (l *LRN) after() int  { return min(l.Size/2, l.Channels) }

// rows returns how many channels' squares are kept.
func (l *LRN) rows() int { return min(l.before()+1+l.after(), max(l.Channels, 1)) }

// width returns the columns of a block.
func (l *LRN) width() int {
	most := min(mostColumns, max(columnUnit, lrnElements/l.rows()/columnUnit*columnUnit))
	return kernel.EvenTile(l.Inner, most, columnUnit)
}

// perTile returns how many blocks make a tile.
func (l *LRN) perTile() int { return max(1, softmaxGrain/(max(l.Channels, 1)*l.width())) }

func (l *LRN) blocks() int { return l.Outer * kernel.CeilDiv(l.Inner, l.width()) }

// Tiles returns the number of tiles.
func (l *LRN) Tiles() int { return kernel.CeilDiv(l.blocks(), l.perTile()) }

// ScratchElements is the scratch of a worker, in elements.
func (l *LRN) ScratchElements() int { return (l.rows() + 1) * l.width() }

// MostScratchElements bounds the scratch of a worker for all sizes from 1 up to
// those of l.
func (l *LRN) MostScratchElements() int {
	return max(2*lrnElements, (l.rows()+1)*columnUnit) + mostColumns
}

// LRNTile computes one tile.
func LRNTile[T kernel.Float](v *kernel.Variant, l *LRN, tile int, scratch, dst, src []T) {
	w := l.width()
	across := kernel.CeilDiv(l.Inner, w)
	for b := tile * l.perTile(); b < min((tile+1)*l.perTile(), l.blocks()); b++ {
		at := b/across*l.Channels*l.Inner + b%across*w
		n := min(w, l.Inner-b%across*w)
		l1 := lrnBlock[T]{LRN: l, squares: scratch[:l.rows()*n], sum: scratch[l.rows()*n:][:n], dst: dst[at:], src: src[at:], n: n}
		l1.run(v)
	}
}

// lrnBlock is a block of n columns. The squares of channel c are kept in row c
// modulo rows until the last channel that needs them is computed.
type lrnBlock[T kernel.Float] struct {
	*LRN
	squares, sum, dst, src []T
	n                      int
}

func (b *lrnBlock[T]) run(v *kernel.Variant) {
	before, after := b.before(), b.after()
	next := 0 // the channel that is squared next
	for c := range b.Channels {
		for ; next < b.Channels && next <= c+after; next++ {
			x := b.src[next*b.Inner:][:b.n]
			multiply(v, b.kept(next), x, x)
		}
		first := max(0, c-before)
		sum := b.sum
		copy(sum, b.kept(first))
		for i := first + 1; i < next; i++ {
			addRow(v, sum, b.kept(i))
		}
		divideByPower(v, b.LRN, b.dst[c*b.Inner:][:b.n], b.src[c*b.Inner:][:b.n], sum)
	}
}

func (b *lrnBlock[T]) kept(channel int) []T {
	return b.squares[channel%b.rows()*b.n:][:b.n]
}

func multiply[T kernel.Float](v *kernel.Variant, dst, x, y []T) {
	if d, ok := any(dst).([]float32); ok {
		elementwise.BinaryRowVV(v, kernel.Mul, d, any(x).([]float32), any(y).([]float32))
		return
	}
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

func addRow[T kernel.Float](v *kernel.Variant, sum, x []T) {
	if s, ok := any(sum).([]float32); ok {
		elementwise.BinaryRowVV(v, kernel.Add, s, s, any(x).([]float32))
		return
	}
	for i := range sum {
		sum[i] += x[i]
	}
}

// divideByPower sets dst to x / (Bias + Alpha/Size * sum)^Beta. It overwrites
// sum.
func divideByPower[T kernel.Float](v *kernel.Variant, l *LRN, dst, x, sum []T) {
	scale := l.Alpha / float64(l.Size)
	if s, ok := any(sum).([]float32); ok {
		elementwise.UnaryRow(v, kernel.Affine, s, s, float32(scale), float32(l.Bias))
		elementwise.UnaryRow(v, kernel.PowScalar, s, s, float32(l.Beta), 0)
		elementwise.BinaryRowVV(v, kernel.Div, any(dst).([]float32), any(x).([]float32), s)
		return
	}
	for i, s := range sum {
		dst[i] = x[i] / T(math.Pow(float64(s)*scale+l.Bias, l.Beta))
	}
}
