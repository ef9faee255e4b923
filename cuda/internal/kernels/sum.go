package kernels

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
)

// Chunk is the number of elements that one block sums where all elements of a
// tensor are summed.
const Chunk = 1 << 14

// Sum sums the last axis of src, f32 or f64. dst has the strides of the other
// axes. The order is that of [SumF32] for each row.
func Sum(dt dtype.DType, dst, src Operand, size []int64) (*Launch, error) {
	const op = "kernels.Sum"
	k := named("sum_" + dt.String())
	rank := len(size)
	switch {
	case k == nil:
		return nil, fmt.Errorf("%s: got %s, want f32 or f64", op, dt)
	case rank == 0 || len(src.Strides) != rank:
		return nil, fmt.Errorf("%s: got %d sizes and %d strides of the source, want as many, and one at least", op, rank, len(src.Strides))
	case size[rank-1] < 0:
		return nil, fmt.Errorf("%s: got the size %d, want none below 0", op, size[rank-1])
	}
	operands := []Operand{dst, {src.Address, src.Strides[:rank-1]}}
	dims, strides, rows, err := compact(op, size[:rank-1], operands)
	if err == nil {
		err = aligned(op, k.Size, append(strides, src.Strides[rank-1:]), append(operands, src))
	}
	if err != nil {
		return nil, err
	}
	cols := uint64(size[rank-1])
	return stridedLaunch(k, rows, dims, strides, operands, word(cols), word(uint64(src.Strides[rank-1])), word(rows*cols)), nil
}

// SumAll returns the launches that sum n contiguous elements of src into one at
// dst. They run one after the other. Each sums chunks of [Chunk] elements, the
// last of which may be shorter, as [Sum] does a row, until one is left; scratch
// has room for [SumAllScratch] bytes. [SumAllF32] has the same order.
func SumAll(dt dtype.DType, dst, src, scratch uint64, n uint64) ([]*Launch, error) {
	const op = "kernels.SumAll"
	k := named("sum_" + dt.String())
	if k == nil {
		return nil, fmt.Errorf("%s: got %s, want f32 or f64", op, dt)
	}
	size := uint64(k.Size)
	for _, a := range []uint64{dst, src, scratch} {
		if a%size != 0 {
			return nil, fmt.Errorf("%s: got the address %#x, want a multiple of %d", op, a, size)
		}
	}
	var launches []*Launch
	for {
		rows := max(1, (n+Chunk-1)/Chunk)
		to := scratch
		if rows == 1 {
			to = dst
		}
		strides := [][]int64{{int64(size)}, {Chunk * int64(size)}}
		operands := []Operand{{Address: to}, {Address: src}}
		launches = append(launches, stridedLaunch(k, rows, []int64{int64(rows)}, strides, operands, word(Chunk), word(size), word(n)))
		if rows == 1 {
			return launches, nil
		}
		src, scratch, n = to, scratch+rows*size, rows
	}
}

// SumAllScratch returns the bytes of scratch for n elements.
func SumAllScratch(dt dtype.DType, n uint64) uint64 {
	total := uint64(0)
	for n > Chunk {
		n = (n + Chunk - 1) / Chunk
		total += n * uint64(dt.Size())
	}
	return total
}

// SumAllF32 sums x in the order of the launches of SumAll.
func SumAllF32(x []float32) float32 { return sumAll(x) }

// SumAllF64 is [SumAllF32] for f64.
func SumAllF64(x []float64) float64 { return sumAll(x) }

func sumAll[F float32 | float64](x []F) F {
	for len(x) > Chunk {
		var sums []F
		for len(x) > 0 {
			n := min(len(x), Chunk)
			sums = append(sums, sumRow(x[:n]))
			x = x[n:]
		}
		x = sums
	}
	return sumRow(x)
}
