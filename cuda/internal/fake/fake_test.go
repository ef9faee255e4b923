package fake

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// want fails the test unless err is the result.
func want(t *testing.T, err error, r driver.Result) {
	t.Helper()
	if r == driver.Success && err == nil {
		return
	}
	if !errors.Is(err, r) {
		t.Fatalf("got %v, want result %d", err, uint32(r))
	}
}

// bench is a machine with a context on each device.
type bench struct {
	*Machine
	t   testing.TB
	ctx []driver.Context
}

// small is the granularity of tests.
const small = 4096

func start(t *testing.T, cfg Config) *bench {
	t.Helper()
	if cfg.Devices == 0 {
		cfg.Devices = 2
	}
	if cfg.Granularity == 0 {
		cfg.Granularity = small
	}
	b := &bench{Machine: New(cfg), t: t}
	want(t, b.Init(), driver.Success)
	for d := range cfg.Devices {
		b.ctx = append(b.ctx, b.context(driver.Device(d)))
	}
	return b
}

func (b *bench) context(d driver.Device) driver.Context {
	c, err := b.DevicePrimaryCtxRetain(d)
	b.ok(err)
	return c
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stream(c int, flags driver.StreamFlags) driver.Stream {
	b.t.Helper()
	s, err := b.StreamCreate(b.ctx[c], flags, 0)
	b.ok(err)
	return s
}

func (b *bench) event() driver.Event {
	b.t.Helper()
	e, err := b.EventCreate(b.ctx[0], driver.EventDefault)
	b.ok(err)
	return e
}

func (b *bench) alloc(c int, n uint64) driver.Pointer {
	b.t.Helper()
	p, err := b.MemAlloc(b.ctx[c], n)
	b.ok(err)
	return p
}

// put copies bytes to the device and get from there, both at once.
func (b *bench) put(c int, p driver.Pointer, v []byte) {
	b.t.Helper()
	b.ok(b.MemcpyHtoDAsync(b.ctx[c], p, address(v), uint64(len(v)), 1))
	b.ok(b.StreamSynchronize(b.ctx[c], 1))
}

func (b *bench) get(c int, p driver.Pointer, n int) []byte {
	b.t.Helper()
	v := make([]byte, n)
	b.ok(b.MemcpyDtoHAsync(b.ctx[c], address(v), p, uint64(n), 1))
	return v
}

// quiet fails the test if there are reports.
func (b *bench) quiet() {
	b.t.Helper()
	for _, r := range b.Reports() {
		b.t.Errorf("got report %s: %s", r.Kind, r.Text)
	}
}

// reported fails the test unless the reports are of the kinds.
func (b *bench) reported(kinds ...Kind) {
	b.t.Helper()
	all := b.TakeReports()
	if len(all) != len(kinds) {
		b.t.Fatalf("got reports %v, want %v", all, kinds)
	}
	for i, r := range all {
		if r.Kind != kinds[i] {
			b.t.Errorf("got report %s (%s), want %s", r.Kind, r.Text, kinds[i])
		}
	}
}

// address returns the address of bytes, which stay where they are: what a
// package variable refers to is not on a stack.
func address(b []byte) uintptr {
	escaped.Store(&b)
	return uintptr(unsafe.Pointer(&b[0]))
}

var escaped atomic.Pointer[[]byte]

// everyMode runs a test in each mode, the random one with several seeds.
func everyMode(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("eager", func(t *testing.T) { f(t, Config{Mode: Eager}) })
	t.Run("lazy", func(t *testing.T) { f(t, Config{Mode: Lazy}) })
	t.Run("random", func(t *testing.T) {
		for seed := range uint64(20) {
			f(t, Config{Mode: Random, Seed: seed})
		}
	})
}

func TestRoundTrip(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		p, q := b.alloc(0, 1000), b.alloc(0, 1000)
		in := bytes.Repeat([]byte("0123456789"), 100)
		b.put(0, p, in)
		b.ok(b.MemcpyDtoDAsync(b.ctx[0], q, p, 1000, driver.LegacyStream))
		if got := b.get(0, q, 1000); !bytes.Equal(got, in) {
			t.Error("the bytes differ after a round trip")
		}
		b.ok(b.MemsetD32Async(b.ctx[0], q, 0x04030201, 250, driver.LegacyStream))
		if got := b.get(0, q, 8); !bytes.Equal(got, []byte{1, 2, 3, 4, 1, 2, 3, 4}) {
			t.Errorf("got % x", got)
		}
		b.ok(b.MemsetD8Async(b.ctx[0], q+1, 9, 3, driver.LegacyStream))
		if got := b.get(0, q, 5); !bytes.Equal(got, []byte{1, 9, 9, 9, 1}) {
			t.Errorf("got % x", got)
		}
		b.ok(b.MemFree(b.ctx[0], p))
		b.ok(b.MemFree(b.ctx[0], q))
	})
}
