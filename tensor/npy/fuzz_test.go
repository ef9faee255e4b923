package npy

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// seed adds the files of testdata.
func seed(f *testing.F, pattern string) {
	paths, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("no files %s: %v", pattern, err)
	}
	for _, path := range paths {
		f.Add(ok(os.ReadFile(path))(f))
	}
}

// reread writes x, reads it back and compares.
func reread(t *testing.T, x *tensor.Tensor) {
	var buf bytes.Buffer
	if err := Write(&buf, x); err != nil {
		t.Fatal(err)
	}
	y, err := Read(&buf)
	if err != nil {
		t.Fatalf("what Write wrote: %v", err)
	}
	defer y.Release()
	got, _ := y.UnsafeBytes()
	want, _ := x.UnsafeBytes()
	if y.DType() != x.DType() || y.Shape() != x.Shape() || !bytes.Equal(got, want) {
		t.Errorf("got %s, want %s", y, x)
	}
}

// bounded runs f and checks that it took no more than most bytes of tensors at
// a time, and left none.
func bounded(t *testing.T, most int64, f func()) {
	memory.ResetPeak()
	before := memory.Stats()
	f()
	after := memory.Stats()
	if got := after.Total.Peak - before.Total.Current; got > most {
		t.Errorf("got a peak of %d bytes, want at most %d", got, most)
	}
	if after.Total.Current != before.Total.Current || after.Handles != before.Handles {
		t.Errorf("left behind: got %d bytes and %d handles more", after.Total.Current-before.Total.Current, after.Handles-before.Handles)
	}
}

func FuzzRead(f *testing.F) {
	seed(f, "*.npy")
	f.Fuzz(func(t *testing.T, data []byte) {
		bounded(t, 2*int64(len(data)), func() {
			streamed, err := Read(bytes.NewReader(data))
			if err == nil {
				_ = streamed.Release()
			}
			whole, wholeErr := readWhole(bytes.NewReader(data), int64(len(data)), read)
			if wholeErr == nil {
				_ = whole.Release()
				if err != nil {
					t.Errorf("read as a file, but not as a stream: %v", err)
				}
			}
		})
		if x, err := Read(bytes.NewReader(data)); err == nil {
			reread(t, x)
			_ = x.Release()
		}
	})
}

func FuzzReadArchive(f *testing.F) {
	seed(f, "*.npz")
	f.Add(archive(f, zip.Deflate, "x.npy", file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", make([]byte, 16)...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		const deflate = 1032 // the most that a byte of it can stand for
		bounded(t, 2*deflate*int64(len(data)), func() { _ = readAll(data) })
	})
}
