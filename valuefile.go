package tenure

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/tensor"
)

// ReadValue reads a file with the value of an input or output that is no tensor
// (.pb): an ONNX SequenceProto, OptionalProto or MapProto, by the kind of c,
// and the value's name. The caller releases the value. A file that is none of
// these is [ErrCorrupt].
func ReadValue(path string, c *Composite) (v Value, name string, err error) {
	if c == nil {
		return nil, "", errors.New("read value: got no composite, want one of Info.Of")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read value: %w", err)
	}
	read, err := onnx.ReadValue(data, c.kind())
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case read.Absent:
		v = Absent
	case read.Keys != nil:
		v = Map{Keys: read.Keys, Values: read.Values}
	case c.Kind == KindOptional:
		v = read.Items[0]
	default:
		v = append(Sequence{}, read.Items...)
	}
	return v, read.Name, nil
}

// WriteValue writes the output that c describes, of a run's outputs, as
// [ReadValue] reads it. It borrows the outputs.
func WriteValue(w io.Writer, c *Composite, out Outputs) (err error) {
	if w == nil || c == nil {
		return errors.New("write value: got no writer or no composite, want both")
	}
	v := &onnx.FileValue{Name: c.Name, Kind: c.kind()}
	if c.Kind == KindMap || c.Kind == KindMaps {
		m, err := out.Map(c.Name)
		if err != nil {
			return err
		}
		v.Keys, v.Values = m.Keys, m.Values
		return onnx.WriteValue(w, v, false)
	}
	s, err := out.Sequence(c.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Release()) }()
	v.Items = []*tensor.Tensor(s)
	v.Absent = s == nil || c.Kind == KindOptional && len(s) == 0
	return onnx.WriteValue(w, v, c.Text)
}

func (c *Composite) kind() onnx.Kind {
	for from, to := range kinds {
		if to == c.Kind {
			return from
		}
	}
	return 0
}
