package lift

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// readAttrs fills n.Attrs. In the body of a function an attribute may refer to
// one of the function's: without a value there it is absent here.
func (n *Node) readAttrs() {
	if len(n.Proto.Attrs) > maxAttrs {
		n.Err = tooMuchf("got %d attributes, want at most %d", len(n.Proto.Attrs), maxAttrs)
		return
	}
	n.Attrs = make([]wire.Attribute, 0, len(n.Proto.Attrs))
	for i := range n.Proto.Attrs {
		a := n.Proto.Attrs[i]
		if n.AttrIndex(a.Name) >= 0 {
			n.Err = wire.Corruptf("attribute %q is given twice", a.Name)
			return
		}
		if a.Ref != "" {
			if n.fn == nil {
				n.Err = wire.Corruptf("attribute %q refers to %q of a function, want a value outside of functions", a.Name, a.Ref)
				return
			}
			if a.Value = n.fn.attrs[a.Ref]; a.Value == nil {
				continue
			}
		}
		n.Attrs = append(n.Attrs, a)
	}
}

// AttrIndex returns where an attribute is among those that are left, -1 if
// it is not.
func (n *Node) AttrIndex(name string) int {
	return slices.IndexFunc(n.Attrs, func(a wire.Attribute) bool { return a.Name == name })
}

// TakeAny returns an attribute and removes it from those that are left.
func (n *Node) TakeAny(name string) (v any, ok bool) {
	i := n.AttrIndex(name)
	if i < 0 {
		return nil, false
	}
	v = n.Attrs[i].Value
	n.Attrs = slices.Delete(n.Attrs, i, i+1)
	return v, true
}

// Take is TakeAny for an attribute that must be of one kind.
func Take[T any](n *Node, name string) (v T, ok bool) {
	x, given := n.TakeAny(name)
	if !given {
		return v, false
	}
	if v, ok = x.(T); !ok {
		n.Fail("attribute %q: got %s, want %s", name, kindName(x), kindName(v))
	}
	return v, ok
}

// TakeOr is Take with a value for an attribute that is absent.
func TakeOr[T any](n *Node, name string, absent T) T {
	if v, ok := Take[T](n, name); ok {
		return v
	}
	return absent
}

// IgnoreAllBut drops the attributes that an operator does not have, with a
// note: ONNX Runtime does not look at those of the operators that it had before
// ONNX, and tools have written them misspelt.
func (n *Node) IgnoreAllBut(names ...string) {
	n.Attrs = slices.DeleteFunc(n.Attrs, func(a wire.Attribute) bool {
		if slices.Contains(names, a.Name) {
			return false
		}
		n.Remark(fmt.Sprintf("the operator has no attribute %q, which is not read", a.Name))
		return true
	})
}

// Ignore drops attributes that say nothing about inference.
func (n *Node) Ignore(names ...string) {
	for _, name := range names {
		n.TakeAny(name)
	}
}
