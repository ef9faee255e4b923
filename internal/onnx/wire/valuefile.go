package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/op"
)

// Sequence is a SequenceProto: tensors, or maps.
type Sequence struct {
	Name    string
	Tensors []Tensor
	Maps    []Map
}

// Map is a MapProto. Keys are integers or strings; Values has one tensor for
// each, or one of them all.
type Map struct {
	Name    string
	Keys    []int64
	Strings []string
	Values  Sequence
}

// Optional is an OptionalProto: a tensor, a sequence, a map, or nothing.
type Optional struct {
	Name     string
	Tensor   *Tensor
	Sequence *Sequence
	Map      *Map
}

var (
	sequenceFields = schema{
		1: {"name", kindString, false},
		2: {"elem_type", kindVarint, false},
		3: {"tensor_values", kindMessage, true},
		4: {"sparse_tensor_values", kindMessage, true},
		5: {"sequence_values", kindMessage, true},
		6: {"map_values", kindMessage, true},
		7: {"optional_values", kindMessage, true},
	}
	mapFields = schema{
		1: {"name", kindString, false},
		2: {"key_type", kindVarint, false},
		3: {"keys", kindVarint, true},
		4: {"string_keys", kindBytes, true},
		5: {"values", kindMessage, false},
	}
	optionalFields = schema{
		1: {"name", kindString, false},
		2: {"elem_type", kindVarint, false},
		3: {"tensor_value", kindMessage, false},
		4: {"sparse_tensor_value", kindMessage, false},
		5: {"sequence_value", kindMessage, false},
		6: {"map_value", kindMessage, false},
		7: {"optional_value", kindMessage, false},
	}
)

// DecodeSequence decodes a file that is one sequence.
func DecodeSequence(data []byte) (*Sequence, error) {
	s := &Sequence{}
	return s, newDecoder().sequence(message{fields: sequenceFields, data: data}, s)
}

// DecodeMap decodes a file that is one map.
func DecodeMap(data []byte) (*Map, error) {
	v := &Map{}
	return v, newDecoder().mapping(message{fields: mapFields, data: data}, v)
}

// DecodeOptional decodes a file that is one optional.
func DecodeOptional(data []byte) (*Optional, error) {
	o := &Optional{}
	return o, newDecoder().optional(message{fields: optionalFields, data: data}, o)
}

func newDecoder() *decoder { return &decoder{names: map[string]string{}} }

func (d *decoder) sequence(m message, s *Sequence) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			s.Name = d.str(&f)
		case 3:
			s.Tensors, err = appendMessage(s.Tensors, &f, tensorFields, d.tensor)
		case 6:
			s.Maps, err = appendMessage(s.Maps, &f, mapFields, d.mapping)
		case 4, 5, 7:
			err = unsupportedValue(&f)
		}
		m.fault(&f, err)
	}
	return m.err
}

func (d *decoder) mapping(m message, v *Map) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			v.Name = d.str(&f)
		case 3:
			v.Keys, err = f.appendInts(v.Keys)
		case 4:
			v.Strings = append(v.Strings, string(f.body))
		case 5:
			var in message
			if in, err = f.message(sequenceFields); err == nil {
				err = d.sequence(in, &v.Values)
			}
		}
		m.fault(&f, err)
	}
	return m.err
}

func (d *decoder) optional(m message, o *Optional) error {
	for f := (field{}); m.next(&f); {
		var err error
		var in message
		switch f.num {
		case 1:
			o.Name = d.str(&f)
		case 3:
			o.Tensor = &Tensor{}
			if in, err = f.message(tensorFields); err == nil {
				err = d.tensor(in, o.Tensor)
			}
		case 5:
			o.Sequence = &Sequence{}
			if in, err = f.message(sequenceFields); err == nil {
				err = d.sequence(in, o.Sequence)
			}
		case 6:
			o.Map = &Map{}
			if in, err = f.message(mapFields); err == nil {
				err = d.mapping(in, o.Map)
			}
		case 4, 7:
			err = unsupportedValue(&f)
		}
		m.fault(&f, err)
	}
	return m.err
}

func unsupportedValue(f *field) error {
	return fmt.Errorf("%s: %w", f.def.name, op.ErrUnsupported)
}

// AppendField appends a field that is a message or a string.
func AppendField(b []byte, field int, body []byte) []byte {
	return append(AppendLength(b, field, len(body)), body...)
}

// AppendNumber appends a field that is an integer.
func AppendNumber(b []byte, field int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|TypeVarint), uint64(v))
}
