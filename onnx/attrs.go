package onnx

import (
	"slices"

	"github.com/tenure-go/tenure/onnx/internal/wire"
)

// readAttrs fills n.attrs. In the body of a function an attribute may refer to
// one of the function's: without a value there it is absent here.
func (n *node) readAttrs() {
	if len(n.proto.Attrs) > maxAttrs {
		n.err = wire.Corruptf("got %d attributes, want at most %d", len(n.proto.Attrs), maxAttrs)
		return
	}
	n.attrs = make([]wire.Attribute, 0, len(n.proto.Attrs))
	for i := range n.proto.Attrs {
		a := n.proto.Attrs[i]
		if n.attrIndex(a.Name) >= 0 {
			n.err = wire.Corruptf("attribute %q is given twice", a.Name)
			return
		}
		if a.Ref != "" {
			if n.fn == nil {
				n.err = wire.Corruptf("attribute %q refers to %q of a function, want a value outside of functions", a.Name, a.Ref)
				return
			}
			if a.Value = n.fn.attrs[a.Ref]; a.Value == nil {
				continue
			}
		}
		n.attrs = append(n.attrs, a)
	}
}

// attrIndex returns where an attribute is among those that are left, -1 if
// it is not.
func (n *node) attrIndex(name string) int {
	return slices.IndexFunc(n.attrs, func(a wire.Attribute) bool { return a.Name == name })
}

// takeAny returns an attribute and removes it from those that are left.
func (n *node) takeAny(name string) (v any, ok bool) {
	i := n.attrIndex(name)
	if i < 0 {
		return nil, false
	}
	v = n.attrs[i].Value
	n.attrs = slices.Delete(n.attrs, i, i+1)
	return v, true
}

// take is takeAny for an attribute that must be of one kind.
func take[T any](n *node, name string) (v T, ok bool) {
	x, given := n.takeAny(name)
	if !given {
		return v, false
	}
	if v, ok = x.(T); !ok {
		n.fail("attribute %q: got %s, want %s", name, kindName(x), kindName(v))
	}
	return v, ok
}

// takeOr is take with a value for an attribute that is absent.
func takeOr[T any](n *node, name string, absent T) T {
	if v, ok := take[T](n, name); ok {
		return v
	}
	return absent
}

// ignore drops attributes that say nothing about inference.
func (n *node) ignore(names ...string) {
	for _, name := range names {
		n.takeAny(name)
	}
}
