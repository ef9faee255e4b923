package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

var attentionTable = map[string]lift.Operator{
	"Attention":        lift.Lifted(23, liftAttention),
	"RotaryEmbedding":  lift.Since(23),
	"RMSNormalization": lift.Since(23),
	"LinearAttention":  lift.Lifted(27, liftLinearAttention),
}

// liftAttention drops the precision of softmax: it is at least f32.
func liftAttention(n *lift.Node) {
	n.Ignore("softmax_precision")
	lift.Plain(n)
}

// liftLinearAttention drops a hint about how to split the work.
func liftLinearAttention(n *lift.Node) {
	n.Ignore("chunk_size")
	lift.Plain(n)
}
