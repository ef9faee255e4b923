package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

var filterTable = map[string]lift.Operator{
	"NonZero":           lift.Since(9),
	"Compress":          lift.Since(9),
	"Unique":            lift.Since(11),
	"NonMaxSuppression": lift.Since(10),
}
