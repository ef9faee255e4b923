package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

func movements() (list []operation) {
	turn := func(name string, dt dtype.DType, dims func(n int) []int, axes ...int) {
		list = append(list, copied(fmt.Sprintf("%s %s", name, dt),
			func(n int) []operand { return []operand{{"byte", dt, dims(n)}} },
			"x.transpose("+strings.ReplaceAll(fmt.Sprint(axes), " ", ",")+")",
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Transpose(x[0], axes...) }))
	}
	square := func(n int) []int { return []int{n / side(n), side(n)} }
	images := func(n int) []int { return []int{n / (side(n) * 16 * 3), side(n), 16, 3} }
	planes := func(n int) []int { return []int{n / (side(n) * 16 * 3), 3, side(n), 16} }
	channels := func(n int) []int { return []int{n / (side(n) * 64), side(n), 64} }
	heads := func(n int) []int { return []int{max(1, n/(128*12*64)), 12, 128, min(64, n/(128*12))} }
	for _, dt := range []dtype.DType{dtype.F32, dtype.U8, dtype.F16, dtype.F64} {
		turn("transpose", dt, square, 1, 0)
	}
	turn("NHWC to NCHW, 3 channels,", dtype.F32, images, 0, 3, 1, 2)
	turn("NHWC to NCHW, 3 channels,", dtype.U8, images, 0, 3, 1, 2)
	turn("NCHW to NHWC, 3 channels,", dtype.F32, planes, 0, 2, 3, 1)
	turn("NCHW to NHWC, 3 channels,", dtype.U8, planes, 0, 2, 3, 1)
	turn("rows to columns, 64 channels,", dtype.F32, channels, 0, 2, 1)
	turn("swap of middle axes", dtype.F32, heads, 0, 2, 1, 3)
	turn("swap of last axes", dtype.F32, heads, 0, 1, 3, 2)

	step := func(by int) tensor.Range { return tensor.Range{Stop: tensor.End, Step: by} }
	view := func(name, numpy string, ranges ...tensor.Range) {
		list = append(list, copied(name+" f32", all(matrix("unit", dtype.F32)), numpy,
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
				return s.Clone(s.Adopt(x[0].Slice(ranges...)))
			}))
	}
	view("slice of a step", "x[:, ::2]", tensor.All, step(2))
	view("slice of every other row", "x[::2]", step(2))
	for axis, view := range []string{"x[::-1]", "x[:, ::-1]"} {
		list = append(list, copied(fmt.Sprintf("reversed f32, axis %d", axis), all(matrix("unit", dtype.F32)), view,
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return reversed(s, x[0], axis) }))
	}
	list = append(list, copied("clone of a transposed view f32", all(matrix("unit", dtype.F32)), "x.T",
		func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Clone(s.Adopt(x[0].Transpose())) }))
	list = append(list, function("add of a transposed view f32", all(matrix("unit", dtype.F32), matrix("unit", dtype.F32)), "add", "x, y.T",
		func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Add(x[0], s.Adopt(x[1].Transpose())) }))
	for axis := range 2 {
		list = append(list, function(fmt.Sprintf("concat f32, axis %d", axis), all(matrix("unit", dtype.F32), matrix("unit", dtype.F32)),
			"concatenate", fmt.Sprintf("(x, y), axis=%d", axis),
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Concat(axis, x[0], x[1]) }))
	}
	list = append(list,
		operation{
			name: "tile f32", operands: all(func(n int) operand { return operand{"unit", dtype.F32, []int{n / side(n) / 4, side(n)}} }),
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Tile(x[0], 2, 2) },
			fresh:  "np.tile(x, (2, 2))",
		},
		operation{
			name: "expand of a column f32", operands: all(func(n int) operand { return operand{"unit", dtype.F32, []int{n / side(n), 1}} }),
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
				return s.Expand(x[0], x[0].Shape().Size(0), x[0].Shape().Size(0))
			},
			fresh: "np.broadcast_to(x, (len(x), len(x))).copy()", into: "np.copyto(out, np.broadcast_to(x, (len(x), len(x))))",
		})
	return list
}

// reversed is x from its end to its beginning along an axis: no view of a
// tensor, so an operation.
func reversed(s *eager.Scope, x *tensor.Tensor, axis int) *tensor.Tensor {
	number := func(n int64) *tensor.Tensor { return s.Adopt(tensor.Of([]int64{n}, 1)) }
	ts, err := eager.Op("slice").On(x).On(number(-1)).On(number(math.MinInt64)).On(number(int64(axis))).On(number(-1)).In(s).RunAll()
	if err != nil {
		return nil // the scope keeps the error
	}
	return ts[0]
}

func lookups() []operation {
	rows := func(n int) operand { return operand{"unit", dtype.F32, []int{n / 64, 64}} }
	places := func(n int) operand { return operand{fmt.Sprint("index ", n/64), dtype.I64, []int{n / 64}} }
	elements := func(n int) operand {
		return operand{fmt.Sprint("index ", side(n)), dtype.I64, []int{n / side(n), side(n)}}
	}
	tuples := func(n int) operand { return operand{fmt.Sprint("index ", n/64), dtype.I64, []int{n / 64, 1}} }
	anywhere := func(n int) operand { return operand{fmt.Sprint("index ", n), dtype.I64, []int{n}} }
	return []operation{
		{
			name: "gather rows f32", operands: all(rows, places), fresh: "x.take(y, 0)", into: "x.take(y, 0, out, 'clip')",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Gather(x[0], x[1], 0) },
		},
		{
			name: "gather f32", operands: all(vector("unit", dtype.F32), anywhere), fresh: "x.take(y)", into: "x.take(y, 0, out, 'clip')",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.Gather(x[0], x[1], 0) },
		},
		{
			name: "gather elements f32", operands: all(matrix("unit", dtype.F32), elements), fresh: "np.take_along_axis(x, y, 1)",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.GatherElements(x[0], x[1], 1) },
		},
		{
			name: "scatter rows f32", operands: all(rows, tuples, rows), fresh: "put(x.copy(), y[:, 0], z)",
			into:   "(np.copyto(out, x), put(out, y[:, 0], z))",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.ScatterND(x[0], x[1], x[2]) },
		},
		function("cumsum f32, last axis", all(matrix("unit", dtype.F32)), "cumsum", "x, axis=1",
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.CumSum(x[0], 1) }),
		function("cumsum f32, first axis", all(matrix("unit", dtype.F32)), "cumsum", "x, axis=0",
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.CumSum(x[0], 0) }),
		function("cumsum i64, last axis", all(matrix("int", dtype.I64)), "cumsum", "x, axis=1",
			func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.CumSum(x[0], 1) }),
		{
			name: "sort f32, rows", operands: all(matrix("unit", dtype.F32)), fresh: "np.sort(x)[:, ::-1]", into: "(np.copyto(out, x), out.sort())",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
				values, _ := s.TopK(x[0], x[0].Shape().Size(1), 1)
				return values
			},
		},
		{
			name: "argsort i64, rows", operands: all(matrix("int", dtype.I64)), fresh: "np.argsort(-x, kind='stable')",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
				_, indices := s.TopK(x[0], x[0].Shape().Size(1), 1)
				return indices
			},
		},
		{
			name: "top 10 f32, rows", operands: all(matrix("unit", dtype.F32)),
			fresh: "np.take_along_axis(x, order(x, np.argpartition(-x, 10)[:, :10]), 1)",
			tenure: func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
				values, _ := s.TopK(x[0], 10, 1)
				return values
			},
		},
		{
			name: "unique i64", operands: all(vector("int", dtype.I64)), fresh: "np.unique(x, return_index=True, return_inverse=True, return_counts=True)[0]",
			tenure: unique,
		},
		{
			name: "unique f32", operands: all(vector("unit", dtype.F32)), fresh: "np.unique(x, return_index=True, return_inverse=True, return_counts=True)[0]",
			tenure: unique,
		},
	}
}

func unique(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor {
	ts, err := eager.Op("unique").On(x[0]).Results(4).In(s).RunAll()
	if err != nil {
		return nil // the scope keeps the error
	}
	return ts[0]
}

func reductions() (list []operation) {
	reduce := func(name, numpy string, f func(s *eager.Scope, x tensor.Operand, axes []int, keep bool) *tensor.Tensor, dt dtype.DType, rule string) {
		for axis, where := range []string{"first", "middle", "last"} {
			args := fmt.Sprintf("x, axis=%d", axis)
			list = append(list, function(fmt.Sprintf("%s %s, %s axis", name, dt, where), all(cube(rule, dt)), numpy, args,
				func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return f(s, x[0], []int{axis}, false) }))
		}
	}
	arg := func(s *eager.Scope, x tensor.Operand, axes []int, keep bool) *tensor.Tensor {
		return s.ArgMax(x, axes[0], keep)
	}
	for _, dt := range []dtype.DType{dtype.F32, dtype.I64} {
		rule := map[dtype.DType]string{dtype.F32: "unit", dtype.I64: "int"}[dt]
		reduce("sum", "sum", (*eager.Scope).ReduceSum, dt, rule)
		if dt == dtype.F32 { // numpy's mean of integers is a float
			reduce("mean", "mean", (*eager.Scope).ReduceMean, dt, rule)
		}
		reduce("max", "max", (*eager.Scope).ReduceMax, dt, rule)
		reduce("argmax", "argmax", arg, dt, rule)
	}
	reduce("sum", "sum", (*eager.Scope).ReduceSum, dtype.F64, "unit")
	list = append(list, function("sum f32, all", all(vector("unit", dtype.F32)), "sum", "x",
		func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.ReduceSum(x[0], nil, false) }))
	product := function("matmul 512 f32", func(int) []operand {
		return []operand{{"unit", dtype.F32, []int{512, 512}}, {"unit", dtype.F32, []int{512, 512}}}
	}, "matmul", "x, y", func(s *eager.Scope, x []*tensor.Tensor) *tensor.Tensor { return s.MatMul(x[0], x[1]) })
	return append(list, product)
}
