package tensor

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// FromNested returns a tensor with a copy of the elements of nested slices or
// arrays, such as [][]float32, and their dimensions; a plain number makes a
// scalar. Rows of one dimension must have one length. For elements in one
// slice, [Of] is faster.
func FromNested(v any) (*Tensor, error) {
	const op = "from nested"
	value := reflect.ValueOf(v)
	if !value.IsValid() {
		return nil, fmt.Errorf("%s: got nil, want nested slices of numbers: %w", op, ErrDType)
	}
	dt, rank := nestedType(value.Type())
	if dt == dtype.Invalid {
		return nil, fmt.Errorf("%s: got %T, want slices or arrays of an element type of this package, or of such: %w", op, v, ErrDType)
	}
	dims := make([]int, 0, rank)
	for row := value; len(dims) < rank; row = row.Index(0) {
		if dims = append(dims, row.Len()); row.Len() == 0 {
			break // an empty dimension has no rows below it
		}
	}
	dims = append(dims, make([]int, rank-len(dims))...)
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := sameLengths(op, value, dims, nil); err != nil {
		return nil, err
	}
	t, err := allocFrom(op, memory.Process(memory.IO), dt, s)
	if err != nil {
		return nil, err
	}
	copyNested(t.bytes(), value, rank, dt.Size())
	return t, nil
}

// Nested returns a copy of the elements in nested slices, one for each
// dimension: Nested[[][]float32] for a tensor f32 of rank 2. All rows are in
// one allocation.
func Nested[S any](x *Tensor) (S, error) {
	const op = "nested"
	var nested S
	if x == nil || x.buf == nil {
		return nested, errNil(op, x)
	}
	to := reflect.TypeFor[S]()
	dt, rank := nestedType(to)
	if dt != x.dt || rank != x.Shape().Rank() || hasArray(to) {
		return nested, fmt.Errorf("%s: got %s, which does not go into %s, want slices of its elements, one in the other for each dimension: %w",
			op, x.describe(), to, ErrDType)
	}
	if _, err := shape.Bytes(x.dt, x.Shape()); err != nil { // a broadcast can repeat a few bytes beyond all memory
		return nested, fmt.Errorf("%s: %w", op, err)
	}
	if err := x.useHost(); err != nil {
		return nested, x.refusal(op, err)
	}
	defer x.endUse()
	element := to
	for range rank {
		element = element.Elem()
	}
	flat := reflect.MakeSlice(reflect.SliceOf(element), x.NumElements(), x.NumElements())
	gather(unsafe.Slice((*byte)(flat.UnsafePointer()), x.NumElements()*x.dt.Size()), x)
	reflect.ValueOf(&nested).Elem().Set(rowsOf(to, flat, x.Shape().Sizes()))
	return nested, nil
}

// nestedType returns the element type and the depth of nested slices,
// dtype.Invalid if they are none.
func nestedType(t reflect.Type) (dt dtype.DType, rank int) {
	for ; t.Kind() == reflect.Slice || t.Kind() == reflect.Array; rank++ {
		t = t.Elem()
	}
	return dtype.OfType(t), rank
}

func hasArray(t reflect.Type) bool {
	for ; t.Kind() == reflect.Slice; t = t.Elem() {
	}
	return t.Kind() == reflect.Array
}

// sameLengths checks the length of every row against dims; at is the row's
// index.
func sameLengths(op string, row reflect.Value, dims, at []int) error {
	if len(dims) == 0 {
		return nil
	}
	if row.Len() != dims[0] {
		return fmt.Errorf("%s: got %d elements in row %v, want %d as in the first: %w", op, row.Len(), at, dims[0], ErrShape)
	}
	for i := range row.Len() {
		if err := sameLengths(op, row.Index(i), dims[1:], append(at, i)); err != nil {
			return err
		}
	}
	return nil
}

// copyNested copies the elements of rows into dst in row-major order and
// returns the rest of dst.
func copyNested(dst []byte, row reflect.Value, rank, size int) []byte {
	switch {
	case rank == 0:
		one := reflect.New(row.Type())
		one.Elem().Set(row)
		return dst[copy(dst, unsafe.Slice((*byte)(one.UnsafePointer()), size)):]
	case rank == 1 && row.Kind() == reflect.Slice:
		return dst[copy(dst, unsafe.Slice((*byte)(row.UnsafePointer()), row.Len()*size)):]
	}
	for i := range row.Len() {
		dst = copyNested(dst, row.Index(i), rank-1, size)
	}
	return dst
}

// rowsOf returns flat as nested slices of type t.
func rowsOf(t reflect.Type, flat reflect.Value, dims []int) reflect.Value {
	switch len(dims) {
	case 0:
		return flat.Index(0)
	case 1:
		return flat.Convert(t)
	}
	rows := reflect.MakeSlice(t, dims[0], dims[0])
	each := 0
	if dims[0] > 0 {
		each = flat.Len() / dims[0]
	}
	for i := range dims[0] {
		rows.Index(i).Set(rowsOf(t.Elem(), flat.Slice3(i*each, (i+1)*each, (i+1)*each), dims[1:]))
	}
	return rows
}
