package tenure_test

import (
	"encoding/binary"
	"math"
	"strings"
)

// wire is the encoding of a protobuf message under way. Tests make ONNX files
// with it that no exporter would write, or that are too large for the
// repository.
type wire []byte

func (w wire) varint(num int, v int64) wire {
	return binary.AppendUvarint(binary.AppendUvarint(w, uint64(num)<<3), uint64(v))
}

func (w wire) bytes(num int, v []byte) wire {
	w = binary.AppendUvarint(w, uint64(num)<<3|2)
	return append(binary.AppendUvarint(w, uint64(len(v))), v...)
}

func (w wire) text(num int, v string) wire { return w.bytes(num, []byte(v)) }

// The numbers of the element types in the ONNX format.
const (
	f32Type    = 1
	i32Type    = 6
	i64Type    = 7
	stringType = 8
	boolType   = 9
)

// graph is a graph under way.
type graph struct {
	nodes, inits, inputs, outputs wire
}

// node adds a node of type "Relu" or "domain::Type". Attributes are the results
// of the functions attr...
func (g *graph) node(opType string, in, out []string, attrs ...wire) {
	var w wire
	for _, name := range in {
		w = w.text(1, name)
	}
	for _, name := range out {
		w = w.text(2, name)
	}
	w = w.text(3, opType+" of "+out[0])
	if domain, name, ok := strings.Cut(opType, "::"); ok {
		w, opType = w.text(7, domain), name
	}
	w = w.text(4, opType)
	for _, a := range attrs {
		w = w.bytes(5, a)
	}
	g.nodes = g.nodes.bytes(1, w)
}

func attrInt(name string, v int64) wire {
	return wire(nil).text(1, name).varint(3, v).varint(20, 2)
}

func attrFloat(name string, v float32) wire {
	w := binary.AppendUvarint(wire(nil).text(1, name), 2<<3|5)
	return wire(binary.LittleEndian.AppendUint32(w, math.Float32bits(v))).varint(20, 1)
}

func attrText(name, v string) wire {
	return wire(nil).text(1, name).text(4, v).varint(20, 3)
}

func attrTexts(name string, list ...string) wire {
	w := wire(nil).text(1, name)
	for _, v := range list {
		w = w.text(9, v)
	}
	return w.varint(20, 8)
}

func attrInts(name string, list ...int64) wire {
	w := wire(nil).text(1, name)
	for _, v := range list {
		w = w.varint(8, v)
	}
	return w.varint(20, 7)
}

func attrGraph(name string, g *graph) wire {
	return wire(nil).text(1, name).bytes(6, g.encode()).varint(20, 5)
}

// value encodes a declared type: dims are sizes or symbols, "" for unknown.
func value(name string, elem int64, dims ...any) wire {
	var shape wire
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.bytes(1, wire(nil).varint(1, int64(d)))
		case string:
			shape = shape.bytes(1, wire(nil).text(2, d))
		}
	}
	tensor := wire(nil).varint(1, elem).bytes(2, shape)
	return wire(nil).text(1, name).bytes(2, wire(nil).bytes(1, tensor))
}

func (g *graph) input(name string, elem int64, dims ...any) {
	g.inputs = g.inputs.bytes(11, value(name, elem, dims...))
}

func (g *graph) output(name string) { g.outputs = g.outputs.bytes(12, wire(nil).text(1, name)) }

func (g *graph) weight(name string, elem int64, raw []byte, dims ...int64) {
	var w wire
	for _, d := range dims {
		w = w.varint(1, d)
	}
	g.inits = g.inits.bytes(5, w.varint(2, elem).text(8, name).bytes(9, raw))
}

func (g *graph) ints(name string, list ...int64) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	g.weight(name, i64Type, raw, int64(len(list)))
}

func (g *graph) floats(name string, list ...float32) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.weight(name, f32Type, raw, int64(len(list)))
}

func (g *graph) encode() wire {
	w := append(wire(nil), g.nodes...).text(2, "main")
	return append(append(append(w, g.inits...), g.inputs...), g.outputs...)
}

// file encodes a model of operator set 18 and one of version 1 of domain acme.
func (g *graph) file() []byte {
	return wire(nil).varint(1, 8).bytes(7, g.encode()).bytes(8, wire(nil).varint(2, 18)).
		bytes(8, wire(nil).text(1, "acme").varint(2, 1))
}
