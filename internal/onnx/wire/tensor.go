package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// TensorData says where the bytes of a checked tensor are.
type TensorData struct {
	Type   op.Type
	Text   bool // strings, which have the type of bytes
	Bytes  int
	InFile []byte // the bytes as they lie in the file; nil when they must be converted or are outside
	list   int    // the field that holds them as numbers; 0 for none
}

// Check compares a tensor's head with its data.
func (t *Tensor) Check() (d TensorData, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("tensor %q at offset %d: %w", t.Name, t.at, err)
		}
	}()
	if d.Type, err = t.Type(); err != nil {
		return d, err
	}
	d.Text = t.DataType == dtype.String.ONNX()
	if d.Bytes, err = d.Type.Bytes(); err != nil {
		return d, err
	}
	lists, err := t.lists()
	if err != nil {
		return d, err
	}
	if d.Text {
		return d, t.checkText(&d, lists)
	}
	if t.External != nil {
		if t.Raw != nil || lists.field != 0 {
			return d, Corruptf("got data in the file and in external_data, want one of them")
		}
		return d, nil
	}
	if t.Raw != nil {
		if lists.field != 0 {
			return d, Corruptf("got raw_data and %s, want one of them", tensorFields[lists.field].name)
		}
		if len(t.Raw) != d.Bytes {
			return d, Corruptf("raw_data at offset %d: got %d bytes, want %d for %s", t.rawAt, len(t.Raw), d.Bytes, d.Type)
		}
		d.InFile = t.Raw
		return d, CheckBools(d.Type, t.Raw)
	}
	return d, d.checkList(lists)
}

// Type returns the declared type of a tensor, that of its bytes for strings.
func (t *Tensor) Type() (op.Type, error) {
	dt, err := dtype.FromONNX(t.DataType)
	if err != nil {
		return op.Type{}, err
	}
	sizes := make([]int, len(t.Dims))
	for i, n := range t.Dims {
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

// CheckBools refuses bytes that no Go bool may have.
func CheckBools(typ op.Type, data []byte) error {
	if typ.DType != dtype.Bool {
		return nil
	}
	for i, b := range data {
		if b > 1 {
			return Corruptf("element %d: got %d, want 0 or 1 for bool", i, b)
		}
	}
	return nil
}

// Numbers of the fields of TensorProto that hold its data: raw, or in typed
// lists.
const (
	FloatData  = 4
	Int32Data  = 5
	StringData = 6
	Int64Data  = 7
	RawData    = 9
	DoubleData = 10
	Uint64Data = 11
)

// numberLists describes the typed lists of a tensor, of which it may have one.
type numberLists struct {
	field int    // 0: none
	count int    // numbers in it
	whole []byte // the encoded list when it is one packed field
}

func (t *Tensor) lists() (l numberLists, err error) {
	fields := 0
	m := t.message()
	for f := (field{}); m.next(&f); {
		switch f.num {
		case FloatData, Int32Data, StringData, Int64Data, DoubleData, Uint64Data:
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

func (t *Tensor) message() message {
	return message{fields: tensorFields, data: t.Body, base: t.at}
}

// listOf returns the list that holds the elements of a type, and how many
// numbers of it hold how many elements' bytes: complex numbers take two each,
// and elements of less than a byte are packed into bytes first.
func listOf(typ op.Type, bytes int) (field, count int) {
	n := typ.Shape.NumElements()
	switch dt := typ.DType; dt {
	case dtype.F32:
		return FloatData, n
	case dtype.C64:
		return FloatData, 2 * n
	case dtype.F64:
		return DoubleData, n
	case dtype.C128:
		return DoubleData, 2 * n
	case dtype.I64:
		return Int64Data, n
	case dtype.U32, dtype.U64:
		return Uint64Data, n
	default:
		if dt.Size() == 0 {
			return Int32Data, bytes
		}
		return Int32Data, n
	}
}

func (d *TensorData) checkList(l numberLists) error {
	field, count := listOf(d.Type, d.Bytes)
	if l.field != 0 && l.field != field {
		return Corruptf("got %s, want %s for %s", tensorFields[l.field].name, tensorFields[field].name, d.Type)
	}
	if l.count != count {
		return Corruptf("%s: got %d numbers, want %d for %s", tensorFields[field].name, l.count, count, d.Type)
	}
	d.list = field
	if l.whole != nil && (field == FloatData || field == DoubleData) {
		d.InFile = l.whole // packed floats are raw data under another name
	}
	return nil
}

// Elements returns the bytes of a checked tensor whose data are in the file,
// which the caller must not write.
func (t *Tensor) Elements(d TensorData) ([]byte, error) {
	if t.External != nil {
		return nil, fmt.Errorf("tensor %q: external data here: %w", t.Name, op.ErrUnsupported)
	}
	if d.InFile != nil {
		return d.InFile, nil
	}
	data := make([]byte, d.Bytes)
	return data, t.Convert(d, data)
}

// Convert writes the elements of a typed list to dst, which has d.Bytes bytes.
func (t *Tensor) Convert(d TensorData, dst []byte) error {
	if d.Text {
		return t.putStrings(d, dst)
	}
	at := 0
	m := t.message()
	for f := (field{}); m.next(&f); {
		if f.num != d.list {
			continue
		}
		m.fault(&f, f.eachNumber(func(v uint64) error {
			n, err := putNumber(dst[at:], d.Type.DType, v)
			at += n
			return err
		}))
	}
	if m.err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, m.err)
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

// Corruptf is an error about a file that contradicts itself.
func Corruptf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, tensor.ErrCorrupt)...)
}
