package npy

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/tensor"
)

// types are numpy's names without the byte order.
var types = map[string]dtype.DType{
	"b1": dtype.Bool,
	"i1": dtype.I8, "i2": dtype.I16, "i4": dtype.I32, "i8": dtype.I64,
	"u1": dtype.U8, "u2": dtype.U16, "u4": dtype.U32, "u8": dtype.U64,
	"f2": dtype.F16, "f4": dtype.F32, "f8": dtype.F64,
	"c8": dtype.C64, "c16": dtype.C128,
}

// others are the kinds of type that a file may have and we have not.
var others = map[byte]string{
	'O': "Python objects", 'V': "raw records (bfloat16 of ml_dtypes among them)",
	'M': "dates", 'm': "time spans", 'f': "floats of a size that Go has not", 'c': "complex numbers of a size that Go has not",
}

const native = "<>" // indexed by bigEndian

var bigEndian = func() int {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return 1
	}
	return 0
}()

// element is the type of an array's elements as its file has it.
type element struct {
	dt   dtype.DType
	swap int // how many bytes at a time have to be reversed: 0 for none
	text int // of strings, how many elements of dt each has
}

// parseDescr returns the type that descr names.
func parseDescr(descr string) (e element, err error) {
	if descr == "" {
		return e, fmt.Errorf("npy: got an empty descr: %w", tensor.ErrCorrupt)
	}
	name, order := descr, byte('=')
	if c := descr[0]; c == '<' || c == '>' || c == '=' || c == '|' {
		name, order = descr[1:], c
	}
	dt, ok := types[name]
	if !ok {
		if dt, e.text, err = parseText(name); err != nil {
			return e, err
		}
		ok = e.text > 0
	}
	if !ok {
		if name != "" && others[name[0]] != "" {
			return e, fmt.Errorf("npy: got descr %s, %s, want numbers or strings: %w", strconv.Quote(descr), others[name[0]], tensor.ErrUnsupported)
		}
		return e, fmt.Errorf("npy: got descr %.40q, want the name of a type: %w", descr, tensor.ErrCorrupt)
	}
	if e.dt = dt; dt.Size() == 1 {
		return e, nil
	}
	if order == '|' {
		return e, fmt.Errorf("npy: got descr %q without a byte order, want one for elements of %d bytes: %w", descr, dt.Size(), tensor.ErrCorrupt)
	}
	if order != '=' && order != native[bigEndian] {
		e.swap = dt.Size()
		if dt.IsComplex() {
			e.swap /= 2
		}
	}
	return e, nil
}

// formatDescr returns the name under which dt is written in the machine's byte
// order; ok is false for types that numpy lacks.
func formatDescr(dt dtype.DType) (descr string, ok bool) {
	for name, t := range types {
		if t != dt {
			continue
		}
		if dt.Size() == 1 {
			return "|" + name, true
		}
		return native[bigEndian:bigEndian+1] + name, true
	}
	return "", false
}

// normalize converts data of a file for a tensor: to the machine's byte order,
// and bools to 0 and 1.
func normalize(dt dtype.DType, swap int, data []byte) {
	if swap > 0 {
		for at := 0; at+swap <= len(data); at += swap {
			slices.Reverse(data[at : at+swap])
		}
	}
	if dt == dtype.Bool {
		for i, b := range data {
			if b > 1 {
				data[i] = 1
			}
		}
	}
}
