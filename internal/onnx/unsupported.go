package onnx

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/op"
)

// UnsupportedError lists everything in a model that is not supported.
// errors.Is finds [op.ErrUnsupported] in it.
type UnsupportedError struct {
	Items []Unsupported // sorted by operator
}

// Unsupported is one thing that is not supported, and where the model has it.
type Unsupported struct {
	Op     string // "Relu", "domain::Type"; "" for a value of the graph
	Opset  int64  // of the operator's domain, 0 where the model imports none
	Reason string
	Nodes  []string // names of nodes or values, in the order of the model
}

// unsupported is the error of a model with such items.
func unsupported(items []lift.Unsupported) error {
	e := &UnsupportedError{}
	for _, it := range items {
		e.Items = append(e.Items, Unsupported(it))
	}
	return e
}

// Error lists everything that is not supported, and says what can be done.
func (e *UnsupportedError) Error() string {
	items := make([]string, len(e.Items))
	for i, it := range e.Items {
		items[i] = it.String()
	}
	return "not supported: " + strings.Join(items, "; ") + ". " + e.advice()
}

// advice says what can be done with the model.
func (e *UnsupportedError) advice() string {
	const always = "A program can bring operators (WithOperators), and choose outputs that need none of these nodes (WithOutputs)"
	for _, special := range []struct{ words, advice string }{
		{"the operator exists ", "onnx.version_converter converts many models to another opset. "},
		{"unknown rank", "Ranks and sizes are known if inputs declare shapes and constants are folded, as by ONNX Simplifier. "},
		{"known at load", "Ranks and sizes are known if inputs declare shapes and constants are folded, as by ONNX Simplifier. "},
	} {
		for _, it := range e.Items {
			if strings.Contains(it.Reason, special.words) {
				return special.advice + always
			}
		}
	}
	return always
}

// Unwrap makes errors.Is find op.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return op.ErrUnsupported }

// String returns the item on one line.
func (u Unsupported) String() string {
	var b strings.Builder
	switch {
	case u.Op == "":
	case u.Opset == 0:
		fmt.Fprintf(&b, "%s: ", lift.Printable(u.Op))
	default:
		fmt.Fprintf(&b, "%s (opset %d): ", lift.Printable(u.Op), u.Opset)
	}
	fmt.Fprintf(&b, "%s (", u.Reason)
	if n := len(u.Nodes); n > 1 {
		fmt.Fprintf(&b, "%d times: ", n)
	}
	b.WriteString(lift.Named(u.Nodes))
	b.WriteByte(')')
	return b.String()
}
