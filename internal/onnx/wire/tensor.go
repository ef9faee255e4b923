package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

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
	Odd    string // a remark on content that is odd, and on its meaning; "" for none
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
		if t.Raw != nil || lists.others(0) != "" {
			d.Odd = "the data in the file are not read: those of external_data count"
		}
		return d, nil
	}
	if t.Raw != nil {
		if other := lists.others(0); other != "" {
			d.Odd = other + " is not read: raw_data counts"
		}
		if len(t.Raw) != d.Bytes {
			return d, Corruptf("raw_data at offset %d: got %d bytes, want %d for %s", t.rawAt, len(t.Raw), d.Bytes, d.Type)
		}
		d.InFile = t.Raw
		if d.HasOtherBools(t.Raw) {
			d.InFile, d.Odd = nil, OddBools
		}
		return d, nil
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

// HasOtherBools reports whether data of the tensor are bool bytes other than 0
// and 1, which no Go bool may have. They count as true.
func (d *TensorData) HasOtherBools(data []byte) bool {
	return d.Type.DType == dtype.Bool && slices.ContainsFunc(data, func(b byte) bool { return b > 1 })
}

// OddBools is the remark on bool bytes other than 0 and 1.
const OddBools = "bools other than 0 and 1 are true"

// PutBools writes 0 for each byte of src that is 0, and 1 for any other, to
// dst, which has as many bytes.
func PutBools(dst, src []byte) {
	for i, b := range src {
		dst[i] = min(b, 1)
	}
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

// numberLists describes the typed lists of a tensor, by the number of the
// field. One of them counts: that of the element type.
type numberLists [Uint64Data + 1]numberList

// numberList describes one typed list.
type numberList struct {
	fields int    // occurrences of the field
	count  int    // numbers in them
	whole  []byte // the encoded list when it is one packed field
}

func (t *Tensor) lists() (l numberLists, err error) {
	m := t.message()
	for f := (field{}); m.next(&f); {
		switch f.num {
		case FloatData, Int32Data, StringData, Int64Data, DoubleData, Uint64Data:
			list := &l[f.num]
			list.fields++
			list.count += f.numbers()
			list.whole = nil
			if f.packed && list.fields == 1 {
				list.whole = f.body
			}
		}
	}
	return l, m.err
}

// others returns the name of a list with numbers other than that of a field, ""
// if there is none.
func (l *numberLists) others(field int) string {
	for i := range l {
		if i != field && l[i].count > 0 {
			return tensorFields[i].name
		}
	}
	return ""
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
	other := l.others(field)
	if other != "" && l[field].count == 0 {
		return Corruptf("got %s, want %s for %s", other, tensorFields[field].name, d.Type)
	}
	if l[field].count != count {
		return Corruptf("%s: got %d numbers, want %d for %s", tensorFields[field].name, l[field].count, count, d.Type)
	}
	if other != "" {
		d.Odd = other + " is not read: " + tensorFields[field].name + " counts"
	}
	d.list = field
	if l[field].whole != nil && (field == FloatData || field == DoubleData) {
		d.InFile = l[field].whole // packed floats are raw data under another name
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

// Convert writes the elements of a typed list, or of bools in other bytes than
// 0 and 1, to dst, which has d.Bytes bytes.
func (t *Tensor) Convert(d TensorData, dst []byte) error {
	switch {
	case d.Text:
		return t.putStrings(d, dst)
	case d.list == 0:
		PutBools(dst, t.Raw)
		return nil
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

// putNumber stores one number of a typed list and returns its width. Integers
// of 8 and 16 bits may be written with or without a sign: these bits count. A
// bool is true unless it is 0.
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
	case dtype.I16, dtype.U16:
		inRange = v <= 0xffff || int64(v) == int64(int16(v))
	case dtype.I8, dtype.U8:
		inRange = v <= 0xff || int64(v) == int64(int8(v))
	case dtype.Bool:
		v = min(v, 1)
	case dtype.F16, dtype.BF16:
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
