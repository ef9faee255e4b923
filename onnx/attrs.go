package onnx

import (
	"github.com/tenure-go/tenure/dtype"
)

// readAttrs fills n.attrs. In the body of a function an attribute may refer to
// one of the function's: without a value there it is absent here.
func (n *node) readAttrs() {
	n.attrs = make(map[string]any, len(n.proto.attrs))
	for i := range n.proto.attrs {
		a := &n.proto.attrs[i]
		if _, ok := n.attrs[a.name]; ok {
			n.err = corruptf("attribute %q is given twice", a.name)
			return
		}
		v := a.value
		if a.ref != "" {
			if n.fn == nil {
				n.err = corruptf("attribute %q refers to %q of a function, want a value outside of functions", a.name, a.ref)
				return
			}
			if v = n.fn.attrs[a.ref]; v == nil {
				continue
			}
		}
		n.attrs[a.name] = v
	}
}

// take returns an attribute and removes it from those that are left. An
// attribute of another kind ends the node.
func take[T any](n *node, name string) (v T, ok bool) {
	x, given := n.attrs[name]
	if !given {
		return v, false
	}
	delete(n.attrs, name)
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

// takeDType returns an attribute that is the code of an element type.
func (n *node) takeDType(name string, absent dtype.DType) dtype.DType {
	code, ok := take[int64](n, name)
	if !ok {
		return absent
	}
	dt, err := dtype.FromONNX(int32(code))
	if err != nil {
		n.fail("attribute %q: %w", name, err)
	}
	if dt == dtype.String {
		n.unsupported("attribute %q: element type %s", name, dt)
	}
	return dt
}

// ignore drops attributes that say nothing about inference.
func (n *node) ignore(names ...string) {
	for _, name := range names {
		delete(n.attrs, name)
	}
}
