package onnx

var attentionTable = map[string]operator{
	"Attention":        lifted(23, liftAttention),
	"RotaryEmbedding":  since(23),
	"RMSNormalization": since(23),
	"LinearAttention":  lifted(27, liftLinearAttention),
}

// liftAttention drops the precision of softmax: it is at least f32.
func liftAttention(n *node) {
	n.ignore("softmax_precision")
	plain(n)
}

// liftLinearAttention drops a hint about how to split the work.
func liftLinearAttention(n *node) {
	n.ignore("chunk_size")
	plain(n)
}
