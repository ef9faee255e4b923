package standard

import (
	"testing"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/op"
)

// Every operator of the table that has a name in ONNX can be imported, and
// every name of the import tables stands for something.
func TestTableIsComplete(t *testing.T) {
	operators := Table()
	for _, d := range op.Builtin().Defs() {
		if d.ONNX == "" {
			continue
		}
		if _, ok := operators[d.ONNX]; !ok {
			t.Errorf("operator %s: ONNX %s is in no table", d.Name, d.ONNX)
		}
	}
	lifted := map[string]bool{"Constant": true, "CastLike": true, "Dropout": true, "Upsample": true, "Scatter": true, "SoftmaxCrossEntropyLoss": true,
		"HannWindow": true, "HammingWindow": true, "BlackmanWindow": true, "Scan": true,
		"LRN": true, "MeanVarianceNormalization": true, "LpNormalization": true, "LpPool": true, "GlobalLpPool": true, "CenterCropPad": true, "EyeLike": true}
	for _, table := range []map[string]lift.Operator{sequenceTable, einsumTable, gatedTable} {
		for name := range table {
			lifted[name] = true
		}
	}
	for name, o := range operators {
		if op.Builtin().LookupONNX(name) == nil && !lifted[name] {
			t.Errorf("ONNX %s is in a table, and no operator has that name", name)
		}
		if o.Lift == nil || o.From > lift.MaxOpset || o.Till > lift.MaxOpset {
			t.Errorf("ONNX %s: got %+v", name, o)
		}
	}
}
