package check

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/plan"
)

// Rule names the rule that a plan breaks. The doc of the package lists them.
type Rule string

// The rules, in the order of the list in the doc of the package.
const (
	Document Rule = "document"
	Order    Rule = "order"
	Place    Rule = "place"
	Read     Rule = "read"
	Alias    Rule = "alias"
	Write    Rule = "write"
	Branch   Rule = "branch"
	Output   Rule = "output"
	Figure   Rule = "figure"
	Claim    Rule = "claim"
)

// Violation is the first fault that [Check] found in a plan.
type Violation struct {
	Rule  Rule
	Step  int    // index into Plan.Steps; -1 where the fault is not one of a step
	Op    string // the step's operator
	Node  string // where the step comes from in the model file
	Value string // the value, as the program's text has it; "" for none
	Bytes Bytes  // zero where the fault is not one of bytes
	Got   string // found in the plan, or a consequence of it
	Want  string // expected

	err error // the fault of a malformed document
}

// Bytes is a range of bytes of one space.
type Bytes struct {
	Space  plan.Space
	Arg    int // number of the input or output for those spaces, ID of the weight or value for weights, own buffers and slots
	Lo, Hi int64
	Gaps   bool // bytes of others lie between them
}

// String names the range and the space, as in "bytes [0,64) of the arena".
func (b Bytes) String() string {
	if b.Gaps {
		b.Gaps = false
		return "a box in " + b.String()
	}
	switch b.Space {
	case plan.SpaceInput, plan.SpaceOutput:
		return fmt.Sprintf("bytes [%d,%d) of %s %d", b.Lo, b.Hi, b.Space, b.Arg)
	case plan.SpaceSlot:
		return fmt.Sprintf("bytes [%d,%d) of an iteration's part of value %d", b.Lo, b.Hi, b.Arg)
	case plan.SpaceOwn:
		return fmt.Sprintf("a buffer of its own (value %d)", b.Arg)
	case plan.SpaceWeight:
		return fmt.Sprintf("bytes [%d,%d) of the weight", b.Lo, b.Hi)
	}
	return fmt.Sprintf("bytes [%d,%d) of the %s", b.Lo, b.Hi, b.Space)
}

// Error names the place of the fault, the value found and the value expected
// in one line.
func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan: %s: ", v.Rule)
	if v.Step >= 0 {
		fmt.Fprintf(&b, "step %d (%s", v.Step, v.Op)
		if v.Node != "" {
			fmt.Fprintf(&b, ", node %q", v.Node)
		}
		b.WriteString("): ")
	}
	if v.Value != "" {
		fmt.Fprintf(&b, "%s: ", v.Value)
	}
	if v.Bytes.Space != "" {
		fmt.Fprintf(&b, "%s: ", v.Bytes)
	}
	if v.err != nil {
		fmt.Fprintf(&b, "%v", v.err)
	} else {
		fmt.Fprintf(&b, "got %s, want %s", v.Got, v.Want)
	}
	return b.String()
}

// Unwrap returns the error of a document that is malformed in itself.
func (v *Violation) Unwrap() error { return v.err }
