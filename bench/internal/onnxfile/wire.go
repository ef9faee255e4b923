package onnxfile

import (
	"encoding/binary"
	"fmt"
)

// wire is a protobuf message under way.
type wire []byte

const (
	wireVarint = 0
	wireI64    = 1
	wireBytes  = 2
	wireI32    = 5
)

func (w wire) varint(field int, v int64) wire {
	w = binary.AppendUvarint(w, uint64(field)<<3|wireVarint)
	return binary.AppendUvarint(w, uint64(v))
}

func (w wire) float(field int, bits uint32) wire {
	w = binary.AppendUvarint(w, uint64(field)<<3|wireI32)
	return binary.LittleEndian.AppendUint32(w, bits)
}

func (w wire) bytes(field int, v []byte) wire { return append(w.open(field, int64(len(v))), v...) }

func (w wire) text(field int, v string) wire { return append(w.open(field, int64(len(v))), v...) }

// open begins a field of n bytes, which the caller appends.
func (w wire) open(field int, n int64) wire {
	return binary.AppendUvarint(binary.AppendUvarint(w, uint64(field)<<3|wireBytes), uint64(n))
}

// field is one field of a message that is read.
type field struct {
	num    int
	number uint64 // of a varint or a fixed number
	bytes  []byte // of a field with a length
}

// each calls visit for every field of a message.
func each(message []byte, visit func(f field) error) error {
	for at := 0; at < len(message); {
		key, n := binary.Uvarint(message[at:])
		if n <= 0 {
			return fmt.Errorf("at byte %d: got no field number, want one", at)
		}
		f, size, err := value(key, message[at+n:])
		if err != nil {
			return fmt.Errorf("at byte %d, field %d: %w", at, key>>3, err)
		}
		if err := visit(f); err != nil {
			return err
		}
		at += n + size
	}
	return nil
}

// value reads the value behind a key and says how many bytes it takes.
func value(key uint64, rest []byte) (f field, size int, err error) {
	f.num = int(key >> 3)
	length := 0
	switch key & 7 {
	case wireVarint:
		f.number, size = binary.Uvarint(rest)
		if size <= 0 {
			return f, 0, fmt.Errorf("got no varint, want one")
		}
		return f, size, nil
	case wireBytes:
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return f, 0, fmt.Errorf("got a length of %d, want at most %d", n, len(rest)-max(used, 0))
		}
		f.bytes = rest[used : used+int(n)]
		return f, used + int(n), nil
	case wireI64:
		length = 8
	case wireI32:
		length = 4
	default:
		return f, 0, fmt.Errorf("got wire type %d, want 0, 1, 2 or 5", key&7)
	}
	if len(rest) < length {
		return f, 0, fmt.Errorf("got %d bytes, want %d", len(rest), length)
	}
	for i := length - 1; i >= 0; i-- {
		f.number = f.number<<8 | uint64(rest[i])
	}
	return f, length, nil
}
