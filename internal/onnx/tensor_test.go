package onnx

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// listTensor is a tensor whose numbers are in a typed list, packed or not.
func listTensor(dt dtype.DType, field int, packed bool, numbers []uint64, dims ...int64) []byte {
	var body wiretest.Writer
	each := func(w *wiretest.Writer, v uint64) {
		switch field {
		case wire.FloatData:
			*w = append(*w, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		case wire.DoubleData:
			for i := range 8 {
				*w = append(*w, byte(v>>(8*i)))
			}
		default:
			for ; v >= 0x80; v >>= 7 {
				*w = append(*w, byte(v)|0x80)
			}
			*w = append(*w, byte(v))
		}
	}
	var list wiretest.Writer
	for _, v := range numbers {
		if !packed {
			wire := map[int]int{wire.FloatData: wire.TypeFixed4, wire.DoubleData: wire.TypeFixed8}[field]
			body.Tag(field, wire)
			each(&body, v)
		}
		each(&list, v)
	}
	if packed {
		body.Bytes(field, list)
	}
	var w wiretest.Writer
	wiretest.EncodeTensor(&w, &wire.Tensor{Name: "t", Dims: dims, DataType: dt.ONNX(), Body: body})
	return w
}

func neg(v int64) uint64 { return uint64(v) }

func TestTensorLists(t *testing.T) {
	memorytest.Check(t)
	f32 := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	for _, tc := range []struct {
		dt      dtype.DType
		field   int
		numbers []uint64
		dims    []int64
		want    []byte
	}{
		{dtype.F32, wire.FloatData, []uint64{f32(1), f32(-2)}, []int64{2}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{dtype.C64, wire.FloatData, []uint64{f32(1), f32(-2)}, []int64{1}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{dtype.F64, wire.DoubleData, []uint64{math.Float64bits(1)}, nil, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{dtype.C128, wire.DoubleData, []uint64{math.Float64bits(1), 0}, nil, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0}},
		{dtype.I32, wire.Int32Data, []uint64{neg(-2), 5}, []int64{2}, []byte{0xfe, 0xff, 0xff, 0xff, 5, 0, 0, 0}},
		{dtype.I16, wire.Int32Data, []uint64{neg(-2), 300}, []int64{2}, []byte{0xfe, 0xff, 0x2c, 0x01}},
		{dtype.I8, wire.Int32Data, []uint64{neg(-128), 127}, []int64{2}, []byte{0x80, 0x7f}},
		{dtype.U8, wire.Int32Data, []uint64{255}, []int64{1}, []byte{255}},
		{dtype.U16, wire.Int32Data, []uint64{65535}, []int64{1}, []byte{255, 255}},
		{dtype.Bool, wire.Int32Data, []uint64{1, 0, 1}, []int64{3}, []byte{1, 0, 1}},
		{dtype.F16, wire.Int32Data, []uint64{0x3c00, 0xc000}, []int64{2}, []byte{0, 0x3c, 0, 0xc0}},
		{dtype.BF16, wire.Int32Data, []uint64{0x3f80}, []int64{1}, []byte{0x80, 0x3f}},
		{dtype.F8E4M3FN, wire.Int32Data, []uint64{0x38, 0xff}, []int64{2}, []byte{0x38, 0xff}},
		{dtype.I4, wire.Int32Data, []uint64{0xf1, 0x0e}, []int64{3}, []byte{0xf1, 0x0e}},
		{dtype.U2, wire.Int32Data, []uint64{0xe4}, []int64{4}, []byte{0xe4}},
		{dtype.I64, wire.Int64Data, []uint64{neg(-1), 1 << 62}, []int64{2}, []byte{255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0x40}},
		{dtype.U32, wire.Uint64Data, []uint64{1<<32 - 1}, []int64{1}, []byte{255, 255, 255, 255}},
		{dtype.U64, wire.Uint64Data, []uint64{1<<64 - 1}, []int64{1}, []byte{255, 255, 255, 255, 255, 255, 255, 255}},
		{dtype.F32, wire.FloatData, nil, []int64{0, 5}, []byte{}},
	} {
		for _, packed := range []bool{true, false} {
			x, name, err := ReadTensor(listTensor(tc.dt, tc.field, packed, tc.numbers, tc.dims...))
			if err != nil {
				t.Errorf("%s packed %v: %v", tc.dt, packed, err)
				continue
			}
			use, err := x.Use()
			if err != nil {
				t.Fatal(err)
			}
			if x.DType() != tc.dt || name != "t" || !bytes.Equal(use.Data, tc.want) || x.Shape().Rank() != len(tc.dims) {
				t.Errorf("%s packed %v: got %s%s %x of name %q, want %x", tc.dt, packed, x.DType(), x.Shape(), use.Data, name, tc.want)
			}
			use.Release()
			if err := x.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Content that is odd and has one meaning: bools in other bytes than 0 and 1,
// integers of few bits with or without a sign, and the same data again in
// another field, of which that of the element type counts, and raw_data before
// it.
func TestOddTensors(t *testing.T) {
	memorytest.Check(t)
	raw := func(dt int32, data []byte, dims ...int64) []byte {
		var w wiretest.Writer
		wiretest.EncodeTensor(&w, &wire.Tensor{Name: "t", Dims: dims, DataType: dt, Raw: data})
		return w
	}
	ints := func(dt dtype.DType, n int64, numbers ...uint64) []byte {
		return listTensor(dt, wire.Int32Data, true, numbers, n)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want []byte
	}{
		{"raw bools", raw(9, []byte{255, 0, 2}, 3), []byte{1, 0, 1}},
		{"listed bools", ints(dtype.Bool, 4, neg(-1), 0, 256, 1), []byte{1, 0, 1, 1}},
		{"i8 without a sign", ints(dtype.I8, 2, 255, 128), []byte{255, 128}},
		{"u8 with a sign", ints(dtype.U8, 2, neg(-1), neg(-128)), []byte{255, 128}},
		{"i16 without a sign", ints(dtype.I16, 1, 0xfffe), []byte{0xfe, 0xff}},
		{"u16 with a sign", ints(dtype.U16, 1, neg(-2)), []byte{0xfe, 0xff}},
		{"raw data and a list", append(raw(1, []byte{0, 0, 128, 63}, 1), listTensor(dtype.F32, wire.FloatData, true, []uint64{0})...), []byte{0, 0, 128, 63}},
		{"two lists", append(listTensor(dtype.I64, wire.Int32Data, true, []uint64{1, 2, 3}), listTensor(dtype.I64, wire.Int64Data, true, []uint64{7}, 1)...), []byte{7, 0, 0, 0, 0, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x, _, err := ReadTensor(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			use, err := x.Use()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(use.Data, tc.want) {
				t.Errorf("got the bytes %v, want %v", use.Data, tc.want)
			}
			use.Release()
			if err := x.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTensorFaults(t *testing.T) {
	raw := func(dt int32, data []byte, dims ...int64) []byte {
		var w wiretest.Writer
		wiretest.EncodeTensor(&w, &wire.Tensor{Name: "t", Dims: dims, DataType: dt, Raw: data})
		return w
	}
	segment := append(raw(1, []byte{0, 0, 0, 0}), 0x1a, 0)
	external := append(raw(1, nil), 0x70, 1)
	for _, tc := range []struct {
		name string
		data []byte
		want string
		kind error
	}{
		{"no type", raw(0, nil), `tensor "t" at offset 0: dtype.FromONNX: got data type code 0`, dtype.ErrDType},
		{"unknown type", raw(77, nil), "got data type code 77", dtype.ErrDType},
		{"strings", raw(8, nil, 1), "string_data: got 0 strings, want 1 for string[1]", tensor.ErrCorrupt},
		{"strings elsewhere", listTensor(dtype.String, wire.Int64Data, true, []uint64{1}, 1), "got int64_data, want string_data", tensor.ErrCorrupt},
		{"raw strings", raw(8, []byte("ab"), 2), "got strings outside of string_data", tensor.ErrCorrupt},
		{"long strings", stringTensor(strings.Split("a,bc"+strings.Repeat(",", 1<<13)+strings.Repeat("x", 1<<13), ","), 1<<13+2), "which take 67125248 bytes at the width of the longest, want at most 1", op.ErrUnsupported},
		{"too many strings", stringTensor([]string{"a", "b"}, 1), "string_data: got 2 strings, want 1", tensor.ErrCorrupt},
		{"a NUL", stringTensor([]string{"a", "b\x00"}, 2), "string_data[1]: got a string with a NUL", op.ErrUnsupported},
		{"missing data", raw(1, nil, 2), "float_data: got 0 numbers, want 2 for f32[2]", tensor.ErrCorrupt},
		{"long raw", raw(1, make([]byte, 12), 2), "raw_data at offset 9: got 12 bytes, want 8 for f32[2]", tensor.ErrCorrupt},
		{"short list", listTensor(dtype.I64, wire.Int64Data, true, []uint64{1}, 2), "int64_data: got 1 numbers, want 2 for i64[2]", tensor.ErrCorrupt},
		{"long list", listTensor(dtype.I64, wire.Int64Data, false, []uint64{1, 2, 3}, 2), "int64_data: got 3 numbers, want 2", tensor.ErrCorrupt},
		{"wrong list", listTensor(dtype.I64, wire.Int32Data, true, []uint64{1}, 1), "got int32_data, want int64_data for i64[1]", tensor.ErrCorrupt},
		{"segment", segment, "segment: tensors in segments are not supported", tensor.ErrCorrupt},
		{"no place", external, "data_location is external, but external_data is missing", tensor.ErrCorrupt},
		{"bad place", append(raw(1, nil), 0x70, 2), "data_location: got 2, want 0 (in the file) or 1 (external) at offset 6", tensor.ErrCorrupt},
		{"negative dim", raw(1, nil, -1), "dims[0]: got -1, want 0 or more", shape.ErrShape},
		{"overflow", raw(1, nil, 1<<40, 1<<40), "more than 2^58 elements", shape.ErrShape},
		{"many dims", raw(1, nil, make([]int64, 65)...), "dims[64]: got 65 dims, want at most 64", tensor.ErrCorrupt},
		{"i8", listTensor(dtype.I8, wire.Int32Data, true, []uint64{1, 256}, 2), `tensor "t": int32_data[0]: got number 256, want one that fits i8 at offset`, tensor.ErrCorrupt},
		{"u16", listTensor(dtype.U16, wire.Int32Data, true, []uint64{neg(-1<<15 - 1)}, 1), "got number -32769, want one that fits u16", tensor.ErrCorrupt},
		{"f16", listTensor(dtype.F16, wire.Int32Data, true, []uint64{neg(-1)}, 1), "got number -1, want one that fits f16", tensor.ErrCorrupt},
		{"wrong lists", append(listTensor(dtype.F32, wire.DoubleData, true, []uint64{1}), listTensor(dtype.F32, wire.Int32Data, true, []uint64{0}, 1)...), "got int32_data, want float_data for f32[1]", tensor.ErrCorrupt},
		{"u32", listTensor(dtype.U32, wire.Uint64Data, true, []uint64{1 << 32}, 1), "got number 4294967296, want one that fits u32", tensor.ErrCorrupt},
		{"text", []byte("P5 not a tensor"), "onnx: ", tensor.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x, _, err := ReadTensor(tc.data)
			if err == nil {
				t.Fatalf("got %s%s, want an error", x.DType(), x.Shape())
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "onnx: ") || !errors.Is(err, tc.kind) {
				t.Errorf("got %v, want %q of kind %v", err, tc.want, tc.kind)
			}
		})
	}
}

func TestWriteTensor(t *testing.T) {
	memorytest.Check(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.I64, dtype.U8, dtype.Bool, dtype.C64, dtype.I4} {
		for _, sizes := range [][]int{{}, {0}, {3}, {2, 3}} {
			s := shape.MustOf(sizes...)
			n, err := shape.Bytes(dt, s)
			if err != nil {
				t.Fatal(err)
			}
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i) & 1
			}
			x, err := tensor.FromBytes(dt, s, data)
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := WriteTensor(&file, "a/b", x); err != nil {
				t.Fatal(err)
			}
			y, name, err := ReadTensor(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			use, err := y.Use()
			if err != nil {
				t.Fatal(err)
			}
			if name != "a/b" || y.DType() != dt || y.Shape() != s || !bytes.Equal(use.Data, data) {
				t.Errorf("%s%s: read back %q %s%s %x, want %x", dt, s, name, y.DType(), y.Shape(), use.Data, data)
			}
			use.Release()
			for _, x := range []*tensor.Tensor{x, y} {
				if err := x.Release(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriteTensorFaults(t *testing.T) {
	memorytest.Check(t)
	x, err := tensor.Of([]float32{1, 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 10} {
		if err := WriteTensor(&brokenWriter{limit}, "x", x); err == nil || !strings.Contains(err.Error(), `onnx: write tensor "x": disk full`) {
			t.Errorf("a writer that fails after %d bytes: got %v, want its error", limit, err)
		}
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	if err := WriteTensor(&bytes.Buffer{}, "x", x); !errors.Is(err, tensor.ErrReleased) {
		t.Errorf("released tensor: got %v, want ErrReleased", err)
	}
	odd, err := tensor.New(dtype.F8E3M4, shape.Scalar())
	if err != nil {
		t.Fatal(err)
	}
	defer odd.Release()
	if err := WriteTensor(&bytes.Buffer{}, "x", odd); !errors.Is(err, tensor.ErrDType) {
		t.Errorf("type without a code: got %v, want ErrDType", err)
	}
}

func TestReadTensorFile(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "input_0.pb")
	if _, _, err := ReadTensorFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v, want ErrNotExist", err)
	}
	if err := os.WriteFile(path, listTensor(dtype.I64, wire.Int64Data, true, []uint64{7}, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	x, name, err := ReadTensorFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := tensor.Values[int64](x); err != nil || name != "t" || len(v) != 1 || v[0] != 7 {
		t.Errorf("got %v of name %q, %v, want [7]", v, name, err)
	}
	if err := x.Release(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte{0xff}, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadTensorFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

// stringTensor encodes a tensor of strings.
func stringTensor(list []string, dims ...int64) []byte {
	var w, body wiretest.Writer
	for _, s := range list {
		body.Bytes(wire.StringData, []byte(s))
	}
	wiretest.EncodeTensor(&w, &wire.Tensor{Dims: dims, DataType: dtype.String.ONNX(), Name: "t", Body: body})
	return w
}

// Strings are read as bytes, as wide as the longest; no string is as wide as
// one byte.
func TestReadStrings(t *testing.T) {
	memorytest.Check(t)
	for _, tc := range []struct {
		list  []string
		dims  []int64
		sizes []int
	}{
		{[]string{"a", "", "größe", "\xff"}, []int64{2, 2}, []int{2, 2, 7}},
		{[]string{"one"}, nil, []int{3}},
		{[]string{"", ""}, []int64{2}, []int{2, 1}},
		{nil, []int64{0, 3}, []int{0, 3, 1}},
	} {
		x, name, err := ReadTensor(stringTensor(tc.list, tc.dims...))
		if err != nil {
			t.Fatalf("%q: %v", tc.list, err)
		}
		got, err := tensor.Strings(x)
		if err != nil || name != "t" || !slices.Equal(got, tc.list) || !slices.Equal(x.Shape().Sizes(), tc.sizes) {
			t.Errorf("%q: got %q %v named %q (%v), want %v", tc.list, got, x.Shape(), name, err, tc.sizes)
		}
		var b bytes.Buffer
		if err := WriteStrings(&b, "t", x); err != nil {
			t.Error(err)
		}
		again, _, err := ReadTensor(b.Bytes())
		if err != nil {
			t.Fatalf("%q: written and read again: %v", tc.list, err)
		}
		if got, err := tensor.Strings(again); err != nil || again.Shape() != x.Shape() || !slices.Equal(got, tc.list) {
			t.Errorf("%q: written and read again: got %q %v (%v)", tc.list, got, again.Shape(), err)
		}
		_ = again.Release()
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}
