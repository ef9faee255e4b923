package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tensor"
)

// maxDepth bounds how deep messages nest, so that no file can exhaust the
// stack. Protocol buffer libraries refuse files beyond the same depth.
const maxDepth = 100

// MaxName bounds names, which come back in other names and in texts.
const MaxName = 16 << 10

// fieldKind says how the values of a field are encoded.
type fieldKind uint8

const (
	kindVarint fieldKind = iota + 1
	kindFloat            // 4 bytes
	kindDouble           // 8 bytes
	kindBytes
	kindString // a name: bytes that are UTF-8, at most maxName
	kindMessage
)

// width returns the bytes of one number, 1 for those of varying width.
func (k fieldKind) width() int {
	switch k {
	case kindFloat:
		return 4
	case kindDouble:
		return 8
	}
	return 1
}

// fieldDef describes one field that the importer reads.
type fieldDef struct {
	name     string
	kind     fieldKind
	repeated bool
}

// maxField is the highest field number of any schema.
const maxField = 25

// schema maps field numbers to the fields of one message; a field that it
// does not name is skipped.
type schema []fieldDef

// message is a scanner over the bytes of one encoded message. It owns nothing:
// data is a part of the file.
//
//	var f field
//	for m.next(&f) {
//		switch f.num {
//		...
//		}
//		m.fault(&f, err)
//	}
//	return m.err
type message struct {
	fields schema
	data   []byte
	base   int // offset of data[0] in the file
	pos    int
	start  int // of the field that next read last
	depth  int
	err    error // the first fault, with its place
}

// field is one occurrence of a field.
type field struct {
	num    int
	def    *fieldDef
	number uint64 // the value of a varint, or the bits of a float or double
	body   []byte // the value of everything else: a part of the file
	at     int    // offset of the value in the file
	packed bool   // body holds several numbers
	depth  int
}

// next reads the next field that the schema names. It returns false at the end
// and after a fault.
func (m *message) next(f *field) bool {
	for m.err == nil && m.pos < len(m.data) {
		m.start = m.pos
		*f = field{depth: m.depth}
		if err := m.read(f); err != nil {
			m.err = m.locate(f, err)
		} else if f.def != nil {
			return true
		}
	}
	return false
}

// fault ends the scan if err is not nil, as a fault of the field.
func (m *message) fault(f *field, err error) {
	if err == nil || m.err != nil {
		return
	}
	if _, located := err.(*formatError); !located {
		err = fmt.Errorf("%w at offset %d", err, f.at)
	}
	m.err = m.locate(f, err)
}

// faultf is a fault of the message as a whole.
func (m *message) faultf(format string, args ...any) error {
	return &formatError{err: fmt.Errorf("%s at offset %d", fmt.Sprintf(format, args...), m.base)}
}

// counts returns how often each field occurs: decoders allocate lists once,
// at their final length.
func (m message) counts() (n [maxField + 1]int, err error) {
	var f field
	for m.next(&f) {
		n[f.num]++
	}
	return n, m.err
}

// read reads one field into f; f.def stays nil for one that the schema does
// not name.
func (m *message) read(f *field) error {
	tag, err := m.varint()
	if err != nil {
		return err
	}
	num, wire := tag>>3, int(tag&7)
	if num == 0 || num > 1<<29-1 {
		return fmt.Errorf("got field number %d, want 1 to %d", num, 1<<29-1)
	}
	if num < uint64(len(m.fields)) && m.fields[num].kind != 0 {
		f.num, f.def = int(num), &m.fields[num]
	}
	f.at = m.base + m.pos
	if err := m.value(f, wire); err != nil || f.def == nil {
		return err
	}
	return f.check(wire)
}

// The wire types of protocol buffers; 3 and 4 are groups, which ONNX has not.
const (
	TypeVarint = 0
	TypeFixed8 = 1
	TypeBytes  = 2
	TypeFixed4 = 5
)

// value reads the value behind a tag and moves past it.
func (m *message) value(f *field, wire int) (err error) {
	left := len(m.data) - m.pos
	switch wire {
	case TypeVarint:
		f.number, err = m.varint()
		return err
	case TypeFixed8:
		if left < 8 {
			return fmt.Errorf("8 bytes at offset %d exceed the %d bytes left", f.at, left)
		}
		f.number = binary.LittleEndian.Uint64(m.data[m.pos:])
		m.pos += 8
	case TypeFixed4:
		if left < 4 {
			return fmt.Errorf("4 bytes at offset %d exceed the %d bytes left", f.at, left)
		}
		f.number = uint64(binary.LittleEndian.Uint32(m.data[m.pos:]))
		m.pos += 4
	case TypeBytes:
		n, err := m.varint()
		if err != nil {
			return err
		}
		if left := len(m.data) - m.pos; n > uint64(left) {
			return fmt.Errorf("length %d at offset %d exceeds the %d bytes left", n, f.at, left)
		}
		f.at = m.base + m.pos
		f.body = m.data[m.pos : m.pos+int(n) : m.pos+int(n)]
		m.pos += int(n)
	default:
		return fmt.Errorf("got wire type %d at offset %d, want 0, 1, 2 or 5", wire, f.at)
	}
	return nil
}

func (m *message) varint() (uint64, error) {
	v, n := binary.Uvarint(m.data[m.pos:])
	switch {
	case n > 0:
		m.pos += n
		return v, nil
	case n == 0:
		return 0, fmt.Errorf("number at offset %d exceeds the %d bytes left", m.base+m.pos, len(m.data)-m.pos)
	}
	return 0, fmt.Errorf("number at offset %d has more than 64 bits", m.base+m.pos)
}

// check compares the wire type of a field with the schema.
func (f *field) check(wire int) error {
	want := TypeBytes
	switch f.def.kind {
	case kindVarint:
		want = TypeVarint
	case kindFloat:
		want = TypeFixed4
	case kindDouble:
		want = TypeFixed8
	case kindString:
		if wire == TypeBytes && len(f.body) > MaxName {
			return fmt.Errorf("got a name of %d bytes at offset %d, want at most %d", len(f.body), f.at, MaxName)
		}
		if wire == TypeBytes && !utf8.Valid(f.body) {
			return fmt.Errorf("text at offset %d is not UTF-8", f.at)
		}
	}
	if wire == want {
		return nil
	}
	if wire != TypeBytes || !f.def.repeated {
		return fmt.Errorf("got wire type %d at offset %d, want %d", wire, f.at, want)
	}
	if size := f.def.kind.width(); len(f.body)%size != 0 {
		return fmt.Errorf("got %d bytes of packed numbers at offset %d, want a multiple of %d", len(f.body), f.at, size)
	}
	f.packed = true
	return nil
}

// message returns a scanner over a field that is a message.
func (f *field) message(fields schema) (message, error) {
	if f.depth+1 >= maxDepth {
		return message{}, fmt.Errorf("messages at offset %d nest deeper than %d", f.at, maxDepth)
	}
	return message{fields: fields, data: f.body, base: f.at, depth: f.depth + 1}, nil
}

// numbers returns how many numbers the field holds, valid packed varints
// supposed.
func (f *field) numbers() int {
	if !f.packed {
		return 1
	}
	if size := f.def.kind.width(); size > 1 {
		return len(f.body) / size
	}
	n := 0
	for _, b := range f.body {
		if b < 0x80 { // the last byte of a varint
			n++
		}
	}
	return n
}

// eachNumber calls visit with every number of the field: the value of a
// varint, or the bits of a float or double.
func (f *field) eachNumber(visit func(v uint64) error) error {
	if !f.packed {
		return visit(f.number)
	}
	m := message{data: f.body, base: f.at}
	for m.pos < len(m.data) {
		var v uint64
		var err error
		switch f.def.kind {
		case kindFloat:
			v = uint64(binary.LittleEndian.Uint32(m.data[m.pos:]))
			m.pos += 4
		case kindDouble:
			v = binary.LittleEndian.Uint64(m.data[m.pos:])
			m.pos += 8
		default:
			if v, err = m.varint(); err != nil {
				return &formatError{err: err}
			}
		}
		if err = visit(v); err != nil {
			return err
		}
	}
	return nil
}

// appendInts appends the numbers of a varint field.
func (f *field) appendInts(dst []int64) ([]int64, error) {
	dst = slices.Grow(dst, f.numbers())
	err := f.eachNumber(func(v uint64) error {
		dst = append(dst, int64(v))
		return nil
	})
	return dst, err
}

// appendFloats appends the numbers of a float field.
func (f *field) appendFloats(dst []float32) ([]float32, error) {
	dst = slices.Grow(dst, f.numbers())
	err := f.eachNumber(func(v uint64) error {
		dst = append(dst, math.Float32frombits(uint32(v)))
		return nil
	})
	return dst, err
}

// formatError is a fault in the encoding of a file.
type formatError struct {
	path string // "graph.node[12].attribute[0]"
	err  error
}

func (e *formatError) Error() string {
	if e.path == "" {
		return e.err.Error()
	}
	return e.path + ": " + e.err.Error()
}

func (e *formatError) Unwrap() []error { return []error{e.err, tensor.ErrCorrupt} }

// locate puts the name of the field that was read last in front of an error.
func (m *message) locate(f *field, err error) error {
	e, ok := err.(*formatError)
	if !ok {
		e = &formatError{err: err}
	}
	if f.def == nil {
		return e
	}
	name := f.def.name
	if f.def.repeated {
		name += "[" + strconv.Itoa(m.occurrences(f.num)) + "]"
	}
	if e.path != "" {
		name += "." + e.path
	}
	e.path = name
	return e
}

// occurrences counts a field before the one that was read last. Decoders do
// not count as they go because hardly any file has an error to report.
func (m *message) occurrences(num int) int {
	before := message{fields: m.fields, data: m.data[:m.start]}
	n := 0
	for f := (field{}); before.next(&f); {
		if f.num == num {
			n++
		}
	}
	return n
}
