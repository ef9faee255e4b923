package onnx

import (
	"encoding/binary"
	"math"
)

// Tests write their own files: an encoder of the messages, with no care for
// speed.

type wireWriter []byte

func (w *wireWriter) tag(num, wire int) {
	*w = binary.AppendUvarint(*w, uint64(num)<<3|uint64(wire))
}

func (w *wireWriter) varint(num int, v int64) {
	w.tag(num, wireVarint)
	*w = binary.AppendUvarint(*w, uint64(v))
}

func (w *wireWriter) float(num int, v float32) {
	w.tag(num, wireFixed4)
	*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(v))
}

func (w *wireWriter) bytes(num int, v []byte) {
	w.tag(num, wireBytes)
	*w = binary.AppendUvarint(*w, uint64(len(v)))
	*w = append(*w, v...)
}

// text writes a string unless it is empty.
func (w *wireWriter) text(num int, s string) {
	if s != "" {
		w.bytes(num, []byte(s))
	}
}

func writeAll[T any](w *wireWriter, num int, list []T, encode func(*wireWriter, *T)) {
	for i := range list {
		var inner wireWriter
		encode(&inner, &list[i])
		w.bytes(num, inner)
	}
}

func encodeModel(m *modelProto) []byte {
	var w wireWriter
	w.varint(1, m.irVersion)
	w.text(2, m.producer)
	w.text(3, m.producerVersion)
	w.text(4, m.domain)
	if m.version != 0 {
		w.varint(5, m.version)
	}
	w.text(6, m.doc)
	if m.graph != nil {
		writeAll(&w, 7, []graphProto{*m.graph}, encodeGraph)
	}
	writeAll(&w, 8, m.opsets, encodeOpset)
	writeAll(&w, 14, m.metadata, encodeEntry)
	writeAll(&w, 25, m.functions, encodeFunction)
	return w
}

func encodeOpset(w *wireWriter, o *opsetProto) {
	w.text(1, o.domain)
	w.varint(2, o.version)
}

func encodeEntry(w *wireWriter, e *entryProto) {
	w.text(1, e.key)
	w.text(2, e.value)
}

func encodeGraph(w *wireWriter, g *graphProto) {
	writeAll(w, 1, g.nodes, encodeNode)
	w.text(2, g.name)
	w.text(10, g.doc)
	writeAll(w, 5, g.initializers, encodeTensor)
	writeAll(w, 11, g.inputs, encodeValue)
	writeAll(w, 12, g.outputs, encodeValue)
	writeAll(w, 13, g.values, encodeValue)
	writeAll(w, 15, g.sparse, encodeSparse)
}

// encodeSparse writes a tensor f32[3] with a 7 in the middle.
func encodeSparse(w *wireWriter, name *string) {
	writeAll(w, 1, []tensorProto{{name: *name, dims: []int64{1}, dataType: 1, raw: []byte{0, 0, 0xe0, 0x40}}}, encodeTensor)
	writeAll(w, 2, []tensorProto{{dims: []int64{1}, dataType: 7, raw: []byte{1, 0, 0, 0, 0, 0, 0, 0}}}, encodeTensor)
	w.varint(3, 3)
}

func encodeNode(w *wireWriter, n *nodeProto) {
	for _, s := range n.inputs {
		w.bytes(1, []byte(s))
	}
	for _, s := range n.outputs {
		w.bytes(2, []byte(s))
	}
	w.text(3, n.name)
	w.text(4, n.opType)
	writeAll(w, 5, n.attrs, encodeAttr)
	w.text(7, n.domain)
	w.text(8, n.overload)
}

func encodeAttr(w *wireWriter, a *attrProto) {
	w.text(1, a.name)
	w.text(21, a.ref)
	kind := 0
	switch v := a.value.(type) {
	case float32:
		kind = attrFloat
		w.float(2, v)
	case int64:
		kind = attrInt
		w.varint(3, v)
	case string:
		kind = attrString
		w.bytes(4, []byte(v))
	case *tensorProto:
		kind = attrTensor
		writeAll(w, 5, []tensorProto{*v}, encodeTensor)
	case *graphProto:
		kind = attrGraph
		writeAll(w, 6, []graphProto{*v}, encodeGraph)
	case []float32:
		kind = attrFloats
		for _, x := range v {
			w.float(7, x)
		}
	case []int64:
		kind = attrInts
		for _, x := range v {
			w.varint(8, x)
		}
	case []string:
		kind = attrStrings
		for _, x := range v {
			w.bytes(9, []byte(x))
		}
	case otherKind:
		kind = attrTypeProto
		w.bytes(14, nil)
	}
	if kind != 0 {
		w.varint(20, int64(kind))
	}
}

// encodeTensor writes raw data, or the typed lists that stand in body.data as
// encoded fields.
func encodeTensor(w *wireWriter, t *tensorProto) {
	for _, d := range t.dims {
		w.varint(1, d)
	}
	w.varint(2, int64(t.dataType))
	w.text(8, t.name)
	*w = append(*w, t.body...)
	if t.raw != nil {
		w.bytes(9, t.raw)
	}
	if t.external != nil {
		writeAll(w, 13, t.external, encodeEntry)
		w.varint(14, 1)
	}
}

func encodeValue(w *wireWriter, v *valueProto) {
	w.text(1, v.name)
	if v.typ.kind == "" {
		return
	}
	var typ wireWriter
	if v.typ.kind != "tensor" {
		typ.bytes(4, nil)
		w.bytes(2, typ)
		return
	}
	var tensor, shape wireWriter
	tensor.varint(1, int64(v.typ.elemType))
	if v.typ.hasShape {
		writeAll(&shape, 1, v.typ.dims, func(w *wireWriter, d *dimProto) {
			if d.sized {
				w.varint(1, d.size)
			}
			w.text(2, d.symbol)
		})
		tensor.bytes(2, shape)
	}
	typ.bytes(1, tensor)
	w.bytes(2, typ)
}

func encodeFunction(w *wireWriter, f *functionProto) {
	w.text(1, f.name)
	for _, s := range f.inputs {
		w.bytes(4, []byte(s))
	}
	for _, s := range f.outputs {
		w.bytes(5, []byte(s))
	}
	for _, s := range f.attrs {
		w.bytes(6, []byte(s))
	}
	writeAll(w, 7, f.nodes, encodeNode)
	writeAll(w, 9, f.opsets, encodeOpset)
	w.text(10, f.domain)
	writeAll(w, 11, f.defaults, encodeAttr)
	w.text(13, f.overload)
}
