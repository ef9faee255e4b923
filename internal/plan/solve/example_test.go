package solve_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/plan"
)

func ExampleSolve() {
	p := &plan.Problem{Storages: []plan.Storage{
		{Name: "conv", Size: 4096, Pieces: []plan.Piece{{Size: 4096, Start: 1, End: 4}}},
		{Name: "pooled", Size: 1024, Pieces: []plan.Piece{{Size: 1024, Start: 3, End: 6}}},
		{Name: "next", Size: 4096, Pieces: []plan.Piece{{Size: 4096, Start: 5, End: 8}}},
	}}
	a, err := solve.Solve(context.Background(), p, solve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Size, "bytes, at least", p.LowerBound().Bytes)
	for i, c := range p.Storages {
		fmt.Println(c.Name, "at", a.Offsets[i])
	}
	// Output:
	// 5120 bytes, at least 5120
	// conv at 0
	// pooled at 4096
	// next at 0
}
