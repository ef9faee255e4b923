package check_test

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

func ExampleCheck() {
	p, err := ir.Parse(`func @f(%x: f32[16]) -> (f32[16]) {
  %a: f32[16] = neg(%x)
  %b: f32[16] = relu(%a)
  %y: f32[16] = add(%a, %b)
  return %y
}`, op.Builtin())
	if err != nil {
		fmt.Println(err)
		return
	}
	value := func(v *ir.Value, space plan.Space, start, end plan.Time) plan.Value {
		return plan.Value{ID: v.ID, Name: v.Name, Type: v.Type.String(), Space: space, Size: 64, Start: start, End: end}
	}
	x, a, b, y := p.Body.Params[0], p.Body.Calls[0].Results[0], p.Body.Calls[1].Results[0], p.Body.Results[0]
	d := &plan.Plan{
		Format: plan.Format, Model: p.Hash(), Threads: 1, MaxConcurrent: 1, ArenaBytes: 64, IOBytes: 128,
		Shapes: []plan.Shape{{Name: "x", Type: "f32[16]"}},
		Steps:  []plan.Step{{Call: 0, Op: "neg", Reads: []int{x.ID}}, {Call: 1, Op: "relu", Reads: []int{a.ID}}, {Call: 2, Op: "add", Reads: []int{a.ID, b.ID}}},
		Values: []plan.Value{value(x, plan.SpaceInput, 0, 6), value(a, plan.SpaceArena, 1, 6), value(b, plan.SpaceArena, 3, 6), value(y, plan.SpaceOutput, 5, 6)},
	}

	// b is planned in the bytes of a, which is still needed.
	fmt.Println(check.Check(p, d, nil))

	d.Values[2].Offset = 64
	d.ArenaBytes, d.LowerBoundBytes = 128, 128
	d.Peak = plan.Peak{Step: 1, Bytes: 128, Live: []int{a.ID, b.ID}}
	fmt.Println(check.Check(p, d, nil))
	// Output:
	// plan: read: step 2 (add): %a: bytes [0,64) of the arena: got %b from its byte 0, want %a from its byte 0
	// <nil>
}
