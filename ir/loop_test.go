package ir_test

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestLoopTypes infers a copy of a loop for operands of changing sizes, and
// compares with InferLoop for the call itself.
func TestLoopTypes(t *testing.T) {
	p, err := ir.Parse(`func @f(%x: f32[n,2], %y: f32[m,2], %k: i64[]) -> (f32[?,2], f32[n,2], f32[?,?,2]) {
		%r, %q, %s = loop(%k, _, %x, %x) (%i: i64[], %c: bool[], %a: f32[?,2], %b: f32[n,2]) {
			%d = copy(%c)
			%e = concat(%a, %y) {axis = 0}
			%g = loop(%k, _, %b) (%j: i64[], %h: bool[], %l: f32[n,2]) {
				%o = copy(%h)
				%u = exp(%l)
				return %o, %u
			}
			%w = neg(%g)
			return %d, %e, %w, %g
		}
		return %r, %q, %s
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	call := p.Body.Calls[0]
	copied := call.Clone()
	types := ir.NewLoopTypes(copied, nil)
	for _, n := range [][2]int{{3, 4}, {5, 1}, {3, 0}, {0, 2}, {7, 7}, {3, 4}} {
		for i, rows := range n {
			typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(rows, 2)}
			p.Body.Params[i].Type = typ
			switch i {
			case 0:
				copied.Args[2].Value.Type = typ
			case 1:
				copied.Regions[0].Calls[1].Args[1].Value.Type = typ
			}
		}
		if err := ir.InferLoop(call, nil); err != nil {
			t.Fatal(err)
		}
		if err := types.Infer(); err != nil {
			t.Fatal(err)
		}
		compare := func(got, want *ir.Block) {
			for i, v := range want.Params {
				if got.Params[i].Type != v.Type {
					t.Errorf("%v: %s: got %s, want %s", n, v, got.Params[i].Type, v.Type)
				}
			}
			for i, v := range want.Results {
				if got.Results[i].Type != v.Type || got.Results[i] == v {
					t.Errorf("%v: %s: got %s, want %s of another value", n, v, got.Results[i].Type, v.Type)
				}
			}
		}
		compare(copied.Regions[0], call.Regions[0])
		compare(copied.Regions[0].Calls[2].Regions[0], call.Regions[0].Calls[2].Regions[0])
	}
}
