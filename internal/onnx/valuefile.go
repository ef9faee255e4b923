package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// FileValue is a sequence, an optional or a map of a file. Its tensors are the
// caller's.
type FileValue struct {
	Name   string
	Kind   Kind
	Items  []*tensor.Tensor // of a sequence or an optional
	Absent bool             // an optional without a value
	Keys   *tensor.Tensor   // of maps: i64[n], or text u8[n,width]
	Values *tensor.Tensor   // V[n], or V[rows,n] of several maps
}

// Release releases the tensors.
func (v *FileValue) Release() error {
	var errs []error
	for _, t := range append([]*tensor.Tensor{v.Keys, v.Values}, v.Items...) {
		if t != nil {
			errs = append(errs, t.Release())
		}
	}
	return errors.Join(errs...)
}

// ReadValue reads a file that holds one SequenceProto, OptionalProto or
// MapProto, as the ONNX backend tests keep inputs and outputs of these kinds.
func ReadValue(data []byte, kind Kind) (v *FileValue, err error) {
	v = &FileValue{Kind: kind}
	switch kind {
	case Optional, OptionalSequence:
		err = v.readOptional(data)
	case Map:
		var m *wire.Map
		if m, err = wire.DecodeMap(data); err == nil {
			v.Name = m.Name
			err = v.readMaps([]wire.Map{*m}, true)
		}
	default:
		var s *wire.Sequence
		if s, err = wire.DecodeSequence(data); err == nil {
			v.Name = s.Name
			if kind == MapSequence {
				err = v.readMaps(s.Maps, false)
			} else {
				err = v.readItems(s.Tensors)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("onnx: %w", err), v.Release())
	}
	return v, nil
}

func (v *FileValue) readOptional(data []byte) error {
	o, err := wire.DecodeOptional(data)
	if err != nil {
		return err
	}
	v.Name = o.Name
	switch {
	case o.Map != nil:
		return fmt.Errorf("an optional map: %w", op.ErrUnsupported)
	case o.Tensor != nil && v.Kind == Optional:
		return v.readItems([]wire.Tensor{*o.Tensor})
	case o.Sequence != nil && v.Kind == OptionalSequence:
		return v.readItems(o.Sequence.Tensors)
	case o.Tensor != nil || o.Sequence != nil:
		return fmt.Errorf("got an optional of another kind than the model has: %w", dtype.ErrDType)
	}
	v.Absent = true
	return nil
}

func (v *FileValue) readItems(list []wire.Tensor) error {
	for i := range list {
		x, err := newTensor(&list[i])
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		v.Items = append(v.Items, x)
	}
	return nil
}

// readMaps reads maps, which must have the same keys in the same order.
func (v *FileValue) readMaps(maps []wire.Map, one bool) error {
	if len(maps) == 0 {
		return fmt.Errorf("got no maps, want one or more: %w", op.ErrUnsupported)
	}
	var values bytes.Buffer
	var elem dtype.DType
	count := max(len(maps[0].Keys), len(maps[0].Strings))
	for i := range maps {
		m := &maps[i]
		if len(m.Keys) > 0 && len(m.Strings) > 0 {
			return fmt.Errorf("map %d: got %d integers and %d strings as keys, want one kind: %w", i, len(m.Keys), len(m.Strings), tensor.ErrCorrupt)
		}
		if !slices.Equal(m.Keys, maps[0].Keys) || !slices.Equal(m.Strings, maps[0].Strings) {
			return fmt.Errorf("map %d has other keys than the first: %w", i, op.ErrUnsupported)
		}
		n := 0
		for k := range m.Values.Tensors {
			t := &m.Values.Tensors[k]
			d, err := t.Check()
			if err != nil {
				return fmt.Errorf("map %d: %w", i, err)
			}
			data, err := t.Elements(d)
			if err != nil {
				return fmt.Errorf("map %d: %w", i, err)
			}
			if d.Text || elem != dtype.Invalid && d.Type.DType != elem {
				return fmt.Errorf("map %d: got values of %s: %w", i, d.Type.DType, op.ErrUnsupported)
			}
			elem, n = d.Type.DType, n+d.Type.Shape.NumElements()
			values.Write(data)
		}
		if n != count {
			return fmt.Errorf("map %d: got %d values, want one for each of %d keys: %w", i, n, count, tensor.ErrCorrupt)
		}
	}
	dims := []int{len(maps), count}
	if one {
		dims = dims[1:]
	}
	var err error
	if maps[0].Strings != nil {
		v.Keys, err = tensor.OfStrings(maps[0].Strings, count)
	} else {
		v.Keys, err = tensor.Of(maps[0].Keys, count)
	}
	if err != nil {
		return err
	}
	if count == 0 {
		elem = dtype.F32
	}
	typ, err := shape.Of(dims...)
	if err != nil {
		return err
	}
	v.Values, err = tensor.FromBytes(elem, typ, values.Bytes())
	return err
}

// WriteValue writes a sequence, an optional or maps as a SequenceProto,
// OptionalProto or MapProto. Tensors of text are written as strings.
func WriteValue(w io.Writer, v *FileValue, text bool) error {
	data, err := encodeValue(v, text)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("onnx: write %q: %w", v.Name, err)
	}
	return nil
}

// Codes of the elem_type of SequenceProto and OptionalProto.
const (
	elemTensor   = 1
	elemSequence = 3
	elemMap      = 4
)

func encodeValue(v *FileValue, text bool) ([]byte, error) {
	var items []byte
	for _, x := range v.Items {
		item, err := encodeTensor(x, text)
		if err != nil {
			return nil, err
		}
		items = wire.AppendField(items, 3, item)
	}
	var head []byte
	if v.Name != "" {
		head = wire.AppendField(head, 1, []byte(v.Name))
	}
	switch v.Kind {
	case Map, MapSequence:
		return encodeMaps(v, head)
	case Sequence:
		return append(wire.AppendNumber(head, 2, elemTensor), items...), nil
	case Optional:
		if !v.Absent {
			return append(wire.AppendNumber(head, 2, elemTensor), items...), nil
		}
	case OptionalSequence:
		if !v.Absent {
			return wire.AppendField(wire.AppendNumber(head, 2, elemSequence), 5, append(wire.AppendNumber(nil, 2, elemTensor), items...)), nil
		}
	}
	return wire.AppendNumber(head, 2, 0), nil
}

func encodeTensor(x *tensor.Tensor, text bool) ([]byte, error) {
	var b bytes.Buffer
	write := WriteTensor
	if text {
		write = WriteStrings
	}
	err := write(&b, "", x)
	return b.Bytes(), err
}

// encodeMaps writes one map, or one for each row of values.
func encodeMaps(v *FileValue, head []byte) ([]byte, error) {
	var keys []byte
	if v.Keys.DType() == dtype.I64 {
		list, err := tensor.Values[int64](v.Keys)
		if err != nil {
			return nil, err
		}
		keys = wire.AppendNumber(keys, 2, int64(dtype.I64.ONNX()))
		for _, k := range list {
			keys = wire.AppendNumber(keys, 3, k)
		}
	} else {
		list, err := tensor.Strings(v.Keys)
		if err != nil {
			return nil, err
		}
		keys = wire.AppendNumber(keys, 2, int64(dtype.String.ONNX()))
		for _, k := range list {
			keys = wire.AppendField(keys, 4, []byte(k))
		}
	}
	row := func(x *tensor.Tensor) ([]byte, error) {
		values, err := encodeTensor(x, false)
		if err != nil {
			return nil, err
		}
		return wire.AppendField(bytes.Clone(keys), 5, wire.AppendField(wire.AppendNumber(nil, 2, elemTensor), 3, values)), nil
	}
	if v.Kind == Map {
		body, err := row(v.Values)
		return append(head, body...), err
	}
	head = wire.AppendNumber(head, 2, elemMap)
	for i := range v.Values.Shape().Size(0) {
		x, err := v.Values.Index(i)
		if err != nil {
			return nil, err
		}
		body, err := row(x)
		if err = errors.Join(err, x.Release()); err != nil {
			return nil, err
		}
		head = wire.AppendField(head, 6, body)
	}
	return head, nil
}
