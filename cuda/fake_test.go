package cuda_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// rig is a machine and its open devices.
type rig struct {
	*fake.Machine
	c       *cuda.Driver
	devices []*cuda.Device
}

// newRig opens the devices of a machine for a test. At the end they must have
// no tensors and no streams, and the machine no objects and no reports.
func newRig(t testing.TB, cfg fake.Config) *rig {
	t.Helper()
	memorytest.Check(t)
	m := fake.New(cfg)
	fake.CheckLeaks(t, m)
	fake.CheckReports(t, m)
	c := must(cuda.New(m))(t)
	r := &rig{Machine: m, c: c}
	for i := range c.Len() {
		r.devices = append(r.devices, must(c.Device(i))(t))
	}
	t.Cleanup(func() {
		for _, d := range r.devices {
			closeSoon(t, d)
		}
	})
	return r
}

// closeSoon closes a device. Arenas of other processes may be about to be
// unmapped.
func closeSoon(t testing.TB, d *cuda.Device) {
	t.Helper()
	err := d.Close()
	for until := time.Now().Add(5 * time.Second); errors.Is(err, memory.ErrShared) && time.Now().Before(until); err = d.Close() {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

func (r *rig) stream(t testing.TB, device int) *cuda.Stream {
	t.Helper()
	s := must(r.devices[device].NewStream())(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// calls counts the driver's calls that f makes.
func (r *rig) calls(f func()) int {
	before := r.CallCount()
	f()
	return r.CallCount() - before
}

// synchronising counts the calls that wait for a device; they are counted by
// machines only.
func (r *rig) synchronising() int {
	if r.Machine == nil {
		return 0
	}
	return r.Synchronising() - r.Calls()["MemHostAlloc"] // windows are made when they are first needed
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// host returns a tensor of n numbers from first on.
func host(t testing.TB, n int, first float32) *tensor.Tensor {
	t.Helper()
	data := make([]float32, n)
	for i := range data {
		data[i] = first + float32(i)
	}
	x := must(tensor.Of(data, n))(t)
	t.Cleanup(func() { _ = x.Release() })
	return x
}

var modes = map[string]fake.Mode{"eager": fake.Eager, "lazy": fake.Lazy, "random": fake.Random}

// onEach runs f with a machine in each mode and, where there is one, with the
// driver of this computer, whose rig has no Machine.
func onEach(t *testing.T, cfg fake.Config, f func(*testing.T, *rig)) {
	for name, mode := range modes {
		cfg.Mode = mode
		t.Run(name, func(t *testing.T) { f(t, newRig(t, cfg)) })
	}
	t.Run("real", func(t *testing.T) { f(t, realRig(t, max(cfg.Devices, 1))) })
}

// realRig opens the devices of the computer, or skips the test.
func realRig(t testing.TB, devices int) *rig {
	t.Helper()
	c, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	if c.Len() < devices {
		t.Skipf("got %d CUDA devices, want %d", c.Len(), devices)
	}
	memorytest.Check(t)
	r := &rig{c: c}
	for i := range devices {
		r.devices = append(r.devices, must(c.Device(i))(t))
	}
	t.Cleanup(func() {
		for _, d := range r.devices {
			closeSoon(t, d)
		}
	})
	return r
}

// eventually waits until something is the case that the device, or a deleter in
// C, brings about.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: did not happen", what)
			return
		}
		memory.Reclaim()
	}
}
