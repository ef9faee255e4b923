package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
)

// EachVariant runs a test with every variant that this process may run, as a
// subtest of its name.
func EachVariant(t *testing.T, run func(t *testing.T, v *kernel.Variant)) {
	for _, v := range machine.Variants() {
		t.Run(v.Name, With(v, run))
	}
}

// With makes a test of one that takes a variant.
func With(v *kernel.Variant, run func(t *testing.T, v *kernel.Variant)) func(t *testing.T) {
	return func(t *testing.T) { run(t, v) }
}
