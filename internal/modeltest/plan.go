package modeltest

import (
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
)

// PlanOf returns the plan of a model's file for inputs of these shapes.
func PlanOf(t testing.TB, file string, shapes map[string][]int) *plan.Plan {
	t.Helper()
	m, err := tenure.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.Plan(t.Context(), shapes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
