package npy

import (
	"fmt"
	"io"
	"os"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor"
)

var errNoWriter = fmt.Errorf("npy: write: got no writer, want one: %w", os.ErrInvalid)

// Write writes x as one array. A type that numpy lacks is widened to one that
// holds its values; where there is none it is [tensor.ErrDType].
func Write(w io.Writer, x *tensor.Tensor) error {
	if x == nil {
		return fmt.Errorf("npy: write: got %w", tensor.ErrNoTensor)
	}
	descr, ok := formatDescr(x.DType())
	if !ok {
		return writeWidened(w, x)
	}
	c, _, err := x.Contiguous()
	if err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	defer c.Release()
	data, err := c.Use()
	if err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	defer data.Release()
	return write(w, descr, x.Shape().Sizes(), data.Data)
}

// writeWidened writes a type that numpy lacks as one that holds its values.
func writeWidened(w io.Writer, x *tensor.Tensor) error {
	dt := x.DType()
	switch {
	case dt.IsInt():
		values, err := tensor.Float32s(x) // exact for less than a byte
		if err != nil {
			return fmt.Errorf("npy: write: %w", err)
		}
		descr, data := "|i1", make([]byte, len(values))
		if !dt.IsSigned() {
			descr = "|u1"
		}
		for i, v := range values {
			data[i] = byte(int8(v))
		}
		return write(w, descr, x.Shape().Sizes(), data)
	case dt.IsFloat():
		values, err := tensor.Float32s(x)
		if err != nil {
			return fmt.Errorf("npy: write: %w", err)
		}
		descr, _ := formatDescr(dtype.F32)
		data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
		return write(w, descr, x.Shape().Sizes(), data)
	}
	return fmt.Errorf("npy: write: got elements of %s, want a type that numpy has or a float or integer: %w", dt, tensor.ErrDType)
}

func write(w io.Writer, descr string, dims []int, data []byte) error {
	if w == nil {
		return errNoWriter
	}
	h := header{descr: descr, dims: slices.Clone(dims)}
	for _, part := range [][]byte{h.bytes(), data} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("npy: write: %w", err)
		}
	}
	return nil
}

// WriteFile writes x as a file with one array, which appears under its name
// when it is whole. A file that was there is replaced.
func WriteFile(path string, x *tensor.Tensor) error {
	return wholefile.Write(path, func(w io.Writer) error { return Write(w, x) })
}
