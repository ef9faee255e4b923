package standard

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var signalTable = map[string]lift.Operator{
	"HannWindow":     lift.Lifted(17, func(n *lift.Node) { liftWindow(n, 0.5, -0.5, 0) }),
	"HammingWindow":  lift.Lifted(17, func(n *lift.Node) { liftWindow(n, 25.0/46, -21.0/46, 0) }),
	"BlackmanWindow": lift.Lifted(17, func(n *lift.Node) { liftWindow(n, 0.42, -0.5, 0.08) }),

	"DFT":             lift.Lifted(17, liftDFT),
	"STFT":            lift.Lifted(17, liftSTFT),
	"MelWeightMatrix": lift.Since(17),
}

// liftDFT makes an operand of the axis that is an attribute before opset 20.
func liftDFT(n *lift.Node) {
	if n.Opset < 20 {
		axis := lift.TakeOr(n, "axis", int64(1))
		if len(n.Args) < 1 || len(n.Args) > 2 {
			n.Fail("got %d operands, want 1 or 2", len(n.Args))
			return
		}
		n.Args = []*ir.Value{n.Args[0], n.Arg(1), n.Scalar(dtype.I64, float64(axis))}
	}
	lift.Plain(n)
}

// liftSTFT adds to a signal [N,length] of real numbers the axis that says so,
// which exporters leave out.
func liftSTFT(n *lift.Node) {
	if rank, known := n.Rank(0); known && rank == 2 {
		n.Args = slices.Clone(n.Args)
		n.Args[0] = n.Call("unsqueeze", []*ir.Value{n.Args[0], n.Ints([]int64{2})})
	}
	lift.Plain(n)
}

// liftWindow is a + b * cos(t) + c * cos(2 * t), where t goes round once.
func liftWindow(n *lift.Node, a, b, c float64) {
	code := lift.TakeOr(n, "output_datatype", int64(1))
	periodic := lift.TakeOr(n, "periodic", int64(1)) != 0
	n.NoMoreAttrs()
	if n.Operand(1) == nil {
		return
	}
	to, err := lift.ConvertAttr(code, op.DTypeKind)
	if err != nil {
		n.Fail("attribute \"output_datatype\": %w", err)
		return
	}
	const dt = dtype.F64
	size := n.Call("cast", n.Args, op.Attr{Name: "to", Value: dt})
	steps := n.Call("range", []*ir.Value{n.Scalar(dt, 0), size, n.Scalar(dt, 1)})
	round := size
	if !periodic {
		round = n.WithNumber("max", n.WithNumber("sub", size, 1, dt), 1, dt) // a window of one element has no step
	}
	t := n.WithNumber("mul", n.Call("div", []*ir.Value{steps, round}), 2*math.Pi, dt)
	window := n.WithNumber("add", n.WithNumber("mul", n.Call("cos", []*ir.Value{t}), b, dt), a, dt)
	if c != 0 {
		twice := n.Call("cos", []*ir.Value{n.WithNumber("mul", t, 2, dt)})
		window = n.Call("add", []*ir.Value{window, n.WithNumber("mul", twice, c, dt)})
	}
	n.Finish("cast", []*ir.Value{window}, op.Attr{Name: "to", Value: to})
}
