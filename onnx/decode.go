package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/op"
)

// decoder turns messages into structs. Names occur many times in a file and
// are kept once.
type decoder struct {
	names map[string]string
}

func (d *decoder) str(f *field) string {
	if s, ok := d.names[string(f.body)]; ok {
		return s
	}
	s := string(f.body)
	d.names[s] = s
	return s
}

// readModel decodes a whole file, and says of one that is no model what it is.
func readModel(data []byte) (*modelProto, error) {
	p, err := decodeModel(data)
	if err == nil && p.graph != nil {
		return p, nil
	}
	if words := filekind.Of(data).Got("an ONNX model"); words != "" {
		return nil, corruptf("%s", words)
	}
	if err == nil {
		return nil, corruptf("got no graph: this is no ONNX model")
	}
	if length, left, short := cutOff(data); short {
		return nil, corruptf("got %d of a graph's %d bytes, want all of them: the file ends early, as after a download that was cut off", left, length)
	}
	return nil, err
}

// cutOff reports whether the file ends within its graph: how long that is, and
// how many bytes of it are there.
func cutOff(data []byte) (length uint64, left int, short bool) {
	const graph = 7<<3 | 2 // the field's number and wire type
	m := message{fields: modelFields, data: data}
	for f := (field{}); m.next(&f); {
	}
	if m.err == nil {
		return 0, 0, false
	}
	m.pos = m.start
	if tag, err := m.varint(); err != nil || tag != graph {
		return 0, 0, false
	}
	length, err := m.varint()
	left = len(data) - m.pos
	return length, left, err == nil && length > uint64(left)
}

// decodeModel decodes a whole file.
func decodeModel(data []byte) (*modelProto, error) {
	d := &decoder{names: map[string]string{}}
	p := &modelProto{}
	m := message{fields: modelFields, data: data}
	n, err := m.counts()
	if fault, ok := err.(*formatError); ok && !strings.HasPrefix(fault.path, "graph") { // a graph makes it a model, if a damaged one
		return nil, &formatError{path: "no ONNX model, or a damaged one", err: fault}
	}
	if err != nil {
		return nil, err
	}
	p.functions = room[functionProto](n[25])
	var f field
	for m.next(&f) {
		var err error
		switch f.num {
		case 1:
			p.irVersion = int64(f.number)
		case 2:
			p.producer = d.str(&f)
		case 3:
			p.producerVersion = d.str(&f)
		case 4:
			p.domain = d.str(&f)
		case 5:
			p.version = int64(f.number)
		case 6:
			p.doc = strings.ToValidUTF8(string(f.body), "\ufffd")
		case 7:
			if p.graph != nil {
				err = errors.New("got a second graph")
				break
			}
			p.graph, err = d.graph(&f)
		case 8:
			p.opsets, err = appendMessage(p.opsets, &f, opsetFields, d.opset)
		case 14:
			p.metadata, err = appendMessage(p.metadata, &f, entryFields, d.entry)
		case 25:
			p.functions, err = appendMessage(p.functions, &f, functionFields, d.function)
		}
		m.fault(&f, err)
	}
	return p, m.err
}

// appendMessage decodes a field that is a message and appends it to a list.
func appendMessage[T any](list []T, f *field, fields schema, decode func(m message, v *T) error) ([]T, error) {
	m, err := f.message(fields)
	if err != nil {
		return list, err
	}
	var zero T
	list = append(list, zero)
	return list, decode(m, &list[len(list)-1])
}

// room returns an empty list with exactly the capacity that the file fills.
func room[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

func (d *decoder) opset(m message, o *opsetProto) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			o.domain = d.str(&f)
		case 2:
			o.version = int64(f.number)
		}
	}
	return m.err
}

func (d *decoder) entry(m message, e *entryProto) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			e.key = d.str(&f)
		case 2:
			e.value = string(f.body)
		}
	}
	return m.err
}

func (d *decoder) graph(in *field) (*graphProto, error) {
	m, err := in.message(graphFields)
	if err != nil {
		return nil, err
	}
	n, err := m.counts()
	if err != nil {
		return nil, err
	}
	g := &graphProto{
		nodes:        room[nodeProto](n[1]),
		initializers: room[tensorProto](n[5]),
		inputs:       room[valueProto](n[11]),
		outputs:      room[valueProto](n[12]),
		values:       room[valueProto](n[13]),
		sparse:       room[string](n[15]),
	}
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			g.nodes, err = appendMessage(g.nodes, &f, nodeFields, d.node)
		case 2:
			g.name = d.str(&f)
		case 5:
			g.initializers, err = appendMessage(g.initializers, &f, tensorFields, d.tensor)
		case 10:
			g.doc = strings.ToValidUTF8(string(f.body), "\ufffd")
		case 11:
			g.inputs, err = appendMessage(g.inputs, &f, valueFields, d.value)
		case 12:
			g.outputs, err = appendMessage(g.outputs, &f, valueFields, d.value)
		case 13:
			g.values, err = appendMessage(g.values, &f, valueFields, d.value)
		case 15:
			g.sparse, err = appendMessage(g.sparse, &f, sparseFields, d.sparseName)
		}
		m.fault(&f, err)
	}
	return g, m.err
}

// sparseName decodes of a sparse tensor what it is called.
func (d *decoder) sparseName(m message, name *string) error {
	for f := (field{}); m.next(&f); {
		if f.num != 1 {
			continue
		}
		var values tensorProto
		in, err := f.message(tensorFields)
		if err == nil {
			err = d.tensor(in, &values)
		}
		m.fault(&f, err)
		*name = values.name
	}
	return m.err
}

func (d *decoder) node(m message, n *nodeProto) error {
	count, err := m.counts()
	if err != nil {
		return err
	}
	n.inputs, n.outputs = room[string](count[1]), room[string](count[2])
	n.attrs = room[attrProto](count[5])
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			n.inputs = append(n.inputs, d.str(&f))
		case 2:
			n.outputs = append(n.outputs, d.str(&f))
		case 3:
			n.name = d.str(&f)
		case 4:
			n.opType = d.str(&f)
		case 5:
			n.attrs, err = appendMessage(n.attrs, &f, attrFields, d.attr)
		case 7:
			n.domain = d.str(&f)
		case 8:
			n.overload = d.str(&f)
		}
		m.fault(&f, err)
	}
	if m.err == nil && n.opType == "" {
		return m.faultf("op_type is missing")
	}
	return m.err
}

func (d *decoder) function(m message, fn *functionProto) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			fn.name = d.str(&f)
		case 4:
			fn.inputs = append(fn.inputs, d.str(&f))
		case 5:
			fn.outputs = append(fn.outputs, d.str(&f))
		case 6:
			fn.attrs = append(fn.attrs, d.str(&f))
		case 7:
			fn.nodes, err = appendMessage(fn.nodes, &f, nodeFields, d.node)
		case 9:
			fn.opsets, err = appendMessage(fn.opsets, &f, opsetFields, d.opset)
		case 10:
			fn.domain = d.str(&f)
		case 11:
			fn.defaults, err = appendMessage(fn.defaults, &f, attrFields, d.attr)
		case 13:
			fn.overload = d.str(&f)
		}
		m.fault(&f, err)
	}
	if m.err == nil && fn.name == "" {
		return m.faultf("name is missing")
	}
	return m.err
}

func (d *decoder) value(m message, v *valueProto) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			v.name = d.str(&f)
		case 2:
			v.typ, err = d.typ(&f)
		}
		m.fault(&f, err)
	}
	return m.err
}

var typeKinds = [...]string{1: "tensor", 4: "sequence", 5: "map", 7: "opaque", 8: "sparse tensor", 9: "optional"}

func (d *decoder) typ(in *field) (t typeProto, err error) {
	m, err := in.message(typeFields)
	if err != nil {
		return t, err
	}
	for f := (field{}); m.next(&f); {
		t = typeProto{kind: typeKinds[f.num]}
		if t.kind == "tensor" {
			m.fault(&f, d.tensorType(&f, &t))
		}
	}
	return t, m.err
}

func (d *decoder) tensorType(in *field, t *typeProto) error {
	m, err := in.message(tensorTypeFields)
	if err != nil {
		return err
	}
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			t.elemType = int32(f.number)
		case 2:
			t.hasShape = true
			t.dims, err = d.dims(&f)
			m.fault(&f, err)
		}
	}
	return m.err
}

func (d *decoder) dims(in *field) (dims []dimProto, err error) {
	m, err := in.message(shapeFields)
	if err != nil {
		return nil, err
	}
	n, err := m.counts()
	if err != nil {
		return nil, err
	}
	if n[1] > op.MaxRank {
		return nil, m.faultf("got %d dims, want at most %d", n[1], op.MaxRank)
	}
	dims = room[dimProto](n[1])
	for f := (field{}); m.next(&f); {
		dims, err = appendMessage(dims, &f, dimFields, d.dim)
		m.fault(&f, err)
	}
	return dims, m.err
}

func (d *decoder) dim(m message, dim *dimProto) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			*dim = dimProto{size: int64(f.number), sized: true}
		case 2:
			*dim = dimProto{symbol: d.str(&f)}
		}
	}
	return m.err
}

// tensor decodes the head of a tensor; its numbers stay encoded.
func (d *decoder) tensor(m message, t *tensorProto) error {
	count, err := m.counts()
	if err != nil {
		return err
	}
	t.body, t.at = m.data, m.base
	t.dims = room[int64](min(count[1], op.MaxRank))
	outside := false
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			if n := len(t.dims) + f.numbers(); n > op.MaxRank { // found out before a wrong length takes memory
				err = fmt.Errorf("got %d dims, want at most %d", n, op.MaxRank)
				break
			}
			t.dims, err = f.appendInts(t.dims)
		case 2:
			t.dataType = int32(f.number)
		case 3:
			err = errors.New("tensors in segments are not supported")
		case 8:
			t.name = d.str(&f)
		case 9:
			t.raw, t.rawAt = f.body, f.at
		case 13:
			t.external, err = appendMessage(t.external, &f, entryFields, d.entry)
		case 14:
			if outside = f.number == 1; f.number > 1 {
				err = fmt.Errorf("got %d, want 0 (in the file) or 1 (external)", f.number)
			}
		}
		m.fault(&f, err)
	}
	switch {
	case m.err != nil:
		return m.err
	case !outside:
		t.external = nil
	case t.external == nil:
		return m.faultf("data_location is external, but external_data is missing")
	}
	return nil
}

// Codes of AttributeProto.AttributeType.
const (
	attrFloat = iota + 1
	attrInt
	attrString
	attrTensor
	attrGraph
	attrFloats
	attrInts
	attrStrings
	attrTensors
	attrGraphs
	attrSparseTensor
	attrSparseTensors
	attrTypeProto
	attrTypeProtos
)

// attrKinds gives for each code the field that holds the value.
var attrKinds = [...]int{
	attrFloat: 2, attrInt: 3, attrString: 4, attrTensor: 5, attrGraph: 6, attrFloats: 7, attrInts: 8, attrStrings: 9,
	attrTensors: 10, attrGraphs: 11, attrSparseTensor: 22, attrSparseTensors: 23, attrTypeProto: 14, attrTypeProtos: 15,
}

func (d *decoder) attr(m message, a *attrProto) error {
	values := attrValues{ints: []int64{}, floats: []float32{}, strings: []string{}}
	kind, last := 0, 0
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			a.name = d.str(&f)
		case 20:
			if f.number >= uint64(len(attrKinds)) {
				err = fmt.Errorf("got %d, want 0 to %d", f.number, len(attrKinds)-1)
				break
			}
			kind = int(f.number)
		case 21:
			a.ref = d.str(&f)
		default:
			last = f.num
			err = values.read(d, &f)
		}
		m.fault(&f, err)
	}
	switch {
	case m.err != nil:
		return m.err
	case a.name == "":
		return m.faultf("name is missing")
	case a.ref != "":
		return nil
	case kind == 0: // files before IR version 2 leave the type out
		kind = slices.Index(attrKinds[:], last)
	}
	if kind <= 0 {
		return m.faultf("attribute %q has no value", a.name)
	}
	if a.value = values.of(kind); a.value == nil {
		return m.faultf("attribute %q has no %s, which its type promises", a.name, attrFields[attrKinds[kind]].name)
	}
	return nil
}

// attrValues collects what an attribute message holds until its type is known,
// which stands behind the value. A number that is missing is zero: writers
// of proto3 leave zeros out.
type attrValues struct {
	f       float32
	i       int64
	s       string
	t       *tensorProto
	g       *graphProto
	floats  []float32
	ints    []int64
	strings []string
}

func (v *attrValues) read(d *decoder, f *field) (err error) {
	switch f.num {
	case 2:
		v.f = math.Float32frombits(uint32(f.number))
	case 3:
		v.i = int64(f.number)
	case 4:
		v.s = string(f.body)
	case 5:
		m, err := f.message(tensorFields)
		if err != nil {
			return err
		}
		v.t = &tensorProto{}
		return d.tensor(m, v.t)
	case 6:
		v.g, err = d.graph(f)
	case 7:
		v.floats, err = f.appendFloats(v.floats)
	case 8:
		v.ints, err = f.appendInts(v.ints)
	case 9:
		v.strings = append(v.strings, string(f.body))
	}
	return err
}

// of returns the value of the given attribute type, nil when it is missing.
func (v *attrValues) of(kind int) any {
	switch kind {
	case attrFloat:
		return v.f
	case attrInt:
		return v.i
	case attrString:
		return v.s
	case attrFloats:
		return v.floats
	case attrInts:
		return v.ints
	case attrStrings:
		return v.strings
	case attrTensor:
		if v.t != nil {
			return v.t
		}
		return nil
	case attrGraph:
		if v.g != nil {
			return v.g
		}
		return nil
	}
	return otherKind(attrFields[attrKinds[kind]].name)
}
