package fake

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
)

// kernel loads the kernel that adds 1, in the first context.
func (b *bench) kernel() (driver.Module, driver.Function) {
	b.t.Helper()
	m, log, err := b.ModuleLoadData(b.ctx[0], drivertest.PTX)
	if err != nil {
		b.t.Fatal(err, log)
	}
	f, err := b.ModuleGetFunction(b.ctx[0], m, "next")
	b.ok(err)
	return m, f
}

func word(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }

// add launches the kernel for n words.
func (b *bench) add(f driver.Function, dst, src driver.Pointer, n uint32, s driver.Stream) error {
	args := [][]byte{word(uint64(dst), 8), word(uint64(src), 8), word(uint64(n), 4)}
	err := b.LaunchKernel(b.ctx[0], f, driver.Dim3{X: (n + 31) / 32, Y: 1, Z: 1}, driver.Dim3{X: 32, Y: 1, Z: 1}, 0, s, args)
	for _, a := range args {
		clear(a) // the launch has copied them
	}
	return err
}

func TestKernel(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		_, f := b.kernel()
		p, q := b.alloc(0, 400), b.alloc(0, 400)
		var in, wanted []byte
		for i := range uint32(100) {
			in = binary.LittleEndian.AppendUint32(in, i*i)
			wanted = binary.LittleEndian.AppendUint32(wanted, i*i+2)
		}
		b.put(0, p, in)
		s, r := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
		e := b.event()
		b.ok(b.add(f, q, p, 100, s))
		b.ok(b.EventRecord(b.ctx[0], e, s))
		b.ok(b.StreamWaitEvent(b.ctx[0], r, e))
		b.ok(b.add(f, q, q, 100, r))
		b.ok(b.StreamSynchronize(b.ctx[0], r))
		if got := b.get(0, q, 400); !bytes.Equal(got, wanted) {
			t.Error("the kernel's result is wrong")
		}
	})
}

// TestKernelFaults: a fault of the kernel is an error of its context and a
// report.
func TestKernelFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		launch func(b *bench, f driver.Function, p driver.Pointer) error
		result driver.Result
		text   string
	}{
		{"out of bounds", func(b *bench, f driver.Function, p driver.Pointer) error { return b.add(f, p, p, 101, 1) }, driver.IllegalAddress, "no memory at"},
		{"null", func(b *bench, f driver.Function, p driver.Pointer) error { return b.add(f, 0, p, 1, 1) }, driver.IllegalAddress, "no memory at"},
		{"misaligned", func(b *bench, f driver.Function, p driver.Pointer) error { return b.add(f, p+2, p, 1, 1) }, driver.MisalignedAddress, "multiple of 4"},
		{"no peer access", func(b *bench, f driver.Function, p driver.Pointer) error {
			return b.add(f, b.alloc(1, 4), p, 1, 1)
		}, driver.IllegalAddress, "has no access"},
		{"freed", func(b *bench, f driver.Function, p driver.Pointer) error {
			err := b.MemFree(b.ctx[0], p)
			if err == nil {
				err = b.add(f, p, p, 1, 1)
			}
			return err
		}, driver.IllegalAddress, "no memory at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, Config{Mode: Lazy})
			_, f := b.kernel()
			p := b.alloc(0, 400)
			b.put(0, p, make([]byte, 400))
			b.ok(c.launch(b, f, p))
			want(t, b.CtxSynchronize(b.ctx[0]), c.result)
			if r := b.TakeReports(); len(r) != 1 || r[0].Kind != Fault || !strings.Contains(r[0].Text, c.text) {
				t.Errorf("got reports %v, want one with %q", r, c.text)
			}
		})
	}
}

func TestKernelReports(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	_, f := b.kernel()
	p, q := b.alloc(0, 400), b.alloc(0, 400)
	b.put(0, p, make([]byte, 396))
	b.ok(b.add(f, q, p, 100, 1))
	b.ok(b.CtxSynchronize(b.ctx[0]))
	b.reported(Unwritten)
	b.ok(b.add(f, p+4, p, 2, 1)) // the second thread reads what the first writes
	b.ok(b.CtxSynchronize(b.ctx[0]))
	b.reported(Race)
	// A kernel of another stream that does not wait.
	s := b.stream(0, driver.StreamNonBlocking)
	b.ok(b.add(f, q, q, 100, s))
	b.ok(b.add(f, q+4, q+4, 1, 1))
	b.ok(b.CtxSynchronize(b.ctx[0]))
	if r := b.TakeReports(); len(r) == 0 || r[0].Kind != Unordered {
		t.Errorf("got reports %v, want %s", r, Unordered)
	}
}

func TestModules(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	_, log, err := b.ModuleLoadData(b.ctx[0], "not PTX")
	want(t, err, driver.InvalidPTX)
	if log == "" {
		t.Error("got no log of the compiler")
	}
	m, f := b.kernel()
	_, err = b.ModuleGetFunction(b.ctx[0], m, "sub")
	want(t, err, driver.NotFound)
	_, err = b.ModuleGetFunction(b.ctx[1], m, "next")
	want(t, err, driver.InvalidHandle)
	if n, err := b.FuncGetAttribute(driver.FuncMaxThreadsPerBlock, f); n != 1024 || err != nil {
		t.Errorf("got %d threads, %v", n, err)
	}
	one := driver.Dim3{X: 1, Y: 1, Z: 1}
	args := [][]byte{word(0, 8), word(0, 8), word(0, 4)}
	for what, err := range map[string]error{
		"no blocks":          b.LaunchKernel(b.ctx[0], f, driver.Dim3{}, one, 0, 1, args),
		"too many threads":   b.LaunchKernel(b.ctx[0], f, one, driver.Dim3{X: 1025, Y: 1, Z: 1}, 0, 1, args),
		"too much memory":    b.LaunchKernel(b.ctx[0], f, one, one, 48<<10+1, 1, args),
		"too few arguments":  b.LaunchKernel(b.ctx[0], f, one, one, 0, 1, args[:2]),
		"an argument's size": b.LaunchKernel(b.ctx[0], f, one, one, 0, 1, [][]byte{args[0], args[0], args[0]}),
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
			continue
		}
		want(t, err, driver.InvalidValue)
	}
	want(t, b.LaunchKernel(b.ctx[1], f, one, one, 0, 1, args), driver.InvalidHandle)
	b.ok(b.ModuleUnload(b.ctx[0], m))
	want(t, b.ModuleUnload(b.ctx[0], m), driver.InvalidHandle)
	want(t, b.LaunchKernel(b.ctx[0], f, one, one, 0, 1, args), driver.InvalidHandle)
}
