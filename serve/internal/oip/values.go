package oip

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// elements reads the elements of a tensor from JSON, in nested arrays or in
// one.
type elements struct {
	scanner
	depth  int
	before bool // an element or the end of an array stands before
	begun  bool
}

// next moves to the next element, and returns false behind the last one.
func (e *elements) next() (bool, error) {
	for {
		switch c := e.space(); {
		case c == '[' && !e.before && (e.depth > 0 || !e.begun):
			if e.depth++; e.depth > maxDepth {
				return false, messagef("data: got more than %d arrays within each other, want fewer", maxDepth)
			}
			e.begun = true
			e.at++
			if e.space() == ']' { // an array without elements
				e.at++
				e.depth--
				e.before = true
			}
		case c == ',' && e.before && e.depth > 0:
			e.at++
			e.before = false
		case c == ']' && e.before && e.depth > 0:
			e.at++
			e.depth--
		case e.depth == 0 && e.begun:
			return false, e.end()
		case !e.before && e.depth > 0 && c != '[' && c != ']' && c != ',' && c != 0:
			e.before = true
			return true, nil
		default:
			return false, e.unexpected("an array of elements")
		}
	}
}

// each calls put with the text of each of n elements, and its index.
func each(data []byte, n int, put func(i int, e *elements) error) error {
	e := elements{scanner: scanner{text: data}}
	for i := 0; ; i++ {
		more, err := e.next()
		switch {
		case err != nil:
			return err
		case !more && i == n:
			return nil
		case !more:
			return messagef("data: got %d elements, want %d", i, n)
		case i == n:
			return messagef("data: got more than %d elements", n)
		}
		if err := put(i, &e); err != nil {
			return err
		}
	}
}

// Fill writes n elements from their JSON into dst, which has the bytes for
// them. BYTES are read with [Strings].
func Fill(dst []byte, d dtype.DType, n int, data []byte) error {
	if data == nil {
		return messagef("got no data")
	}
	switch d {
	case dtype.F16, dtype.BF16, dtype.F32, dtype.F64:
		return each(data, n, func(i int, e *elements) error { return e.float(dst, d, i) })
	case dtype.Bool:
		return each(data, n, func(i int, e *elements) error {
			word, err := e.word()
			switch string(word) {
			case "true", "1":
				dst[i] = 1
			case "false", "0":
				dst[i] = 0
			default:
				if err == nil {
					err = notA(word, i, "true or false")
				}
			}
			return err
		})
	case dtype.U8, dtype.U16, dtype.U32, dtype.U64:
		return each(data, n, func(i int, e *elements) error {
			word, err := e.word()
			if err != nil {
				return err
			}
			v, err := strconv.ParseUint(text(word), 10, 8*d.Size())
			if err != nil {
				return notA(word, i, "an integer that "+Name(d)+" holds")
			}
			put(dst, d.Size(), i, v)
			return nil
		})
	case dtype.I8, dtype.I16, dtype.I32, dtype.I64:
		return each(data, n, func(i int, e *elements) error {
			word, err := e.word()
			if err != nil {
				return err
			}
			v, err := strconv.ParseInt(text(word), 10, 8*d.Size())
			if err != nil {
				return notA(word, i, "an integer that "+Name(d)+" holds")
			}
			put(dst, d.Size(), i, uint64(v))
			return nil
		})
	}
	panic(fmt.Sprintf("BUG: elements of type %s are not read from JSON", d))
}

// float converts element i. A number beyond the largest becomes infinite, as in
// a conversion of the program text.
func (e *elements) float(dst []byte, d dtype.DType, i int) error {
	word, err := e.word()
	if err != nil {
		return err
	}
	if c := word[0]; c == '+' || c == '.' || c > '9' && c != 'N' && c != 'I' { // what ParseFloat takes and JSON does not have
		return notA(word, i, "a number")
	}
	bits := 32
	if d == dtype.F64 {
		bits = 64
	} else if d != dtype.F32 {
		bits = 64 // rounded once, below
	}
	v, err := strconv.ParseFloat(text(word), bits)
	if err != nil && !math.IsInf(v, 0) {
		return notA(word, i, "a number")
	}
	switch d {
	case dtype.F64:
		binary.NativeEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	case dtype.F32:
		binary.NativeEndian.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
	case dtype.F16:
		binary.NativeEndian.PutUint16(dst[2*i:], uint16(dtype.Float16FromFloat32(dtype.RoundToOdd(v))))
	default:
		binary.NativeEndian.PutUint16(dst[2*i:], uint16(dtype.BFloat16FromFloat32(dtype.RoundToOdd(v))))
	}
	return nil
}

func put(dst []byte, size, i int, v uint64) {
	switch size {
	case 1:
		dst[i] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(dst[2*i:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(dst[4*i:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(dst[8*i:], v)
	}
}

// text is word as a string, without a copy: whoever gets it does not keep it.
func text(word []byte) string { return unsafe.String(unsafe.SliceData(word), len(word)) }

func notA(word []byte, i int, want string) error {
	return messagef("data: element %d: got %q, want %s", i, clip(word), want)
}

// Strings reads n elements of BYTES from JSON.
func Strings(n int, data []byte) ([]string, error) {
	if data == nil {
		return nil, messagef("got no data")
	}
	var list []string
	err := each(data, n, func(_ int, e *elements) error {
		s, err := e.str()
		list = append(list, s)
		return err
	})
	return list, err
}

// BinaryStrings reads n elements of BYTES from binary data: the length of each
// in four bytes, the lowest first, and the element. The strings are copies.
func BinaryStrings(n int, data []byte) ([]string, error) {
	var list []string
	for i := range n {
		if len(data) < 4 {
			return nil, messagef("element %d: got %d bytes, want a length in 4 bytes", i, len(data))
		}
		size := binary.LittleEndian.Uint32(data)
		if uint64(size) > uint64(len(data)-4) {
			return nil, messagef("element %d: got a length of %d bytes, want at most the %d that follow", i, size, len(data)-4)
		}
		list = append(list, string(data[4:4+size]))
		data = data[4+size:]
	}
	if len(data) > 0 {
		return nil, messagef("got %d bytes behind the last of %d elements", len(data), n)
	}
	return list, nil
}
