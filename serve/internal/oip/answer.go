package oip

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
)

// Answer is the head of an answer.
type Answer struct {
	Model, Version, ID string
	Outputs            []Result
}

// Result is an output of an answer.
type Result struct {
	Name  string
	Type  dtype.DType // dtype.String for BYTES
	Shape []int
	Size  int64 // bytes behind the head; -1 if the elements are in it
	Away  bool  // the elements are elsewhere, in shared memory

	Data    []byte   // elements, of any type but BYTES in the JSON
	Strings []string // elements for the JSON, of BYTES
}

// piece is how much of an answer is kept before it is written.
const piece = 32 << 10

// WriteTo writes the JSON of the answer. What is kept of it in memory at a time
// does not depend on its length.
func (a *Answer) WriteTo(w io.Writer) (int64, error) {
	p := pieces{w: w}
	p.text = append(p.text, `{"model_name":`...)
	p.text = AppendString(p.text, a.Model)
	p.text = append(p.text, `,"model_version":`...)
	p.text = AppendString(p.text, a.Version)
	if a.ID != "" {
		p.text = append(p.text, `,"id":`...)
		p.text = AppendString(p.text, a.ID)
	}
	p.text = append(p.text, `,"outputs":[`...)
	for i := range a.Outputs {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		p.result(&a.Outputs[i])
	}
	p.text = append(p.text, "]}"...)
	p.flush(0)
	return p.n, p.err
}

// pieces collects text and writes it in pieces.
type pieces struct {
	w    io.Writer
	text []byte
	n    int64
	err  error
}

// flush writes the text if it is longer than keep.
func (p *pieces) flush(keep int) {
	if len(p.text) <= keep {
		return
	}
	if p.err == nil {
		var n int
		n, p.err = p.w.Write(p.text)
		p.n += int64(n)
	}
	p.text = p.text[:0]
}

func (p *pieces) result(r *Result) {
	p.text = append(p.text, `{"name":`...)
	p.text = AppendString(p.text, r.Name)
	p.text = append(p.text, `,"datatype":"`...)
	p.text = append(p.text, Name(r.Type)...)
	p.text = append(p.text, `","shape":[`...)
	for i, d := range r.Shape {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		p.text = strconv.AppendInt(p.text, int64(d), 10)
	}
	p.text = append(p.text, ']')
	if r.Away { // some clients take any parameters for those of binary data
		p.text = append(p.text, '}')
		return
	}
	if r.Size >= 0 {
		p.text = append(p.text, `,"parameters":{"binary_data_size":`...)
		p.text = strconv.AppendInt(p.text, r.Size, 10)
		p.text = append(p.text, "}}"...)
		return
	}
	p.text = append(p.text, `,"data":[`...)
	if r.Type == dtype.String {
		for i, s := range r.Strings {
			p.comma(i)
			p.text = AppendString(p.text, s)
		}
	} else {
		size := r.Type.Size()
		for i := range len(r.Data) / size {
			p.comma(i)
			p.text = appendElement(p.text, r.Type, r.Data[i*size:])
		}
	}
	p.text = append(p.text, "]}"...)
}

func (p *pieces) comma(i int) {
	if i > 0 {
		p.text = append(p.text, ',')
	}
	p.flush(piece)
}

// appendElement appends the first element of data.
func appendElement(text []byte, d dtype.DType, data []byte) []byte {
	switch d {
	case dtype.Bool:
		return strconv.AppendBool(text, data[0] != 0)
	case dtype.U8:
		return strconv.AppendUint(text, uint64(data[0]), 10)
	case dtype.U16:
		return strconv.AppendUint(text, uint64(binary.NativeEndian.Uint16(data)), 10)
	case dtype.U32:
		return strconv.AppendUint(text, uint64(binary.NativeEndian.Uint32(data)), 10)
	case dtype.U64:
		return strconv.AppendUint(text, binary.NativeEndian.Uint64(data), 10)
	case dtype.I8:
		return strconv.AppendInt(text, int64(int8(data[0])), 10)
	case dtype.I16:
		return strconv.AppendInt(text, int64(int16(binary.NativeEndian.Uint16(data))), 10)
	case dtype.I32:
		return strconv.AppendInt(text, int64(int32(binary.NativeEndian.Uint32(data))), 10)
	case dtype.I64:
		return strconv.AppendInt(text, int64(binary.NativeEndian.Uint64(data)), 10)
	case dtype.F16:
		return appendFloat(text, float64(dtype.Float16(binary.NativeEndian.Uint16(data)).Float32()), 32)
	case dtype.BF16:
		return appendFloat(text, float64(dtype.BFloat16(binary.NativeEndian.Uint16(data)).Float32()), 32)
	case dtype.F32:
		return appendFloat(text, float64(math.Float32frombits(binary.NativeEndian.Uint32(data))), 32)
	case dtype.F64:
		return appendFloat(text, math.Float64frombits(binary.NativeEndian.Uint64(data)), 64)
	}
	panic(fmt.Sprintf("BUG: elements of type %s are not written as JSON", d))
}

// appendFloat appends the shortest text that is read as v again.
func appendFloat(text []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(text, "NaN"...)
	case math.IsInf(v, 1):
		return append(text, "Infinity"...)
	case math.IsInf(v, -1):
		return append(text, "-Infinity"...)
	}
	return strconv.AppendFloat(text, v, 'g', -1, bits)
}

// AppendString appends a string as JSON. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(text []byte, s string) []byte {
	const digits = "0123456789abcdef"
	text = append(text, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			text = utf8.AppendRune(text, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			text = append(text, '\\', c)
		case c < ' ' || c == 0x7f:
			text = append(text, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			text = append(text, c)
		}
		i++
	}
	return append(text, '"')
}

// AppendBinaryString appends an element of BYTES to binary data.
func AppendBinaryString(data []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(data, uint32(len(s))), s...)
}
