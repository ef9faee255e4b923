package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/plan"
)

// PartError is the error of a run that had begun.
type PartError struct {
	Call  int    // number of the call, in preorder
	Op    string // the operator
	Node  string // where it comes from in the model file
	Wrote bool   // bytes of a donated input may have been written, by that call or before it
	Err   error
}

// Step names the step that failed.
func (e *PartError) Step() string {
	return fmt.Sprintf("step %d, %s", e.Call, plan.Step{Op: e.Op, Node: e.Node}.Where())
}

// Error names the step and what went wrong.
func (e *PartError) Error() string { return e.Step() + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *PartError) Unwrap() error { return e.Err }
