package pass_test

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// The last use of a value is marked, so that the result takes its bytes.
func Example() {
	p, err := ir.Parse(`func @main(%x: f32[4]) -> (f32[4]) {
		%a = relu(%x)
		%b = relu(%x)
		%c = add(%a, %b)
		%d = exp(%c)
		return %d
	}`, op.Builtin())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{}}
	if err := pass.Run(ctx, []pass.Pass{pass.CSE, pass.DCE, pass.Donate}, nil); err != nil {
		fmt.Println(err)
	}
	fmt.Print(p)
	// Output:
	// func @main(%x: f32[4]) -> (f32[4]) {
	//   %a: f32[4] = relu(%x)
	//   %c: f32[4] = add(donate %a, %a)
	//   %d: f32[4] = exp(donate %c)
	//   return %d
	// }
}
