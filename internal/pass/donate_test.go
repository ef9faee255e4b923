package pass_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// A transpose takes its operand's bytes where the least memory is asked for, or
// where that costs no time and the program has one set of sizes.
func TestDonateTransposes(t *testing.T) {
	for _, c := range []struct {
		shape              string
		fixed, leastMemory bool
		want               bool
	}{
		{"f32[400,400]", false, false, false},
		{"f32[400,400]", true, false, true},
		{"f32[400,400]", false, true, true},
		{"f32[40,40]", true, false, false},
		{"f32[40,40]", true, true, true},
		{"f32[400,500]", true, false, false},
	} {
		p, err := ir.Parse("func @f(%x: "+c.shape+") -> ("+c.shape+`) {
  %a = neg(%x)
  %b = transpose(%a) {perm = [1, 0]}
  %c = neg(%b)
  %d = transpose(%c) {perm = [1, 0]}
  %e = relu(%d)
  return %e
}`, op.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		if err := pass.Run(&pass.Context{Program: p, LeastMemory: c.leastMemory, Fixed: c.fixed}, []pass.Pass{pass.Donate}, nil); err != nil {
			t.Fatal(err)
		}
		if got := p.Body.Calls[1].Args[0].Donate; got != c.want {
			t.Errorf("%+v: got donated %v", c, got)
		}
	}
}
