package onnx

var recurrentTable = map[string]operator{
	"RNN":  lifted(0, liftRecurrent),
	"GRU":  lifted(0, liftRecurrent),
	"LSTM": lifted(0, liftRecurrent),
}

// liftRecurrent drops what opset 6 says about outputs: those are there that
// somebody reads.
func liftRecurrent(n *node) {
	if n.opset < 7 {
		n.ignore("output_sequence")
	}
	plain(n)
}
