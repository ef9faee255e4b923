package onnx

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// tensorData says where the bytes of a checked tensor are.
type tensorData struct {
	typ    op.Type
	text   bool // strings, which have the type of bytes
	bytes  int
	inFile []byte // the bytes as they lie in the file; nil when they must be converted or are outside
	list   int    // the field that holds them as numbers; 0 for none
}

// check compares a tensor's head with its data.
func (t *tensorProto) check() (d tensorData, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("tensor %q at offset %d: %w", t.name, t.at, err)
		}
	}()
	if d.typ, err = t.typ(); err != nil {
		return d, err
	}
	d.text = t.dataType == dtype.String.ONNX()
	if d.bytes, err = d.typ.Bytes(); err != nil {
		return d, err
	}
	lists, err := t.lists()
	if err != nil {
		return d, err
	}
	if d.text {
		return d, t.checkText(&d, lists)
	}
	if t.external != nil {
		if t.raw != nil || lists.field != 0 {
			return d, corruptf("got data in the file and in external_data, want one of them")
		}
		return d, nil
	}
	if t.raw != nil {
		if lists.field != 0 {
			return d, corruptf("got raw_data and %s, want one of them", tensorFields[lists.field].name)
		}
		if len(t.raw) != d.bytes {
			return d, corruptf("raw_data at offset %d: got %d bytes, want %d for %s", t.rawAt, len(t.raw), d.bytes, d.typ)
		}
		d.inFile = t.raw
		return d, checkBools(d.typ, t.raw)
	}
	return d, d.checkList(lists)
}

// typ returns the declared type of a tensor, that of its bytes for strings.
func (t *tensorProto) typ() (op.Type, error) {
	dt, err := dtype.FromONNX(t.dataType)
	if err != nil {
		return op.Type{}, err
	}
	sizes := make([]int, len(t.dims))
	for i, n := range t.dims {
		if n < 0 {
			return op.Type{}, fmt.Errorf("dims[%d]: got %d, want 0 or more: %w", i, n, shape.ErrShape)
		}
		sizes[i] = int(n)
	}
	if dt == dtype.String {
		return t.textType(sizes)
	}
	s, err := shape.Of(sizes...)
	return op.Type{DType: dt, Shape: s}, err
}

// checkBools refuses bytes that no Go bool may have.
func checkBools(typ op.Type, data []byte) error {
	if typ.DType != dtype.Bool {
		return nil
	}
	for i, b := range data {
		if b > 1 {
			return corruptf("element %d: got %d, want 0 or 1 for bool", i, b)
		}
	}
	return nil
}

// Numbers of the fields of TensorProto that hold numbers in typed lists.
const (
	floatData  = 4
	int32Data  = 5
	stringData = 6
	int64Data  = 7
	doubleData = 10
	uint64Data = 11
)

// numberLists describes the typed lists of a tensor, of which it may have one.
type numberLists struct {
	field int    // 0: none
	count int    // numbers in it
	whole []byte // the encoded list when it is one packed field
}

func (t *tensorProto) lists() (l numberLists, err error) {
	fields := 0
	m := t.message()
	for f := (field{}); m.next(&f); {
		switch f.num {
		case floatData, int32Data, stringData, int64Data, doubleData, uint64Data:
			if l.field != 0 && l.field != f.num {
				m.fault(&f, fmt.Errorf("got numbers in %s too, want one list", tensorFields[l.field].name))
			}
			fields++
			l.field, l.count, l.whole = f.num, l.count+f.numbers(), nil
			if f.packed && fields == 1 {
				l.whole = f.body
			}
		}
	}
	return l, m.err
}

func (t *tensorProto) message() message {
	return message{fields: tensorFields, data: t.body, base: t.at}
}

// listOf returns the list that holds the elements of a type, and how many
// numbers of it hold how many elements' bytes: complex numbers take two each,
// and elements of less than a byte are packed into bytes first.
func listOf(typ op.Type, bytes int) (field, count int) {
	n := typ.Shape.NumElements()
	switch dt := typ.DType; dt {
	case dtype.F32:
		return floatData, n
	case dtype.C64:
		return floatData, 2 * n
	case dtype.F64:
		return doubleData, n
	case dtype.C128:
		return doubleData, 2 * n
	case dtype.I64:
		return int64Data, n
	case dtype.U32, dtype.U64:
		return uint64Data, n
	default:
		if dt.Size() == 0 {
			return int32Data, bytes
		}
		return int32Data, n
	}
}

func (d *tensorData) checkList(l numberLists) error {
	field, count := listOf(d.typ, d.bytes)
	if l.field != 0 && l.field != field {
		return corruptf("got %s, want %s for %s", tensorFields[l.field].name, tensorFields[field].name, d.typ)
	}
	if l.count != count {
		return corruptf("%s: got %d numbers, want %d for %s", tensorFields[field].name, l.count, count, d.typ)
	}
	d.list = field
	if l.whole != nil && (field == floatData || field == doubleData) {
		d.inFile = l.whole // packed floats are raw data under another name
	}
	return nil
}

// elements returns the bytes of a checked tensor whose data are in the file,
// which the caller must not write.
func (t *tensorProto) elements(d tensorData) ([]byte, error) {
	if t.external != nil {
		return nil, fmt.Errorf("tensor %q: external data here: %w", t.name, op.ErrUnsupported)
	}
	if d.inFile != nil {
		return d.inFile, nil
	}
	data := make([]byte, d.bytes)
	return data, t.convert(d, data)
}

// convert writes the elements of a typed list to dst, which has d.bytes bytes.
func (t *tensorProto) convert(d tensorData, dst []byte) error {
	if d.text {
		return t.putStrings(d, dst)
	}
	at := 0
	m := t.message()
	for f := (field{}); m.next(&f); {
		if f.num != d.list {
			continue
		}
		m.fault(&f, f.eachNumber(func(v uint64) error {
			n, err := putNumber(dst[at:], d.typ.DType, v)
			at += n
			return err
		}))
	}
	if m.err != nil {
		return fmt.Errorf("tensor %q: %w", t.name, m.err)
	}
	return nil
}

// putNumber stores one number of a typed list and returns its width.
func putNumber(dst []byte, dt dtype.DType, v uint64) (int, error) {
	inRange := true
	width := dt.Size()
	switch dt {
	case dtype.F32, dtype.C64:
		width = 4
	case dtype.F64, dtype.C128:
		width = 8
	case dtype.I64, dtype.U64:
	case dtype.U32:
		inRange = v == uint64(uint32(v))
	case dtype.I32:
		inRange = int64(v) == int64(int32(v))
	case dtype.I16:
		inRange = int64(v) == int64(int16(v))
	case dtype.I8:
		inRange = int64(v) == int64(int8(v))
	case dtype.Bool:
		inRange = v <= 1
	case dtype.U16, dtype.F16, dtype.BF16:
		inRange = v <= 0xffff
	default: // one byte, or a byte of packed elements
		width = 1
		inRange = v <= 0xff
	}
	if !inRange {
		return 0, fmt.Errorf("got number %d, want one that fits %s", int64(v), dt)
	}
	switch width {
	case 1:
		dst[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(dst, v)
	}
	return width, nil
}

// corruptf is an error about a file that contradicts itself.
func corruptf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, tensor.ErrCorrupt)...)
}
