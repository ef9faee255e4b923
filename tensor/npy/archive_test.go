package npy

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func releaseAll(t *testing.T, entries []Entry) {
	t.Helper()
	for _, e := range entries {
		if err := e.Tensor.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadsArchivesOfNumpy(t *testing.T) {
	memorytest.Check(t)
	a := ok(OpenArchive("testdata/stored.npz"))(t)
	if got, want := a.Names(), []string{"first", "with/slash"}; !slices.Equal(got, want) {
		t.Errorf("names: got %q, want %q", got, want)
	}
	x := ok(a.Read("with/slash"))(t)
	if err := held(x, "bool [3]\nTrue False True\n"); err != nil {
		t.Error(err)
	}
	_ = x.Release()
	wantError(t, "name", second(a.Read("second")), os.ErrNotExist, `got name "second", want one of ["first" "with/slash"]`)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wantError(t, "closed", second(a.Read("first")), os.ErrClosed, "first")

	entries := ok(ReadArchive("testdata/packed.npz"))(t)
	if len(entries) != 2 || entries[0].Name != "zeros" || entries[1].Name != "scalar" {
		t.Fatalf("got %v, want zeros and scalar", entries)
	}
	if err := held(entries[1].Tensor, "float32 []\n1.5\n"); err != nil {
		t.Error(err)
	}
	if v := ok(tensor.Values[int32](entries[0].Tensor))(t); len(v) != 1000 || slices.Max(v) != 0 {
		t.Errorf("zeros: got %d elements", len(v))
	}
	releaseAll(t, entries)
}

func TestArchiveRoundTrip(t *testing.T) {
	memorytest.Check(t)
	x, y := ok(tensor.Of([]float32{1, 2}, 2))(t), ok(tensor.Of([]bool{true}))(t)
	entries := []Entry{{"x", x}, {"deep/y", y}}
	path := filepath.Join(t.TempDir(), "a.npz")
	if err := WriteArchiveFile(path, entries...); err != nil {
		t.Fatal(err)
	}
	back := ok(ReadArchive(path))(t)
	if len(back) != 2 || back[0].Name != "x" || back[1].Name != "deep/y" {
		t.Fatalf("got %v, want x and deep/y", back)
	}
	for i, want := range []string{"float32 [2]\n1 2\n", "bool []\nTrue\n"} {
		if err := held(back[i].Tensor, want); err != nil {
			t.Error(err)
		}
	}
	var one, two bytes.Buffer
	for _, w := range []*bytes.Buffer{&one, &two} {
		if err := WriteArchive(w, entries...); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same entries gave different bytes")
	}
	for _, names := range [][]string{{"x", "x"}, {""}} {
		var es []Entry
		for _, n := range names {
			es = append(es, Entry{n, x})
		}
		if err := WriteArchive(&one, es...); err == nil {
			t.Errorf("names %q: got no error", names)
		}
	}
	releaseAll(t, append(back, entries...))
	wantError(t, "released", WriteArchive(&one, Entry{"x", x}), tensor.ErrReleased, "x")
	wantError(t, "missing", second(ReadArchive(filepath.Join(t.TempDir(), "none"))), os.ErrNotExist, "none")
}

// archive builds a zip with one entry of the given method.
func archive(t testing.TB, method uint16, name string, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	w := ok(z.CreateHeader(&zip.FileHeader{Name: name, Method: method}))(t)
	ok(w.Write(data))(t)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func readAll(data []byte) error {
	a, err := NewArchive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	entries, err := a.ReadAll()
	for _, e := range entries {
		_ = e.Tensor.Release()
	}
	return err
}

func TestMalformedArchives(t *testing.T) {
	memorytest.Check(t)
	array := file("{'descr': '|u1', 'fortran_order': False, 'shape': (100,)}", make([]byte, 100)...)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		name := fmt.Sprintf("method %d", method)
		if err := readAll(archive(t, method, "x.npy", array)); err != nil {
			t.Fatalf("%s: the archive that the others are made of: %v", name, err)
		}
		wantError(t, name+", short", readAll(archive(t, method, "x.npy", array[:len(array)-1])), tensor.ErrCorrupt, "x: npy: got 99 bytes of data")
		wantError(t, name+", long", readAll(archive(t, method, "x.npy", append(array[:len(array):len(array)], 0))), tensor.ErrCorrupt, "behind the data")
		wantError(t, name+", no array", readAll(archive(t, method, "x.npy", []byte("text"))), tensor.ErrCorrupt, "")
	}
	stored := archive(t, zip.Store, "x.npy", array)
	flipped := slices.Clone(stored)
	flipped[bytes.Index(flipped, []byte("shape"))+100] ^= 1 // in the data
	wantError(t, "checksum", readAll(flipped), tensor.ErrCorrupt, "checksum")

	wantError(t, "no zip", readAll([]byte("no zip at all")), tensor.ErrCorrupt, "npy: read")
	wantError(t, "cut", readAll(stored[:len(stored)-10]), tensor.ErrCorrupt, "npy: read")
	wantError(t, "empty", readAll(nil), tensor.ErrCorrupt, "npy: read")

	two := bytes.ReplaceAll(twoEntries(t, array), []byte("y.npy"), []byte("x.npy"))
	wantError(t, "names twice", readAll(two), tensor.ErrCorrupt, `two arrays named "x"`)

	huge := slices.Clone(stored)
	at := bytes.LastIndex(huge, []byte("PK\x01\x02")) // sizes of the directory's entry
	copy(huge[at+20:], "\xff\xff\xff\x7f\xff\xff\xff\x7f")
	wantError(t, "sizes beyond the file", readAll(huge), tensor.ErrCorrupt, "more than the file's")

	method := slices.Clone(stored)
	method[at+10], method[8] = 99, 99
	wantError(t, "method", readAll(method), tensor.ErrUnsupported, "unsupported compression")

	if err := readAll(archive(t, zip.Store, "readme.txt", []byte("hello"))); err != nil {
		t.Errorf("an entry that is no array: got %v, want it left out", err)
	}
}

func twoEntries(t *testing.T, data []byte) []byte {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range []string{"x.npy", "y.npy"} {
		w := ok(z.CreateHeader(&zip.FileHeader{Name: name}))(t)
		ok(w.Write(data))(t)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestNumpyReadsWhatWeWrote asks numpy itself, where there is one.
func TestNumpyReadsWhatWeWrote(t *testing.T) {
	memorytest.Check(t)
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("archives that numpy wrote are not read: no python3 with numpy (pip install numpy)")
	}
	dir := t.TempDir()
	entries := []Entry{
		{"f16", ok(tensor.Of([]dtype.Float16{dtype.Float16FromFloat32(-0.5)}, 1))(t)},
		{"bf16", ok(tensor.Of([]dtype.BFloat16{dtype.BFloat16FromFloat32(3)}, 1))(t)},
		{"i64", ok(tensor.Of([]int64{1, -2, 3, -4}, 2, 2))(t)},
		{"bool", ok(tensor.Of([]bool{true, false}, 2))(t)},
		{"c64", ok(tensor.Of([]complex64{1 - 2i}))(t)},
		{"u4", ok(tensor.FromBytes(dtype.U4, shape.MustOf(2), []byte{0x8f}))(t)},
		{"empty", ok(tensor.New(dtype.F64, shape.MustOf(3, 0)))(t)},
	}
	defer releaseAll(t, entries)
	for _, e := range entries {
		if err := WriteFile(filepath.Join(dir, e.Name+".npy"), e.Tensor); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteArchiveFile(filepath.Join(dir, "all.npz"), entries...); err != nil {
		t.Fatal(err)
	}
	const script = `
import sys, numpy as np
d, names = sys.argv[1], sys.argv[2:]
z = np.load(d + "/all.npz")
assert z.files == names, z.files
for n in names:
    a, b = np.load(d + "/" + n + ".npy"), z[n]
    assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), n
    print(n, a.dtype, a.shape, a.reshape(-1).tolist())
`
	args := []string{"-c", script, dir}
	for _, e := range entries {
		args = append(args, e.Name)
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	want := strings.TrimLeft(`
f16 float16 (1,) [-0.5]
bf16 float32 (1,) [3.0]
i64 int64 (2, 2) [1, -2, 3, -4]
bool bool (2,) [True, False]
c64 complex64 () [(1-2j)]
u4 uint8 (2,) [15, 8]
empty float64 (3, 0) []
`, "\n")
	if err != nil || string(out) != want {
		t.Errorf("numpy: %v\n%swant\n%s", err, out, want)
	}
}
