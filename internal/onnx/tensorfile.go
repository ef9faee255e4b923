package onnx

import (
	"fmt"
	"io"
	"os"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/tensor"
)

// ReadTensor reads a file that holds one TensorProto, as the ONNX backend
// tests keep their inputs and outputs. The caller owns the tensor, whose bytes
// are a copy; name is the tensor's own and may be empty.
func ReadTensor(data []byte) (x *tensor.Tensor, name string, err error) {
	t, err := wire.DecodeTensor(data)
	if err != nil {
		return nil, "", fmt.Errorf("onnx: %w", err)
	}
	if x, err = newTensor(t); err != nil {
		return nil, "", fmt.Errorf("onnx: %w", err)
	}
	return x, t.Name, nil
}

// newTensor makes a tensor with a copy of the elements.
func newTensor(t *wire.Tensor) (*tensor.Tensor, error) {
	d, err := t.Check()
	if err != nil {
		return nil, err
	}
	elements, err := t.Elements(d)
	if err != nil {
		return nil, err
	}
	x, err := tensor.FromBytes(d.Type.DType, d.Type.Shape, elements)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return x, nil
}

// ReadTensorFile is [ReadTensor] on the file at path.
func ReadTensorFile(path string) (x *tensor.Tensor, name string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("onnx: read tensor: %w", err)
	}
	if x, name, err = ReadTensor(data); err == nil {
		return x, name, nil
	}
	if words := filekind.Of(data).Got("a TensorProto"); words != "" {
		err = fmt.Errorf("onnx: %w", wire.Corruptf("%s", words))
	}
	return nil, "", fmt.Errorf("%s: %w", path, err)
}

// WriteTensor writes a tensor as a TensorProto with raw_data.
func WriteTensor(w io.Writer, name string, x *tensor.Tensor) error {
	code := x.DType().ONNX()
	if code == 0 {
		return fmt.Errorf("onnx: write tensor %q: got element type %s, want one that ONNX has: %w", name, x.DType(), tensor.ErrDType)
	}
	use, err := x.Use()
	if err != nil {
		return fmt.Errorf("onnx: write tensor %q: %w", name, err)
	}
	defer use.Release()
	head := wire.TensorHead(name, code, x.Shape().Sizes())
	head = wire.AppendLength(head, wire.RawData, len(use.Data))
	for _, part := range [][]byte{head, use.Data} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("onnx: write tensor %q: %w", name, err)
		}
	}
	return nil
}

// WriteStrings writes the strings that a tensor holds (see [tensor.OfStrings])
// as a TensorProto of strings.
func WriteStrings(w io.Writer, name string, x *tensor.Tensor) error {
	list, err := tensor.Strings(x)
	if err != nil {
		return fmt.Errorf("onnx: write tensor %q: %w", name, err)
	}
	sizes := x.Shape().Sizes()
	data := wire.TensorHead(name, dtype.String.ONNX(), sizes[:len(sizes)-1])
	for _, s := range list {
		data = append(wire.AppendLength(data, wire.StringData, len(s)), s...)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("onnx: write tensor %q: %w", name, err)
	}
	return nil
}
