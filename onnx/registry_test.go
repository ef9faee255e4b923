package onnx

import (
	"sync"
	"testing"

	"github.com/tenure-go/tenure/op"
)

// testRegistry is the operator table with two operators of a user.
func testRegistry(t testing.TB) *op.Registry {
	t.Helper()
	r, err := makeRegistry()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var makeRegistry = sync.OnceValues(func() (*op.Registry, error) {
	like := func(s *op.Sig) error {
		for i := range s.Results {
			s.Results[i] = s.Args[0]
		}
		return nil
	}
	return op.Builtin().With(
		&op.Def{Name: "acme.scale", ONNX: "acme::Scale", MinArgs: 1, MaxArgs: 2, Infer: like, Attrs: []op.AttrDef{
			{Name: "by", Kind: op.Float, Default: 1.0}, {Name: "axes", Kind: op.Ints}, {Name: "to", Kind: op.DTypeKind},
			{Name: "weights", Kind: op.Floats}, {Name: "names", Kind: op.Strings}, {Name: "mode", Kind: op.String, Needed: true},
		}},
		&op.Def{Name: "acme.pair", ONNX: "acme::Pair", MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: 2, Infer: like},
	)
})

// Every operator of the table that has a name in ONNX can be imported, and
// every name of the import tables stands for something.
func TestTableIsComplete(t *testing.T) {
	for _, d := range op.Builtin().Defs() {
		if d.ONNX == "" {
			continue
		}
		if _, ok := operators[d.ONNX]; !ok {
			t.Errorf("operator %s: ONNX %s is in no table", d.Name, d.ONNX)
		}
	}
	lifted := map[string]bool{"Constant": true, "CastLike": true, "Dropout": true, "Upsample": true, "Scatter": true, "SoftmaxCrossEntropyLoss": true,
		"HannWindow": true, "HammingWindow": true, "BlackmanWindow": true, "Scan": true}
	for _, table := range []map[string]operator{composedTable, sequenceTable, einsumTable, gatedTable} {
		for name := range table {
			lifted[name] = true
		}
	}
	for name, o := range operators {
		if op.Builtin().LookupONNX(name) == nil && !lifted[name] {
			t.Errorf("ONNX %s is in a table, and no operator has that name", name)
		}
		if o.lift == nil || o.from > MaxOpset || o.till > MaxOpset {
			t.Errorf("ONNX %s: got %+v", name, o)
		}
	}
}
