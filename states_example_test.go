package tenure_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// A model that joins its past with new rows keeps them in a buffer.
func ExampleSession_NewStates() {
	p := must(ir.Parse(`
		func @sums(%row: f32[1,1,2], %past: f32[1,rows,2]) {
			%present = concat(%past, %row) {axis = 1}
			%axes = constant() {dtype = i64, dims = [1], ints = [1]}
			%sum = reduce_sum(%present, %axes) {keepdims = 0}
			return %sum, %present
		}`, op.Builtin()))
	m := must(tenure.LoadProgram(p, nil, tenure.WithStates()))
	defer m.Close()
	fmt.Println(m.States())
	s := must(m.NewSession())
	defer s.Close()
	states := must(s.NewStates(8))
	defer states.Close()
	row := must(tensor.Of([]float32{1, 10}, 1, 1, 2))
	defer row.Release()
	for range 3 {
		out := must(states.Run(context.Background(), tenure.Inputs{"row": row}))
		fmt.Println(states.Len(), must(tensor.Values[float32](out["sum"])))
		out.Release()
	}
	// Output:
	// [past -> present: appended along axis 1]
	// 1 [1 10]
	// 2 [2 20]
	// 3 [3 30]
}
