package tensor

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// OfStrings returns a tensor with copies of strings, in row-major order, in the
// form of models' text: U8 with one dimension more than dims, as wide as the
// longest string, in which each string is its bytes followed by zeros. A string
// therefore ends before its trailing zeros, and one with a NUL is an error.
// Bytes that are not UTF-8 are kept. Without dims the tensor is a scalar of one
// string.
func OfStrings(values []string, dims ...int) (*Tensor, error) {
	width := 1
	for _, v := range values {
		width = max(width, len(v))
	}
	return ofStrings("of strings", width, values, dims)
}

// OfStringsWide is OfStrings with a width in bytes, 1 or more, that no string
// may exceed. A model is planned for each width that it receives, so a program
// that runs it on new strings again and again should use one width.
func OfStringsWide(width int, values []string, dims ...int) (*Tensor, error) {
	return ofStrings("of strings", width, values, dims)
}

func ofStrings(op string, width int, values []string, dims []int) (*Tensor, error) {
	if width < 1 {
		return nil, fmt.Errorf("%s: got a width of %d bytes, want 1 or more: %w", op, width, ErrShape)
	}
	for i, v := range values {
		if at := strings.IndexByte(v, 0); at >= 0 {
			return nil, fmt.Errorf("%s: got a NUL at byte %d of string %d, want none: %w", op, at, i, ErrUnsupported)
		}
		if len(v) > width {
			return nil, fmt.Errorf("%s: got %d bytes in string %d, want at most %d: %w", op, len(v), i, width, ErrShape)
		}
	}
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if len(values) != s.NumElements() {
		return nil, fmt.Errorf("%s: got %d strings for shape %s, want %d: %w", op, len(values), s, s.NumElements(), ErrShape)
	}
	if s, err = shape.Of(append(s.Sizes(), width)...); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	t, err := alloc(op, memory.IO, dtype.U8, s)
	if err != nil {
		return nil, err
	}
	data := t.bytes()
	for i, v := range values {
		copy(data[i*width:], v)
	}
	return t, nil
}

// Strings returns copies of the strings of a tensor of bytes, in row-major
// order: one for each position in all dimensions except the last, without its
// trailing zeros. See [OfStrings].
func Strings(x *Tensor) ([]string, error) {
	const op = "strings"
	if x == nil || x.buf == nil {
		return nil, errNil(op, x)
	}
	rank := x.Shape().Rank()
	if x.dt != dtype.U8 {
		return nil, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.U8, ErrDType)
	}
	if rank == 0 || x.Shape().Size(rank-1) == 0 {
		return nil, fmt.Errorf("%s: got %s, want a last dimension of one byte or more: %w", op, x.describe(), ErrShape)
	}
	data, err := Values[uint8](x)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	count := 1
	for _, n := range x.Shape().Sizes()[:rank-1] {
		count *= n
	}
	width := x.Shape().Size(rank - 1)
	list := make([]string, count)
	for i := range list {
		list[i] = string(bytes.TrimRight(data[i*width:(i+1)*width], "\x00"))
	}
	return list, nil
}
