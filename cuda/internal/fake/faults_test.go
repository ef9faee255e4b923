package fake

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/internal/invariant"
)

// TestFailures: a call that fails on purpose has no effect.
func TestFailures(t *testing.T) {
	var failing string
	b := start(t, Config{Mode: Eager, Fail: func(call string, n int) driver.Result {
		if call == failing {
			return driver.OutOfMemory
		}
		return driver.Success
	}})
	p := b.alloc(0, 8)
	s := b.stream(0, driver.StreamDefault)
	live := b.Live()
	for call, f := range map[string]func() error{
		"MemAlloc":      func() error { return second(b.MemAlloc(b.ctx[0], 8)) },
		"StreamCreate":  func() error { return second(b.StreamCreate(b.ctx[0], 0, 0)) },
		"StreamDestroy": func() error { return b.StreamDestroy(b.ctx[0], s) },
		"MemFree":       func() error { return b.MemFree(b.ctx[0], p) },
		"MemCreate":     func() error { return second(b.MemCreate(small, driver.AllocationProp{})) },
	} {
		failing = call
		want(t, f(), driver.OutOfMemory)
	}
	if now := b.Live(); strings.Join(now, ",") != strings.Join(live, ",") {
		t.Errorf("got %v after failures, want %v", now, live)
	}
	if c := b.Calls(); c["MemAlloc"] != 2 || c["MemFree"] != 1 {
		t.Errorf("got the counts %v", c)
	}
	b.ResetCalls()
	if len(b.Calls()) != 0 || b.Synchronising() != 0 {
		t.Error("the counts are not zero")
	}
}

func TestFailRate(t *testing.T) {
	failed := func(seed uint64) (n int) {
		m := New(Config{Seed: seed, FailRate: 0.3, Granularity: small})
		for m.Init() != nil {
		}
		for range 1000 {
			_, err := m.MemCreate(small, driver.AllocationProp{})
			if err != nil && !errors.Is(err, driver.OutOfMemory) && !errors.Is(err, driver.NotPermitted) {
				t.Errorf("got %v, which is not documented", err)
			}
			if errors.Is(err, driver.NotPermitted) {
				n++
			}
		}
		return n
	}
	if n := failed(1); n < 100 || n > 200 || n != failed(1) {
		t.Errorf("got %d and %d failures of one kind in 1000 calls, want about 150, twice the same", n, failed(1))
	}
}

func TestVanish(t *testing.T) {
	b := start(t, Config{Mode: Lazy, VanishAt: 8})
	p := b.alloc(0, 8)
	s := b.stream(0, driver.StreamDefault)
	var err error
	for n := b.CallCount(); n < 8 && err == nil; n++ {
		err = b.MemsetD8Async(b.ctx[0], p, 1, 8, s)
	}
	want(t, err, driver.DeviceUnavailable)
	want(t, b.CtxSynchronize(b.ctx[0]), driver.DeviceUnavailable)
	_, err = b.DeviceGetCount()
	want(t, err, driver.DeviceUnavailable)
	want(t, b.DevicePrimaryCtxRelease(0), driver.DeviceUnavailable)
	if b.peek(p) != 0 {
		t.Error("work ran on a device that is gone")
	}
}

// TestExit: work goes on for a while after the end.
func TestExit(t *testing.T) {
	b := start(t, Config{SlowExit: 50 * time.Millisecond, Choose: func(n int) int { return n - 1 }})
	p := b.alloc(0, 8)
	b.ok(b.MemsetD8Async(b.ctx[0], p, 1, 8, b.stream(0, driver.StreamNonBlocking)))
	before := time.Now()
	over := b.Exit()
	want(t, b.CtxSynchronize(b.ctx[0]), driver.Deinitialized)
	<-over
	if d := time.Since(before); d < 50*time.Millisecond {
		t.Errorf("all was over after %v", d)
	}
	<-b.Exit()
}

// recorder is a test that notes its errors and runs its cleanups when told to.
type recorder struct {
	testing.TB
	errors   int
	cleanups []func()
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) finish() int {
	for _, f := range r.cleanups {
		f()
	}
	return r.errors
}

// TestCheckLeaks: each kind of object is found.
func TestCheckLeaks(t *testing.T) {
	everything := map[string]func(b *bench){
		"nothing":     func(*bench) {},
		"stream":      func(b *bench) { b.stream(0, driver.StreamDefault) },
		"event":       func(b *bench) { b.event() },
		"allocation":  func(b *bench) { b.alloc(0, 8) },
		"managed":     func(b *bench) { b.ok(second(b.MemAllocManaged(b.ctx[0], 8))) },
		"pool":        func(b *bench) { b.ok(second(b.MemAllocAsync(b.ctx[0], 8, 1))) },
		"page-locked": func(b *bench) { b.ok(second(b.MemHostAlloc(b.ctx[0], 8))) },
		"reservation": func(b *bench) { b.ok(second(b.MemAddressReserve(small, 0))) },
		"handle":      func(b *bench) { b.ok(second(b.MemCreate(small, driver.AllocationProp{}))) },
		"module": func(b *bench) {
			_, _, err := b.ModuleLoadData(b.ctx[0], drivertest.PTX)
			b.ok(err)
		},
	}
	for name, leak := range everything {
		for _, release := range []bool{true, false} {
			b := start(t, Config{Mode: Eager, Devices: 1})
			r := &recorder{}
			CheckLeaks(r, b.Machine)
			leak(b)
			wanted := 1
			if release { // the objects are lost with their context
				b.ok(b.DevicePrimaryCtxRelease(0))
				wanted = 0
			}
			if name != "nothing" {
				wanted++
			}
			if got := r.finish(); got != wanted {
				t.Errorf("%s, context released %v: got %d leaks, want %d: %v", name, release, got, wanted, b.Live())
			}
			if l := b.Live(); invariant.Enabled && len(l) > 0 && !strings.Contains(l[0], "_test.go:") {
				t.Errorf("%s: got %q, want the place where it was made", name, l[0])
			}
		}
	}
}
