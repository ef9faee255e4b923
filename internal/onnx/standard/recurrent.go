package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

var recurrentTable = map[string]lift.Operator{
	"RNN":  lift.Lifted(0, liftRecurrent),
	"GRU":  lift.Lifted(0, liftRecurrent),
	"LSTM": lift.Lifted(0, liftRecurrent),
}

// liftRecurrent drops what opset 6 says about outputs: those that are
// read are there.
func liftRecurrent(n *lift.Node) {
	if n.Opset < 7 {
		n.Ignore("output_sequence")
	}
	lift.Plain(n)
}
