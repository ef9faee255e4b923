package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var selectionTable = map[string]lift.Operator{
	"NegativeLogLikelihoodLoss": lift.Since(12),
	"SoftmaxCrossEntropyLoss":   lift.Lifted(12, liftCrossEntropy),
	"BitCast":                   lift.Since(26),
	"TfIdfVectorizer":           {From: 9, Lift: liftNGrams, Text: liftTextNGrams},
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

// liftNGrams counts n-grams of numbers.
func liftNGrams(n *lift.Node) {
	switch x := n.Arg(0); {
	case n.AttrIndex("pool_strings") < 0 || x == nil:
		lift.Plain(n)
	case x.Type.IsZero(): // it may have been strings
		n.GiveUp()
	default:
		n.Fail("got %s and pool_strings, want strings: %w", x.Type, dtype.ErrDType)
	}
}

// liftTextNGrams counts n-grams of strings: those of the indices that strings
// have in a list of all that the pool has.
func liftTextNGrams(n *lift.Node) {
	pool, ok := lift.Take[[]string](n, "pool_strings")
	if !n.WantText() {
		return
	}
	if len(n.Args) != 1 || !ok || n.AttrIndex("pool_int64s") >= 0 {
		n.Fail("got %d operands and %d pool_strings, want strings, with a pool of strings alone", len(n.Args), len(pool))
		return
	}
	var keys []string
	places := map[string]int64{}
	ids := make([]int64, len(pool))
	for i, s := range pool {
		at, known := places[s]
		if !known {
			at = int64(len(keys))
			places[s], keys = at, append(keys, s)
		}
		ids[i] = at
	}
	n.FinishNewest([]*ir.Value{n.Lookup(n.Args[0], keys)}, op.Attr{Name: "pool_int64s", Value: ids})
}
