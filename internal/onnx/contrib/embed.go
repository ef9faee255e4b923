package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var embedTable = map[string]lift.Operator{
	"EmbedLayerNormalization":  lift.Lifted(1, liftEmbedNorm),
	"QEmbedLayerNormalization": lift.Lifted(1, liftQEmbedNorm),
}

// embedding is the normalised sum of the embeddings of words, positions and
// segments.
type embedding struct {
	ids, segments, positions, mask *ir.Value // of the words [batch, length]; all but ids may be nil
	gamma, beta                    *ir.Value

	// rows returns the rows of a table that ids name: table 0 is that of the
	// words, 1 that of positions, 2 that of segments.
	rows func(table int, ids *ir.Value) *ir.Value
}

// embedEpsilon takes the attribute of the normalisation.
func embedEpsilon(n *lift.Node) op.Attr {
	return op.Attr{Name: "epsilon", Value: float64(lift.TakeOr(n, "epsilon", float32(1e-12)))}
}

func liftEmbedNorm(n *lift.Node) {
	epsilon := embedEpsilon(n)
	n.Ignore("mask_index_type")
	n.NoMoreAttrs()
	if !n.Operands(1, 9) {
		return
	}
	const tables, gamma, beta = 2, 5, 6
	for i := tables; i <= beta; i++ {
		if n.Arg(i) == nil && (i != tables+2 || n.Arg(1) != nil) {
			n.Fail("operand %d is absent, want a value", i)
			return
		}
	}
	e := embedding{ids: n.Args[0], segments: n.Arg(1), mask: n.Arg(7), positions: n.Arg(8), gamma: n.Arg(gamma), beta: n.Arg(beta)}
	e.rows = func(table int, ids *ir.Value) *ir.Value {
		return n.Call("gather", []*ir.Value{n.Arg(tables + table), ids})
	}
	e.finish(n, epsilon)
}

// finish ends the node. Output 1 says how many ones a mask has per sample,
// output 2 is the sum.
func (e *embedding) finish(n *lift.Node, epsilon op.Attr) {
	sum, places := e.rows(0, e.ids), e.positions
	if places == nil {
		length := n.Call("squeeze", []*ir.Value{n.Call("shape", []*ir.Value{e.ids}, lift.IntAttr("start", 1), lift.IntAttr("end", 2))})
		places = n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), length, n.Scalar(dtype.I64, 1)})
	}
	sum = n.Add(sum, e.rows(1, places))
	if e.segments != nil {
		sum = n.Add(sum, e.rows(2, e.segments))
	}
	n.Output(2, "identity", []*ir.Value{sum})
	if e.mask != nil && n.Wanted(1) {
		ones := n.Call("cast", []*ir.Value{n.WithNumber("equal", e.mask, 1, e.mask.Type.DType)}, op.Attr{Name: "to", Value: dtype.I32})
		n.Output(1, "reduce_sum", []*ir.Value{ones, n.Ints([]int64{1})}, lift.IntAttr("keepdims", 0))
	} else if n.Wanted(1) {
		batch := n.Call("shape", []*ir.Value{e.ids}, lift.IntAttr("end", 1))
		n.Output(1, "constant_of_shape", []*ir.Value{batch}, op.Attr{Name: "dtype", Value: dtype.I32})
	}
	n.Output(0, "layer_normalization", []*ir.Value{sum, e.gamma, e.beta}, epsilon)
}

// liftQEmbedNorm is an EmbedLayerNormalization of five quantised tables and
// vectors, each with one scale and one zero. Rows are gathered before they
// become floats.
func liftQEmbedNorm(n *lift.Node) {
	epsilon := embedEpsilon(n)
	n.NoMoreAttrs()
	const parts, mask, scales, zeros, all = 2, 7, 8, 13, 18 // operands: where they begin
	if !n.Operands(1, all) {
		return
	}
	for i := range mask - parts {
		if i == 2 && n.Arg(1) == nil {
			continue // no segments
		}
		for _, at := range []int{parts, scales, zeros} {
			if n.Arg(at+i) == nil {
				n.Fail("operand %d is absent, want a value", at+i)
				return
			}
		}
	}
	numbers := func(part int, x *ir.Value) *ir.Value {
		return n.Call("dequantize_linear", []*ir.Value{x, n.Arg(scales + part), n.Arg(zeros + part)})
	}
	e := embedding{ids: n.Args[0], segments: n.Arg(1), mask: n.Arg(mask), gamma: numbers(3, n.Arg(parts+3)), beta: numbers(4, n.Arg(parts+4))}
	e.rows = func(table int, ids *ir.Value) *ir.Value {
		return numbers(table, n.Call("gather", []*ir.Value{n.Arg(parts + table), ids}))
	}
	e.finish(n, epsilon)
}
