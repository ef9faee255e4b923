package contrib

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// lowest is the lowest number of a float type, of f32 for the wider ones.
func lowest(dt dtype.DType) float64 {
	switch dt {
	case dtype.F16:
		return -65504
	case dtype.BF16:
		return -0x1.fep127
	}
	return -math.MaxFloat32
}

// scoreMask makes the value that is added to the scores, nil for none, and
// completes the attributes of the attention.
//
// A masked key has the filter added, a key after its query the lowest number
// instead. The attention's own causal mask takes keys out for good, which is
// the same but for rows whose other scores are as low: in those, all keys
// count.
func scoreMask(n *lift.Node, a *attention) *ir.Value {
	dt := a.q.Type.DType
	out := filtered(n, a)
	switch {
	case !a.isCausal:
	case a.bias != nil || out != nil && a.filter < lowest(dt)/2:
		if out == nil {
			out = n.Scalar(dt, 0)
		}
		first := n.Scalar(dtype.I64, 0)
		if a.pastK != nil {
			first = sizeOf(n, a.pastK, 2)
		}
		rows := n.Call("range", []*ir.Value{first, keyCount(n, a), n.Scalar(dtype.I64, 1)})
		later := n.Call("greater", []*ir.Value{keyPlaces(n, a), n.Call("unsqueeze", []*ir.Value{rows, n.Ints([]int64{1})})})
		out = n.Call("where", []*ir.Value{later, n.Scalar(dt, lowest(dt)), out})
	default:
		a.attrs = append(a.attrs, lift.IntAttr("is_causal", 1))
	}
	if out == nil {
		return a.bias
	}
	return n.Add(out, a.bias)
}

// filtered are the terms that the mask adds to the scores, nil for none.
func filtered(n *lift.Node, a *attention) *ir.Value {
	if a.mask == nil {
		return nil
	}
	dt, keep := a.q.Type.DType, keysThatCount(n, a)
	return n.Call("where", []*ir.Value{keep, n.Scalar(dt, 0), n.Scalar(dt, max(a.filter, lowest(dt)))})
}

// sizeOf is the size of an axis as a scalar.
func sizeOf(n *lift.Node, x *ir.Value, axis int) *ir.Value {
	return n.Call("squeeze", []*ir.Value{n.Call("shape", []*ir.Value{x}, lift.IntAttr("start", int64(axis)), lift.IntAttr("end", int64(axis+1)))})
}

// keyCount is how many keys there are, past ones too, as a scalar.
func keyCount(n *lift.Node, a *attention) *ir.Value {
	count := sizeOf(n, a.k, a.keyAxis())
	if a.pastK != nil {
		count = n.Add(sizeOf(n, a.pastK, 2), count)
	}
	return count
}

// keyPlaces are the places of the keys, past ones first.
func keyPlaces(n *lift.Node, a *attention) *ir.Value {
	if a.places == nil {
		a.places = n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), keyCount(n, a), n.Scalar(dtype.I64, 1)})
	}
	return a.places
}

// keysThatCount reads the mask in one of its forms, and tells for
// [batch, 1, queries or 1, keys] whether a key counts.
func keysThatCount(n *lift.Node, a *attention) *ir.Value {
	sh := a.mask.Type.Shape
	if sh == nil || sh.Rank() < 1 || sh.Rank() > 3 {
		n.Unsupported("a mask of %s, want 1 to 3 dimensions", a.mask.Type)
		return nil
	}
	if sh.Rank() == 1 {
		return keysWithin(n, a)
	}
	q := a.q.Type.Shape
	want := []shape.Dim{q.Dim(0), q.Dim(q.Rank() - 2), shape.Unknown}
	if past := a.pastK; a.buffered {
		// The mask ends with the last key, the buffer has room for more.
	} else if past == nil {
		want[2] = a.k.Type.Shape.Dim(a.keyAxis())
	} else if known, ok := a.k.Type.Shape.Dim(a.keyAxis()).Size(); ok && past.Type.Shape != nil && past.Type.Shape.Rank() == 4 {
		if before, ok := past.Type.Shape.Dim(2).Size(); ok {
			want[2] = shape.N(before + known)
		}
	}
	axes := []int64{1}
	if sh.Rank() == 2 {
		want, axes = []shape.Dim{want[0], want[2]}, []int64{1, 2}
	}
	for i, d := range want {
		size, ok := d.Size()
		if got, known := sh.Dim(i).Size(); ok && known && got != size {
			n.Fail("got a mask of %s, want %v: %w", a.mask.Type, want, shape.ErrShape)
			return nil
		}
	}
	counts := n.WithNumber("greater", a.mask, 0, a.mask.Type.DType)
	if a.anyCounts {
		counts = n.Call("not", []*ir.Value{n.WithNumber("equal", a.mask, 0, a.mask.Type.DType)})
	}
	return n.Call("unsqueeze", []*ir.Value{counts, n.Ints(axes)})
}

// keysWithin is keysThatCount for a mask that says per sample where its keys
// end, or where they end and, after that, where they begin.
func keysWithin(n *lift.Node, a *attention) *ir.Value {
	batch, length := a.q.Type.Shape.Dim(0), a.mask.Type.Shape.Dim(0)
	samples, known := batch.Size()
	size, sized := length.Size()
	ends, starts := a.mask, (*ir.Value)(nil)
	switch {
	case batch == length && batch != shape.Unknown:
	case !known || !sized:
		n.Unsupported("a mask of %s for %s, of which it is not known at load whether it has one number per sample", a.mask.Type, a.q.Type)
	case size == 2*samples && (n.Proto.OpType == "Attention" || n.Proto.OpType == "QAttention"):
		parts := split(n, a.mask, 0, int64(samples), int64(samples))
		ends, starts = parts[0], parts[1]
	case size == 3*samples+2:
		// Lengths, and then where samples begin when they are laid end to end:
		// the lengths say all.
		ends = split(n, a.mask, 0, int64(samples), int64(size-samples))[0]
	default:
		n.Fail("got a mask of %s for %d samples, want one or two numbers for each: %w", a.mask.Type, samples, shape.ErrShape)
	}
	if n.Err != nil {
		return nil
	}
	perSample := func(x *ir.Value) *ir.Value {
		x = n.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dtype.I64})
		return n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{1, 2, 3})})
	}
	places := keyPlaces(n, a)
	counts := n.Call("less", []*ir.Value{places, perSample(ends)})
	if starts != nil {
		counts = n.Call("and", []*ir.Value{counts, n.Call("greater_or_equal", []*ir.Value{places, perSample(starts)})})
	}
	return counts
}
