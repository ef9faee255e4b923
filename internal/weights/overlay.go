package weights

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/tensor"
)

// Overlay is a table of the constants of one set of input shapes on top of
// another table, which it does not change. Its own bytes are on the Go heap;
// bytes that constants share with weights of Base are looked up there each
// time, since Base may move them. While constants are added it belongs to one
// goroutine.
type Overlay struct {
	Base  ir.Weights // nil for none
	own   ir.WeightMap
	views map[string]baseView
	words []uint64 // where the next of its own bytes lie
}

// baseView is a part of a weight of Base.
type baseView struct {
	of           *ir.Value
	offset, size int
}

// Has reports whether the overlay or its base has the weight.
func (o *Overlay) Has(v *ir.Value) bool {
	if w, ok := o.views[v.Name]; ok {
		return o.Base.Has(w.of)
	}
	return o.own.Has(v) || o.Base != nil && o.Base.Has(v)
}

// Bytes returns the bytes of a weight, from the overlay or its base.
func (o *Overlay) Bytes(v *ir.Value) ([]byte, bool) {
	if w, ok := o.views[v.Name]; ok {
		data, ok := o.Base.Bytes(w.of)
		if !ok || len(data) < w.offset+w.size {
			return nil, false
		}
		return data[w.offset : w.offset+w.size : w.offset+w.size], true
	}
	if data, ok := o.own.Bytes(v); ok || o.Base == nil {
		return data, ok
	}
	return o.Base.Bytes(v)
}

// Derive enters a constant as [Store.Derive] does, but fill always runs now: a
// constant of one set of shapes is small.
func (o *Overlay) Derive(v, of *ir.Value, offset int, fill func(dst, src []byte)) error {
	n, err := v.Type.Bytes()
	if err != nil {
		return fmt.Errorf("weight %q: %w", v.Name, err)
	}
	var src []byte
	if of != nil {
		data, ok := o.Bytes(of)
		if !ok || offset < 0 || offset > len(data) || fill == nil && len(data)-offset < n {
			return fmt.Errorf("weight %q: got %d bytes of %q, want %d from offset %d on: %w", v.Name, len(data), of.Name, n, offset, tensor.ErrShape)
		}
		src = data[offset:]
	}
	if o.own == nil {
		o.own = make(ir.WeightMap, fewConstants)
	}
	if fill != nil {
		dst := o.room(n)
		fill(dst, src)
		o.own[v.Name] = dst
		return nil
	}
	if o.views == nil {
		o.views = map[string]baseView{}
	}
	switch w, isView := o.views[of.Name]; {
	case isView:
		o.views[v.Name] = baseView{w.of, w.offset + offset, n}
	case o.own.Has(of):
		o.own[v.Name] = src[:n:n]
	default:
		o.views[v.Name] = baseView{of, offset, n}
	}
	return nil
}

// fewConstants is how many small constants an overlay is made for at first.
const fewConstants = 16

// room returns n zeroed bytes, aligned for any element. Small constants share
// an allocation.
func (o *Overlay) room(n int) []byte {
	need := n/8 + 1
	if need > len(o.words) {
		o.words = make([]uint64, max(need, 8*fewConstants))
	}
	words := o.words[:need:need]
	o.words = o.words[need:]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
