package tenure

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Kind says what an input or output is that is no tensor in the model's file.
type Kind int

// The kinds of a [Composite].
const (
	KindSequence         Kind = iota + 1 // tensors of one element type: a [Sequence]
	KindOptional                         // a tensor, or [Absent]
	KindOptionalSequence                 // a [Sequence], or [Absent]
	KindMap                              // keys, and a value for each: a [Map]
	KindMaps                             // rows of values for the same keys: a [Map]
)

// Composite describes an input or output that is no tensor in the model's file:
// a sequence, an optional or maps. In a run it is several tensors, its parts,
// which [Model.Inputs] and [Model.Outputs] list; Info.Of of each is the
// composite. For one called x they are
//
//	x.elements, x.sizes   of a sequence or an optional: all elements in one list,
//	                      T[n], and i64[length,9] with a row for each: its rank,
//	                      its sizes, and ones up to eight sizes
//	x.has                 of an optional sequence, too: bool[]
//	x[0], x[1], ...       of an output whose length is known at load: the elements
//	x.keys, x.values      of maps: K[n], and V[n], or V[rows,n] of several maps
//
// [Inputs] take the whole under the composite's name, and [Outputs.Sequence]
// and [Outputs.Map] return it. Wherever tensors go by position, or are donated,
// the parts do so.
type Composite struct {
	Name  string
	Kind  Kind
	DType dtype.DType  // of elements, or of values of maps
	Shape *shape.Shape // of elements; nil if they differ, or if the file does not say
	Text  bool         // elements or values are strings, as in [Info]
	Key   dtype.DType  // of keys of maps: I64 or String
	Items int          // how many elements an output has, if that is known at load; -1 otherwise
}

// String returns "name: sequence of f32[?,4]".
func (c *Composite) String() string {
	if c == nil {
		return "no composite"
	}
	elem := Info{DType: c.DType, Shape: c.Shape, Text: c.Text}.typeText()
	if c.Kind == KindMap || c.Kind == KindMaps {
		elem = c.DType.String()
		if c.Text {
			elem = dtype.String.String()
		}
	}
	switch c.Kind {
	case KindOptional:
		return c.Name + ": optional " + elem
	case KindOptionalSequence:
		return c.Name + ": optional sequence of " + elem
	case KindMap:
		return fmt.Sprintf("%s: map of %s to %s", c.Name, c.Key, elem)
	case KindMaps:
		return fmt.Sprintf("%s: sequence of maps of %s to %s", c.Name, c.Key, elem)
	}
	return c.Name + ": sequence of " + elem
}

var kinds = map[onnx.Kind]Kind{onnx.Sequence: KindSequence, onnx.Optional: KindOptional, onnx.OptionalSequence: KindOptionalSequence,
	onnx.Map: KindMap, onnx.MapSequence: KindMaps}

// compositesOf sets Of of parts, which are those of the given values.
func compositesOf(infos []Info, values []onnx.Value) []*Composite {
	var list []*Composite
	for i, v := range values {
		switch {
		case v.Of == nil:
		case i > 0 && values[i-1].Of == v.Of:
			infos[i].Of = infos[i-1].Of
		default:
			c := &Composite{Name: v.Of.Name, Kind: kinds[v.Of.Kind], DType: v.Of.Elem.DType, Shape: v.Of.Elem.Shape, Text: v.Of.Text, Key: v.Of.Key, Items: v.Of.Items}
			infos[i].Of = c
			list = append(list, c)
		}
	}
	return list
}

// Sequence is the tensors of an input or output that is a sequence in the
// model's file. They have one element type; their shapes may differ.
//
// As an input it is borrowed: the run copies the elements into a list,
// x.elements of [Composite], which takes bytes of [memory.IO] until the run
// ends. A caller that has such a list may pass the parts instead, and give them
// up.
//
// A Sequence may be used from many goroutines as long as none changes it.
type Sequence []*tensor.Tensor

// Tensor returns nil: a sequence is an operand of runs alone, under a name.
func (s Sequence) Tensor() *tensor.Tensor { return nil }

// Semantics returns [tensor.Borrow].
func (s Sequence) Semantics() tensor.CopySemantics { return tensor.Borrow }

// Release releases every tensor.
func (s Sequence) Release() error {
	var errs []error
	for _, t := range s {
		errs = append(errs, t.Release())
	}
	return errors.Join(errs...)
}

// Map is a map of the model's file: keys, and a value for each in the same
// place. Keys are i64[n], or text u8[n,width] (see [tensor.OfStrings]). Values
// are V[n], or V[rows,n] for several maps of the same keys, such as the
// probabilities of the classes for each row of a batch.
//
// As an input both tensors are borrowed. A Map may be used from many goroutines
// as long as none changes it.
type Map struct {
	Keys, Values *tensor.Tensor
}

// Tensor returns nil: a map is an operand of runs alone, under a name.
func (m Map) Tensor() *tensor.Tensor { return nil }

// Semantics returns [tensor.Borrow].
func (m Map) Semantics() tensor.CopySemantics { return tensor.Borrow }

// Release releases keys and values.
func (m Map) Release() error { return errors.Join(m.Keys.Release(), m.Values.Release()) }

// Value is what [Inputs] take that is no tensor: a [Sequence], a [Map] or
// [Absent]. A *tensor.Tensor is one as well, as the value of an optional.
type Value interface {
	tensor.Operand
	Release() error
}

// Absent is an optional input without a value.
var Absent Value = absent{}

type absent struct{}

func (absent) Tensor() *tensor.Tensor          { return nil }
func (absent) Semantics() tensor.CopySemantics { return tensor.Borrow }
func (absent) Release() error                  { return nil }

// Sequence returns the elements of an output that is a sequence in the model's
// file, or an optional: then there is one or none. They are views, which the
// caller releases; the outputs keep the tensors of which they are parts. The
// result is nil for an optional without a value. For a name that is none of a
// sequence the error is [ErrInput].
func (o Outputs) Sequence(name string) (Sequence, error) {
	if elements, table := o[name+onnx.Elements], o[name+onnx.Sizes]; elements != nil && table != nil {
		if has := o[name+onnx.Has]; has != nil {
			there, err := tensor.Values[bool](has)
			if err != nil {
				return nil, fmt.Errorf("outputs: sequence %q: %w", name, err)
			}
			if len(there) != 1 || !there[0] {
				return nil, nil
			}
		}
		s, err := unpack(elements, table)
		if err != nil {
			return nil, fmt.Errorf("outputs: sequence %q: %w", name, err)
		}
		return s, nil
	}
	s := Sequence{}
	for {
		t := o[fmt.Sprintf("%s[%d]", name, len(s))]
		if t == nil {
			break
		}
		v, err := t.View()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("outputs: sequence %q: %w", name, err), s.Release())
		}
		s = append(s, v)
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("outputs: got no sequence %q, want an output that is one in the model's file: %w", name, ErrInput)
	}
	return s, nil
}

// Map returns keys and values of an output that is a map, or several, in the
// model's file. Both stay among the outputs. For another name the error is
// [ErrInput].
func (o Outputs) Map(name string) (Map, error) {
	m := Map{Keys: o[name+onnx.Keys], Values: o[name+onnx.Values]}
	if m.Keys == nil || m.Values == nil {
		return Map{}, fmt.Errorf("outputs: got no maps %q, want an output that is one in the model's file: %w", name, ErrInput)
	}
	return m, nil
}

// unpack returns views of the elements that a list has by a table.
func unpack(elements, table *tensor.Tensor) (s Sequence, err error) {
	rows, err := tensor.Values[int64](table)
	if err != nil {
		return nil, err
	}
	s = Sequence{}
	defer func() {
		if err != nil {
			err, s = errors.Join(err, s.Release()), nil
		}
	}()
	from := 0
	for ; len(rows) >= onnx.TableWidth; rows = rows[onnx.TableWidth:] {
		rank := rows[0]
		if rank < 0 || rank > onnx.MaxElementRank {
			return s, fmt.Errorf("got an element of rank %d, want at most %d: %w", rank, onnx.MaxElementRank, ErrShape)
		}
		sizes, count := make([]int, rank), 1
		for i := range sizes {
			sizes[i] = int(rows[1+i])
			count *= sizes[i]
		}
		flat, err := elements.Slice(tensor.Range{Start: from, Stop: from + count})
		if err != nil {
			return s, err
		}
		x, err := flat.Reshape(sizes...)
		if err = errors.Join(err, flat.Release()); err != nil {
			return s, err
		}
		s, from = append(s, x), from+count
	}
	return s, nil
}

// pack copies elements into one list, and makes its table.
func (c *Composite) pack(items Sequence) (elements, table *tensor.Tensor, err error) {
	var rows []int64
	total := 0
	for i, x := range items {
		if err := c.takes(i, x); err != nil {
			return nil, nil, err
		}
		sizes := x.Shape().Sizes()
		row := [onnx.TableWidth]int64{int64(len(sizes)), 1, 1, 1, 1, 1, 1, 1, 1}
		for k, n := range sizes {
			row[1+k] = int64(n)
		}
		rows, total = append(rows, row[:]...), total+x.NumElements()
	}
	to, err := shape.Of(total)
	if err != nil {
		return nil, nil, err
	}
	if elements, err = tensor.New(c.DType, to); err != nil {
		return nil, nil, err
	}
	if err = fill(elements, items); err == nil {
		table, err = tensor.Of(rows, len(items), onnx.TableWidth)
	}
	if err != nil {
		return nil, nil, errors.Join(err, elements.Release())
	}
	return elements, table, nil
}

// fill copies the bytes of tensors into one, one after the other.
func fill(to *tensor.Tensor, items Sequence) error {
	dst, err := to.Lock()
	if err != nil {
		return err
	}
	defer dst.Release()
	at := 0
	for i, x := range items {
		src, err := x.Use()
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		at += copy(dst.Data[at:], src.Data)
		src.Release()
	}
	return nil
}

// takes returns an error for an element that the sequence cannot have.
func (c *Composite) takes(i int, x *tensor.Tensor) error {
	if x == nil || x.Layout() == nil {
		return fmt.Errorf("element %d: got %w: %w", i, ErrNoTensor, ErrInput)
	}
	got, want := typeOf(x), op.Type{DType: c.DType, Shape: c.Shape}
	rank := x.Shape().Rank()
	switch {
	case got.DType != want.DType:
		return fmt.Errorf("element %d: got %s, want %s: %w", i, got, want, ErrDType)
	case c.Text && rank == 0 || rank > onnx.MaxElementRank || c.Shape != nil && rank != c.Shape.Rank():
		return fmt.Errorf("element %d: got %s, want %s, of at most %d dimensions: %w", i, got, want, onnx.MaxElementRank, ErrShape)
	case !x.Layout().IsContiguous():
		return fmt.Errorf("element %d: got %s, want a contiguous tensor (Contiguous makes one): %w", i, x.Layout(), ErrLayout)
	}
	return nil
}

// expand puts the parts of composites that in has under their names into the
// model's order. It returns how many names it has taken.
func (r *running) expand(in Inputs) (found int, err error) {
	m := r.session.model
	for _, c := range m.composites {
		o, given := in[c.Name]
		if !given || o == nil {
			continue
		}
		found++
		if err := r.expandOne(c, o); err != nil {
			return found, inputError{fmt.Errorf("run: input %q: %w", c.Name, err)}
		}
	}
	return found, nil
}

func (r *running) expandOne(c *Composite, o tensor.Operand) error {
	if c.Kind == KindMap || c.Kind == KindMaps {
		v, ok := o.(Map)
		if !ok {
			return fmt.Errorf("got %T, want a Map: %w", o, ErrInput)
		}
		if v.Keys == nil || v.Values == nil {
			return fmt.Errorf("got a Map with %w, want keys and values: %w", ErrNoTensor, ErrInput)
		}
		return r.setParts(c, v.Keys, v.Values)
	}
	var items Sequence
	there := true
	switch v := o.(type) {
	case Sequence:
		if items = v; c.Kind == KindOptional {
			return fmt.Errorf("got a Sequence, want a tensor or Absent: %w", ErrInput)
		}
	case absent:
		if there = false; c.Kind == KindSequence {
			return fmt.Errorf("got Absent, want a Sequence: %w", ErrInput)
		}
	default:
		x := o.Tensor()
		switch {
		case c.Kind != KindOptional || x == nil:
			return fmt.Errorf("got %T, want %s: %w", o, c.wants(), ErrInput)
		case o.Semantics() == tensor.DonateInput:
			return fmt.Errorf("it is donated, but its elements are copied into a list (see Composite): %w", ErrNotReusable)
		}
		items = Sequence{x}
	}
	elements, table, err := c.pack(items)
	if err != nil {
		return err
	}
	r.packed = append(r.packed, elements, table)
	parts := []*tensor.Tensor{elements, table}
	if c.Kind == KindOptionalSequence {
		has, err := tensor.Of([]bool{there})
		if err != nil {
			return err
		}
		r.packed, parts = append(r.packed, has), append(parts, has)
	}
	return r.setParts(c, parts...)
}

// wants says what an input takes.
func (c *Composite) wants() string {
	switch c.Kind {
	case KindSequence:
		return "a Sequence"
	case KindOptionalSequence:
		return "a Sequence or Absent"
	case KindOptional:
		return "a tensor or Absent"
	}
	return "a Map"
}

// setParts makes tensors the operands of a composite's parts.
func (r *running) setParts(c *Composite, parts ...*tensor.Tensor) error {
	for i, info := range r.session.model.inputs {
		if info.Of != c {
			continue
		}
		if r.operands[i] != nil {
			return fmt.Errorf("its part %q is given too, want one of them: %w", info.Name, ErrInput)
		}
		r.operands[i], parts = parts[0], parts[1:]
	}
	return nil
}
