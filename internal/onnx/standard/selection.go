package standard

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var selectionTable = map[string]lift.Operator{
	"NegativeLogLikelihoodLoss": lift.Since(12),
	"SoftmaxCrossEntropyLoss":   lift.Lifted(12, liftCrossEntropy),
	"BitCast":                   lift.Since(26),
	"TfIdfVectorizer":           lift.Lifted(9, liftNGrams),
}

// liftCrossEntropy makes the loss of the logarithms of softmax, which are the
// second output.
func liftCrossEntropy(n *lift.Node) {
	var attrs []op.Attr
	if v, ok := lift.Take[int64](n, "ignore_index"); ok {
		attrs = append(attrs, op.Attr{Name: "ignore_index", Value: v})
	}
	if v, ok := lift.Take[string](n, "reduction"); ok {
		attrs = append(attrs, op.Attr{Name: "reduction", Value: v})
	}
	n.NoMoreAttrs()
	if len(n.Args) < 2 || len(n.Args) > 3 || len(n.Proto.Outputs) > 2 {
		n.Fail("got %d operands and %d outputs, want 2 or 3 and 1 or 2", len(n.Args), len(n.Proto.Outputs))
		return
	}
	var logs *ir.Value
	channels := []op.Attr{{Name: "axis", Value: int64(1)}}
	if n.Wanted(1) {
		n.Bind(n.Proto.Outputs[1:], func(names []string) []*ir.Value {
			values := n.Emit("log_softmax", n.Args[:1], channels, names)
			logs = values[0]
			return values
		})
	} else {
		logs = n.Call("log_softmax", n.Args[:1], channels...)
	}
	args := append([]*ir.Value{logs}, n.Args[1:]...)
	n.Bind(n.Proto.Outputs[:1], func(names []string) []*ir.Value { return n.Emit("nll_loss", args, attrs, names) })
}

// liftNGrams refuses pools of text.
func liftNGrams(n *lift.Node) {
	if n.AttrIndex("pool_strings") >= 0 {
		n.Unsupported("attribute \"pool_strings\"")
		return
	}
	lift.Plain(n)
}
