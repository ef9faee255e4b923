package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

var linearTable = map[string]lift.Operator{
	"MatMul": lift.Since(0),
	"Gemm":   lift.Lifted(0, liftGemm),
	"Det":    lift.Since(11),
}

// liftGemm drops the attribute that the newer form always implies.
func liftGemm(n *lift.Node) {
	if n.Opset < 7 {
		n.Ignore("broadcast")
	}
	lift.Plain(n)
}
