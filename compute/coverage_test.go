package compute

import (
	"testing"

	"github.com/tenure-go/tenure/op"
)

// Every built-in operator without nested blocks has kernels, and no binder
// stands for an operator that does not exist.
func TestEveryOperatorIsBound(t *testing.T) {
	for _, def := range op.Builtin().Defs() {
		if got, want := Supported(def), def.Regions == 0; got != want {
			t.Errorf("%s: Supported is %v, want %v", def.Name, got, want)
		}
	}
	for name := range binders {
		if op.Builtin().Lookup(name) == nil {
			t.Errorf("%s is bound and not in the table", name)
		}
	}
}
