package page_test

import (
	"bytes"
	"fmt"

	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/page"
)

func ExampleWrite() {
	p := &plan.Plan{Format: plan.Format, Threads: 1, MaxConcurrent: 1, ArenaBytes: 64, LowerBoundBytes: 64,
		Steps:  []plan.Step{{Op: "iota"}},
		Values: []plan.Value{{Name: "x", Type: "f32[16]", Space: plan.SpaceArena, Size: 64, Start: 1, End: 2}},
		Peak:   plan.Peak{Bytes: 64, Live: []int{0}}}
	var file bytes.Buffer
	if err := page.Write(&file, p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(bytes.HasPrefix(file.Bytes(), []byte("<!DOCTYPE html>")))
	// Output: true
}
