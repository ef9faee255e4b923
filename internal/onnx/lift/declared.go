package lift

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// compare holds the types that the file declares for values and outputs
// against those that were inferred. Exporters, and tools that change models
// after them, get them wrong often enough that a difference is only a note: the
// inferred ones count. Only outputs must have the element types that the file
// declares, because these are what callers of the model have been told.
func (s *Scope) compare(g *wire.Graph) error {
	for i, v := range append(slices.Clip(g.Values), g.Outputs...) {
		b := s.Values[v.Name]
		if b == nil || b.Value == nil || b.Value.Type.IsZero() || v.Type.Kind == "" {
			continue
		}
		if v.Type.Kind == "optional" && v.Type.Elem != nil {
			v.Type = *v.Type.Elem // the nodes have found that it is there
		}
		if err := s.compareType(&v, b.Value, i >= len(g.Values)); err != nil {
			return fmt.Errorf("output %q: %w", v.Name, err)
		}
	}
	return nil
}

// compareType compares a declared type with that of the value. A difference is
// a note or, where the type is wanted, an error of another element type.
func (s *Scope) compareType(v *wire.Value, value *ir.Value, wanted bool) error {
	got := value.Type
	isText := s.IsText[value]
	want, text, err := TypeOf(v, shape.Unknown)
	declares := TypeText(want, text)
	if err != nil {
		declares = v.Type.String()
	}
	differs := err != nil || text != isText || want.DType != got.DType
	if differs && wanted {
		return fmt.Errorf("the nodes give %s, want %s as the file declares (correct the declaration, or add a Cast): %w",
			TypeText(got, isText), declares, tensor.ErrDType)
	}
	if differs || stale(want, got) {
		s.Note(fmt.Sprintf("value %q: the file declares %s, the nodes give %s", v.Name, declares, TypeText(got, isText)))
	}
	return nil
}

// stale reports whether a declared type is of another rank than the inferred
// one, or has another size somewhere.
func stale(declared, inferred op.Type) bool {
	if declared.Shape == nil || inferred.Shape == nil {
		return false
	}
	if declared.Shape.Rank() != inferred.Shape.Rank() {
		return true
	}
	for i := range inferred.Shape.Rank() {
		n, ok := inferred.Shape.Dim(i).Size()
		m, sized := declared.Shape.Dim(i).Size()
		if ok && sized && n != m {
			return true
		}
	}
	return false
}

// TypeText returns a type as text, that of strings without the bytes that they
// take.
func TypeText(t op.Type, text bool) string {
	if text {
		return t.AsText()
	}
	return t.String()
}

// TypeOf returns the declared type of a value, for strings that of their
// bytes, and whether it is of strings.
func TypeOf(v *wire.Value, width shape.Dim) (typ op.Type, text bool, err error) {
	t := &v.Type
	if t.Kind == "" {
		return op.Type{}, false, wire.Corruptf("got no type")
	}
	dt, err := dtype.FromONNX(t.ElemType)
	if t.Kind != "tensor" {
		return op.Type{}, false, fmt.Errorf("%s: %w", t, op.ErrUnsupported)
	}
	if text = dt == dtype.String; text {
		dt = dtype.U8
	}
	if err != nil || !t.HasShape {
		return op.Type{DType: dt}, text, err
	}
	dims := make([]shape.Dim, len(t.Dims), len(t.Dims)+1)
	for i, d := range t.Dims {
		switch {
		case !d.Sized && isName(d.Symbol):
			dims[i] = shape.Sym(d.Symbol)
		case !d.Sized:
			dims[i] = shape.Unknown
		case d.Size > math.MaxInt64>>5:
			return op.Type{}, text, fmt.Errorf("dim %d: got %d, want a size: %w", i, d.Size, tensor.ErrShape)
		case d.Size >= 0: // some exporters write -1 for a size that they do not know; ONNX Runtime takes any negative one so
			dims[i] = shape.N(int(d.Size))
		}
	}
	if text {
		dims = append(dims, width)
	}
	sh, err := shape.FromDims(dims...)
	return op.Type{DType: dt, Shape: sh}, text, err
}

// isName reports whether a dimension's name can name a size. Some exporters
// write "?", "-1" or "None" for every size that they do not know: these are
// not one size.
func isName(symbol string) bool {
	switch strings.ToLower(symbol) {
	case "none", "null", "unknown":
		return false
	}
	return strings.ContainsFunc(symbol, unicode.IsLetter)
}
