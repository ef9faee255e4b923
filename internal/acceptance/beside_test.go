package acceptance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
)

// TestResultsBesideOneInPlace: on one thread, bytes of an operand become the
// narrower first result of a call. The bytes that are free then are not for its
// other results: they are written while the operand is read.
func TestResultsBesideOneInPlace(t *testing.T) {
	const i8 = 3
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			var g onnxtest.Graph
			g.Input("x", onnxtest.F32, 64, 48)
			g.Weight("w", i8, slices.Repeat([]byte{1, 255, 3, 0, 2}, 48*64/5+1)[:48*64], 48, 64)
			last := "x"
			for i := range 3 {
				n := func(s string) string { return fmt.Sprint(s, i) }
				g.Node("Sigmoid", []string{last}, []string{n("y")})
				g.Node("DynamicQuantizeLinear", []string{n("y")}, []string{n("q"), n("scale"), n("zero")})
				g.Node("MatMulInteger", []string{n("q"), "w", n("zero")}, []string{n("sums")})
				g.Node("Cast", []string{n("sums")}, []string{n("float")}, onnxtest.Int("to", onnxtest.F32))
				g.Node("Mul", []string{n("float"), n("scale")}, []string{n("wide")})
				g.Node("Slice", []string{n("wide"), "zeros", "ends", "axes"}, []string{n("out")})
				last = n("out")
			}
			g.Ints("zeros", 0)
			g.Ints("ends", 48)
			g.Ints("axes", 1)
			g.Output(last)
			s := modeltest.SessionOf(t, g.File(), tenure.WithThreads(threads))
			x := modeltest.Of(t, modeltest.Ramp(64*48), 64, 48)
			out := modeltest.Run(t, s, tenure.Inputs{"x": x})
			if v := modeltest.Values(t, out[last]); len(v) != 64*48 {
				t.Errorf("got %d elements, want %d", len(v), 64*48)
			}
		})
	}
}
