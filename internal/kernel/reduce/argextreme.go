package reduce

import "github.com/tenure-go/tenure/internal/kernel"

// ArgExtreme writes, for every outer and inner index, where along the axis
// the largest (or smallest) element is. Of equal ones it is the first, or the
// last if last is true. A NaN is larger than any number, and smaller.
func ArgExtreme[T kernel.Number](v *kernel.Variant, dst []int64, src []T, outer, axis, inner int, smallest, last bool) {
	for o := range outer {
		if inner == 1 {
			dst[o] = int64(argRow(v, src[o*axis:(o+1)*axis], smallest, last))
			continue
		}
		for i := 0; i < inner; i += argBlock {
			w := min(argBlock, inner-i)
			argColumns(dst[o*inner+i:][:w], src[o*axis*inner+i:], axis, inner, smallest, last)
		}
	}
}

// argBlock columns are compared together, row by row.
const argBlock = 256

func argColumns[T kernel.Number](dst []int64, src []T, axis, inner int, smallest, last bool) {
	var block [argBlock]T
	best := block[:len(dst)]
	copy(best, src)
	clear(dst)
	for k := 1; k < axis; k++ {
		row := src[k*inner:][:len(best)]
		for i, x := range row {
			b := best[i]
			better := x > b
			if smallest {
				better = x < b
			}
			if better || x != x && b == b || last && (x == b || x != x) {
				best[i], dst[i] = x, int64(k)
			}
		}
	}
}

// argRow looks for the extreme number first, and then for where it is. A NaN is
// one.
func argRow[T kernel.Number](v *kernel.Variant, row []T, smallest, last bool) int {
	best := extreme(v, row, smallest)
	if last {
		for i := len(row) - 1; i > 0; i-- {
			if x := row[i]; x == best || x != x {
				return i
			}
		}
		return 0
	}
	if best != best {
		for i, x := range row {
			if x != x {
				return i
			}
		}
	}
	for i, x := range row {
		if x == best {
			return i
		}
	}
	return 0
}

// extreme is NaN if any element is.
func extreme[T kernel.Number](v *kernel.Variant, row []T, smallest bool) T {
	if f, ok := any(row).([]float32); ok {
		if smallest {
			return T(RowMin(v, f))
		}
		return T(RowMax(v, f))
	}
	if smallest {
		return joinRow(v, kernel.Min, row[0], row[1:])
	}
	return joinRow(v, kernel.Max, row[0], row[1:])
}
