package onnx

import (
	"fmt"
	"slices"
	"strings"

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

// maxNamed is how many nodes of one item the error text names.
const maxNamed = 4

// Error lists everything that is not supported.
func (e *UnsupportedError) Error() string {
	items := make([]string, len(e.Items))
	for i, it := range e.Items {
		items[i] = it.String()
	}
	return "not supported: " + strings.Join(items, "; ")
}

// Unwrap makes errors.Is find op.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return op.ErrUnsupported }

// String returns the item on one line.
func (u Unsupported) String() string {
	var b strings.Builder
	switch {
	case u.Op == "":
	case u.Opset == 0:
		fmt.Fprintf(&b, "%s: ", printable(u.Op))
	default:
		fmt.Fprintf(&b, "%s (opset %d): ", printable(u.Op), u.Opset)
	}
	fmt.Fprintf(&b, "%s (", u.Reason)
	if n := len(u.Nodes); n > 1 {
		fmt.Fprintf(&b, "%d times: ", n)
	}
	b.WriteString(named(u.Nodes))
	b.WriteByte(')')
	return b.String()
}

// named lists names, the first of many.
func named(names []string) string {
	var b strings.Builder
	for i, name := range names[:min(len(names), maxNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	if len(names) > maxNamed {
		b.WriteString(", ...")
	}
	return b.String()
}

// collector gathers what is not supported while an import goes on.
type collector struct {
	items []Unsupported
	index map[string]int // into items, by operator and reason
}

func (c *collector) add(opName string, opset int64, reason, node string) {
	key := opName + "\x00" + reason
	i, ok := c.index[key]
	if !ok {
		if c.index == nil {
			c.index = map[string]int{}
		}
		i = len(c.items)
		c.index[key] = i
		c.items = append(c.items, Unsupported{Op: opName, Opset: opset, Reason: reason})
	}
	c.items[i].Nodes = append(c.items[i].Nodes, node)
}

// err returns the UnsupportedError, nil when everything is supported.
func (c *collector) err() error {
	if len(c.items) == 0 {
		return nil
	}
	slices.SortStableFunc(c.items, func(a, b Unsupported) int { return strings.Compare(a.Op, b.Op) })
	return &UnsupportedError{Items: c.items}
}
