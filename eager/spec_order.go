package eager

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Which elements are largest, in what order they come, which differ.

var (
	opTopK     = builtin("top_k")
	opArgMax   = builtin("arg_max")
	opArgMin   = builtin("arg_min")
	opOneHot   = builtin("one_hot")
	opUnique   = builtin("unique")
	opCompress = builtin("compress")
	opSuppress = builtin("non_max_suppression")
)

// argMax is the index of the largest element along an axis, as i64; keep leaves the axis with size 1.
func argMax(x tensor.Operand, axis int, keep bool) call { return unary(opArgMax, x).arg(axis, keep) }

// argMin is the index of the smallest element along an axis, as i64; keep leaves the axis with size 1.
func argMin(x tensor.Operand, axis int, keep bool) call { return unary(opArgMin, x).arg(axis, keep) }

func (c call) arg(axis int, keep bool) call {
	return c.with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "keepdims", Value: bit(keep)})
}

// topK is the k largest elements along an axis in descending order, and their indices as i64: values, indices.
func topK(x tensor.Operand, k, axis int) pair { return ordered(x, k, axis, true) }

// bottomK is the k smallest elements along an axis in ascending order, and their indices as i64: values, indices.
func bottomK(x tensor.Operand, k, axis int) pair { return ordered(x, k, axis, false) }

// sort is x in ascending or descending order along an axis, and the indices of its elements before, as i64: values, indices.
// Equal elements stay in their order.
func sort(x tensor.Operand, axis int, descending bool) pair {
	k := 0
	if x != nil && x.Tensor() != nil {
		s := x.Tensor().Shape()
		if at := axis; at >= -s.Rank() && at < s.Rank() { // any other axis is the operator's error
			k = s.Size((at + s.Rank()) % s.Rank())
		}
	}
	return ordered(x, k, axis, descending)
}

func ordered(x tensor.Operand, k, axis int, largest bool) pair {
	c := unary(opTopK, x).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "largest", Value: bit(largest)}).ints(1, []int{1}, k)
	c.results = 2
	return pair(c)
}

// oneHot is for each index a row of depth zeros of type dt along a new axis, with a 1 at the index; negative indices count from
// the end, and one that is not there gives zeros alone.
func oneHot(indices tensor.Operand, depth, axis int, dt dtype.DType) call {
	c := unary(opOneHot, indices).axis(axis).ints(1, nil, depth)
	var values []byte
	for _, v := range []float64{0, 1} {
		data, err := []byte{byte(v)}, error(nil)
		if dt != dtype.Bool {
			data, err = encode(dt, v)
		}
		if err != nil {
			return c.number(2, dt, v) // which words the error
		}
		values = append(values, data...)
	}
	return c.constant(2, dt, []int{2}, values)
}

// unique is the different elements of x in ascending order, in one dimension. Op("unique") gives counts and places, too.
func unique(x tensor.Operand) call { return unary(opUnique, x) }

// compress is the slices of x along an axis for which the condition, a vector of bool, holds.
func compress(x, condition tensor.Operand, axis int) call {
	return binary(opCompress, x, condition).axis(axis)
}

// nonMaxSuppression is batch, class and number, as i64 [n,3], of the boxes [N,boxes,4], given by two corners, of highest score
// [N,classes,boxes]: of each class at most so many, none below the score threshold, and none that overlaps a better one by more
// than the given share of both.
func nonMaxSuppression(boxes, scores tensor.Operand, most int, overlap, score float64) call {
	return binary(opSuppress, boxes, scores).ints(2, nil, most).number(3, dtype.F32, overlap).number(4, dtype.F32, score)
}
