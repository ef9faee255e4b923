package reduce

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Columns of float32 are reduced a block at a time, row by row: memory is read
// along its rows, and every row loop is one of the elementwise ones. Sums of a
// few rows are taken in float32 and added up in float64, so that many rows do
// not lose their small numbers.
const (
	columnBlock = 1 << 10
	columnRows  = 8  // added up in float32
	leastColumn = 16 // narrower ones are not worth a row loop
)

// ColumnScratch is the scratch of a worker of Columns, in float64s.
const ColumnScratch = 2 * columnBlock

// ByColumns reports whether Columns serves the reduction: products and squares
// under a root may leave the range of float32 on the way.
func (r *Reduction) ByColumns() bool {
	switch r.Kind {
	case Prod, LogSumExp, L2:
		return false
	}
	return r.width >= leastColumn && r.Len > 1
}

// columnUnits returns the number of blocks, and how many make a tile.
func (r *Reduction) columnUnits() (n, perTile int) {
	return r.Count / r.width * kernel.CeilDiv(r.width, columnBlock), max(1, reduceGrain/(r.Len*min(columnBlock, r.width)))
}

// ColumnTiles returns the number of tiles of Columns.
func (r *Reduction) ColumnTiles() int {
	n, perTile := r.columnUnits()
	return kernel.CeilDiv(n, perTile)
}

// Columns is Tile for float32, with tiles of its own.
func Columns(v *kernel.Variant, r *Reduction, tile int, scratch []float64, dst, src []float32) {
	n, perTile := r.columnUnits()
	blocks := kernel.CeilDiv(r.width, columnBlock)
	for u := tile * perTile; u < min((tile+1)*perTile, n); u++ {
		at := u/blocks*r.width + u%blocks*columnBlock
		w := min(columnBlock, r.width-u%blocks*columnBlock)
		if r.Kind == Max || r.Kind == Min {
			r.extremeColumns(v, r.offset(at), dst[at:at+w], src)
		} else {
			r.sumColumns(v, r.offset(at), scratch, dst[at:at+w], src)
		}
	}
}

func (r *Reduction) extremeColumns(v *kernel.Variant, at int, dst, src []float32) {
	op := kernel.Max
	if r.Kind == Min {
		op = kernel.Min
	}
	first := true
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			row := src[p : p+len(dst)]
			if first {
				copy(dst, row)
			} else {
				elementwise.BinaryRowVV(v, op, dst, dst, row)
			}
			first = false
			p += r.run.stride
		}
	}
}

func (r *Reduction) sumColumns(v *kernel.Variant, at int, scratch []float64, dst, src []float32) {
	w := len(dst)
	sum, rest := scratch[:w], kernel.View[float32](kernel.BytesOf(scratch[columnBlock:ColumnScratch]))
	part, temp := rest[:w], rest[columnBlock:columnBlock+w]
	clear(sum)
	clear(part)
	rows := 0
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			row := src[p : p+w]
			switch r.Kind {
			case L1:
				elementwise.UnaryRow(v, kernel.Abs, temp, row, 0, 0)
				row = temp
			case SumSquare:
				elementwise.BinaryRowVV(v, kernel.Mul, temp, row, row)
				row = temp
			}
			elementwise.BinaryRowVV(v, kernel.Add, part, part, row)
			if rows++; rows%columnRows == 0 {
				moveInto(v, sum, part)
			}
			p += r.run.stride
		}
	}
	moveInto(v, sum, part)
	for i, x := range sum {
		dst[i] = float32(lastFloat(r.Kind, x, 0, r.Len))
	}
}

// moveInto moves what part holds into sum.
func moveInto(v *kernel.Variant, sum []float64, part []float32) {
	part = part[:len(sum)]
	done := v.Elements.Gather.Over(len(sum), kernel.OperandOf(sum, 0, 1), kernel.OperandOf(part, 0, 1), kernel.Operand{}, kernel.Operand{})
	for i := done; i < len(sum); i++ {
		sum[i] += float64(part[i])
	}
	clear(part)
}
