package plan_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/tenure-go/tenure/plan"
)

// Three buffers: one that is overwritten in place by a smaller result, so that
// its tail comes free, and two that follow.
func ExampleProblem() {
	p := &plan.Problem{Storages: []plan.Storage{
		{Name: "sum", Size: 1024, Pieces: []plan.Piece{
			{Offset: 0, Size: 1024, Start: 1, End: 3}, // written by step 0, read last by step 1 ...
			{Offset: 0, Size: 256, Start: 3, End: 6},  // ... which leaves its result in the first quarter
		}},
		{Name: "next", Size: 512, Pieces: []plan.Piece{{Size: 512, Start: 5, End: 8}}},
	}}
	bound := p.LowerBound()
	fmt.Printf("at least %d bytes, reached at time %d\n", bound.Bytes, bound.At)

	fmt.Println(p.CheckPlacement(plan.Placement{Offsets: []int64{0, 512}, Size: 1024}))
	fmt.Println(p.CheckPlacement(plan.Placement{Offsets: []int64{0, 128}, Size: 1024}))
	// Output:
	// at least 1024 bytes, reached at time 1
	// <nil>
	// plan: invalid placement: storage 0 ("sum") piece 1 at bytes [0,256) and storage 1 ("next") piece 0 at bytes [128,640): got shared bytes at time 5, want none
}

func ExampleReadCSV() {
	p, err := plan.ReadCSV(strings.NewReader("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.Storages), "buffers,", p.LowerBound().Bytes, "bytes")
	// Output: 3 buffers, 8 bytes
}

func ExamplePlan_Report() {
	p := &plan.Plan{
		Format: plan.Format, Model: "sha256:5e12", Shapes: []plan.Shape{{Name: "x", Type: "f32[1,64]"}},
		ArenaBytes: 512, LowerBoundBytes: 512, IOBytes: 512, WeightBytes: 16640, ScratchPerThread: 1024, ScratchBytes: 2048, Threads: 2, MaxConcurrent: 1,
		Steps: []plan.Step{{Call: 0, Op: "gemm", Node: "fc1", Scratch: 1024}, {Call: 1, Op: "relu", Node: "act"}, {Call: 2, Op: "gemm", Node: "fc2", Scratch: 1024}},
		Values: []plan.Value{
			{ID: 0, Name: "x", Type: "f32[1,64]", Space: plan.SpaceInput, Size: 256, Start: 0, End: 2},
			{ID: 1, Name: "h", Type: "f32[1,128]", Space: plan.SpaceArena, Size: 512, Start: 1, End: 3},
			{ID: 2, Name: "a", Type: "f32[1,128]", Space: plan.SpaceArena, Size: 512, Start: 3, End: 6},
			{ID: 3, Name: "y", Type: "f32[1,64]", Space: plan.SpaceOutput, Size: 256, Start: 5, End: 8},
		},
		InPlace: []plan.InPlace{{Call: 1, Value: "a", Of: "h", Kind: plan.AliasSame, Bytes: 512}},
		Peak:    plan.Peak{Step: 0, Bytes: 512, Live: []int{1}},
	}
	if err := p.Report(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// plan for x: f32[1,64]
	//
	//   weights          16.2 KiB
	//   arena               512 B  lower bound 512 B
	//   scratch          2.00 KiB  2 threads × 1.00 KiB
	//   inputs, outputs     512 B
	//   per run          3.00 KiB  arena, scratch, inputs and outputs
	//   total            19.2 KiB  weights + 1 run = 19712 bytes
	//
	//   arena / lower bound = 1.000: optimal for this order and aliasing
	//
	// peak: 512 B live in 1 value, at step 0 of 3, node "fc1" (gemm)
	//         bytes  value  type        place
	//         512 B  h      f32[1,128]  at 0, steps 0 to 1
	//
	// in place: 1 result, 512 B that needed no place of their own
	//         bytes  results  operator  kind
	//         512 B  1        relu      same
}
