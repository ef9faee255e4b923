package npy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

func ok[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func second[T any](_ T, err error) error { return err }

func wantError(t testing.TB, name string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want kind %q and text %q", name, err, kind, text)
	}
}

// held checks a tensor against the text that make.py wrote: type, shape,
// elements.
func held(x *tensor.Tensor, want string) error {
	lines := strings.SplitN(want, "\n", 3)
	names := map[dtype.DType]string{
		dtype.Bool: "bool", dtype.F16: "float16", dtype.F32: "float32", dtype.F64: "float64", dtype.C64: "complex64", dtype.C128: "complex128",
		dtype.I8: "int8", dtype.I16: "int16", dtype.I32: "int32", dtype.I64: "int64",
		dtype.U8: "uint8", dtype.U16: "uint16", dtype.U32: "uint32", dtype.U64: "uint64",
	}
	head := names[x.DType()] + " " + strings.ReplaceAll(x.Shape().String(), ",", ", ")
	if head != lines[0] {
		return fmt.Errorf("got %s, want %s", head, lines[0])
	}
	texts := strings.Fields(lines[1])
	switch x.DType() {
	case dtype.Bool:
		return same(x, texts, func(s string) (bool, error) { return strconv.ParseBool(s) })
	case dtype.F16:
		return same(x, texts, func(s string) (dtype.Float16, error) {
			f, err := strconv.ParseFloat(s, 32)
			return dtype.Float16FromFloat32(float32(f)), err
		})
	case dtype.F32:
		return same(x, texts, func(s string) (float32, error) { f, err := strconv.ParseFloat(s, 32); return float32(f), err })
	case dtype.F64:
		return same(x, texts, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case dtype.C64:
		return same(x, texts, func(s string) (complex64, error) { c, err := parseComplex(s); return complex64(c), err })
	case dtype.C128:
		return same(x, texts, parseComplex)
	case dtype.I8:
		return same(x, texts, parseInt[int8])
	case dtype.I16:
		return same(x, texts, parseInt[int16])
	case dtype.I32:
		return same(x, texts, parseInt[int32])
	case dtype.I64:
		return same(x, texts, parseInt[int64])
	case dtype.U8:
		return same(x, texts, parseUint[uint8])
	case dtype.U16:
		return same(x, texts, parseUint[uint16])
	case dtype.U32:
		return same(x, texts, parseUint[uint32])
	case dtype.U64:
		return same(x, texts, parseUint[uint64])
	}
	return fmt.Errorf("got type %s", x.DType())
}

func parseInt[T ~int8 | ~int16 | ~int32 | ~int64](s string) (T, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return T(n), err
}

func parseUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](s string) (T, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	return T(n), err
}

func parseComplex(s string) (complex128, error) {
	return strconv.ParseComplex(strings.ReplaceAll(s, "j", "i"), 128)
}

func same[T dtype.Element](x *tensor.Tensor, texts []string, parse func(string) (T, error)) error {
	got, err := tensor.Values[T](x)
	if err != nil {
		return err
	}
	want := make([]T, len(texts))
	for i, s := range texts {
		if want[i], err = parse(s); err != nil {
			return err
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func TestReadsWhatNumpyWrote(t *testing.T) {
	memorytest.Check(t)
	ar := ok(txtar.ParseFile("testdata/values.txtar"))(t)
	if len(ar.Files) < 10 {
		t.Fatalf("values.txtar: got %d files, want at least 10", len(ar.Files))
	}
	for _, f := range ar.Files {
		path := filepath.Join("testdata", f.Name+".npy")
		data := ok(os.ReadFile(path))(t)
		for name, x := range map[string]*tensor.Tensor{
			"file":   ok(ReadFile(path))(t),
			"stream": ok(Read(iotest.OneByteReader(bytes.NewReader(data))))(t),
		} {
			if err := held(x, string(f.Data)); err != nil {
				t.Errorf("%s, %s: %v", f.Name, name, err)
			}
			if !x.Layout().IsContiguous() || !x.IsExclusive() {
				t.Errorf("%s, %s: got layout %s, want an exclusive contiguous tensor", f.Name, name, x.Layout())
			}
			if err := x.Release(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, version := range []string{"version1", "version2", "version3"} {
		x := ok(ReadFile("testdata/" + version + ".npy"))(t)
		if err := held(x, "int32 [2]\n7 8\n"); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		_ = x.Release()
	}
}

func TestTypesThatWeHaveNotAreRefused(t *testing.T) {
	memorytest.Check(t)
	for name, text := range map[string]string{
		"object": "Python objects", "date": "dates", "record": "records", "void": "bfloat16",
	} {
		wantError(t, name, second(ReadFile("testdata/bad_"+name+".npy")), tensor.ErrUnsupported, text)
	}
}

// file builds a version 1 file.
func file(head string, data ...byte) []byte {
	b := append([]byte(magic), 1, 0, byte(len(head)), byte(len(head)>>8))
	return append(append(b, head...), data...)
}

func TestMalformedFiles(t *testing.T) {
	memorytest.Check(t)
	good := "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"
	if x, err := Read(bytes.NewReader(file(good, 1, 2))); err != nil {
		t.Fatalf("the file that the others are made of: %v", err)
	} else {
		_ = x.Release()
	}
	replaced := func(old, new string) []byte { return file(strings.Replace(good, old, new, 1), 1, 2) }
	for _, c := range []struct {
		name string
		data []byte
		text string
	}{
		{"empty", nil, "ends in the magic"},
		{"no magic", []byte("PK\x03\x04 no array"), "want the magic"},
		{"magic only", []byte(magic), "ends in the magic"},
		{"no length", []byte(magic + "\x01\x00\x10"), "ends in the length"},
		{"no header", []byte(magic + "\x01\x00\x10\x00{"), "ends in the header"},
		{"giant header", []byte(magic + "\x02\x00\xff\xff\xff\xff{"), "got a header of 4294967295 bytes"},
		{"no dict", replaced("{", "["), "want '{'"},
		{"no end", replaced("}", ""), `got the end, want a string`},
		{"rest", replaced("}", "} x"), "behind the dict"},
		{"no colon", replaced("':", "'="), "want ':'"},
		{"no key", replaced("'descr': '|u1', ", ""), `no key "descr"`},
		{"key twice", replaced("'fortran_order': False", "'descr': '|u1'"), "again"},
		{"key unknown", replaced("fortran_order", "order"), `got key "order"`},
		{"key open", replaced("descr'", "descr"), ""},
		{"string with escape", replaced("|u1", `\x7cu1`), "escape"},
		{"descr number", replaced("'|u1'", "1"), "want a string"},
		{"descr empty", replaced("|u1", ""), "empty descr"},
		{"descr unknown", replaced("|u1", "<q9"), "name of a type"},
		{"descr without order", replaced("|u1", "|i4"), "byte order"},
		{"descr order only", replaced("|u1", "<"), "name of a type"},
		{"order word", replaced("False", "false"), "want True or False"},
		{"shape list", replaced("(2,)", "[2]"), "want '('"},
		{"shape number", replaced("(2,)", "(2)"), "want a tuple"},
		{"shape negative", replaced("(2,)", "(-2,)"), "want a dimension"},
		{"shape float", replaced("(2,)", "(2.0,)"), "want a comma"},
		{"shape without comma", replaced("(2,)", "(1 2)"), "want a comma"},
		{"shape open", replaced("(2,), }", "(2,"), "want a dimension"},
		{"dimension too large", replaced("2,", "99999999999999999999,"), "beyond"},
		{"elements too many", replaced("2,", "4294967296, 4294967296,"), "elements"},
		{"short", file(good, 1), "got 1 bytes of data for u8[2], want 2"},
		{"long", file(good, 1, 2, 3), "behind the data of u8[2]"},
		{"lying", replaced("2,", "1152921504606846,"), "got 2 bytes of data"},
	} {
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, c.name+", file", second(ReadFile(path)), tensor.ErrCorrupt, c.text)
		if c.name != "long" { // a stream may go on
			wantError(t, c.name+", stream", second(Read(bytes.NewReader(c.data))), tensor.ErrCorrupt, c.text)
		}
	}
	wantError(t, "version", second(Read(strings.NewReader(magic+"\x04\x00"))), tensor.ErrUnsupported, "version 4.0")
	wantError(t, "missing file", second(ReadFile(filepath.Join(t.TempDir(), "none"))), os.ErrNotExist, "none")
	broken := errors.New("cable cut")
	wantError(t, "failing source", second(Read(io.MultiReader(bytes.NewReader(file(good)), iotest.ErrReader(broken)))), broken, "npy: read")
	wantError(t, "failing source", second(Read(iotest.ErrReader(broken))), broken, "npy: read")
}

func TestHeadersAsOthersWriteThem(t *testing.T) {
	memorytest.Check(t)
	for _, head := range []string{
		`{"descr": "|u1", "fortran_order": False, "shape": (2,)}`,
		`{'shape':(2L,),'fortran_order':True,'descr':'u1'}`,
		"{ 'shape' : ( 2 , ) , \t'descr' : '<u1' ,\n'fortran_order' : False , }     \n",
	} {
		x, err := Read(bytes.NewReader(file(head, 1, 2)))
		if err != nil {
			t.Errorf("%s: %v", head, err)
			continue
		}
		if err := held(x, "uint8 [2]\n1 2\n"); err != nil {
			t.Errorf("%s: %v", head, err)
		}
		_ = x.Release()
	}
	x := ok(Read(bytes.NewReader(file("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 0, 1, 2, 255))))(t)
	defer x.Release()
	data := ok(x.Use())(t)
	defer data.Release()
	if !slices.Equal(data.Data, []byte{0, 1, 1, 1}) {
		t.Errorf("bools: got %v, want 0 and 1", data.Data)
	}
}

// Arrays may follow each other in a stream, as after several numpy.save into
// one file.
func TestReadStopsBehindTheArray(t *testing.T) {
	memorytest.Check(t)
	var buf bytes.Buffer
	for i := range 3 {
		x := ok(tensor.Of([]int32{int32(i), 5}, 2))(t)
		if err := Write(&buf, x); err != nil {
			t.Fatal(err)
		}
		_ = x.Release()
	}
	for i := range 3 {
		x := ok(Read(&buf))(t)
		if err := held(x, fmt.Sprintf("int32 [2]\n%d 5\n", i)); err != nil {
			t.Error(err)
		}
		_ = x.Release()
	}
}

func TestWriteThenRead(t *testing.T) {
	memorytest.Check(t)
	types := []dtype.DType{dtype.Bool, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64,
		dtype.F16, dtype.F32, dtype.F64, dtype.C64, dtype.C128}
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom(types).Draw(t, "type")
		s := shape.MustOf(rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")...)
		n, err := shape.Bytes(dt, s)
		if err != nil {
			t.Fatal(err)
		}
		data := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
		normalize(dt, 0, data)
		x, err := tensor.FromBytes(dt, s, data)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		var buf bytes.Buffer
		if err := Write(&buf, x); err != nil {
			t.Fatal(err)
		}
		if (buf.Len()-n)%64 != 0 {
			t.Fatalf("data begins at byte %d, want a multiple of 64", buf.Len()-n)
		}
		y, err := Read(&buf)
		if err != nil {
			t.Fatal(err)
		}
		defer y.Release()
		got, _ := y.UnsafeBytes()
		if y.DType() != dt || y.Shape() != s || !bytes.Equal(got, data) || buf.Len() != 0 {
			t.Fatalf("got %s%s %v, want %s%s %v", y.DType(), y.Shape(), got, dt, s, data)
		}
	})
}

func TestWriteWidensWhatNumpyLacks(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		x    *tensor.Tensor
		want string
	}{
		{ok(tensor.Of([]dtype.BFloat16{dtype.BFloat16FromFloat32(-1.5)}, 1))(t), "float32 [1]\n-1.5\n"},
		{ok(tensor.FromBytes(dtype.F8E4M3FN, shape.MustOf(2), []byte{0x38, 0xb8}))(t), "float32 [2]\n1 -1\n"},
		{ok(tensor.FromBytes(dtype.F4E2M1, shape.MustOf(3), []byte{0x7a, 0x01}))(t), "float32 [3]\n-1 6 0.5\n"},
		{ok(tensor.FromBytes(dtype.I4, shape.MustOf(3), []byte{0x8f, 0x07}))(t), "int8 [3]\n-1 -8 7\n"},
		{ok(tensor.FromBytes(dtype.U4, shape.MustOf(1, 2), []byte{0x8f}))(t), "uint8 [1, 2]\n15 8\n"},
		{ok(tensor.FromBytes(dtype.I2, shape.MustOf(4), []byte{0b11100100}))(t), "int8 [4]\n0 1 -2 -1\n"},
	} {
		var buf bytes.Buffer
		if err := Write(&buf, c.x); err != nil {
			t.Error(err)
			continue
		}
		y := ok(Read(&buf))(t)
		if err := held(y, c.want); err != nil {
			t.Errorf("%s: %v", c.x.DType(), err)
		}
		_, _ = c.x.Release(), y.Release()
	}
	c := ok(tensor.New(dtype.C32, shape.MustOf(1)))(t)
	wantError(t, "c32", Write(io.Discard, c), tensor.ErrDType, "c32")
	_ = c.Release()
	wantError(t, "released", Write(io.Discard, c), tensor.ErrDType, "c32")
	x := ok(tensor.Of([]float32{1}))(t)
	_ = x.Release()
	wantError(t, "released", Write(io.Discard, x), tensor.ErrReleased, "npy: write")
	wantError(t, "none", Write(io.Discard, nil), tensor.ErrNoTensor, "no tensor")
}

func TestWriteOfAView(t *testing.T) {
	memorytest.Check(t)
	x := ok(tensor.Of([]int16{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	y := ok(x.Transpose())(t)
	path := filepath.Join(t.TempDir(), "y.npy")
	if err := WriteFile(path, y); err != nil {
		t.Fatal(err)
	}
	z := ok(ReadFile(path))(t)
	if err := held(z, "int16 [3, 2]\n1 4 2 5 3 6\n"); err != nil {
		t.Error(err)
	}
	_, _, _ = x.Release(), y.Release(), z.Release()
	if err := WriteFile(filepath.Join(path, "no folder"), z); err == nil {
		t.Error("write into a file as a folder: got no error")
	}
}

func TestWriteErrorsAreReported(t *testing.T) {
	x := ok(tensor.Of([]int16{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	defer x.Release()
	for after := range 2 {
		w := &failing{after: after}
		wantError(t, "full disk", Write(w, x), errFull, "npy: write")
	}
}

var errFull = errors.New("disk full")

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after == 0 {
		return 0, errFull
	}
	f.after--
	return len(p), nil
}

func TestLongHeaderIsVersion2(t *testing.T) {
	h := header{descr: "|u1", dims: make([]int, 30_000)}
	b := h.bytes()
	if b[6] != 2 || len(b)%64 != 0 {
		t.Errorf("got version %d and %d bytes, want 2 and a multiple of 64", b[6], len(b))
	}
}

// A header with a wrong size must not allocate memory for bytes that are not
// there, whether or not the file's size is known beforehand.
func TestLyingHeaderTakesNoMemory(t *testing.T) {
	memorytest.Check(t)
	data := file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,)}", make([]byte, 100)...)
	path := filepath.Join(t.TempDir(), "lie.npy")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	memory.ResetPeak()
	before := memory.Stats().Total.Peak
	allocated := testing.AllocsPerRun(1, func() {
		wantError(t, "file", second(ReadFile(path)), tensor.ErrCorrupt, "got 100 bytes of data for f64[1000000000], want 8000000000")
		wantError(t, "stream", second(Read(bytes.NewReader(data))), tensor.ErrCorrupt, "got 100 bytes")
	})
	if got := memory.Stats().Total.Peak; got != before {
		t.Errorf("got a peak of %d bytes more, want none", got-before)
	}
	if allocated > math.MaxInt16 {
		t.Errorf("got %v allocations", allocated)
	}
}
