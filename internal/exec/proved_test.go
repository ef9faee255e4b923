package exec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// planOf returns the plan of an executable.
func planOf(t *testing.T, e *exec.Executable) *plan.Plan {
	t.Helper()
	d, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// entry returns where a plan puts the value of that name.
func entry(d *plan.Plan, name string) *plan.Value {
	return &d.Values[slices.IndexFunc(d.Values, func(v plan.Value) bool { return v.Name == name })]
}

// wantFault changes a copy of an executable's plan and checks it. want is a
// part of the checker's error, "" for a plan that still holds.
func wantFault(t *testing.T, exe *exec.Executable, weights ir.Weights, want string, harm func(*plan.Plan)) {
	t.Helper()
	d := *planOf(t, exe)
	d.Values, d.Unpromised = slices.Clone(d.Values), slices.Clone(d.Unpromised)
	harm(&d)
	err := check.Check(exe.Program, &d, weights)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Fatalf("got %v, want %q", err, want)
	}
}

// breaks returns the part of the checker's error that names a rule, "" for no
// rule.
func breaks(rule check.Rule) string {
	if rule == "" {
		return ""
	}
	return "plan: " + string(rule) + ": "
}
