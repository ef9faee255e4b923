package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/op"
)

// Sparse is a SparseTensorProto: a tensor that lists its elements other than
// zero. Its name is that of the values.
type Sparse struct {
	Values  Tensor // [n]
	Indices Tensor // [n], which count all elements in order, or [n, rank]
	Dims    []int64
}

func (d *decoder) sparse(m message, s *Sparse) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1, 2:
			to := &s.Values
			if f.num == 2 {
				to = &s.Indices
			}
			var in message
			if in, err = f.message(tensorFields); err == nil {
				err = d.tensor(in, to)
			}
		case 3:
			if n := len(s.Dims) + f.numbers(); n > op.MaxRank { // found out before a wrong length takes memory
				err = fmt.Errorf("got %d dims, want at most %d", n, op.MaxRank)
				break
			}
			s.Dims, err = f.appendInts(s.Dims)
		}
		m.fault(&f, err)
	}
	return m.err
}

// SparseData is a checked sparse tensor: the type of all of it, and where the
// bytes of its parts are.
type SparseData struct {
	Type            op.Type
	Values, Indices TensorData
}

// Check compares the parts of a sparse tensor. It does not look at the indices.
func (s *Sparse) Check() (d SparseData, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sparse tensor %q: %w", s.Values.Name, err)
		}
	}()
	if d.Values, err = s.Values.Check(); err != nil {
		return d, err
	}
	if d.Indices, err = s.Indices.Check(); err != nil {
		return d, err
	}
	whole := Tensor{Dims: s.Dims, DataType: s.Values.DataType}
	switch {
	case d.Values.Text:
		return d, fmt.Errorf("strings: %w", op.ErrUnsupported)
	case d.Values.Type.DType.Size() == 0:
		return d, fmt.Errorf("elements of type %s: %w", d.Values.Type.DType, op.ErrUnsupported)
	}
	if d.Type, err = whole.Type(); err != nil {
		return d, err
	}
	if _, err = d.Type.Bytes(); err != nil {
		return d, err
	}
	values, indices := d.Values.Type.Shape, d.Indices.Type.Shape
	switch n := values.NumElements(); {
	case values.Rank() != 1:
		err = Corruptf("values: got %s, want one dimension", d.Values.Type)
	case !d.Indices.Type.DType.IsInt() || !d.Indices.Type.DType.IsSigned() || d.Indices.Type.DType.Size() == 0:
		err = Corruptf("indices: got %s, want i64", d.Indices.Type) // ONNX Runtime reads shorter ones too
	case indices.Rank() == 1 && indices.Size(0) == n || indices.Rank() == 2 && indices.Size(0) == n && indices.Size(1) == len(s.Dims):
	case n == 0 && indices.NumElements() == 0: // written in many ways
	default:
		err = Corruptf("indices: got %s, want [%d] or [%d,%d] for %d values in %d dimensions", d.Indices.Type, n, n, len(s.Dims), n, len(s.Dims))
	}
	return d, err
}

// Fill writes the elements that are listed to dst, which holds all and is zero.
// values and indices are the bytes of the parts. ONNX wants the indices in
// ascending order; as in ONNX Runtime any order will do, and the last value of
// an element counts.
func (d *SparseData) Fill(dst, values, indices []byte) error {
	size := d.Type.DType.Size()
	sizes := d.Type.Shape.Sizes()
	width := d.Indices.Type.DType.Size()
	per := 1 // numbers of an index
	if d.Indices.Type.Shape.Rank() == 2 {
		per = len(sizes)
	}
	for i := range len(values) / size {
		at := int64(0)
		for k := range per {
			v := signed(indices[width*(i*per+k):], width)
			limit := int64(len(dst) / size)
			if d.Indices.Type.Shape.Rank() == 2 {
				limit = int64(sizes[k])
			}
			if v < 0 || v >= limit {
				return Corruptf("index %d: got %d, want 0 to %d", i, v, limit-1)
			}
			at = at*limit + v
		}
		copy(dst[at*int64(size):][:size], values[i*size:][:size])
	}
	return nil
}

// signed returns the integer of so many bytes at the beginning of data.
func signed(data []byte, width int) int64 {
	var b [8]byte
	copy(b[8-width:], data[:width])
	return int64(binary.LittleEndian.Uint64(b[:])) >> (64 - 8*width)
}
