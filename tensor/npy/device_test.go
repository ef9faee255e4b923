package npy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// Every file has the same elements on a device as on the host, or fails in the
// same way.
func TestReadTo(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	paths := ok(filepath.Glob("testdata/*.npy"))(t)
	for _, path := range paths {
		data := ok(os.ReadFile(path))(t)
		x, want := ReadFile(path)
		for name, read := range map[string]func() (*tensor.Tensor, error){
			"file": func() (*tensor.Tensor, error) { return ReadFileTo(ctx, path, d.Device) },
			"stream": func() (*tensor.Tensor, error) {
				return ReadTo(ctx, iotest.OneByteReader(bytes.NewReader(data)), d.Device)
			},
			"host": func() (*tensor.Tensor, error) { return ReadFileTo(ctx, path, nil) },
		} {
			far, err := read()
			if (err == nil) != (want == nil) || err != nil && !strings.HasSuffix(want.Error(), err.Error()) && err.Error() != want.Error() {
				t.Errorf("%s, %s: got %v, want %v", path, name, err, want)
			}
			if err != nil {
				continue
			}
			if name != "host" && far.Device() != d.Device || !far.IsExclusive() || !far.Layout().IsContiguous() || far.DType() != x.DType() || far.Shape() != x.Shape() {
				t.Errorf("%s, %s: got %s on %s, want %s", path, name, far, far.Device(), x)
			}
			back := ok(tensor.To(ctx, far.Reuse(), nil))(t)
			got, _ := back.UnsafeBytes()
			elements, _ := x.UnsafeBytes()
			if !bytes.Equal(got, elements) {
				t.Errorf("%s, %s: got %s, want %s", path, name, back, x)
			}
			back.Release()
		}
		if want == nil {
			x.Release()
		}
	}
	if n := d.Stats().Total.Buffers; len(paths) < 10 || n != 0 {
		t.Errorf("got %d files and %d buffers on the device, want 10 or more, and none", len(paths), n)
	}
}

// Arrays of several windows are the same, and take the bytes that were
// documented, on the host and on the device.
func TestReadToThroughWindows(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	for _, n := range []int{window / 8, window/8 + 1, 5 * window / 8, 5*window/8 + 3} {
		data := make([]float64, n)
		for i := range data {
			data[i] = float64(i)
		}
		x := ok(tensor.Of(data, n))(t)
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := WriteFile(path, x); err != nil {
			t.Fatal(err)
		}
		x.Release()
		file := ok(os.ReadFile(path))(t)
		for name, c := range map[string]struct {
			most int64
			read func() (*tensor.Tensor, error)
		}{
			"file":   {int64(8 * n), func() (*tensor.Tensor, error) { return ReadFileTo(ctx, path, d.Device) }},
			"stream": {int64(8*n + max(8*n, window)), func() (*tensor.Tensor, error) { return ReadTo(ctx, bytes.NewReader(file), d.Device) }},
		} {
			memory.ResetPeak()
			d.ResetPeak()
			before := memory.Stats().Total.Peak
			far := ok(c.read())(t)
			if took := memory.Stats().Total.Peak - before; took != 0 {
				t.Errorf("%s of %d: got %d bytes of buffers on the host, want none", name, n, took)
			}
			if p := d.Stats().Total; p.Peak > c.most || p.Current != int64(8*n) {
				t.Errorf("%s of %d: got %d bytes at the peak and %d at the end, want at most %d, and %d", name, n, p.Peak, p.Current, c.most, 8*n)
			}
			back := ok(tensor.To(ctx, far.Reuse(), nil))(t)
			got := ok(tensor.Values[float64](back))(t)
			for i := range got {
				if got[i] != float64(i) {
					t.Fatalf("%s of %d: got %v as element %d", name, n, got[i], i)
				}
			}
			back.Release()
		}
	}
}

// A header that claims more than comes takes no more of the device than came,
// twice, or a window.
func TestReadToOfHostileHeader(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	head := file("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}")
	for _, came := range []int{0, 100, 3 * window} {
		d.ResetPeak()
		_, err := ReadTo(ctx, io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, came))), d.Device)
		wantError(t, "stream", err, tensor.ErrCorrupt, "bytes of data for f64[1099511627776], want 8796093022208")
		if p := d.Stats().Total.Peak; p > int64(3*max(came, window)) {
			t.Errorf("%d bytes came: got %d bytes on the device", came, p)
		}
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, head, 0o600); err != nil {
		t.Fatal(err)
	}
	d.ResetPeak()
	_, err := ReadFileTo(ctx, path, d.Device)
	wantError(t, "file", err, tensor.ErrCorrupt, "got 0 bytes of data")
	if p := d.Stats().Total.Peak; p != 0 {
		t.Errorf("got %d bytes on the device for a file without data, want none", p)
	}
}

func TestReadToFails(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	data := file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", make([]byte, 16)...)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := ReadTo(cancelled, bytes.NewReader(data), d.Device); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	lost := errors.New("lost")
	d.Fail(lost)
	if _, err := ReadTo(ctx, bytes.NewReader(data), d.Device); !errors.Is(err, lost) {
		t.Errorf("got %v, want the device's error", err)
	}
	d.Fail(nil)
	d.SetLimit(20)
	_, err := ReadTo(ctx, bytes.NewReader(data), d.Device)
	wantError(t, "limit", err, memory.ErrLimit, "want")
	d.SetLimit(0)
	if x, err := ReadTo(ctx, bytes.NewReader(append(data, 1)), d.Device); err != nil {
		t.Errorf("a stream that goes on: got %v", err)
	} else {
		x.Release()
	}
	if _, err := ReadTo(ctx, bytes.NewReader(data), &memory.Device{}); err == nil {
		t.Error("no device: got no error")
	}
}
