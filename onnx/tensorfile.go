package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/tensor"
)

// ReadTensor reads a file that holds one TensorProto, as the ONNX backend
// tests keep their inputs and outputs. The caller owns the tensor, whose bytes
// are a copy; name is the tensor's own and may be empty.
func ReadTensor(data []byte) (x *tensor.Tensor, name string, err error) {
	t := &tensorProto{}
	m := message{fields: tensorFields, data: data}
	if err := (&decoder{names: map[string]string{}}).tensor(m, t); err != nil {
		return nil, "", fmt.Errorf("onnx: %w", err)
	}
	d, err := t.check()
	if err != nil {
		return nil, "", fmt.Errorf("onnx: %w", err)
	}
	elements, err := t.elements(d)
	if err != nil {
		return nil, "", fmt.Errorf("onnx: %w", err)
	}
	x, err = tensor.FromBytes(d.typ.DType, d.typ.Shape, elements)
	if err != nil {
		return nil, "", fmt.Errorf("onnx: tensor %q: %w", t.name, err)
	}
	return x, t.name, nil
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
		err = fmt.Errorf("onnx: %w", corruptf("%s", words))
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
	head := tensorHead(name, code, x.Shape().Sizes())
	head = appendLength(head, 9, len(use.Data))
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
	data := tensorHead(name, dtype.String.ONNX(), sizes[:len(sizes)-1])
	for _, s := range list {
		data = append(appendLength(data, stringData, len(s)), s...)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("onnx: write tensor %q: %w", name, err)
	}
	return nil
}

// tensorHead encodes what stands before a tensor's data.
func tensorHead(name string, code int32, sizes []int) (head []byte) {
	number := func(field int, v uint64) {
		head = binary.AppendUvarint(head, uint64(field)<<3|wireVarint)
		head = binary.AppendUvarint(head, v)
	}
	for _, n := range sizes {
		number(1, uint64(n))
	}
	number(2, uint64(code))
	if name != "" {
		head = append(appendLength(head, 8, len(name)), name...)
	}
	return head
}

// appendLength begins a field of n bytes.
func appendLength(b []byte, field, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|wireBytes), uint64(n))
}
