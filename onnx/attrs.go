package onnx

import "slices"

// readAttrs fills n.attrs. In the body of a function an attribute may refer to
// one of the function's: without a value there it is absent here.
func (n *node) readAttrs() {
	if len(n.proto.attrs) > maxAttrs {
		n.err = corruptf("got %d attributes, want at most %d", len(n.proto.attrs), maxAttrs)
		return
	}
	n.attrs = make([]attrProto, 0, len(n.proto.attrs))
	for i := range n.proto.attrs {
		a := n.proto.attrs[i]
		if n.attrIndex(a.name) >= 0 {
			n.err = corruptf("attribute %q is given twice", a.name)
			return
		}
		if a.ref != "" {
			if n.fn == nil {
				n.err = corruptf("attribute %q refers to %q of a function, want a value outside of functions", a.name, a.ref)
				return
			}
			if a.value = n.fn.attrs[a.ref]; a.value == nil {
				continue
			}
		}
		n.attrs = append(n.attrs, a)
	}
}

// attrIndex returns where an attribute is among those that are left, -1 if
// it is not.
func (n *node) attrIndex(name string) int {
	return slices.IndexFunc(n.attrs, func(a attrProto) bool { return a.name == name })
}

// takeAny returns an attribute and removes it from those that are left.
func (n *node) takeAny(name string) (v any, ok bool) {
	i := n.attrIndex(name)
	if i < 0 {
		return nil, false
	}
	v = n.attrs[i].value
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
