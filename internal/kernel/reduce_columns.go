package kernel

// Columns of float32 are reduced a block at a time, row by row: memory is read along its rows, and every row loop is one of the elementwise
// ones. Sums of a few rows are taken in float32 and added up in float64, so that many rows do not lose their small numbers.
const (
	columnBlock = 1 << 10
	columnRows  = 8  // added up in float32
	leastColumn = 16 // narrower ones are not worth a row loop
)

// ColumnScratch is what a worker of ReduceColumns needs, in float64s.
const ColumnScratch = 2 * columnBlock

// ByColumns tells whether ReduceColumns serves the reduction: products and squares under a root may leave the range of float32 on the way.
func (r *Reduce) ByColumns() bool {
	switch r.Kind {
	case ReduceProd, ReduceLogSumExp, ReduceL2:
		return false
	}
	return r.width >= leastColumn && r.Len > 1
}

// columnUnits returns the number of blocks, and how many make a tile.
func (r *Reduce) columnUnits() (n, perTile int) {
	return r.Count / r.width * CeilDiv(r.width, columnBlock), max(1, reduceGrain/(r.Len*min(columnBlock, r.width)))
}

// ColumnTiles returns the number of tiles of ReduceColumns.
func (r *Reduce) ColumnTiles() int {
	n, perTile := r.columnUnits()
	return CeilDiv(n, perTile)
}

// ReduceColumns is ReduceTile for float32, with tiles of its own.
func ReduceColumns(v *Variant, r *Reduce, tile int, scratch []float64, dst, src []float32) {
	n, perTile := r.columnUnits()
	blocks := CeilDiv(r.width, columnBlock)
	for u := tile * perTile; u < min((tile+1)*perTile, n); u++ {
		at := u/blocks*r.width + u%blocks*columnBlock
		w := min(columnBlock, r.width-u%blocks*columnBlock)
		if r.Kind == ReduceMax || r.Kind == ReduceMin {
			r.extremeColumns(v, r.offset(at), dst[at:at+w], src)
		} else {
			r.sumColumns(v, r.offset(at), scratch, dst[at:at+w], src)
		}
	}
}

func (r *Reduce) extremeColumns(v *Variant, at int, dst, src []float32) {
	op := Max
	if r.Kind == ReduceMin {
		op = Min
	}
	first := true
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			row := src[p : p+len(dst)]
			if first {
				copy(dst, row)
			} else {
				binaryRowVV(v, op, dst, dst, row)
			}
			first = false
			p += r.run.stride
		}
	}
}

func (r *Reduce) sumColumns(v *Variant, at int, scratch []float64, dst, src []float32) {
	w := len(dst)
	sum, rest := scratch[:w], View[float32](bytesOf(scratch[columnBlock:ColumnScratch]))
	part, temp := rest[:w], rest[columnBlock:columnBlock+w]
	clear(sum)
	clear(part)
	rows := 0
	for _, s := range r.starts {
		p := at + s
		for range r.run.size {
			row := src[p : p+w]
			switch r.Kind {
			case ReduceL1:
				unaryRow(v, Abs, temp, row, 0, 0)
				row = temp
			case ReduceSumSquare:
				binaryRowVV(v, Mul, temp, row, row)
				row = temp
			}
			binaryRowVV(v, Add, part, part, row)
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
func moveInto(v *Variant, sum []float64, part []float32) {
	part = part[:len(sum)]
	done := v.Elements.Gather.Over(len(sum), OperandOf(sum, 0, 1), OperandOf(part, 0, 1), Operand{}, Operand{})
	for i := done; i < len(sum); i++ {
		sum[i] += float64(part[i])
	}
	clear(part)
}
