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
