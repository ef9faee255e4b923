package command

import (
	"encoding/binary"
	"io"
)

// port is an input or output of a model of the tests. A dimension is a size, a
// symbol, or nil for an unknown one.
type port struct {
	name string
	elem int // ONNX's number of the element type
	dims []any
}

// testNode is a node of a model of the tests; to is the element type of a Cast.
type testNode struct {
	op      string
	in, out []string
	to      int
}

const (
	elemF32 = 1
	elemU8  = 2
	elemI64 = 7
)

// message is an encoded message of protocol buffers.
type message []byte

func (m *message) number(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), v)
}

func (m *message) bytes(field int, v []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(v)))
	*m = append(*m, v...)
}

// modelOf encodes a model as onnx.proto has it.
func modelOf(steps []testNode, inputs, outputs []port) []byte {
	var m, graph, opset message
	for _, s := range steps {
		var node message
		for _, name := range s.in {
			node.bytes(1, []byte(name))
		}
		for _, name := range s.out {
			node.bytes(2, []byte(name))
		}
		node.bytes(4, []byte(s.op))
		if s.to != 0 {
			var attr message
			attr.bytes(1, []byte("to"))
			attr.number(3, uint64(s.to))
			attr.number(20, 2) // an integer
			node.bytes(5, attr)
		}
		graph.bytes(1, node)
	}
	graph.bytes(2, []byte("test"))
	for field, list := range map[int][]port{11: inputs, 12: outputs} {
		for _, p := range list {
			graph.bytes(field, p.encode())
		}
	}
	m.number(1, 8)
	m.bytes(7, graph)
	opset.number(2, 18)
	m.bytes(8, opset)
	return m
}

func (p port) encode() []byte {
	var dims, tensor, typ, value message
	for _, d := range p.dims {
		var dim message
		switch d := d.(type) {
		case int:
			dim.number(1, uint64(d))
		case string:
			dim.bytes(2, []byte(d))
		}
		dims.bytes(1, dim)
	}
	tensor.number(1, uint64(p.elem))
	if p.dims != nil {
		tensor.bytes(2, dims)
	}
	typ.bytes(1, tensor)
	value.bytes(1, []byte(p.name))
	value.bytes(2, typ)
	return value
}

// castModel gives its input x as f32.
func castModel(elem int, dims ...any) func(io.Writer) error {
	return writeModel([]testNode{{"Cast", []string{"x"}, []string{"y"}, elemF32}}, []port{{"x", elem, dims}}, []port{{"y", elemF32, dims}})
}

func writeModel(steps []testNode, inputs, outputs []port) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(modelOf(steps, inputs, outputs))
		return err
	}
}

// decoder has symbols in several inputs, one that is a sum of others, an
// input whose name is a symbol's, and one of unknown sizes.
var decoder = writeModel([]testNode{
	{"Neg", []string{"ids"}, []string{"a"}, 0},
	{"Neg", []string{"mask"}, []string{"b"}, 0},
	{"Neg", []string{"past"}, []string{"c"}, 0},
}, []port{
	{"ids", elemF32, []any{"batch", "sequence"}},
	{"mask", elemF32, []any{"batch", "past + sequence"}},
	{"past", elemF32, []any{"batch", 2, "past"}},
}, []port{
	{"a", elemF32, []any{"batch", "sequence"}},
	{"b", elemF32, []any{"batch", "past + sequence"}},
	{"c", elemF32, []any{"batch", 2, "past"}},
})

// loose has an input of unknown sizes and one of unknown rank.
var loose = writeModel([]testNode{
	{"Neg", []string{"x"}, []string{"a"}, 0},
	{"Neg", []string{"r"}, []string{"b"}, 0},
}, []port{{"x", elemF32, []any{"n", nil, 3}}, {"r", elemI64, nil}},
	[]port{{"a", elemF32, []any{"n", nil, 3}}, {"b", elemI64, nil}})
