package contrib

import "github.com/tenure-go/tenure/internal/onnx/lift"

// Domain is the domain of the operators that ONNX Runtime adds.
const Domain = "com.microsoft"

// Table returns the operators of Domain that are known, by name: those that are
// read, and those that are refused with words of their own.
func Table() map[string]lift.Operator {
	return lift.Merge(fusedTable, dropoutTable, diffusionTable, attentionTable, rotaryTable, groupQueryTable, packingTable, expertTable, languageTable,
		quantizeTable, integerProductTable, embedTable, weightTable, layoutTable, textTable, tensorTable, refusedTable)
}
