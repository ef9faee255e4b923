package cuda_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// exchange is a device that two libraries use: this package with two streams,
// and a foreign one.
type exchange struct {
	t    testing.TB
	m    *fake.Machine
	d    *cuda.Device
	a, b *cuda.Stream
	f    *foreign
}

const exchanged = 64 // numbers of a tensor

// withForeign runs f on a machine and returns what it says is wrong. With skip
// the driver forgets that wait.
func withForeign(t testing.TB, cfg fake.Config, skip int64, f func(*exchange) string) (fault string, waits int64) {
	t.Helper()
	cfg.NoRaces, cfg.Granularity = true, 4096
	m := fake.New(cfg)
	w := &counted{kind: anyStream, skip: skip}
	drv := &skipping{Driver: m, counted: w}
	c := must(cuda.New(drv))(t)
	x := &exchange{t: t, m: m, d: must(c.Device(0))(t)}
	x.a, x.b = must(x.d.NewStream())(t), must(x.d.NewStream())(t)
	x.f = newForeign(t, m, drv, 0)
	fault = f(x)
	must(0, x.a.Close())(t)
	must(0, x.b.Close())(t)
	must(0, x.d.Close())(t)
	x.f.end()
	for _, r := range m.Reports() {
		if fault == "" {
			fault = r.String()
		}
	}
	if live := m.Live(); len(live) > 0 {
		t.Errorf("left behind: %s", strings.Join(live, "; "))
	}
	return fault, w.made[anyStream].Load()
}

// filled returns n times v on the device, written on s.
func (x *exchange) filled(s *cuda.Stream, v uint32) *tensor.Tensor {
	x.t.Helper()
	h := must(tensor.Full(v, exchanged))(x.t)
	defer h.Release()
	y := must(tensor.To(x.t.Context(), h, x.d.Memory()))(x.t)
	defer y.Release()
	return must(s.Copy(y))(x.t)
}

// at returns where the first number of an export is.
func at(m *dlpack.DLManagedTensorVersioned) driver.Pointer { return driver.Pointer(m.Tensor.Data) }

// exchanges are ways to exchange a tensor. Each says what is wrong with the
// numbers that somebody sees, and needs at least one wait of a stream.
var exchanges = map[string]func(*exchange) string{
	"export": func(x *exchange) string {
		y := x.filled(x.a, 7)
		m := must(dlpack.ExportOn(y, dlpack.Stream(x.f.stream)))(x.t)
		got := x.f.read(at(m), exchanged, x.f.stream)
		x.f.sync()
		m.Delete(nil)
		y.Release()
		return wantNumbers(got, 7)
	},
	"export to the default stream": func(x *exchange) string {
		y := x.filled(x.a, 7)
		m := must(dlpack.Export(y))(x.t)
		got := x.f.read(at(m), exchanged, driver.LegacyStream)
		x.f.sync()
		m.Delete(nil)
		y.Release()
		return wantNumbers(got, 7)
	},
	"read after the deleter": func(x *exchange) string {
		y := x.filled(x.a, 7)
		m := must(dlpack.ExportOn(y, dlpack.Stream(x.f.stream)))(x.t)
		got := x.f.read(at(m), exchanged, x.f.stream)
		m.Delete(nil)
		must(0, x.a.Wait(x.b))(x.t)
		y = must(x.a.Fill(y.Donate(), uint32(0)))(x.t) // in the same bytes
		x.f.sync()
		y.Release()
		return wantNumbers(got, 7)
	},
	"reuse after the release": func(x *exchange) string {
		y := x.filled(x.a, 7)
		m := must(dlpack.ExportOn(y, dlpack.Stream(x.f.stream)))(x.t)
		y.Release()
		got := x.f.read(at(m), exchanged, x.f.stream)
		m.Delete(nil)
		z := must(x.b.Zeros(dtype.U32, shape.MustOf(exchanged)))(x.t)
		x.f.sync()
		z.Release()
		return wantNumbers(got, 7)
	},
	"write": func(x *exchange) string {
		y := x.filled(x.a, 7)
		m := must(dlpack.Request{MaxVersion: &dlpack.Version{Major: 1, Minor: 3}, Writable: true, Stream: new(dlpack.Stream(x.f.stream))}.Export(y))(x.t).Versioned
		x.f.write(at(m), 9, exchanged, x.f.stream)
		m.Delete(nil)
		r := must(x.a.Copy(y))(x.t) // waits for the library, and b through it
		s := must(x.b.Copy(y))(x.t)
		fault := wantNumbers(numbers(x.t, s), 9) + wantNumbers(numbers(x.t, r), 9)
		r.Release()
		s.Release()
		y.Release()
		return fault
	},
	"import": func(x *exchange) string {
		on := dlpack.Stream(x.b.Handle())
		y := must(dlpack.Import(x.f.lend(5, exchanged, on), x.f.call, dlpack.ReadyOn(on)))(x.t)
		r := must(x.a.Copy(y))(x.t)
		y.Release()
		defer r.Release()
		return wantNumbers(numbers(x.t, r), 5)
	},
	"import on the current stream": func(x *exchange) string {
		on := must(dlpack.StreamFor(dlpack.Device{Type: dlpack.CUDA}))(x.t)
		y := must(dlpack.Import(x.f.lend(5, exchanged, on), x.f.call, dlpack.ReadyOnCurrent()))(x.t)
		defer y.Release()
		r := must(x.a.Copy(y))(x.t)
		defer r.Release()
		return wantNumbers(numbers(x.t, r), 5)
	},
	"import on the library's stream": func(x *exchange) string {
		on := dlpack.Stream(x.f.stream)
		y := must(dlpack.Import(x.f.lend(5, exchanged, on), x.f.call, dlpack.ReadyOn(on)))(x.t)
		defer y.Release()
		r := must(x.a.Copy(y))(x.t)
		defer r.Release()
		return wantNumbers(numbers(x.t, r), 5)
	},
	"import without a stream": func(x *exchange) string {
		y := must(dlpack.Import(x.f.lend(5, exchanged, dlpack.NoSync), x.f.call))(x.t)
		defer y.Release()
		r := must(x.a.Copy(y))(x.t)
		defer r.Release()
		return wantNumbers(numbers(x.t, r), 5)
	},
	"import and export": func(x *exchange) string {
		on := dlpack.Stream(x.a.Handle())
		y := must(dlpack.Import(x.f.lend(5, exchanged, on), x.f.call, dlpack.ReadyOn(on)))(x.t)
		other := newForeign(x.t, x.m, x.f.d, 0)
		defer other.end()
		m := must(dlpack.ExportOn(y, dlpack.Stream(other.stream)))(x.t)
		y.Release()
		got := other.read(at(m), exchanged, other.stream)
		m.Delete(nil)
		memory.Reclaim()
		other.sync()
		return wantNumbers(got, 5)
	},
}

// TestExchangeOrder: everybody sees the bytes that were written before the
// exchange, and a driver that forgets the wait is noticed.
func TestExchangeOrder(t *testing.T) {
	for name, f := range exchanges {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			found, most := 0, int64(0)
			for seed := range uint64(10) {
				for _, cfg := range []fake.Config{{Seed: seed}, {Seed: seed, Version: 12020}, {Seed: seed, Mode: fake.Lazy}} {
					fault, waits := withForeign(t, cfg, 0, f)
					if fault != "" {
						t.Fatalf("%+v: %s", cfg, fault)
					}
					most = max(most, waits)
				}
			}
			for seed := uint64(0); seed < 40 && found == 0; seed++ {
				for skip := range most {
					if fault, _ := withForeign(t, fake.Config{Seed: seed, Mode: fake.Mode(seed % 2 * uint64(fake.Lazy))}, skip+1, f); fault != "" {
						found++
					}
				}
			}
			if found == 0 {
				t.Errorf("none of %d forgotten waits in 40 runs was noticed", most)
			}
		})
	}
}

// TestLoanEnds: the deleter of an import runs when the work on it is complete,
// and no release waits for that.
func TestLoanEnds(t *testing.T) {
	memorytest.Check(t)
	for _, used := range []bool{false, true} {
		fault, _ := withForeign(t, fake.Config{Mode: fake.Lazy, Queries: 1 << 30}, 0, func(x *exchange) string {
			on := dlpack.Stream(x.a.Handle())
			y := must(dlpack.Import(x.f.lend(5, exchanged, on), x.f.call, dlpack.ReadyOn(on)))(t)
			x.f.wantDeleted(0)
			if !used {
				y.Release()
				x.f.wantDeleted(1) // nothing of this package has used it
				return ""
			}
			r := must(x.b.Copy(y))(t)
			before := x.m.Synchronising()
			y.Release()
			time.Sleep(20 * time.Millisecond)
			x.f.wantDeleted(0) // the copy has not run
			if n := x.m.Synchronising() - before; n != 0 {
				t.Errorf("got %d synchronising calls, want none", n)
			}
			if err := x.d.Close(); !errors.Is(err, memory.ErrShared) { // completes the work
				t.Errorf("close with a tensor: got %v, want ErrShared", err)
			}
			x.f.wantDeleted(1)
			r.Release()
			return ""
		})
		if fault != "" {
			t.Error(fault)
		}
	}
}

// TestLaterWorkCounts: an answer about the whole device that was asked for one
// block says nothing about foreign work on another that was submitted later.
func TestLaterWorkCounts(t *testing.T) {
	memorytest.Check(t)
	fault, _ := withForeign(t, fake.Config{Mode: fake.Lazy, Queries: 2}, 0, func(x *exchange) string {
		var got [2][]uint32
		var others [2]*foreign // which read on streams of their own
		for i, v := range []uint32{3, 4} {
			on := dlpack.Stream(x.a.Handle())
			y := must(dlpack.Import(x.f.lend(v, exchanged, on), x.f.call, dlpack.ReadyOn(on)))(t)
			others[i] = newForeign(t, x.m, x.f.d, 0)
			defer others[i].end()
			m := must(dlpack.ExportOn(y, dlpack.Stream(others[i].stream)))(t)
			got[i] = others[i].read(at(m), exchanged, others[i].stream)
			y.Release()
			m.Delete(nil) // asks, in the second round while the first question is open
			memory.Reclaim()
		}
		for range 50 {
			time.Sleep(time.Millisecond)
			x.d.Arena().Trim()
		}
		others[0].sync()
		others[1].sync()
		return wantNumbers(got[0], 3) + wantNumbers(got[1], 4)
	})
	if fault != "" {
		t.Error(fault)
	}
}

// TestExportCalls counts the driver's calls of exchanges.
func TestExportCalls(t *testing.T) {
	memorytest.Check(t)
	fault, _ := withForeign(t, fake.Config{Mode: fake.Eager, Queries: 1}, 0, func(x *exchange) string {
		y := x.filled(x.a, 7)
		on := dlpack.Stream(x.f.stream)
		export := func(to dlpack.Stream) {
			m, err := dlpack.ExportOn(y, to)
			if err != nil {
				t.Error(err)
			}
			m.Delete(nil)
		}
		count := func(what string, want int, f func()) {
			t.Helper()
			before := x.m.CallCount()
			f()
			if n := x.m.CallCount() - before; n != want {
				t.Errorf("%s: got %d calls of the driver, want %d", what, n, want)
			}
		}
		count("without a stream", 0, func() { export(dlpack.NoSync) })
		count("to the stream that wrote", 0, func() { export(dlpack.Stream(x.a.Handle())) })
		count("the first", 2, func() { export(on) }) // an event and a question
		for range 3 {
			export(on)
		}
		count("again", 0, func() { export(on) })
		if got := testing.AllocsPerRun(100, func() { export(on); export(dlpack.NoSync) }); got != 0 {
			t.Errorf("cached export: got %v allocations, want 0", got)
		}
		y.Release()
		return ""
	})
	if fault != "" {
		t.Error(fault)
	}
}

// TestImportRefuses: what the producer says and what the driver says differ.
func TestImportRefuses(t *testing.T) {
	memorytest.Check(t)
	r := newRig(t, fake.Config{Devices: 2})
	f := newForeign(t, r.Machine, r.Machine, 0)
	defer f.end()
	p := must(r.MemAlloc(f.ctx, foreignBytes))(t)
	defer func() { must(0, r.MemFree(f.ctx, p))(t) }()
	managed := must(r.MemAllocManaged(f.ctx, foreignBytes))(t)
	defer func() { must(0, r.MemFree(f.ctx, managed))(t) }()
	locked := must(r.MemHostAlloc(f.ctx, foreignBytes))(t)
	defer func() { must(0, r.MemFreeHost(f.ctx, locked))(t) }()
	on := func(id int32) dlpack.Device { return dlpack.Device{Type: dlpack.CUDA, ID: id} }
	unlikely := dlpack.Stream(0x7777)
	for _, c := range []struct {
		name  string
		place dlpack.Device
		at    uintptr
		n     int
		opts  []dlpack.ImportOption
		want  string
	}{
		{"right", on(0), uintptr(p), 8, nil, ""},
		{"managed memory", dlpack.Device{Type: dlpack.CUDAManaged}, uintptr(managed), 8, nil, ""},
		{"managed memory as the device's", on(0), uintptr(managed), 8, nil, ""},
		{"no elements", on(1), 0, 0, nil, ""},
		{"another device's", on(1), uintptr(p), 8, nil, "got memory of device 0 at address"},
		{"a device that is not open", on(2), uintptr(p), 8, nil, "on a device that is open (cuda 0, cuda 1)"},
		{"page-locked memory", on(0), locked, 8, nil, "got page-locked host memory"},
		{"not managed", dlpack.Device{Type: dlpack.CUDAManaged}, uintptr(p), 8, nil, "got memory that is not managed"},
		{"memory of nobody", on(0), 1 << 20, 8, nil, "got memory that the driver does not know"},
		{"beyond the end", on(0), uintptr(p), 1 << 28, nil, "got memory that the driver does not know"},
		{"the other device wanted", on(0), uintptr(p), 8, []dlpack.ImportOption{dlpack.OnDevice(r.devices[1].Memory())}, "want one on cuda:1"},
		{"no stream", on(0), uintptr(p), 8, []dlpack.ImportOption{dlpack.ReadyOn(unlikely)}, "stream 30583"},
	} {
		deleted := 0
		x, err := dlpack.Import(describeAt(c.place, c.at, c.n), func(_, _ uintptr) { deleted++ }, c.opts...)
		if c.want == "" {
			if err != nil || x.Device() != r.devices[c.place.ID].Memory() || must(dlpack.DeviceOf(x))(t) != c.place {
				t.Errorf("%s: got %v on %s", c.name, err, x.Device())
			}
			x.Release()
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if deleted != 1 {
			t.Errorf("%s: got %d calls of the deleter, want 1", c.name, deleted)
		}
	}
}

// TestExportFails: an export whose wait the driver refuses leaves none behind.
func TestExportFails(t *testing.T) {
	var on atomic.Bool
	r := newRig(t, fake.Config{Mode: fake.Lazy, Fail: func(call string, _ int) driver.Result {
		if on.Load() && strings.Contains(call, "StreamWaitEvent") {
			return driver.InvalidHandle
		}
		return driver.Success
	}})
	s := r.stream(t, 0)
	x := must(s.Zeros(dtype.F32, shape.MustOf(10)))(t)
	on.Store(true)
	for name, export := range map[string]func() error{
		"read":  func() error { _, err := dlpack.Export(x); return err },
		"write": func() error { _, err := dlpack.ExportWritable(x); return err },
	} {
		if err := export(); err == nil || !strings.Contains(err.Error(), "dlpack export: cuda: wait: cuda:0") || !x.IsExclusive() {
			t.Errorf("%s: got %v and exclusive %t, want an error and no export", name, err, x.IsExclusive())
		}
	}
	on.Store(false)
	x.Release()
}
