package standard

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var attentionTable = map[string]lift.Operator{
	"Attention":        lift.Lifted(23, liftAttention),
	"RotaryEmbedding":  lift.Since(23),
	"RMSNormalization": lift.Lifted(23, LiftLayerNorm),
	"LinearAttention":  lift.Lifted(27, liftLinearAttention),
}

// liftAttention drops the precision of softmax, which is at least f32, and adds
// a mask of any type of numbers to the scores.
func liftAttention(n *lift.Node) {
	n.Ignore("softmax_precision")
	if q, mask := n.Arg(0), n.Arg(3); q != nil && mask != nil && !q.Type.IsZero() && !mask.Type.IsZero() {
		if from, to := mask.Type.DType, q.Type.DType; from != dtype.Bool && from != to {
			n.Args = slices.Clone(n.Args)
			n.Args[3] = n.Call("cast", []*ir.Value{mask}, op.Attr{Name: "to", Value: to})
		}
	}
	lift.Plain(n)
}

// liftLinearAttention drops a hint about how to split the work.
func liftLinearAttention(n *lift.Node) {
	n.Ignore("chunk_size")
	lift.Plain(n)
}
