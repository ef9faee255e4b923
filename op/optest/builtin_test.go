package optest_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/opcases"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
)

// Every built-in operator that a kernel computes keeps its declarations. An
// operator without cases in package opcases fails.
func TestBuiltinOperators(t *testing.T) {
	for _, def := range op.Builtin().Defs() {
		if def.Regions > 0 {
			continue // package exec runs them
		}
		t.Run(def.Name, func(t *testing.T) {
			if err := optest.Check(def, opcases.All()[def.Name]...); err != nil {
				t.Error(err)
			}
		})
	}
}
