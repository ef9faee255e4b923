package main

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
)

// Each program takes no memory but that of its inputs and outputs.
func Example() {
	main()
	// Output:
	// concat_update      arena 0 bytes, 3 results in place, 0 copies; x[2,7] = 1.000
	// log_concat_update  arena 0 bytes, 3 results in place, 0 copies; x[2,7] = 1.000
	// own_kernel         arena 0 bytes, 3 results in place, 0 copies; x.new[2,7] = 1.000
}

// The kernel computes the same over its operand and into bytes of its own.
func TestLogRow(t *testing.T) {
	x, y := optest.Of([]float32{1, 2, 3, 4}, 2, 2), optest.Of([]float32{1, math.E}, 2)
	for _, c := range []optest.Case{
		{Attrs: []op.Attr{{Name: "row", Value: int64(1)}}, Args: []optest.Operand{x, y}, Want: []optest.Operand{optest.Of([]float32{1, 2, 0, 1}, 2, 2)}, Within: 1e-6},
		{Attrs: []op.Attr{{Name: "row", Value: int64(2)}}, Args: []optest.Operand{x, y}, Fails: "row 2 of f32[2,2]"},
		{Attrs: []op.Attr{{Name: "row", Value: int64(0)}}, Args: []optest.Operand{y, x}, Fails: "got f32[2,2]"},
	} {
		if err := optest.Check(logRow, c); err != nil {
			t.Error(err)
		}
	}
}
