//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64)

package driver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// shim is testdata/libcuda.c as a library with state of its own.
type shim struct {
	t      testing.TB
	path   string
	handle uintptr
}

var compiled struct {
	sync.Mutex
	libraries map[string][]byte // by macro
}

// newShim compiles the library, with a macro defined unless it is empty.
func newShim(t testing.TB, macro string) shim {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	if library, ok := compiled.libraries[macro]; ok {
		if err := os.WriteFile(path, library, 0o755); err != nil {
			t.Fatal(err)
		}
	} else {
		compile(t, macro, path)
	}
	handle, err := driver.LoadLibrary(path)
	if err != nil {
		t.Skipf("what the C compiler makes is not for this process: %v", err)
	}
	return shim{t, path, handle}
}

func compile(t testing.TB, macro, path string) {
	t.Helper()
	var cc string
	for _, name := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		if p, err := exec.LookPath(name); err == nil {
			cc = p
			break
		}
	}
	if cc == "" {
		t.Skip("no C compiler (gcc, clang or cc) to compile testdata/libcuda.c")
	}
	args := []string{"-O1", "-shared", "-fPIC", "-pthread", "-o", path, "testdata/libcuda.c"}
	if macro != "" {
		args = append([]string{"-D" + macro}, args...)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Skipf("%s cannot compile testdata/libcuda.c: %v\n%s", cc, err, out)
	}
	library, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if compiled.libraries == nil {
		compiled.libraries = map[string][]byte{}
	}
	compiled.libraries[macro] = library
}

// call calls a control of the library.
func (s shim) call(name string, args ...uintptr) uintptr {
	s.t.Helper()
	p := driver.Symbol(s.handle, name)
	if p == 0 {
		s.t.Fatalf("testdata/libcuda.c has no %s", name)
	}
	r, _, _ := purego.SyscallN(p, args...)
	return r
}

// hide hides functions, which are separated by commas.
func (s shim) hide(names string) {
	b := append([]byte(names), 0)
	pinned := new(runtime.Pinner)
	pinned.Pin(&b[0])
	s.call("shim_hide", uintptr(unsafe.Pointer(&b[0])))
	pinned.Unpin()
}

// last returns the arguments of the last call that recorded them.
func (s shim) last() (args [16]uint64) {
	p := s.call("shim_last")
	return *(*[16]uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&p)))
}

func (s shim) open() driver.Driver {
	s.t.Helper()
	d, err := driver.Open(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// start opens and initialises the driver, and retains a context of each device.
func (s shim) start() (d driver.Driver, ctx [2]driver.Context) {
	s.t.Helper()
	d = s.open()
	if err := d.Init(); err != nil {
		s.t.Fatal(err)
	}
	for i := range ctx {
		c, err := d.DevicePrimaryCtxRetain(driver.Device(i))
		if err != nil {
			s.t.Fatal(err)
		}
		ctx[i] = c
	}
	return d, ctx
}
