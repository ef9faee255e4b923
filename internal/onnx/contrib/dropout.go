package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

// dropoutTable has the dropouts that ONNX Runtime's optimiser of training
// writes, which models still have in inference.
var dropoutTable = map[string]lift.Operator{
	"BiasDropout":        lift.Lifted(1, liftBiasDropout),
	"BitmaskDropout":     lift.Lifted(1, liftBitmaskDropout),
	"BitmaskBiasDropout": lift.Lifted(1, liftBiasDropout),
}

// liftBiasDropout is x + bias + residual in inference; the residual may be
// absent.
func liftBiasDropout(n *lift.Node) {
	if inference(n, 2, 4) {
		n.Finish("identity", []*ir.Value{n.Add(n.Add(n.Args[0], n.Args[1]), n.Arg(2))})
	}
}

// liftBitmaskDropout is x in inference.
func liftBitmaskDropout(n *lift.Node) {
	if inference(n, 1, 2) {
		n.Finish("identity", n.Args[:1])
	}
}

// inference takes the attributes of a dropout with so many operands at least,
// and refuses one that trains, which the given operand says, or whose mask is
// read.
func inference(n *lift.Node, least, training int) bool {
	n.Ignore("seed")
	n.NoMoreAttrs()
	if !n.Operands(least, training+1) {
		return false
	}
	if n.Arg(training) != nil {
		if on, known := n.KnownInts(training); !known || len(on) != 1 || on[0] != 0 {
			n.Unsupported("operand %d, training_mode, want false, which is inference", training)
		}
	}
	n.NoOutputs(1)
	return n.Err == nil
}
