package cuda_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// ok ends the program on an error, as the code of docs/cuda.md says.
func ok[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPage runs the code of docs/cuda.md.
func TestPage(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		ctx, d := context.Background(), r.devices[0]
		host := host(t, 1024, 0)
		ptx := drivertest.PTX

		// Ownership.
		s := ok(d.NewStream())
		defer s.Close()
		x := ok(tensor.To(ctx, host, d.Memory()))  // a copy; host stays as it is
		y := ok(s.Add(x, x))                       // borrowed: the sum is in fresh bytes
		z := ok(s.Add(y.Donate(), x))              // in y's bytes; the handle y is dead
		x.Release()                                // allowed before the device has read it
		back := ok(tensor.To(ctx, z.Reuse(), nil)) // waits until z is computed, and no longer
		defer back.Release()
		if got := ok(tensor.At[float32](back, 3)); got != 9 {
			t.Errorf("got %v, want 9", got)
		}

		// Streams.
		other := ok(d.NewStream())
		defer other.Close()
		p := ok(s.Zeros(dtype.F32, shape.MustOf(1024)))
		q := ok(other.Fill(p.Donate(), float32(1))) // other waits for s, on the device
		p = ok(s.Make(dtype.F32, shape.MustOf(1024)))
		err := s.Sync(ctx) // waits for s on the host, until ctx ends
		if err != nil {
			t.Error(err)
		}

		// Kernels.
		m := ok(d.Compile(ptx))
		f := ok(m.Function("bump")) // adds a number to each element
		err = s.Launch(f, cuda.Dim{X: 4}, cuda.Dim{X: 256}, 0, cuda.Out(q), cuda.Value(uint32(1)), cuda.Value(uint32(1024)))
		if err != nil {
			t.Error(err)
		}
		p.Release()
		q.Release()
		err = m.Close()
		if err != nil {
			t.Error(err)
		}

		// Memory.
		old := d.Memory().SetLimit(1 << 30) // of all tensors of the device, in requested bytes
		d.Arena().SetLimit(2 << 30)         // of the chunks that the arena obtains
		_, err = d.Arena().Alloc(2<<30, memory.IO)
		if !errors.Is(err, memory.ErrLimit) {
			t.Error(err)
		}
		freed := d.Arena().Trim() // unused chunks, back to the driver
		if d.Memory().SetLimit(old); freed < 0 || d.Memory().Stats().Total.Current != 0 {
			t.Errorf("got %d bytes freed and %+v", freed, d.Memory().Stats().Total)
		}
		d.Arena().SetLimit(0)
	})
}

// TestPageInPlace runs that about memory of other allocators.
func TestPageInPlace(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{})
	lib := must(newLibrary(r.Machine, 1))(t)
	t.Cleanup(func() { must(0, lib.close())(t) })
	ctx, d, call := context.Background(), r.devices[0], lib.call
	theirs := describeAt(dlpack.Device{Type: dlpack.CUDA}, uintptr(must(lib.place())(t)), 100)

	o := ok(share.NewOwner(share.OnDevice(d.Memory()), share.InPlace()))
	p := &pair{owner: o, consumer: ok(share.NewOwner())}
	p.attach(t)
	peer := p.out
	x := ok(dlpack.Import(theirs, call)) // a tensor of PyTorch
	err := peer.Offer(ctx, x)            // no copy
	x.Release()                          // PyTorch has the bytes back after the last lease
	if err != nil || o.State().Bytes.Copied > 0 || lib.deletions() > 0 {
		t.Errorf("got %v and %d bytes copied, want a tensor that is shared in place", err, o.State().Bytes.Copied)
	}
	ok(p.in.Receive(ctx)).Tensor.Release()
	eventually(t, "the tensor comes back", func() bool { return lib.deletions() == 1 })
	p.close(t)
}

// TestPageHasThisCode holds the code of docs/cuda.md to that of TestPage and of
// the example, line by line.
func TestPageHasThisCode(t *testing.T) {
	page := string(must(os.ReadFile("../docs/cuda.md"))(t))
	var lines []string
	for _, name := range []string{"page_test.go", "example_test.go"} {
		for line := range strings.Lines(string(must(os.ReadFile(name))(t))) {
			lines = append(lines, spaces.ReplaceAllString(strings.TrimSpace(line), " "))
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 4 {
		t.Fatalf("got %d blocks of code, want 4 or more", len(blocks))
	}
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			line = spaces.ReplaceAllString(strings.TrimSpace(line), " ")
			if line != "" && !slices.Contains(lines, line) {
				t.Errorf("docs/cuda.md has %q, which no test runs", line)
			}
		}
	}
}

var spaces = regexp.MustCompile(`\s+`)
