package protobuf

import (
	"encoding/binary"
	"math"
)

// The forms in which the value of a field is written.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2
	Fixed32 = 5
)

// Value is the value of a field: bytes for the form Bytes, a number for the
// others.
type Value struct {
	Form   int
	Number uint64
	Data   []byte
}

// Fields calls f for each field of a message, in order. Data is a part of the
// message.
func Fields(message []byte, f func(number int, v Value) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return wiref("got a tag that does not end")
		}
		message = message[n:]
		number, v := int(tag>>3), Value{Form: int(tag & 7)}
		if tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return wiref("got the field number %d", tag>>3)
		}
		switch v.Form {
		case Varint:
			if v.Number, n = binary.Uvarint(message); n <= 0 {
				return wiref("field %d: got a number that does not end", number)
			}
			message = message[n:]
		case Fixed64:
			if len(message) < 8 {
				return wiref("field %d: got %d bytes, want 8", number, len(message))
			}
			v.Number, message = binary.LittleEndian.Uint64(message), message[8:]
		case Fixed32:
			if len(message) < 4 {
				return wiref("field %d: got %d bytes, want 4", number, len(message))
			}
			v.Number, message = uint64(binary.LittleEndian.Uint32(message)), message[4:]
		case Bytes:
			size, n := binary.Uvarint(message)
			if n <= 0 || size > uint64(len(message)-n) {
				return wiref("field %d: got a length of %d bytes, want at most the %d that follow", number, size, max(0, len(message)-n))
			}
			v.Data, message = message[n:n+int(size)], message[n+int(size):]
		default:
			return wiref("field %d: got the wire type %d", number, v.Form)
		}
		if err := f(number, v); err != nil {
			return err
		}
	}
	return nil
}

// Packed calls f for each number of a repeated field: one if it was written
// alone, all of them if they were written together.
func Packed(form int, v Value, f func(number uint64) error) error {
	if v.Form == form {
		return f(v.Number)
	}
	if v.Form != Bytes {
		return wiref("got the wire type %d, want %d", v.Form, form)
	}
	data := v.Data
	for len(data) > 0 {
		var x uint64
		n := 0
		switch {
		case form == Varint:
			x, n = binary.Uvarint(data)
		case form == Fixed32 && len(data) >= 4:
			x, n = uint64(binary.LittleEndian.Uint32(data)), 4
		case form == Fixed64 && len(data) >= 8:
			x, n = binary.LittleEndian.Uint64(data), 8
		}
		if n <= 0 {
			return wiref("got %d bytes behind the last whole number", len(data))
		}
		if err := f(x); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// AppendTag appends the tag of a field.
func AppendTag(b []byte, number, form int) []byte {
	return binary.AppendUvarint(b, uint64(number)<<3|uint64(form))
}

// AppendNumber appends a field that is a varint, unless it is zero.
func AppendNumber(b []byte, number int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(AppendTag(b, number, Varint), v)
}

// AppendBytes appends a field of bytes, or of a message.
func AppendBytes[T ~string | ~[]byte](b []byte, number int, v T) []byte {
	b = binary.AppendUvarint(AppendTag(b, number, Bytes), uint64(len(v)))
	return append(b, v...)
}

// AppendString appends a field of a string, unless it is empty.
func AppendString(b []byte, number int, v string) []byte {
	if v == "" {
		return b
	}
	return AppendBytes(b, number, v)
}
