package cuda_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

func TestOpenWithoutDevice(t *testing.T) {
	for _, c := range []struct {
		cfg  fake.Config
		want string
	}{
		{fake.Config{Devices: -1}, "no CUDA device"},
		{fake.Config{Version: 11030}, "got driver 11.3 in "},
		{fake.Config{Fail: failing("Init", driver.SystemNotReady)}, "fabric manager"},
		{fake.Config{Fail: failing("Init", driver.SystemDriverMismatch)}, "restart the machine"},
	} {
		_, err := cuda.New(fake.New(c.cfg))
		if !errors.Is(err, cuda.ErrNone) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: got %v, want one line with %q", c.cfg, err, c.want)
		}
	}
}

// failing makes the calls of one name fail.
func failing(call string, r driver.Result) func(string, int) driver.Result {
	return func(name string, _ int) driver.Result {
		if strings.Contains(name, call) {
			return r
		}
		return driver.Success
	}
}

func TestUploadAndDownload(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for _, n := range []int{0, 1, 1000, 1 << 18, 1<<18 + 7, 3<<18 + 5} {
			x := host(t, n, 1)
			want := must(tensor.Values[float32](x))(t)
			transfer := func(x tensor.Operand) *tensor.Tensor {
				far := must(tensor.To(ctx, x, r.devices[0].Memory()))(t)
				return must(tensor.To(ctx, far.Reuse(), nil))(t)
			}
			for range 4 { // windows and chunks are made once
				transfer(x).Release()
			}
			before := r.synchronising()
			back := transfer(x.Reuse()) // its bytes are free when the call returns
			if got := must(tensor.Values[float32](back))(t); !slices.Equal(got, want) {
				t.Errorf("got %d numbers that differ from those sent", len(got))
			}
			back.Release()
			if n := r.synchronising() - before; n != 0 {
				t.Errorf("got %d synchronising calls, want none", n)
			}
		}
	})
}

func TestToAnotherDevice(t *testing.T) {
	onEach(t, fake.Config{Devices: 2}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		x := host(t, 5000, 1)
		there := must(tensor.To(ctx, x, r.devices[0].Memory()))(t)
		second := must(tensor.To(ctx, there.Reuse(), r.devices[1].Memory()))(t)
		if second.Device() != r.devices[1].Memory() {
			t.Errorf("got it on %s", second.Device())
		}
		back := must(tensor.To(ctx, second.Reuse(), nil))(t)
		if got, want := must(tensor.Values[float32](back))(t), must(tensor.Values[float32](x))(t); !slices.Equal(got, want) {
			t.Error("the numbers differ")
		}
		back.Release()
	})
}

// A tensor that is released at once, whose bytes another stream gets, is not
// overwritten before its reader has run.
func TestReuseAcrossStreams(t *testing.T) {
	for seed := range uint64(30) {
		r := newRig(t, fake.Config{Mode: fake.Random, Seed: seed})
		a, b := r.stream(t, 0), r.stream(t, 0)
		ctx := context.Background()
		sh := host(t, 4096, 1)
		x := must(tensor.To(ctx, sh, r.devices[0].Memory()))(t)
		y := must(a.Copy(x))(t)
		x.Release()
		z := must(b.Zeros(sh.DType(), sh.Shape()))(t) // takes the bytes of x
		for _, c := range []struct {
			x    *tensor.Tensor
			want float32
		}{{y, 4096}, {z, 0}} {
			back := must(tensor.To(ctx, c.x.Reuse(), nil))(t)
			if got := must(tensor.At[float32](back, 4095))(t); got != c.want {
				t.Errorf("seed %d: got %v, want %v", seed, got, c.want)
			}
			back.Release()
		}
	}
}

func TestCachedAllocationMakesNoCall(t *testing.T) {
	r := newRig(t, fake.Config{})
	s := r.stream(t, 0)
	x := host(t, 1000, 0)
	must(s.Make(x.DType(), x.Shape()))(t).Release()
	n := r.calls(func() {
		for range 100 {
			must(s.Make(x.DType(), x.Shape()))(t).Release()
		}
	})
	if n != 0 {
		t.Errorf("got %d calls of the driver, want none", n)
	}
}

func TestDonationAcrossStreams(t *testing.T) {
	r := newRig(t, fake.Config{Mode: fake.Lazy})
	a, b := r.stream(t, 0), r.stream(t, 0)
	h := host(t, 1000, 0)
	x := must(a.Zeros(h.DType(), h.Shape()))(t)
	x = must(a.Fill(x.Donate(), uint32(0)))(t) // compiles the kernel
	n := r.calls(func() { x = must(b.Fill(x.Donate(), uint32(0)))(t) })
	if n != 3 { // an event, a wait, and the work
		t.Errorf("got %d calls for a donation and its work, want 3", n)
	}
	n = r.calls(func() { x = must(b.Fill(x.Donate(), uint32(0)))(t) })
	if n != 1 {
		t.Errorf("got %d calls on the same stream, want 1", n)
	}
	x.Release()
}

func TestOutOfMemory(t *testing.T) {
	r := newRig(t, fake.Config{Mode: fake.Lazy, Bytes: 64 << 20})
	s := r.stream(t, 0)
	big := host(t, 4<<20, 0) // 16 MiB
	var held []*tensor.Tensor
	for range 4 {
		x, err := s.Zeros(big.DType(), big.Shape())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, x)
	}
	_, err := s.Make(big.DType(), big.Shape())
	if !errors.Is(err, memory.ErrLimit) || !strings.Contains(err.Error(), "cuMemCreate") {
		t.Errorf("got %v, want ErrLimit and the call", err)
	}
	for _, x := range held {
		x.Release()
	}
	// The bytes are kept in chunks of 16 MiB, busy on the device; a request of
	// another size takes them back.
	half := host(t, 8<<20, 0)
	x := must(s.Zeros(half.DType(), half.Shape()))(t)
	x.Release()
	if f := r.devices[0].Memory().Stats().Total; f.Current != 0 {
		t.Errorf("got %d bytes in use, want none", f.Current)
	}
	must(0, s.Sync(context.Background()))(t)
	if n := r.devices[0].Arena().Trim(); n == 0 {
		t.Error("trim gave nothing back")
	}
	if st := r.devices[0].Arena().Stats(); st.Chunks != 0 || st.Bytes != 0 || st.Kept != 0 || st.Blocks != 0 {
		t.Errorf("got %+v after trim, want nothing", st)
	}
}

func TestArenaLimit(t *testing.T) {
	r := newRig(t, fake.Config{})
	a := r.devices[0].Arena()
	a.SetLimit(10 << 20)
	b, err := a.Alloc(9<<20, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Alloc(4<<20, memory.IO); !errors.Is(err, memory.ErrLimit) || !strings.Contains(err.Error(), "limit of 10485760") {
		t.Errorf("got %v, want the arena's limit", err)
	}
	b.Release()
	b, err = a.Alloc(4<<20, memory.IO) // the unused chunk goes
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
}

func TestSyncEndsWithContext(t *testing.T) {
	r := newRig(t, fake.Config{Mode: fake.Lazy, Queries: 1 << 30})
	s := r.stream(t, 0)
	h := host(t, 10, 0)
	x := must(s.Zeros(h.DType(), h.Shape()))(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := tensor.To(ctx, x, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("download: got %v, want the context's error", err)
	}
	x.Release()
}

func TestCloseWithTensors(t *testing.T) {
	r := newRig(t, fake.Config{})
	s := must(r.devices[0].NewStream())(t)
	if err := r.devices[0].Close(); !errors.Is(err, memory.ErrShared) || !strings.Contains(err.Error(), "1 streams") {
		t.Errorf("close with a stream: got %v", err)
	}
	h := host(t, 10, 0)
	x := must(s.Zeros(h.DType(), h.Shape()))(t)
	must(0, s.Close())(t)
	if err := s.Close(); !errors.Is(err, memory.ErrReleased) {
		t.Errorf("second close: got %v", err)
	}
	if _, err := s.Zeros(h.DType(), h.Shape()); !errors.Is(err, memory.ErrReleased) {
		t.Errorf("work on a closed stream: got %v", err)
	}
	if err := r.devices[0].Close(); !errors.Is(err, memory.ErrShared) || !strings.Contains(err.Error(), "1 buffers") {
		t.Errorf("close with a tensor: got %v", err)
	}
	if err := r.devices[0].Main().Close(); !errors.Is(err, memory.ErrShared) {
		t.Errorf("close of the main stream: got %v", err)
	}
	x.Release()
}

func TestLostDevice(t *testing.T) {
	gone := false
	r := newRig(t, fake.Config{Fail: func(call string, n int) driver.Result {
		if gone {
			return driver.Unknown
		}
		return driver.Success
	}})
	h := host(t, 10, 0)
	s := r.stream(t, 0)
	x := must(s.Zeros(h.DType(), h.Shape()))(t)
	gone = true
	_, err := tensor.To(context.Background(), x, nil)
	if !errors.Is(err, cuda.ErrLost) || !strings.Contains(err.Error(), "CUDA_ERROR_UNKNOWN") {
		t.Errorf("got %v, want ErrLost with the call's error", err)
	}
	gone = false
	x.Release()
}
