package compute

import (
	"testing"

	"github.com/tenure-go/tenure/op"
)

// Every function that the operator table lets into a chain has a kernel of its
// name.
func TestEveryChainFunctionHasAKernel(t *testing.T) {
	for name, f := range op.ChainFuncs() {
		_, one := unaryNamed[name]
		_, two := binaryNamed[name]
		if got := map[bool]int{one: 1, two: 2}[true]; got != f.Args {
			t.Errorf("%s: got a kernel of %d operands, want %d", name, got, f.Args)
		}
	}
}
