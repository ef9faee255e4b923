// Package wiretest writes ONNX files for tests of what reads them:
// [EncodeModel] from messages, [ModelText] from a short text.
//
//	file := wiretest.ModelText(t, "opset 13\ninput x f32[2]\ny = Relu(x)\noutput y f32[2]")
//
// It encodes messages without checking them, so that faults can be written too.
// The caller owns the results. A [Writer] is for one goroutine.
package wiretest

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// Writer is the encoding of a message, as far as it is written. Its methods
// append a field.
type Writer []byte

// Tag appends the number and the wire type of a field.
func (w *Writer) Tag(num, wire int) {
	*w = binary.AppendUvarint(*w, uint64(num)<<3|uint64(wire))
}

// Varint appends an integer.
func (w *Writer) Varint(num int, v int64) {
	w.Tag(num, wire.TypeVarint)
	*w = binary.AppendUvarint(*w, uint64(v))
}

// Float appends a float.
func (w *Writer) Float(num int, v float32) {
	w.Tag(num, wire.TypeFixed4)
	*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(v))
}

// Bytes appends bytes, such as those of another message.
func (w *Writer) Bytes(num int, v []byte) {
	w.Tag(num, wire.TypeBytes)
	*w = binary.AppendUvarint(*w, uint64(len(v)))
	*w = append(*w, v...)
}

// Text appends a string unless it is empty.
func (w *Writer) Text(num int, s string) {
	if s != "" {
		w.Bytes(num, []byte(s))
	}
}

func writeAll[T any](w *Writer, num int, list []T, encode func(*Writer, *T)) {
	for i := range list {
		var inner Writer
		encode(&inner, &list[i])
		w.Bytes(num, inner)
	}
}

// EncodeModel returns the file of a model.
func EncodeModel(m *wire.Model) []byte {
	var w Writer
	w.Varint(1, m.IRVersion)
	w.Text(2, m.Producer)
	w.Text(3, m.ProducerVersion)
	w.Text(4, m.Domain)
	if m.Version != 0 {
		w.Varint(5, m.Version)
	}
	w.Text(6, m.Doc)
	if m.Graph != nil {
		writeAll(&w, 7, []wire.Graph{*m.Graph}, encodeGraph)
	}
	writeAll(&w, 8, m.Opsets, encodeOpset)
	writeAll(&w, 14, m.Metadata, encodeEntry)
	writeAll(&w, 25, m.Functions, encodeFunction)
	return w
}

func encodeOpset(w *Writer, o *wire.Opset) {
	w.Text(1, o.Domain)
	w.Varint(2, o.Version)
}

func encodeEntry(w *Writer, e *wire.Entry) {
	w.Text(1, e.Key)
	w.Text(2, e.Value)
}

func encodeGraph(w *Writer, g *wire.Graph) {
	writeAll(w, 1, g.Nodes, encodeNode)
	w.Text(2, g.Name)
	w.Text(10, g.Doc)
	writeAll(w, 5, g.Initializers, EncodeTensor)
	writeAll(w, 11, g.Inputs, encodeValue)
	writeAll(w, 12, g.Outputs, encodeValue)
	writeAll(w, 13, g.Values, encodeValue)
	writeAll(w, 15, g.Sparse, encodeSparse)
}

func encodeSparse(w *Writer, s *wire.Sparse) {
	writeAll(w, 1, []wire.Tensor{s.Values}, EncodeTensor)
	writeAll(w, 2, []wire.Tensor{s.Indices}, EncodeTensor)
	for _, d := range s.Dims {
		w.Varint(3, d)
	}
}

func encodeNode(w *Writer, n *wire.Node) {
	for _, s := range n.Inputs {
		w.Bytes(1, []byte(s))
	}
	for _, s := range n.Outputs {
		w.Bytes(2, []byte(s))
	}
	w.Text(3, n.Name)
	w.Text(4, n.OpType)
	writeAll(w, 5, n.Attrs, encodeAttr)
	w.Text(7, n.Domain)
	w.Text(8, n.Overload)
}

func encodeAttr(w *Writer, a *wire.Attribute) {
	w.Text(1, a.Name)
	w.Text(21, a.Ref)
	kind := 0
	switch v := a.Value.(type) {
	case float32:
		kind = wire.AttrFloat
		w.Float(2, v)
	case int64:
		kind = wire.AttrInt
		w.Varint(3, v)
	case string:
		kind = wire.AttrString
		w.Bytes(4, []byte(v))
	case *wire.Tensor:
		kind = wire.AttrTensor
		writeAll(w, 5, []wire.Tensor{*v}, EncodeTensor)
	case *wire.Sparse:
		kind = wire.AttrSparse
		writeAll(w, 22, []wire.Sparse{*v}, encodeSparse)
	case *wire.Graph:
		kind = wire.AttrGraph
		writeAll(w, 6, []wire.Graph{*v}, encodeGraph)
	case []float32:
		kind = wire.AttrFloats
		for _, x := range v {
			w.Float(7, x)
		}
	case []int64:
		kind = wire.AttrInts
		for _, x := range v {
			w.Varint(8, x)
		}
	case []string:
		kind = wire.AttrStrings
		for _, x := range v {
			w.Bytes(9, []byte(x))
		}
	case wire.OtherKind:
		kind = wire.AttrTypeProto
		w.Bytes(14, nil)
	}
	if kind != 0 {
		w.Varint(20, int64(kind))
	}
}

// EncodeTensor writes raw data, or the typed lists that stand in body.data as
// encoded fields.
func EncodeTensor(w *Writer, t *wire.Tensor) {
	for _, d := range t.Dims {
		w.Varint(1, d)
	}
	w.Varint(2, int64(t.DataType))
	w.Text(8, t.Name)
	*w = append(*w, t.Body...)
	if t.Raw != nil {
		w.Bytes(9, t.Raw)
	}
	if t.External != nil {
		writeAll(w, 13, t.External, encodeEntry)
		w.Varint(14, 1)
	}
}

func encodeValue(w *Writer, v *wire.Value) {
	w.Text(1, v.Name)
	if v.Type.Kind == "" {
		return
	}
	var typ Writer
	encodeType(&typ, &v.Type)
	w.Bytes(2, typ)
}

func encodeType(w *Writer, t *wire.Type) {
	var body Writer
	switch {
	case t.Kind == "tensor":
		encodeTensorType(&body, t)
		w.Bytes(1, body)
	case t.Elem == nil:
		w.Bytes(4, nil)
	case t.Kind == "map":
		var elem Writer
		encodeType(&elem, t.Elem)
		body.Varint(1, int64(t.Key))
		body.Bytes(2, elem)
		w.Bytes(5, body)
	default:
		var elem Writer
		encodeType(&elem, t.Elem)
		body.Bytes(1, elem)
		w.Bytes(map[string]int{"sequence": 4, "optional": 9}[t.Kind], body)
	}
}

func encodeTensorType(w *Writer, t *wire.Type) {
	w.Varint(1, int64(t.ElemType))
	if !t.HasShape {
		return
	}
	var shape Writer
	writeAll(&shape, 1, t.Dims, func(w *Writer, d *wire.Dim) {
		if d.Sized {
			w.Varint(1, d.Size)
		}
		w.Text(2, d.Symbol)
	})
	w.Bytes(2, shape)
}

func encodeFunction(w *Writer, f *wire.Function) {
	w.Text(1, f.Name)
	for _, s := range f.Inputs {
		w.Bytes(4, []byte(s))
	}
	for _, s := range f.Outputs {
		w.Bytes(5, []byte(s))
	}
	for _, s := range f.Attrs {
		w.Bytes(6, []byte(s))
	}
	writeAll(w, 7, f.Nodes, encodeNode)
	writeAll(w, 9, f.Opsets, encodeOpset)
	w.Text(10, f.Domain)
	writeAll(w, 11, f.Defaults, encodeAttr)
	w.Text(13, f.Overload)
}
