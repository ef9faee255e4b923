// Package oip reads and writes the messages of the Open Inference Protocol,
// version 2, as HTTP carries them: JSON, and the tensors behind it that the
// extension for binary tensor data adds.
//
//	r, err := oip.ParseRequest(text)               // the JSON of a request
//	n, err := oip.Elements(r.Inputs[0].Shape)      // checked for overflow
//	err = oip.Fill(dst, dtype.F32, n, r.Inputs[0].Data)
//
// A message is read in two passes. The first one finds names, types and shapes,
// and notes where the numbers stand; the second one, [Fill], converts these
// into bytes that the caller has, so that nothing is allocated for them before
// the shape is known to fit.
//
// # Memory and concurrency
//
// A [Request] refers to the text that it was read from, which must stay as it
// is. The functions write into the bytes of their caller, keep nothing, and may
// be called from any goroutine.
package oip

import (
	"errors"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
)

// ErrMessage is the kind of every error about a message that is malformed.
var ErrMessage = errors.New("invalid request")

func messagef(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrMessage)...)
}

// datatypes are the names of the protocol.
var datatypes = map[string]dtype.DType{
	"BOOL": dtype.Bool, "BYTES": dtype.String,
	"UINT8": dtype.U8, "UINT16": dtype.U16, "UINT32": dtype.U32, "UINT64": dtype.U64,
	"INT8": dtype.I8, "INT16": dtype.I16, "INT32": dtype.I32, "INT64": dtype.I64,
	"FP16": dtype.F16, "BF16": dtype.BF16, "FP32": dtype.F32, "FP64": dtype.F64,
}

// names is datatypes the other way round.
var names = func() map[dtype.DType]string {
	m := map[dtype.DType]string{}
	for name, d := range datatypes {
		m[d] = name
	}
	return m
}()

// Name returns the protocol's name of an element type, "BYTES" for
// dtype.String, and "" for a type that the protocol does not have.
func Name(d dtype.DType) string { return names[d] }

// Elements returns the number of elements of a shape.
func Elements(shape []int) (int, error) {
	n, empty := 1, false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, messagef("got the shape %v, want sizes of zero or more", shape)
		case d == 0:
			empty = true
		case n > math.MaxInt32*1024/d: // far from overflow, whatever an element takes
			return 0, messagef("got the shape %v, want fewer elements", shape)
		default:
			n *= d
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}
