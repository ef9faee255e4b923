// Package onnxtest writes ONNX files for tests: files that no exporter would
// write, or that are too large for the repository.
//
//	var g onnxtest.Graph
//	g.Input("x", onnxtest.F32, 2, 4)
//	g.Node("Concat", []string{"x", "x"}, []string{"y"}, onnxtest.Int("axis", 0))
//	g.Output("y")
//	file := g.File()
//
// A Graph belongs to the caller and is for one goroutine. It checks nothing.
package onnxtest

import (
	"encoding/binary"
	"math"
	"strings"
)

// Message is the encoding of a protobuf message, as far as it is written. Its
// methods append a field and return the longer message.
type Message []byte

// Varint appends an integer.
func (w Message) Varint(num int, v int64) Message {
	return binary.AppendUvarint(binary.AppendUvarint(w, uint64(num)<<3), uint64(v))
}

// Bytes appends bytes, such as those of another message.
func (w Message) Bytes(num int, v []byte) Message {
	w = binary.AppendUvarint(w, uint64(num)<<3|2)
	return append(binary.AppendUvarint(w, uint64(len(v))), v...)
}

// Text appends a string.
func (w Message) Text(num int, v string) Message { return w.Bytes(num, []byte(v)) }

// Float appends a float.
func (w Message) Float(num int, v float32) Message {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(w, uint64(num)<<3|5), math.Float32bits(v))
}

// The numbers of the element types in the ONNX format.
const (
	F32    = 1
	I32    = 6
	I64    = 7
	String = 8
	Bool   = 9
)

// Graph is a graph, as far as it is written.
type Graph struct {
	Nodes, inits, inputs, Outputs Message
}

// Node adds a node of type "Relu" or "domain::Type". Attributes are the results
// of Int, Float, Text, Texts, Ints and Subgraph.
func (g *Graph) Node(opType string, in, out []string, attrs ...Message) {
	var w Message
	for _, name := range in {
		w = w.Text(1, name)
	}
	for _, name := range out {
		w = w.Text(2, name)
	}
	w = w.Text(3, opType+" of "+out[0])
	if domain, name, ok := strings.Cut(opType, "::"); ok {
		w, opType = w.Text(7, domain), name
	}
	w = w.Text(4, opType)
	for _, a := range attrs {
		w = w.Bytes(5, a)
	}
	g.Nodes = g.Nodes.Bytes(1, w)
}

// Int encodes an attribute of one integer.
func Int(name string, v int64) Message {
	return Message(nil).Text(1, name).Varint(3, v).Varint(20, 2)
}

// Float encodes an attribute of one float.
func Float(name string, v float32) Message {
	return Message(nil).Text(1, name).Float(2, v).Varint(20, 1)
}

// Text encodes an attribute of one string.
func Text(name, v string) Message {
	return Message(nil).Text(1, name).Text(4, v).Varint(20, 3)
}

// Texts encodes an attribute of a list of strings.
func Texts(name string, list ...string) Message {
	w := Message(nil).Text(1, name)
	for _, v := range list {
		w = w.Text(9, v)
	}
	return w.Varint(20, 8)
}

// Ints encodes an attribute of a list of integers.
func Ints(name string, list ...int64) Message {
	w := Message(nil).Text(1, name)
	for _, v := range list {
		w = w.Varint(8, v)
	}
	return w.Varint(20, 7)
}

// Subgraph encodes an attribute that is a graph.
func Subgraph(name string, g *Graph) Message {
	return Message(nil).Text(1, name).Bytes(6, g.Encode()).Varint(20, 5)
}

// ValueInfo encodes the name and type of an input or output: dims are sizes or
// symbols, "" for unknown.
func ValueInfo(name string, elem int64, dims ...any) Message {
	var shape Message
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.Bytes(1, Message(nil).Varint(1, int64(d)))
		case string:
			shape = shape.Bytes(1, Message(nil).Text(2, d))
		}
	}
	tensor := Message(nil).Varint(1, elem).Bytes(2, shape)
	return Message(nil).Text(1, name).Bytes(2, Message(nil).Bytes(1, tensor))
}

// Input adds an input: dims are sizes or symbols, "" for unknown.
func (g *Graph) Input(name string, elem int64, dims ...any) {
	g.inputs = g.inputs.Bytes(11, ValueInfo(name, elem, dims...))
}

// Output adds an output of undeclared type.
func (g *Graph) Output(name string) { g.Outputs = g.Outputs.Bytes(12, Message(nil).Text(1, name)) }

// Weight adds an initializer of raw bytes.
func (g *Graph) Weight(name string, elem int64, raw []byte, dims ...int64) {
	var w Message
	for _, d := range dims {
		w = w.Varint(1, d)
	}
	g.inits = g.inits.Bytes(5, w.Varint(2, elem).Text(8, name).Bytes(9, raw))
}

// Ints adds an initializer i64[len(list)].
func (g *Graph) Ints(name string, list ...int64) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	g.Weight(name, I64, raw, int64(len(list)))
}

// Floats adds an initializer f32[len(list)].
func (g *Graph) Floats(name string, list ...float32) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.Weight(name, F32, raw, int64(len(list)))
}

// Encode returns the message of the graph.
func (g *Graph) Encode() Message {
	w := append(Message(nil), g.Nodes...).Text(2, "main")
	return append(append(append(w, g.inits...), g.inputs...), g.Outputs...)
}

// File encodes a model of operator set 18 and one of version 1 of domain acme.
func (g *Graph) File() []byte {
	return append(g.FileOf(18), Message(nil).Bytes(8, Message(nil).Text(1, "acme").Varint(2, 1))...)
}

// FileOf encodes a model of one operator set.
func (g *Graph) FileOf(opset int64) Message {
	return Message(nil).Varint(1, 8).Bytes(7, g.Encode()).Bytes(8, Message(nil).Varint(2, opset))
}

// OutputOf adds an output of a declared type.
func (g *Graph) OutputOf(name string, elem int64, dims ...any) {
	g.Outputs = g.Outputs.Bytes(12, ValueInfo(name, elem, dims...))
}

// Value adds the declared type of a value inside the graph.
func (g *Graph) Value(name string, elem int64, dims ...any) {
	g.Nodes = g.Nodes.Bytes(13, ValueInfo(name, elem, dims...))
}
