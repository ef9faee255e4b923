package pass_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// A reshape does not read the operand of one below it whose result has a size
// that depends on data: whether both have as many elements is known by a run
// alone, and a program in which they have not is still well-formed.
func TestReshapeOfUnknownSize(t *testing.T) {
	p, err := ir.Parse(`
		func @f(%x: f32[5], %t: i64[2]) {
			weight @i64_1: i64[2]
			%y = relu(%x)
			%r = reshape(%y, %t)
			%s = reshape(%r, @i64_1)
			%z = softmax(%s) {axis = -1}
			return %z
		}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	table := ir.WeightMap{p.Weights[0].Name: {1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}}
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: table}}
	for _, passes := range [][]pass.Pass{pass.Load, pass.Specialise} {
		if err := pass.Run(ctx, passes, func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }); err != nil {
			t.Fatal(err)
		}
	}
}
