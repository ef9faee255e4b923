package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

var convTable = map[string]lift.Operator{
	"Conv":          lift.Since(0),
	"DeformConv":    lift.Since(19),
	"ConvTranspose": lift.Since(0),
}
