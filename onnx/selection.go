package onnx

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var selectionTable = map[string]operator{
	"NegativeLogLikelihoodLoss": since(12),
	"SoftmaxCrossEntropyLoss":   lifted(12, liftCrossEntropy),
	"BitCast":                   since(26),
	"TfIdfVectorizer":           lifted(9, liftNGrams),
}

// liftCrossEntropy makes the loss of the logarithms of softmax, which are the
// second output.
func liftCrossEntropy(n *node) {
	var attrs []op.Attr
	if v, ok := take[int64](n, "ignore_index"); ok {
		attrs = append(attrs, op.Attr{Name: "ignore_index", Value: v})
	}
	if v, ok := take[string](n, "reduction"); ok {
		attrs = append(attrs, op.Attr{Name: "reduction", Value: v})
	}
	n.noMoreAttrs()
	if len(n.args) < 2 || len(n.args) > 3 || len(n.proto.Outputs) > 2 {
		n.fail("got %d operands and %d outputs, want 2 or 3 and 1 or 2", len(n.args), len(n.proto.Outputs))
		return
	}
	var logs *ir.Value
	channels := []op.Attr{{Name: "axis", Value: int64(1)}}
	if n.wanted(1) {
		n.bind(n.proto.Outputs[1:], func(names []string) []*ir.Value {
			values := n.emit("log_softmax", n.args[:1], channels, names)
			logs = values[0]
			return values
		})
	} else {
		logs = n.call("log_softmax", n.args[:1], channels...)
	}
	args := append([]*ir.Value{logs}, n.args[1:]...)
	n.bind(n.proto.Outputs[:1], func(names []string) []*ir.Value { return n.emit("nll_loss", args, attrs, names) })
}

// liftNGrams refuses pools of text.
func liftNGrams(n *node) {
	if n.attrIndex("pool_strings") >= 0 {
		n.unsupported("attribute \"pool_strings\"")
		return
	}
	plain(n)
}
