package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/op"
)

// decoder makes structs of messages. Names occur many times in a file and
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

// Decode decodes a whole file; the error of a file that is no model names its
// kind.
func Decode(data []byte) (*Model, error) {
	p, err := decodeModel(data)
	if err == nil && p.Graph != nil {
		return p, nil
	}
	if words := filekind.Of(data).Got("an ONNX model"); words != "" {
		return nil, Corruptf("%s", words)
	}
	if err == nil {
		return nil, Corruptf("got no graph: this is no ONNX model")
	}
	if length, left, short := cutOff(data); short {
		return nil, Corruptf("got %d of a graph's %d bytes, want all of them: the file ends early, as after a download that was cut off", left, length)
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
func decodeModel(data []byte) (*Model, error) {
	d := &decoder{names: map[string]string{}}
	p := &Model{}
	m := message{fields: modelFields, data: data}
	n, err := m.counts()
	if fault, ok := err.(*formatError); ok && !strings.HasPrefix(fault.path, "graph") { // a graph makes it a model, if a damaged one
		return nil, &formatError{path: "no ONNX model, or a damaged one", err: fault}
	}
	if err != nil {
		return nil, err
	}
	p.Functions = withCapacity[Function](n[25])
	var f field
	for m.next(&f) {
		var err error
		switch f.num {
		case 1:
			p.IRVersion = int64(f.number)
		case 2:
			p.Producer = d.str(&f)
		case 3:
			p.ProducerVersion = d.str(&f)
		case 4:
			p.Domain = d.str(&f)
		case 5:
			p.Version = int64(f.number)
		case 6:
			p.Doc = strings.ToValidUTF8(string(f.body), "\ufffd")
		case 7:
			if p.Graph != nil {
				err = errors.New("got a second graph")
				break
			}
			p.Graph, err = d.graph(&f)
		case 8:
			p.Opsets, err = appendMessage(p.Opsets, &f, opsetFields, d.opset)
		case 14:
			p.Metadata, err = appendMessage(p.Metadata, &f, entryFields, d.entry)
		case 25:
			p.Functions, err = appendMessage(p.Functions, &f, functionFields, d.function)
		}
		m.fault(&f, err)
	}
	return p, m.err
}

// DecodeTensor decodes a file that is one tensor.
func DecodeTensor(data []byte) (*Tensor, error) {
	t := &Tensor{}
	m := message{fields: tensorFields, data: data}
	if err := (&decoder{names: map[string]string{}}).tensor(m, t); err != nil {
		return nil, err
	}
	return t, nil
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

// withCapacity returns an empty list with exactly the capacity that the file
// fills.
func withCapacity[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

func (d *decoder) opset(m message, o *Opset) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			o.Domain = d.str(&f)
		case 2:
			o.Version = int64(f.number)
		}
	}
	return m.err
}

func (d *decoder) entry(m message, e *Entry) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			e.Key = d.str(&f)
		case 2:
			e.Value = string(f.body)
		}
	}
	return m.err
}

func (d *decoder) graph(in *field) (*Graph, error) {
	m, err := in.message(graphFields)
	if err != nil {
		return nil, err
	}
	n, err := m.counts()
	if err != nil {
		return nil, err
	}
	g := &Graph{
		Nodes:        withCapacity[Node](n[1]),
		Initializers: withCapacity[Tensor](n[5]),
		Inputs:       withCapacity[Value](n[11]),
		Outputs:      withCapacity[Value](n[12]),
		Values:       withCapacity[Value](n[13]),
		Sparse:       withCapacity[Sparse](n[15]),
	}
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			g.Nodes, err = appendMessage(g.Nodes, &f, nodeFields, d.node)
		case 2:
			g.Name = d.str(&f)
		case 5:
			g.Initializers, err = appendMessage(g.Initializers, &f, tensorFields, d.tensor)
		case 10:
			g.Doc = strings.ToValidUTF8(string(f.body), "\ufffd")
		case 11:
			g.Inputs, err = appendMessage(g.Inputs, &f, valueFields, d.value)
		case 12:
			g.Outputs, err = appendMessage(g.Outputs, &f, valueFields, d.value)
		case 13:
			g.Values, err = appendMessage(g.Values, &f, valueFields, d.value)
		case 15:
			g.Sparse, err = appendMessage(g.Sparse, &f, sparseFields, d.sparse)
		}
		m.fault(&f, err)
	}
	return g, m.err
}

func (d *decoder) node(m message, n *Node) error {
	count, err := m.counts()
	if err != nil {
		return err
	}
	n.Inputs, n.Outputs = withCapacity[string](count[1]), withCapacity[string](count[2])
	n.Attrs = withCapacity[Attribute](count[5])
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			n.Inputs = append(n.Inputs, d.str(&f))
		case 2:
			n.Outputs = append(n.Outputs, d.str(&f))
		case 3:
			n.Name = d.str(&f)
		case 4:
			n.OpType = d.str(&f)
		case 5:
			n.Attrs, err = appendMessage(n.Attrs, &f, attrFields, d.attr)
		case 7:
			n.Domain = d.str(&f)
		case 8:
			n.Overload = d.str(&f)
		}
		m.fault(&f, err)
	}
	if m.err == nil && n.OpType == "" {
		return m.faultf("op_type is missing")
	}
	return m.err
}

func (d *decoder) function(m message, fn *Function) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			fn.Name = d.str(&f)
		case 4:
			fn.Inputs = append(fn.Inputs, d.str(&f))
		case 5:
			fn.Outputs = append(fn.Outputs, d.str(&f))
		case 6:
			fn.Attrs = append(fn.Attrs, d.str(&f))
		case 7:
			fn.Nodes, err = appendMessage(fn.Nodes, &f, nodeFields, d.node)
		case 9:
			fn.Opsets, err = appendMessage(fn.Opsets, &f, opsetFields, d.opset)
		case 10:
			fn.Domain = d.str(&f)
		case 11:
			fn.Defaults, err = appendMessage(fn.Defaults, &f, attrFields, d.attr)
		case 13:
			fn.Overload = d.str(&f)
		}
		m.fault(&f, err)
	}
	if m.err == nil && fn.Name == "" {
		return m.faultf("name is missing")
	}
	return m.err
}

// tensor decodes the head of a tensor; its numbers stay encoded.
func (d *decoder) tensor(m message, t *Tensor) error {
	count, err := m.counts()
	if err != nil {
		return err
	}
	t.Body, t.at = m.data, m.base
	t.Dims = withCapacity[int64](min(count[1], op.MaxRank))
	outside := false
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			if n := len(t.Dims) + f.numbers(); n > op.MaxRank { // found out before a wrong length takes memory
				err = fmt.Errorf("got %d dims, want at most %d", n, op.MaxRank)
				break
			}
			t.Dims, err = f.appendInts(t.Dims)
		case 2:
			t.DataType = int32(f.number)
		case 3:
			err = errors.New("tensors in segments are not supported")
		case 8:
			t.Name = d.str(&f)
		case 9:
			t.Raw, t.rawAt = f.body, f.at
		case 13:
			t.External, err = appendMessage(t.External, &f, entryFields, d.entry)
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
		t.External = nil
	case t.External == nil:
		return m.faultf("data_location is external, but external_data is missing")
	}
	return nil
}
