package contrib

import "github.com/tenure-go/tenure/internal/onnx/lift"

// Domain is the domain of the operators that ONNX Runtime adds.
const Domain = "com.microsoft"

// Table returns the operators of Domain that are read, by name.
func Table() map[string]lift.Operator {
	return lift.Merge(fusedTable, diffusionTable, attentionTable, groupQueryTable, quantizeTable, integerProductTable, embedTable, weightTable, layoutTable, textTable)
}
