package cuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Info of a device that is not open is that of the open one, and takes no
// context.
func TestInfoWithoutOpening(t *testing.T) {
	m := fake.New(fake.Config{Devices: 2, Fail: failing("PrimaryCtxRetain", driver.DeviceUnavailable)})
	c := must(cuda.New(m))(t)
	for i := range 2 {
		if info := must(c.Info(i))(t); info.Name == "" || info.Bytes == 0 || info.Major == 0 {
			t.Errorf("device %d: got %+v", i, info)
		}
	}
	if _, err := c.Device(0); err == nil || !strings.Contains(err.Error(), "exclusive") {
		t.Errorf("open: got %v, want the reason", err)
	}
	for _, i := range []int{-1, 2} {
		if _, err := c.Info(i); err == nil || !strings.Contains(err.Error(), "want it below 2") {
			t.Errorf("device %d: got %v, want the range", i, err)
		}
	}
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		if open, closed := r.devices[0].Info(), must(r.c.Info(0))(t); open != closed {
			t.Errorf("got %+v, want %+v", closed, open)
		}
	})
}

func TestFree(t *testing.T) {
	r := newRig(t, fake.Config{Bytes: 64 << 20})
	d := r.devices[0]
	before := must(d.Free())(t)
	x := must(tensor.To(context.Background(), host(t, 4<<20, 0), d.Memory()))(t)
	if n := before - must(d.Free())(t); n < 16<<20 {
		t.Errorf("got %d bytes less for a tensor of 16 MiB", n)
	}
	x.Release()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Free(); !errors.Is(err, memory.ErrReleased) {
		t.Errorf("after close: got %v, want ErrReleased", err)
	}
}
