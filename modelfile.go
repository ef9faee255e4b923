package tenure

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Description lists the declarations of a model file, whether or not the model
// can be loaded.
type Description struct {
	Producer        string // the program that wrote the file
	ProducerVersion string
	IRVersion       int64
	Opsets          map[string]int64 // operator sets by domain; "" is that of ONNX
	Inputs, Outputs []Info           // an element type or shape that cannot be read is zero
	Operators       map[string]int   // number of nodes by "OpType" or "domain::OpType", those of nested graphs and functions included
	Functions       []string         // local to the model
	Weights         int              // initializers and Constant nodes
	WeightBytes     int64            // as declared
}

// Describe reads the declarations of the model file at path. It fails only on a
// file that is no model, with [ErrCorrupt].
func Describe(path string) (*Description, error) {
	d, err := onnx.Describe(path)
	if err != nil {
		return nil, err
	}
	return &Description{
		Producer: d.Producer, ProducerVersion: d.ProducerVersion, IRVersion: d.IRVersion, Opsets: d.Opsets,
		Inputs: infosOf(d.Inputs), Outputs: infosOf(d.Outputs), Operators: d.Operators, Functions: d.Functions,
		Weights: d.Weights, WeightBytes: d.WeightBytes,
	}, nil
}

func infosOf(values []onnx.Value) []Info {
	list := make([]Info, len(values))
	for i, v := range values {
		list[i] = Info{Name: v.Name, DType: v.Type.DType, Shape: v.Type.Shape, Text: v.Text}
	}
	compositesOf(list, values)
	return list
}

// Unsupported returns everything that an error of [Load] says is not supported,
// one line for each operator or value with the reason and the nodes; nil for
// any other error.
func Unsupported(err error) []string {
	var missing *onnx.UnsupportedError
	switch {
	case errors.As(err, &missing):
		list := make([]string, len(missing.Items))
		for i, item := range missing.Items {
			list[i] = item.String()
		}
		return list
	case errors.Is(err, op.ErrUnsupported):
		return strings.Split(err.Error(), "\n")
	}
	return nil
}

// CountUnsupported returns how many operators an error of [Load] says are not
// supported, and how many nodes have them; 0 for any other error. A value of
// the graph whose type is not supported counts as an operator with one node.
func CountUnsupported(err error) (operators, nodes int) {
	var missing *onnx.UnsupportedError
	if !errors.As(err, &missing) {
		return 0, 0
	}
	names := map[string]bool{}
	for _, item := range missing.Items {
		if item.Op != "" {
			names[item.Op] = true
		} else {
			operators += len(item.Nodes)
		}
		nodes += len(item.Nodes)
	}
	return operators + len(names), nodes
}

// EachWeight calls f with each weight of the model file at path, in the file's
// order and under its name. f borrows the tensor, which is over the file's
// pages where the weight is aligned. EachWeight stops at the first error of f
// and returns it.
func EachWeight(path string, f func(name string, x *tensor.Tensor) error) error {
	if f == nil {
		return errors.New("weights: got no function, want one")
	}
	m, err := onnx.Load(path, onnx.Options{})
	if err != nil {
		return err
	}
	for _, v := range m.Program.Weights {
		data, ok := m.Weights.Bytes(v)
		if !ok {
			err = fmt.Errorf("%s: got no memory for weight %q: %w", path, v.Name, tensor.ErrLimit)
		}
		if err != nil {
			break
		}
		buf := memory.Import(data, nil)
		x, wrapErr := tensor.FromBuffer(buf, 0, v.Type.DType, shape.RowMajor(v.Type.Shape))
		if err = wrapErr; err == nil {
			err = errors.Join(f(v.Name, x), x.Release())
		}
		err = errors.Join(err, buf.Release())
	}
	return errors.Join(err, m.Close())
}

// ReadTensor reads a file with one ONNX TensorProto (.pb), such as those that
// stand beside models as inputs and outputs, and the tensor's name. Strings
// become text as [tensor.OfStrings] makes it. The caller owns the tensor. A
// file that is no TensorProto is [ErrCorrupt].
func ReadTensor(path string) (x *tensor.Tensor, name string, err error) {
	return onnx.ReadTensorFile(path)
}

var errNoWriter = errors.New("write tensor: got no writer, want one")

// WriteTensor writes a tensor, which is borrowed, as a TensorProto. An element
// type that ONNX lacks is [ErrDType].
func WriteTensor(w io.Writer, name string, x *tensor.Tensor) error {
	if w == nil {
		return errNoWriter
	}
	return onnx.WriteTensor(w, name, x)
}

// WriteStrings writes the text of a tensor, which is borrowed, as a TensorProto
// of strings; see [tensor.Strings].
func WriteStrings(w io.Writer, name string, x *tensor.Tensor) error {
	if w == nil {
		return errNoWriter
	}
	return onnx.WriteStrings(w, name, x)
}
