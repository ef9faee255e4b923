package onnxfile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Elem is the number of an element type in the ONNX format.
type Elem int64

const (
	F32 Elem = 1
	U8  Elem = 2
	I64 Elem = 7
)

// Graph is a model under way. Its zero value is not usable: see [New].
type Graph struct {
	opset                  int64
	imports                wire // of other domains
	nodes, inputs, outputs wire
	constants              wire // small initializers, encoded
	weights                []weight
	declared               []Input
	results                []string
}

// Open is the size of an open dimension.
const Open = -1

// Input is a declared input of a graph. A size may be [Open].
type Input struct {
	Name string
	Elem Elem
	Dims []int
}

// weight is an initializer whose numbers are drawn while it is written: F32
// from a source, U8 from a seed.
type weight struct {
	name   string
	dims   []int
	source func() Source
	seed   uint64
}

// New begins a graph of the given version of the default operator set.
func New(opset int) *Graph { return &Graph{opset: int64(opset)} }

// Import says which version of another domain's operators the nodes have.
func (g *Graph) Import(domain string, opset int) {
	g.imports = g.imports.bytes(8, wire(nil).text(1, domain).varint(2, int64(opset)))
}

// Inputs are the declared inputs, in order.
func (g *Graph) Inputs() []Input { return g.declared }

// Outputs are the names of the declared outputs, in order.
func (g *Graph) Outputs() []string { return g.results }

// WeightBytes is the size of the weights, in bytes.
func (g *Graph) WeightBytes() (n int64) {
	for _, w := range g.weights {
		n += w.bytes()
	}
	return n
}

func (w weight) bytes() int64 {
	n := int64(4)
	if w.elem() == U8 {
		n = 1
	}
	for _, d := range w.dims {
		n *= int64(d)
	}
	return n
}

func (w weight) elem() Elem {
	if w.source == nil {
		return U8
	}
	return F32
}

// Attr is an attribute of a node, encoded.
type Attr []byte

// Int makes an attribute of a whole number.
func Int(name string, v int64) Attr { return Attr(wire(nil).text(1, name).varint(3, v).varint(20, 2)) }

// Float makes an attribute of a number.
func Float(name string, v float32) Attr {
	return Attr(wire(nil).text(1, name).float(2, math.Float32bits(v)).varint(20, 1))
}

// Ints makes an attribute of a list of whole numbers.
func Ints(name string, list ...int64) Attr {
	w := wire(nil).text(1, name)
	for _, v := range list {
		w = w.varint(8, v)
	}
	return Attr(w.varint(20, 7))
}

// FloatList makes an attribute of a list of numbers.
func FloatList(name string, list ...float32) Attr {
	w := wire(nil).text(1, name)
	for _, v := range list {
		w = w.float(7, math.Float32bits(v))
	}
	return Attr(w.varint(20, 6))
}

// Text makes an attribute of a string.
func Text(name, v string) Attr { return Attr(wire(nil).text(1, name).text(4, v).varint(20, 3)) }

// Texts makes an attribute of a list of strings.
func Texts(name string, list ...string) Attr {
	w := wire(nil).text(1, name)
	for _, v := range list {
		w = w.text(9, v)
	}
	return Attr(w.varint(20, 8))
}

// Node adds a node of type "Relu" or "domain::Type". Nodes must come in an
// order in which they can run.
func (g *Graph) Node(op string, in, out []string, attrs ...Attr) {
	var w wire
	for _, name := range in {
		w = w.text(1, name)
	}
	for _, name := range out {
		w = w.text(2, name)
	}
	w = w.text(3, op+" of "+out[0])
	if domain, name, ok := strings.Cut(op, "::"); ok {
		w, op = w.text(7, domain), name
	}
	w = w.text(4, op)
	for _, a := range attrs {
		w = w.bytes(5, a)
	}
	g.nodes = g.nodes.bytes(1, w)
}

// Input declares an input of these sizes, of which some may be [Open].
func (g *Graph) Input(name string, elem Elem, dims ...int) {
	var shape wire
	for _, d := range dims {
		var dim wire
		if d != Open {
			dim = dim.varint(1, int64(d))
		}
		shape = shape.bytes(1, dim)
	}
	typ := wire(nil).bytes(1, wire(nil).varint(1, int64(elem)).bytes(2, shape))
	g.inputs = g.inputs.bytes(11, wire(nil).text(1, name).bytes(2, typ))
	g.declared = append(g.declared, Input{name, elem, slices.Clone(dims)})
}

// Output declares an output of any shape.
func (g *Graph) Output(name string, elem Elem) {
	typ := wire(nil).bytes(1, wire(nil).varint(1, int64(elem)))
	g.outputs = g.outputs.bytes(12, wire(nil).text(1, name).bytes(2, typ))
	g.results = append(g.results, name)
}

// Weight adds an initializer of float32 whose numbers are drawn when the file
// is written.
func (g *Graph) Weight(name string, source func() Source, dims ...int) {
	g.weights = append(g.weights, weight{name: name, dims: slices.Clone(dims), source: source})
}

// Bytes adds an initializer of bytes that are drawn when the file is written.
func (g *Graph) Bytes(name string, seed uint64, dims ...int) {
	g.weights = append(g.weights, weight{name: name, dims: slices.Clone(dims), seed: seed})
}

// Floats adds a small initializer of one axis.
func (g *Graph) Floats(name string, list ...float32) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.constants = g.constants.bytes(5, wire(nil).varint(1, int64(len(list))).varint(2, int64(F32)).text(8, name).bytes(9, raw))
}

// Scalar adds an initializer of no axes.
func (g *Graph) Scalar(name string, v float32) {
	raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	g.constants = g.constants.bytes(5, wire(nil).varint(2, int64(F32)).text(8, name).bytes(9, raw))
}

// Sizes adds a small initializer of int64 of one axis.
func (g *Graph) Sizes(name string, list ...int64) {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	g.constants = g.constants.bytes(5, wire(nil).varint(1, int64(len(list))).varint(2, int64(I64)).text(8, name).bytes(9, raw))
}

// head is the part of a weight's message before its numbers.
func (w weight) head() wire {
	var head wire
	for _, d := range w.dims {
		head = head.varint(1, int64(d))
	}
	return head.varint(2, int64(w.elem())).text(8, w.name).open(9, w.bytes())
}

// WriteTo writes the model's file.
func (g *Graph) WriteTo(to io.Writer) (int64, error) {
	body := slices.Concat(g.nodes, wire(nil).text(2, "main"), g.constants)
	tail := slices.Concat(g.inputs, g.outputs)
	size := int64(len(body) + len(tail))
	var heads []wire
	for _, w := range g.weights {
		head := w.head()
		inner := int64(len(head)) + w.bytes()
		heads = append(heads, append(wire(nil).open(5, inner), head...))
		size += int64(len(heads[len(heads)-1])) + w.bytes()
	}
	// From version 4 of the format on an initializer need not be an input
	// too, which would let the caller override it.
	start := wire(nil).varint(1, 8).text(2, "tenure/bench").bytes(8, wire(nil).varint(2, g.opset))
	start = append(start, g.imports...).open(7, size)

	out := bufio.NewWriterSize(to, 1<<18)
	out.Write(start)
	out.Write(body)
	for i, w := range g.weights {
		out.Write(heads[i])
		if err := w.write(out); err != nil {
			return 0, fmt.Errorf("weight %s: %w", w.name, err)
		}
	}
	out.Write(tail)
	return int64(len(start)) + size, out.Flush()
}

// write writes a weight's numbers, a part at a time.
func (w weight) write(out io.Writer) error {
	if w.elem() == U8 {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], w.seed)
		_, err := io.CopyN(out, rand.NewChaCha8(seed), w.bytes())
		return err
	}
	source := w.source()
	part := make([]float32, 1<<14)
	var raw []byte
	for left := w.bytes() / 4; left > 0; {
		n := min(left, int64(len(part)))
		source(part[:n])
		raw = raw[:0]
		for _, v := range part[:n] {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		if _, err := out.Write(raw); err != nil {
			return err
		}
		left -= n
	}
	return nil
}
