package standard

import (
	"testing"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/op"
)

// Every operator of the table that has a name in ONNX can be imported, and
// every row of the import tables without a function names an operator.
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
	for name, o := range operators {
		if o.Lift == nil && op.Builtin().LookupONNX(name) == nil {
			t.Errorf("ONNX %s is in a table without a function that lifts it, and no operator has that name", name)
		}
		if o.From > lift.MaxOpset || o.Till > lift.MaxOpset {
			t.Errorf("ONNX %s: got %+v", name, o)
		}
	}
}
