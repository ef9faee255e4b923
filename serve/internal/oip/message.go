package oip

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// The fields of a ModelInferRequest.
const (
	fieldModel      = 1
	fieldVersion    = 2
	fieldID         = 3
	fieldParameters = 4
	fieldInputs     = 5
	fieldOutputs    = 6

	// FieldRaw is the elements of a tensor.
	FieldRaw = 7
)

// IsHead reports whether a field of a ModelInferRequest belongs to what stands
// in front of the tensors.
func IsHead(number int) bool { return number >= fieldModel && number <= fieldOutputs }

// SetField reads a field of a ModelInferRequest that is no tensor. The contents
// of inputs refer to data.
func (r *Request) SetField(number int, data []byte) (err error) {
	r.Binary = true // answers have no other form
	switch number {
	case fieldModel:
		r.Model, err = text8(data, "model_name")
	case fieldVersion:
		r.Version, err = text8(data, "model_version")
	case fieldID:
		r.ID, err = text8(data, "id")
	case fieldParameters:
		p, err := parameterOf(data)
		if err != nil {
			return err
		}
		return r.setParameter(p)
	case fieldInputs:
		if len(r.Inputs) == maxTensors {
			return messagef("got more than %d inputs, want fewer", maxTensors)
		}
		in, err := inputOf(data)
		r.Inputs = append(r.Inputs, in)
		return err
	case fieldOutputs:
		if len(r.Outputs) == maxTensors {
			return messagef("got more than %d outputs, want fewer", maxTensors)
		}
		o, err := outputOf(data)
		r.Outputs = append(r.Outputs, o)
		return err
	}
	return err
}

// fields calls f for each field of a message of the protocol.
func fields(data []byte, f func(number int, v protobuf.Value) error) error {
	err := protobuf.Fields(data, f)
	if errors.Is(err, protobuf.ErrWire) && !errors.Is(err, ErrMessage) {
		err = fmt.Errorf("%w: %w", err, ErrMessage)
	}
	return err
}

// text8 is a string of UTF-8.
func text8(data []byte, what string) (string, error) {
	if !utf8.Valid(data) {
		return "", messagef("%s: got %q, want UTF-8", what, clip(data))
	}
	return string(data), nil
}

// inputOf reads an InferInputTensor.
func inputOf(data []byte) (Input, error) {
	in := Input{Size: -1, Shape: []int{}}
	err := fields(data, func(number int, v protobuf.Value) (err error) {
		switch number {
		case 1:
			in.Name, err = text8(v.Data, "name")
		case 2:
			d, ok := datatypes[string(v.Data)]
			if !ok {
				return messagef("got the datatype %q, want one of the protocol, such as FP32 or INT64", clip(v.Data))
			}
			in.Type = d
		case 3:
			return protobuf.Packed(protobuf.Varint, v, func(n uint64) error {
				switch {
				case n > math.MaxInt32:
					return messagef("shape: got the size %d, want 0 to %d", int64(n), math.MaxInt32)
				case len(in.Shape) == maxRank:
					return messagef("shape: got more than %d dimensions, want fewer", maxRank)
				}
				in.Shape = append(in.Shape, int(n))
				return nil
			})
		case 4:
			p, err := parameterOf(v.Data)
			if err == nil {
				in.Region, err = p.region(in.Region)
			}
			return err
		case 5:
			if in.Contents == nil {
				in.Contents = v.Data[:len(v.Data):len(v.Data)]
			} else {
				in.Contents = append(in.Contents, v.Data...) // the parts of a message are one
			}
		}
		return err
	})
	switch {
	case err != nil:
	case in.Name == "":
		err = messagef("got an input without a name")
	case in.Type == dtype.Invalid:
		err = messagef("input %q: got no datatype", in.Name)
	case in.Region != nil && in.Contents != nil:
		err = messagef("input %q: got contents and shared_memory_region, want one of them", in.Name)
	default:
		err = in.Region.check(in.Name)
	}
	return in, err
}

// outputOf reads an InferRequestedOutputTensor.
func outputOf(data []byte) (Output, error) {
	o := Output{Binary: true}
	err := fields(data, func(number int, v protobuf.Value) (err error) {
		switch number {
		case 1:
			o.Name, err = text8(v.Data, "name")
		case 2:
			p, err := parameterOf(v.Data)
			if err != nil {
				return err
			}
			if p.name != "classification" {
				o.Region, err = p.region(o.Region)
				return err
			}
			n, err := p.integer()
			if err == nil && (n < 0 || n > math.MaxInt32) {
				err = messagef("classification: got %d, want 0 to %d", n, math.MaxInt32)
			}
			o.Classes = int(n)
			return err
		}
		return err
	})
	if err == nil && o.Name == "" {
		err = messagef("got an output without a name")
	}
	if err == nil {
		err = o.Region.check(o.Name)
	}
	return o, err
}

// parameter is a parameter with its value: an int64, uint64, bool, float64 or
// string, or nil.
type parameter struct {
	name  string
	value any
}

// parameterOf reads an element of a map of InferParameters.
func parameterOf(data []byte) (p parameter, err error) {
	err = fields(data, func(number int, v protobuf.Value) error {
		switch number {
		case 1:
			p.name, err = text8(v.Data, "parameter")
			return err
		case 2:
			return fields(v.Data, func(number int, v protobuf.Value) error {
				switch number {
				case 1:
					p.value = v.Number != 0
				case 2:
					p.value = int64(v.Number)
				case 3:
					p.value = string(v.Data)
				case 4:
					p.value = math.Float64frombits(v.Number)
				case 5:
					p.value = v.Number
				}
				return nil
			})
		}
		return nil
	})
	return p, err
}

// integer is the value of a parameter that is a whole number.
func (p parameter) integer() (int64, error) {
	switch n := p.value.(type) {
	case int64:
		return n, nil
	case uint64:
		if n <= math.MaxInt64 {
			return int64(n), nil
		}
	}
	return 0, messagef("%s: got %v, want an integer", p.name, p.value)
}

// region sets what the parameter says of a region of shared memory; others are
// not for tensors.
func (p parameter) region(r *Region) (*Region, error) {
	if p.name != regionName && p.name != regionOffset && p.name != regionSize {
		return r, nil
	}
	if r == nil {
		r = &Region{}
	}
	if p.name == regionName {
		name, ok := p.value.(string)
		if !ok {
			return r, messagef("%s: got %v, want a string", p.name, p.value)
		}
		r.Name = name
		return r, nil
	}
	n, err := p.integer()
	if err == nil {
		err = r.set(p.name, n)
	}
	return r, err
}

// setParameter reads a parameter of the request.
func (r *Request) setParameter(p parameter) error {
	switch p.name {
	case "priority":
		n, err := p.integer()
		if err == nil && n < 0 {
			err = messagef("priority: got %d, want zero or more", n)
		}
		r.Priority = uint64(n)
		return err
	case "timeout":
		n, err := p.integer()
		if err == nil && (n < 0 || n > math.MaxInt64/int64(time.Microsecond)) {
			return messagef("timeout: got %d, want microseconds, zero or more", n)
		}
		r.Timeout = time.Duration(n) * time.Microsecond
		return err
	case "sequence_id":
		r.Sequence = p.value != int64(0) && p.value != uint64(0) && p.value != ""
	}
	return nil
}

// AppendMessage appends the head of the answer as a ModelInferResponse: without
// its raw_output_contents, which follow. flags are parameters that are true.
func (a *Answer) AppendMessage(b []byte, flags ...string) []byte {
	b = protobuf.AppendString(b, 1, a.Model)
	b = protobuf.AppendString(b, 2, a.Version)
	b = protobuf.AppendString(b, 3, a.ID)
	for _, name := range flags {
		value := protobuf.AppendNumber(nil, 1, 1)
		b = protobuf.AppendBytes(b, 4, protobuf.AppendBytes(protobuf.AppendString(nil, 1, name), 2, value))
	}
	for _, r := range a.Outputs {
		o := protobuf.AppendString(nil, 1, r.Name)
		o = protobuf.AppendString(o, 2, Name(r.Type))
		var shape []byte
		for _, d := range r.Shape {
			shape = appendVarint(shape, uint64(d))
		}
		if len(shape) > 0 {
			o = protobuf.AppendBytes(o, 3, shape)
		}
		b = protobuf.AppendBytes(b, 5, o)
	}
	return b
}

// AppendRawTag appends what stands in front of the elements of an output of so
// many bytes.
func AppendRawTag(b []byte, size int) []byte {
	return appendVarint(protobuf.AppendTag(b, 6, protobuf.Bytes), uint64(size))
}

func appendVarint(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// contentsField returns the field of an InferTensorContents that has the
// elements of a type, the form of one of them, and the least bytes of one.
func contentsField(d dtype.DType) (number, form, least int) {
	switch d {
	case dtype.Bool:
		return 1, protobuf.Varint, 1
	case dtype.I8, dtype.I16, dtype.I32:
		return 2, protobuf.Varint, 1
	case dtype.I64:
		return 3, protobuf.Varint, 1
	case dtype.U8, dtype.U16, dtype.U32:
		return 4, protobuf.Varint, 1
	case dtype.U64:
		return 5, protobuf.Varint, 1
	case dtype.F32:
		return 6, protobuf.Fixed32, 4
	case dtype.F64:
		return 7, protobuf.Fixed64, 8
	case dtype.String:
		return 8, protobuf.Bytes, 2
	}
	return 0, 0, 1
}

// CheckContents compares the bytes of contents with the number of elements,
// before memory is taken for these.
func CheckContents(d dtype.DType, n int, contents []byte) error {
	number, _, least := contentsField(d)
	if number == 0 {
		return messagef("got contents for %s, want raw_input_contents", Name(d))
	}
	if n > len(contents)/least {
		return messagef("got contents of %d bytes, want %d elements", len(contents), n)
	}
	return nil
}

// FillContents writes n elements from an InferTensorContents into dst, which
// has the bytes for them.
func FillContents(dst []byte, d dtype.DType, n int, contents []byte) error {
	want, form, _ := contentsField(d)
	i := 0
	err := fields(contents, func(number int, v protobuf.Value) error {
		if number != want {
			return messagef("got elements in field %d of the contents, want those of %s in field %d", number, Name(d), want)
		}
		return protobuf.Packed(form, v, func(x uint64) error {
			if i == n {
				return messagef("got more than %d elements", n)
			}
			if !holds(d, x) {
				return messagef("element %d: got %s, want an integer that %s holds", i, integerText(d, x), Name(d))
			}
			if d == dtype.Bool {
				x = min(x, 1)
			}
			put(dst, d.Size(), i, x)
			i++
			return nil
		})
	})
	if err == nil && i < n {
		err = messagef("got %d elements, want %d", i, n)
	}
	return err
}

// holds reports whether an integer of a list of the contents is one of type d.
func holds(d dtype.DType, x uint64) bool {
	switch d {
	case dtype.I8:
		return int64(int32(x)) == int64(int8(x))
	case dtype.I16:
		return int64(int32(x)) == int64(int16(x))
	case dtype.U8:
		return uint32(x) == uint32(uint8(x))
	case dtype.U16:
		return uint32(x) == uint32(uint16(x))
	}
	return true
}

func integerText(d dtype.DType, x uint64) string {
	if d == dtype.I8 || d == dtype.I16 {
		return strconv.Itoa(int(int32(x)))
	}
	return strconv.FormatUint(uint64(uint32(x)), 10)
}

// ContentsStrings reads n elements of BYTES from an InferTensorContents. The
// strings are copies.
func ContentsStrings(n int, contents []byte) ([]string, error) {
	var list []string
	want, _, _ := contentsField(dtype.String)
	err := fields(contents, func(number int, v protobuf.Value) error {
		if number != want || v.Form != protobuf.Bytes {
			return messagef("got elements in field %d of the contents, want those of BYTES in field %d", number, want)
		}
		if len(list) == n {
			return messagef("got more than %d elements", n)
		}
		list = append(list, string(v.Data))
		return nil
	})
	if err == nil && len(list) < n {
		err = messagef("got %d elements, want %d", len(list), n)
	}
	return list, err
}
