package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// file makes a file of a header and data.
func file(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func values[T dtype.Element](t *testing.T, f *File, name string) []T {
	t.Helper()
	x, err := f.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	v, err := tensor.Values[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The file was written by the format's own library, see testdata/make.py.
func TestReference(t *testing.T) {
	memorytest.Check(t)
	f, err := Open("testdata/reference.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := values[float32](t, f, "matrix"); !slices.Equal(got, []float32{0, 1, 2, 3, 4, 5}) {
		t.Errorf("matrix: got %v", got)
	}
	if got := values[bool](t, f, "flags"); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("flags: got %v", got)
	}
	if got := values[int64](t, f, "long"); !slices.Equal(got, []int64{-1, 1 << 40}) {
		t.Errorf("long: got %v", got)
	}
	if got := values[uint8](t, f, "scalar"); !slices.Equal(got, []uint8{7}) {
		t.Errorf("scalar: got %v", got)
	}
	if got := values[dtype.Float16](t, f, "half"); got[0].Float32() != 0.5 || got[1].Float32() != -2 {
		t.Errorf("half: got %v", got)
	}
	if got := f.Metadata(); len(got) != 2 || got["note"] != "a < b" {
		t.Errorf("metadata: got %v", got)
	}
	shapes := map[string]string{}
	for _, i := range f.Tensors() {
		shapes[i.Name] = i.DType.String() + i.Shape.String()
	}
	if shapes["matrix"] != "f32[2,3]" || shapes["scalar"] != "u8[]" || shapes["empty"] != "f64[0,4]" {
		t.Errorf("got %v", shapes)
	}
}

// A file is read, edited and written back while its tensors are still mapped.
func TestWriteBackToAMappedFile(t *testing.T) {
	memorytest.Check(t)
	dir := t.TempDir()
	path, link := filepath.Join(dir, "x.safetensors"), filepath.Join(dir, "link.safetensors")
	x, err := tensor.Full(float32(1), 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	if err := WriteFile(path, nil, Entry{"a", x}, Entry{"b", x}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		link = path // a system without links
	} else if _, err := os.Stat(link); err != nil {
		link = path // one that makes links and does not follow them
	}
	f, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Tensor("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, nil, Entry{"b", old}); err != nil {
		if runtime.GOOS == "windows" {
			if err := errors.Join(old.Release(), f.Close()); err != nil {
				t.Error(err)
			}
			t.Skip("this system replaces no mapped file: ", err)
		}
		t.Fatal(err)
	}
	if got, err := tensor.At[float32](old, 4095); got != 1 || err != nil {
		t.Errorf("the old file's tensor: got %v, %v, want 1", got, err)
	}
	if err := errors.Join(old.Release(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.Tensors(); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("got %v in the file that the link names, want b alone", got)
	}
	if info, err := os.Lstat(link); err != nil || link != path && info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("got %v, %v, want the link to stay", info, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 2 {
		t.Errorf("got %v, %v, want no part of a file left", list, err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: got %v, want fs.ErrNotExist", err)
	}
}

// A tensor lies in the file's own bytes, may not be written, and outlives the
// file's Close.
func TestTensorsAreTheFile(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "x.safetensors")
	x, err := tensor.Of([]float32{1, 2, 3, 4}, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	if err := WriteFile(path, nil, Entry{"x", x}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Tensor("x")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Tensor("x")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := a.UnsafeBytes()
	second, _ := b.UnsafeBytes()
	if &first[0] != &second[0] {
		t.Error("got two copies, want the bytes of the file")
	}
	if err := errors.Join(b.Release(), f.Close()); err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if v, err := tensor.Values[float32](a); err != nil || !slices.Equal(v, []float32{1, 2, 3, 4}) {
		t.Errorf("after Close: got %v, %v", v, err)
	}
	if _, err := tensor.Write[float32](a); !errors.Is(err, tensor.ErrShared) {
		t.Errorf("write: got %v, want ErrShared", err)
	}
}

func TestUnalignedDataIsCopied(t *testing.T) {
	memorytest.Check(t)
	data := file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`, 9, 0, 0, 0x80, 0x3f)
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := values[float32](t, f, "x"); got[0] != 1 {
		t.Errorf("got %v, want 1", got)
	}
}

func TestRoundTrip(t *testing.T) {
	memorytest.Check(t)
	var entries []Entry
	for name, dt := range types {
		if dt.Bits() == 6 {
			continue
		}
		x, err := tensor.New(dt, shape.MustOf(3, 4))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer x.Release()
		entries = append(entries, Entry{"of " + name, x})
	}
	var once, twice bytes.Buffer
	if err := Write(&once, map[string]string{"a": "b", "c": "d"}, entries...); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	if err := Write(&twice, map[string]string{"c": "d", "a": "b"}, entries...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("got other bytes for other order, want the same")
	}
	f, err := Parse(once.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.data%8 != 0 {
		t.Errorf("got data at %d, want a multiple of 8", f.data)
	}
	for _, e := range entries {
		x, err := f.Tensor(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if x.DType() != e.Tensor.DType() || x.Shape() != e.Tensor.Shape() {
			t.Errorf("%s: got %s%s", e.Name, x.DType(), x.Shape())
		}
		x.Release()
	}
}

func TestCorrupt(t *testing.T) {
	memorytest.Check(t)
	const one = `{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
	for _, c := range []struct {
		name string
		file []byte
		text string
	}{
		{"nothing", nil, "got 0 bytes"},
		{"a length beyond the file", file(one, 1, 2)[:20], "length of 53 bytes, want at most the 12"},
		{"a length beyond the format", bytes.Repeat([]byte{0xff}, 20), "want at most 100000000"},
		{"no object", file(`[]`), "begins with {"},
		{"spaces first", file(` {}`), "begins with {"},
		{"no JSON", file(`{"x"`), "end of the header"},
		{"more behind", file(`{}{}`), "more behind"},
		{"no UTF-8", file("{\"\xff\":{}}"), "UTF-8"},
		{"a name twice", file(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`), `"x" a second time`},
		{"a field twice", file(`{"x":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}`), `"dtype" a second time`},
		{"a field too many", file(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"stride":[1]}}`), `"stride"`},
		{"a field too few", file(`{"x":{"dtype":"U8","shape":[0]}}`), "all three"},
		{"another type of field", file(`{"x":{"dtype":8,"shape":[0],"data_offsets":[0,0]}}`), "want a string"},
		{"a negative size", file(`{"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}}`), "got -1"},
		{"a fraction", file(`{"x":{"dtype":"U8","shape":[1.5],"data_offsets":[0,0]}}`), "got 1.5"},
		{"too many elements", file(`{"x":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), `tensor "x"`},
		{"another number of bytes", file(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 1, 2, 3, 4), "got 4 bytes, want 8 of f32[2]"},
		{"offsets reversed", file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}`, 1, 2), "data_offsets [2 0]"},
		{"bytes outside", file(`{"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}`, 1, 2), "within the 2"},
		{"a gap", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), "got bytes from 1 on, want 0"},
		{"an overlap", file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 1, 2, 3), "got bytes from 1 on, want 2"},
		{"bytes of nobody", file(one, 1, 2, 3), "got 3 bytes of data, want the 2"},
		{"metadata of another type", file(`{"__metadata__":{"a":1}}`), `__metadata__ "a"`},
	} {
		f, err := Parse(c.file)
		if !errors.Is(err, tensor.ErrCorrupt) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want ErrCorrupt with %q", c.name, err, c.text)
		}
		if err == nil {
			f.Close()
		}
	}
}

// A file whose tensors are of types that are not known can be read for the
// others.
func TestUnknownType(t *testing.T) {
	memorytest.Check(t)
	f, err := Parse(file(`{"x":{"dtype":"U7","shape":[9],"data_offsets":[0,1]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]},"y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Tensor("x"); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
	if _, err := f.Tensor("b"); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt for a bool of 2", err)
	}
	if _, err := f.Tensor("z"); !errors.Is(err, ErrName) {
		t.Errorf("got %v, want ErrName", err)
	}
	if got := values[uint8](t, f, "y"); got[0] != 3 {
		t.Errorf("got %v, want 3", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	memorytest.Check(t)
	x, _ := tensor.Of([]float32{1}, 1)
	c, _ := tensor.New(dtype.C128, shape.MustOf(1))
	defer x.Release()
	defer c.Release()
	for _, k := range []struct {
		kind    error
		entries []Entry
	}{
		{ErrName, []Entry{{"x", x}, {"x", x}}},
		{ErrName, []Entry{{"__metadata__", x}}},
		{ErrName, []Entry{{"\xff", x}}},
		{tensor.ErrNoTensor, []Entry{{"x", nil}}},
		{tensor.ErrDType, []Entry{{"c", c}}},
	} {
		var out bytes.Buffer
		if err := Write(&out, nil, k.entries...); !errors.Is(err, k.kind) || out.Len() > 0 {
			t.Errorf("got %v and %d bytes, want %v and none", err, out.Len(), k.kind)
		}
	}
}

func FuzzParse(f *testing.F) {
	reference, err := os.ReadFile("testdata/reference.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(reference)
	f.Add(file(`{"x":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"__metadata__":{"a":"b"}}  `, 1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		memorytest.Check(t)
		file, err := Parse(data)
		if err != nil {
			return
		}
		defer file.Close()
		var entries []Entry
		for _, i := range file.Tensors() {
			x, err := file.Tensor(i.Name)
			if err != nil {
				continue
			}
			defer x.Release()
			entries = append(entries, Entry{i.Name, x})
		}
		var out bytes.Buffer
		if err := Write(&out, file.Metadata(), entries...); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out.Bytes())
		if err != nil {
			t.Fatalf("what was written: %v", err)
		}
		defer again.Close()
		for _, e := range entries {
			y, err := again.Tensor(e.Name)
			if err != nil {
				t.Fatalf("what was written: %v", err)
			}
			got, _ := y.UnsafeBytes()
			want, _ := e.Tensor.UnsafeBytes()
			if y.DType() != e.Tensor.DType() || y.Shape() != e.Tensor.Shape() || !bytes.Equal(got, want) {
				t.Errorf("%s: got %s, want %s", e.Name, y, e.Tensor)
			}
			y.Release()
		}
	})
}

// A file that was closed says so, once its last tensor is released: its bytes
// are gone.
func TestClosed(t *testing.T) {
	memorytest.Check(t)
	f, err := Parse(file(`{"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 3))
	if err != nil {
		t.Fatal(err)
	}
	y, err := f.Tensor("y")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := y.Release(); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*File{"closed": f, "zero": {}, "nil": nil} {
		if _, err := f.Tensor("y"); !errors.Is(err, tensor.ErrReleased) {
			t.Errorf("tensor of a %s file: got %v, want ErrReleased", what, err)
		}
		if err := f.Close(); !errors.Is(err, tensor.ErrReleased) {
			t.Errorf("close of a %s file: got %v, want ErrReleased", what, err)
		}
	}
}
