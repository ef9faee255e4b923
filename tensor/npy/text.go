package npy

import (
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor"
)

// parseText returns the type of the characters of a type of strings, without
// its byte order, and how many each string has; 0 for a type that is not of
// strings. Those of S and a are bytes, those of U are code points of four
// bytes.
func parseText(name string) (dt dtype.DType, width int, err error) {
	if name == "" || name[0] != 'S' && name[0] != 'a' && name[0] != 'U' {
		return dtype.Invalid, 0, nil
	}
	width, err = strconv.Atoi(name[1:])
	if err != nil || width < 0 {
		return dtype.Invalid, 0, fmt.Errorf("npy: got descr %.40q, want the length of strings behind %q: %w", name, name[:1], tensor.ErrCorrupt)
	}
	if width == 0 {
		return dtype.Invalid, 0, fmt.Errorf("npy: got descr %q, strings without a character, want one or more: %w", name, tensor.ErrUnsupported)
	}
	if name[0] == 'U' {
		return dtype.U32, width, nil
	}
	return dtype.U8, width, nil
}

// encoded releases strings of code points and returns the same strings in
// UTF-8.
func encoded(x *tensor.Tensor) (*tensor.Tensor, error) {
	dims := x.Shape().Sizes()
	width := dims[len(dims)-1]
	points, err := tensor.Values[uint32](x)
	if err != nil {
		return nil, release(x, fmt.Errorf("npy: %w", err))
	}
	list := make([]string, len(points)/width)
	for i := range list {
		row := points[i*width : (i+1)*width]
		for len(row) > 0 && row[len(row)-1] == 0 {
			row = row[:len(row)-1]
		}
		var text []byte
		for _, p := range row {
			if p > utf8.MaxRune || !utf8.ValidRune(rune(p)) {
				return nil, release(x, fmt.Errorf("npy: string %d: got %#x, want a code point of Unicode: %w", i, p, tensor.ErrCorrupt))
			}
			text = utf8.AppendRune(text, rune(p))
		}
		list[i] = string(text)
	}
	y, err := tensor.OfStrings(list, dims[:len(dims)-1]...)
	if err != nil {
		return nil, release(x, fmt.Errorf("npy: %w", err))
	}
	if err := x.Release(); err != nil {
		return nil, release(y, fmt.Errorf("npy: %w", err))
	}
	return y, nil
}

// WriteStrings writes the strings that x holds (see [tensor.OfStrings]) as one
// array of numpy's byte strings, S: bytes as they are.
func WriteStrings(w io.Writer, x *tensor.Tensor) error {
	if x == nil {
		return fmt.Errorf("npy: write: got %w", tensor.ErrNoTensor)
	}
	sizes := x.Shape().Sizes()
	rank := len(sizes)
	if x.DType() != dtype.U8 || rank == 0 || sizes[rank-1] == 0 {
		return fmt.Errorf("npy: write: got %s%s, want strings, u8[...,width]: %w", x.DType(), x.Shape(), tensor.ErrDType)
	}
	data, err := tensor.Values[uint8](x)
	if err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	return write(w, "|S"+strconv.Itoa(sizes[rank-1]), sizes[:rank-1], data)
}

// WriteStringsFile is [WriteFile] for strings.
func WriteStringsFile(path string, x *tensor.Tensor) error {
	return wholefile.Write(path, func(w io.Writer) error { return WriteStrings(w, x) })
}
