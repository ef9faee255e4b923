package onnx

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var signalTable = map[string]operator{
	"HannWindow":     lifted(17, func(n *node) { liftWindow(n, 0.5, -0.5, 0) }),
	"HammingWindow":  lifted(17, func(n *node) { liftWindow(n, 25.0/46, -21.0/46, 0) }),
	"BlackmanWindow": lifted(17, func(n *node) { liftWindow(n, 0.42, -0.5, 0.08) }),

	"DFT":             lifted(17, liftDFT),
	"STFT":            since(17),
	"MelWeightMatrix": since(17),
}

// liftDFT makes an operand of the axis that is an attribute before opset 20.
func liftDFT(n *node) {
	if n.opset < 20 {
		axis := takeOr(n, "axis", int64(1))
		if len(n.args) < 1 || len(n.args) > 2 {
			n.fail("got %d operands, want 1 or 2", len(n.args))
			return
		}
		n.args = []*ir.Value{n.args[0], n.arg(1), n.scalar(dtype.I64, float64(axis))}
	}
	plain(n)
}

// liftWindow is a + b * cos(t) + c * cos(2 * t), where t goes round once.
func liftWindow(n *node, a, b, c float64) {
	code := takeOr(n, "output_datatype", int64(1))
	periodic := takeOr(n, "periodic", int64(1)) != 0
	n.noMoreAttrs()
	if n.operand(1) == nil {
		return
	}
	to, err := convertAttr(code, op.DTypeKind)
	if err != nil {
		n.fail("attribute \"output_datatype\": %w", err)
		return
	}
	const dt = dtype.F64
	size := n.call("cast", n.args, op.Attr{Name: "to", Value: dt})
	steps := n.call("range", []*ir.Value{n.scalar(dt, 0), size, n.scalar(dt, 1)})
	round := size
	if !periodic {
		round = n.with("max", n.with("sub", size, 1, dt), 1, dt) // a window of one element has no step
	}
	t := n.with("mul", n.call("div", []*ir.Value{steps, round}), 2*math.Pi, dt)
	window := n.with("add", n.with("mul", n.call("cos", []*ir.Value{t}), b, dt), a, dt)
	if c != 0 {
		twice := n.call("cos", []*ir.Value{n.with("mul", t, 2, dt)})
		window = n.call("add", []*ir.Value{window, n.with("mul", twice, c, dt)})
	}
	n.finish("cast", []*ir.Value{window}, op.Attr{Name: "to", Value: to})
}
