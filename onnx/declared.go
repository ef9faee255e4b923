package onnx

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// compare holds the types that the file declares for values and outputs
// against those that were inferred. Element types and ranks must agree;
// exporters get sizes wrong often enough that a difference is only a note.
func (s *scope) compare(g *wire.Graph) error {
	for _, list := range [][]wire.Value{g.Values, g.Outputs} {
		for i := range list {
			b := s.values[list[i].Name]
			if b == nil || b.value == nil || b.value.Type.IsZero() || list[i].Type.Kind == "" {
				continue
			}
			if err := s.compareType(&list[i], b.value); err != nil {
				return fmt.Errorf("value %q: %w", list[i].Name, err)
			}
		}
	}
	return nil
}

func (s *scope) compareType(v *wire.Value, value *ir.Value) error {
	got := value.Type
	want, text, err := typeOf(v, shape.Unknown)
	if err != nil {
		return err
	}
	if text != s.text[value] {
		return fmt.Errorf("the nodes give %s, want %s as the file declares: %w", typeText(got, !text), typeText(want, text), tensor.ErrDType)
	}
	if want.DType != got.DType {
		return fmt.Errorf("the nodes give %s, want %s as the file declares: %w", got, want, tensor.ErrDType)
	}
	if want.Shape == nil || got.Shape == nil {
		return nil
	}
	if want.Shape.Rank() != got.Shape.Rank() {
		return fmt.Errorf("the nodes give %s, want %s as the file declares: %w", got, want, tensor.ErrShape)
	}
	for i := range got.Shape.Rank() {
		n, ok := got.Shape.Dim(i).Size()
		m, declared := want.Shape.Dim(i).Size()
		if ok && declared && n != m {
			s.model.Notes = append(s.model.Notes, fmt.Sprintf("value %q: the file declares %s, the nodes give %s", v.Name, want, got))
			break
		}
	}
	return nil
}
