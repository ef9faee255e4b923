//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64)

package driver_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
)

// TestConformance runs the tests of all drivers on the library.
func TestConformance(t *testing.T) {
	s := newShim(t, "")
	d := s.open()
	if !strings.HasPrefix(d.Name(), "test driver ") {
		t.Errorf("got name %q, want it to say that this is no driver", d.Name())
	}
	drivertest.Run(t, d)
	if n := int32(s.call("shim_live")); n != 0 {
		t.Errorf("got %d objects that were not destroyed", n)
	}
}

// TestOldLookup binds the functions by the first cuGetProcAddress, whose driver
// lacks newer functions.
func TestOldLookup(t *testing.T) {
	s := newShim(t, "OLD_LOOKUP")
	s.call("shim_version", 11040)
	drivertest.Run(t, s.open())
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		name, macro string
		prepare     func(shim)
		want        string // %s is the path
	}{
		{"stub", "", func(s shim) { s.call("shim_stub", 1) }, "driver: %s is the toolkit's stub, for linking only; want the library of NVIDIA's driver"},
		{"old", "OLD_LOOKUP", func(s shim) { s.call("shim_version", 11030) }, "driver: %s lacks cuDeviceGetUuid: want CUDA 11.4 or newer (NVIDIA driver 470)"},
		{"older", "NO_LOOKUP", func(s shim) { s.call("shim_version", 11020) }, "driver: %s is too old: its version is CUDA 11.2, want CUDA 11.4 or newer (NVIDIA driver 470)"},
		{"missing", "", func(s shim) { s.hide("cuMemFree,cuCtxRecordEvent,cuLaunchKernel") }, "driver: %s lacks cuMemFree, cuLaunchKernel: want CUDA 11.4 or newer (NVIDIA driver 470)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShim(t, c.macro)
			c.prepare(s)
			_, err := driver.Open(s.path)
			if want := strings.Replace(c.want, "%s", "test driver "+s.path, 1); err == nil || err.Error() != want {
				t.Errorf("got error\n%v, want\n%s", err, want)
			}
		})
	}
}

func TestOpenNoLibrary(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + ".absent"} {
		_, err := driver.Open(path)
		if err == nil || !strings.HasPrefix(err.Error(), "driver: load CUDA driver: ") || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want one line that names %s", err, path)
		}
	}
	if _, err := driver.LoadLibrary("libm.so.6"); err == nil {
		_, err := driver.Open("libm.so.6")
		if want := "driver: libm.so.6 is not a CUDA driver: it has no cuGetProcAddress"; err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

// TestInitErrors wants what to do about failures of the machine, in one line.
func TestInitErrors(t *testing.T) {
	for r, word := range map[driver.Result]string{driver.NoDevice: "CUDA_VISIBLE_DEVICES", driver.SystemNotReady: "nvidia-fabricmanager", driver.SystemDriverMismatch: "different versions", driver.DeviceUnavailable: "exclusive mode"} {
		s := newShim(t, "")
		s.call("shim_init", uintptr(r))
		err := s.open().Init()
		if !errors.Is(err, r) || !strings.HasPrefix(err.Error(), "cuInit: CUDA_ERROR_") || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want result %d and %q", err, r, word)
		}
	}
	_, err := newShim(t, "").open().DeviceGetCount()
	if !errors.Is(err, driver.NotInitialized) {
		t.Errorf("before Init: got error %v", err)
	}
}

// TestErrorTexts wants the driver's words, and ours where it has none.
func TestErrorTexts(t *testing.T) {
	d, ctx := newShim(t, "").start()
	_, err := d.MemAlloc(ctx[0], 1<<50)
	if got, want := err.Error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory, says the shim"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = d.DeviceGet(9)
	if got, want := err.Error(), "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestContexts wants every call to work in its context, and to leave a thread
// with the context that it had.
func TestContexts(t *testing.T) {
	s := newShim(t, "")
	d, ctx := s.start()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	work := func(c driver.Context) {
		t.Helper()
		p, err := d.MemAlloc(c, 64)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := d.PointerGetAttributes(p); err != nil || info.Context != c {
			t.Errorf("got memory of context %#x, %v, want %#x", info.Context, err, c)
		}
		if _, err := d.MemAlloc(c, 0); !errors.Is(err, driver.InvalidValue) {
			t.Errorf("got %v, want the error of a call in its context", err)
		}
		if err := d.MemFree(c, p); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		before driver.Context
		in     driver.Context
		after  driver.Context
	}{
		{"none, device 1", 0, ctx[1], 0},
		{"device 0, device 1", ctx[0], ctx[1], ctx[0]},
		{"device 1, device 0", ctx[1], ctx[0], ctx[1]},
		{"device 1, device 1", ctx[1], ctx[1], ctx[1]},
		{"none, device 0", 0, ctx[0], ctx[0]}, // the default of a thread
	} {
		s.call("shim_force", uintptr(c.before))
		work(c.in)
		depth := int32(0)
		if c.after != 0 {
			depth = 1
		}
		if got := driver.Context(s.call("shim_current")); got != c.after || int32(s.call("shim_depth")) != depth {
			t.Errorf("%s: the thread is left with %#x and a stack of %d, want %#x and %d", c.name, got, int32(s.call("shim_depth")), c.after, depth)
		}
	}
	s.call("shim_force", 0)
}
