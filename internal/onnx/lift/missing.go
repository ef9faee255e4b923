package lift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/op"
)

// Unsupported is one thing that is not supported, and where the model has it.
type Unsupported struct {
	Op     string // "Relu", "domain::Type"; "" for a value of the graph
	Opset  int64  // of the operator's domain, 0 where the model imports none
	Reason string
	Nodes  []string // names of nodes or values, in the order of the model
}

// maxNamed is how many nodes of one item the error text names.
const maxNamed = 4

// collector gathers the unsupported operators while an import goes on.
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

// sorted returns the collection, by operator.
func (c *collector) sorted() []Unsupported {
	slices.SortStableFunc(c.items, func(a, b Unsupported) int { return strings.Compare(a.Op, b.Op) })
	return c.items
}

// tooMuchf is the error of a model beyond a bound without which a small file
// could take any time or memory.
func tooMuchf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, op.ErrUnsupported)...)
}

// Named lists names, the first of many.
func Named(names []string) string {
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
