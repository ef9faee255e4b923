package memory_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

func TestDeviceFigures(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	before := memory.Stats()
	b, err := d.Alloc(1000, memory.Weights)
	if err != nil {
		t.Fatal(err)
	}
	f := d.Stats()
	if f.Total.Current != 1000 || f.Of(memory.Weights).Current != 1000 || f.Of(memory.Weights).Buffers != 1 || f.Of(memory.Scratch).Current != 0 {
		t.Errorf("got figures %+v, want 1000 bytes of weights", f)
	}
	if now := memory.Stats(); now.Total != before.Total || now.System != before.System {
		t.Errorf("got host figures %+v, want %+v: bytes of a device are not the processor's", now.Total, before.Total)
	}
	if b.Device() != d.Device || b.Device().String() != "away:0" || b.Len() != 1000 || b.Bytes() != nil || b.Remote() == nil {
		t.Errorf("got device %s, %d bytes, %d for the processor, remote %v", b.Device(), b.Len(), len(b.Bytes()), b.Remote())
	}
	var shown struct {
		Devices map[string]struct {
			Total struct {
				Current int64 `json:"current"`
			} `json:"total"`
		} `json:"devices"`
	}
	if err := json.Unmarshal([]byte(memory.Var{}.String()), &shown); err != nil || shown.Devices["away:0"].Total.Current != 1000 {
		t.Errorf("got %+v (%v), want the device with 1000 bytes", shown, err)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if f := d.Stats(); f.Total.Current != 0 || f.Total.Peak != 1000 || b.Remote() != nil {
		t.Errorf("got %+v after the release, want none in use and a peak of 1000", f.Total)
	}
	if err := b.Release(); !errors.Is(err, memory.ErrReleased) {
		t.Errorf("second release: got %v, want ErrReleased", err)
	}
}

func TestDeviceLimit(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	if old := d.SetLimit(1500); old != 0 {
		t.Errorf("got an old limit of %d, want 0", old)
	}
	b, err := d.Alloc(1000, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if _, err := d.Alloc(501, memory.IO); !errors.Is(err, memory.ErrLimit) || !strings.Contains(err.Error(), "501 bytes for io on away:0: got 1000 in use, want at most the limit of 1500") {
		t.Errorf("got %v, want the limit with its figures", err)
	}
	host, err := memory.Alloc(5000, memory.IO) // not bounded by the device's limit
	if err != nil {
		t.Fatal(err)
	}
	host.Release()
}

func TestDeviceHandles(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	b, err := d.Alloc(64, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	h, err := b.IntoHandle()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Lock(); err != nil {
		t.Errorf("lock of an exclusive buffer: got %v", err)
	}
	h.Unlock()
	if err := b.Retain(); err != nil {
		t.Fatal(err)
	}
	if err := h.Lock(); !errors.Is(err, memory.ErrShared) {
		t.Errorf("lock with two holders: got %v, want ErrShared", err)
	}
	b.Release()
	if _, err := b.Resident(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("resident: got %v, want ErrUnsupported", err)
	}
	if err := b.Discard(0, 64); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("discard: got %v, want ErrUnsupported", err)
	}
	if err := d.Close(); !errors.Is(err, memory.ErrShared) {
		t.Errorf("close with a buffer: got %v, want ErrShared", err)
	}
	h.Release()
}

func TestDeviceMisuse(t *testing.T) {
	d := memorytest.NewDevice(t, "away:0")
	other := memorytest.NewDevice(t, "away:1")
	if _, err := memory.NewDevice("away:0", d); err == nil || !strings.Contains(err.Error(), "want a new one") {
		t.Errorf("two devices of one name: got %v", err)
	}
	if _, err := memory.NewDevice("", nil); err == nil {
		t.Error("no name: got a device")
	}
	for _, r := range []*memory.Remote{nil, {}, {Device: d.Device}, {Device: other.Device}} {
		if _, err := d.Own(r, 8, memory.IO); err == nil {
			t.Errorf("own %+v: got a buffer, want an error", r)
		}
		if _, err := d.Adopt(r, 8, 0); err == nil {
			t.Errorf("adopt %+v: got a buffer, want an error", r)
		}
	}
	if names := memory.Devices(); len(names) != 2 || names[0] != d.Device || names[1] != other.Device {
		t.Errorf("got devices %v, want away:0 and away:1", names)
	}
	var host *memory.Device
	if host.String() != "host" || host.Engine() != nil || host.Close() != nil || host.Stats().Total != memory.Stats().Total {
		t.Error("the nil device is not the processor's memory")
	}
	b, err := host.Source(memory.IO).Alloc(8)
	if err != nil || b.Device() != nil {
		t.Errorf("source of the host: got %v, %v", b.Device(), err)
	}
	b.Release()
}
