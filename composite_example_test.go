package tenure_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/tensor"
)

// joiner has a sequence as an input and another one as an output.
var joiner = wiretest.ModelText(&testing.T{}, `
	opset 17
	input rows sequence(f32[n])
	input x f32[n]
	more = SequenceInsert(rows, x)
	matrix = ConcatFromSequence(more) {axis = 0, new_axis = 1}
	output more sequence(f32[n])
	output matrix f32[m,n]`)

// A sequence goes in as a list of tensors, which stay the caller's, and comes
// out as one, which is the caller's too.
func ExampleSequence() {
	m := must(tenure.LoadBytes(joiner))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	fmt.Println(m.Inputs()[0].Of)

	a, b := must(tensor.Of([]float32{1, 2}, 2)), must(tensor.Of([]float32{3, 4}, 2))
	defer a.Release()
	defer b.Release()
	out := must(s.Run(context.Background(), tenure.Inputs{"rows": tenure.Sequence{a, b}, "x": a}))
	defer out.Release()

	more := must(out.Sequence("more"))
	defer more.Release()
	fmt.Println(len(more), "rows; matrix", out["matrix"].Shape())
	for _, row := range more {
		fmt.Println(must(tensor.Values[float32](row)))
	}
	// Output:
	// rows: sequence of f32[n]
	// 3 rows; matrix [3,2]
	// [1 2]
	// [3 4]
	// [1 2]
}

// classifier ends as the classifiers of scikit-learn do when they are exported.
var classifier = wiretest.ModelText(&testing.T{}, `
	opset 17
	opset "ai.onnx.ml" 3
	input x f32[n,2]
	p = Softmax(x)
	probabilities = "ai.onnx.ml"::ZipMap(p) {classlabels_strings = ["no", "yes"]}
	output probabilities sequence(map(string, f32))`)

// The probabilities of a classifier are a map for each row: the classes, and a
// matrix with a row for each.
func ExampleOutputs_Map() {
	m := must(tenure.LoadBytes(classifier))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()

	x := must(tensor.Of([]float32{0, 0, 0, 1000}, 2, 2))
	defer x.Release()
	out := must(s.Run(context.Background(), tenure.Inputs{"x": x}))
	defer out.Release()

	p := must(out.Map("probabilities"))
	fmt.Println(must(tensor.Strings(p.Keys)), must(tensor.Values[float32](p.Values)))
	// Output: [no yes] [0.5 0.5 0 1]
}
