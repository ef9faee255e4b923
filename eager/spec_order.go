package eager

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Operations that order, select or compare elements.

var (
	opTopK     = builtin("top_k")
	opArgMax   = builtin("arg_max")
	opArgMin   = builtin("arg_min")
	opOneHot   = builtin("one_hot")
	opUnique   = builtin("unique")
	opCompress = builtin("compress")
	opSuppress = builtin("non_max_suppression")
)

// argMax returns the index of the maximum along an axis, the first one if
// several are equal, as i64. keep retains the axis with size 1.
func argMax(x tensor.Operand, axis int, keep bool) call { return unary(opArgMax, x).arg(axis, keep) }

// argMin returns the index of the minimum along an axis, the first one if
// several are equal, as i64. keep retains the axis with size 1.
func argMin(x tensor.Operand, axis int, keep bool) call { return unary(opArgMin, x).arg(axis, keep) }

func (c call) arg(axis int, keep bool) call {
	return c.with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "keepdims", Value: bit(keep)})
}

// topK returns the k largest elements along an axis in descending order, and
// their indices as i64: values, indices.
func topK(x tensor.Operand, k, axis int) pair { return ordered(x, k, axis, true) }

// bottomK returns the k smallest elements along an axis in ascending order, and
// their indices as i64: values, indices.
func bottomK(x tensor.Operand, k, axis int) pair { return ordered(x, k, axis, false) }

// sort returns the elements of x in ascending or descending order along an
// axis, and for each its index in x, as i64: values, indices. Equal elements
// keep their order.
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

// oneHot returns, for each index, depth zeros of type dt along a new axis with
// a 1 at the index. A negative index counts from the end; one out of range
// leaves zeros only.
func oneHot(indices tensor.Operand, depth, axis int, dt dtype.DType) call {
	c := unary(opOneHot, indices).axis(axis).ints(1, nil, depth)
	var values []byte
	for _, v := range []float64{0, 1} {
		data, err := []byte{byte(v)}, error(nil)
		if dt != dtype.Bool {
			data, err = encode(dt, v)
		}
		if err != nil {
			return c.number(2, dt, v) // reports the error
		}
		values = append(values, data...)
	}
	return c.constant(2, dt, []int{2}, values)
}

// unique returns the distinct elements of x in ascending order, as a vector.
// Op("unique") returns counts and positions too.
func unique(x tensor.Operand) call { return unary(opUnique, x) }

// compress returns the slices of x along an axis for which condition, a vector
// of bool, is true.
func compress(x, condition tensor.Operand, axis int) call {
	return binary(opCompress, x, condition).axis(axis)
}

// nonMaxSuppression selects boxes [N,boxes,4], given by two corners each, by
// their scores [N,classes,boxes], and returns batch, class and box index of
// each, as i64 [n,3]. Of each class it selects at most `most` boxes, none with
// a score below score, and none that overlaps a better one by more than
// overlap, a share of the union of both.
func nonMaxSuppression(boxes, scores tensor.Operand, most int, overlap, score float64) call {
	return binary(opSuppress, boxes, scores).ints(2, nil, most).number(3, dtype.F32, overlap).number(4, dtype.F32, score)
}
