//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package capi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// thePython is the interpreter of the tests.
var thePython = sync.OnceValues(func() (*Python, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	in, err := FindPython(ctx, pythontest.Command())
	if err != nil {
		return nil, err
	}
	return OpenPython(in)
})

// python skips where there is no Python with the modules that a test wants.
func python(t testing.TB, modules ...string) *Python {
	t.Helper()
	p, err := thePython()
	pythontest.Need(t, p, err, modules...)
	return p
}

// numpy2 skips where there is no numpy that knows DLPack 1.
func numpy2(t testing.TB) *Python {
	t.Helper()
	p := python(t, "numpy")
	if err := p.Run("assert int(numpy.__version__.split('.')[0]) >= 2"); err != nil {
		t.Skip("the numpy of this Python is older than 2.0")
	}
	return p
}

func run(t testing.TB, p *Python, source string) {
	t.Helper()
	pythontest.Run(t, p, source)
}

// collect deletes names of module __main__ and lets Python free the objects
// that they referred to.
func collect(t testing.TB, p *Python, names string) {
	t.Helper()
	pythontest.Collect(t, p, names)
	memory.Reclaim()
}

func TestPythonRuns(t *testing.T) {
	p := python(t)
	run(t, p, "answer = 6 * 7\nassert answer == 42")
	err := p.Run("def f():\n  raise ValueError('w\u00f6rd')\nf()")
	if !errors.Is(err, ErrPython) || !strings.Contains(err.Error(), "ValueError: w\u00f6rd") || !strings.Contains(err.Error(), "line 2, in f") {
		t.Errorf("got %v, want ErrPython with the traceback", err)
	}
	if err := p.Run("import sys; sys.exit(3)"); !errors.Is(err, ErrPython) || !strings.Contains(err.Error(), "SystemExit: 3") {
		t.Errorf("sys.exit: got %v, want ErrPython", err)
	}
	if err := p.Run("this is no Python"); !errors.Is(err, ErrPython) || !strings.Contains(err.Error(), "SyntaxError") {
		t.Errorf("syntax: got %v, want ErrPython", err)
	}
	if _, err := OpenPython(Interpreter{}); err == nil {
		t.Error("second interpreter: got no error")
	}
	if _, err := p.Get("answer"); !errors.Is(err, ErrPython) || !strings.Contains(err.Error(), "__dlpack_device__") {
		t.Errorf("get an integer: got %v, want ErrPython", err)
	}
	run(t, p, "class Liar:\n  def __dlpack_device__(self): return (1, 0)\n  def __dlpack__(self, **_): return 7")
	if _, err := p.Get("Liar()"); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("get what is no capsule: got %v, want ErrCorrupt", err)
	}
	run(t, p, "class Far(Liar):\n  def __dlpack_device__(self): return (2, 0)")
	if _, err := p.Get("Far()"); !errors.Is(err, tensor.ErrUnsupported) || !strings.Contains(err.Error(), "got a tensor on cuda 0, want one in host memory") {
		t.Errorf("get from a GPU: got %v, want ErrUnsupported", err)
	}
}

// TestProtocol tests the producer's half of __dlpack__: arguments, capsule
// names, and structs that no consumer takes.
func TestProtocol(t *testing.T) {
	p := python(t)
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	if err := p.SetWritable("w", x); err != nil {
		t.Fatal(err)
	}
	run(t, p, `
def name(c): return repr(c).split('"')[1]
def refused(**kw):
    try: x.__dlpack__(**kw)
    except BufferError as e: return str(e)
    raise AssertionError(f"not refused: {kw}")
assert x.__dlpack_device__() == (1, 0)
assert name(x.__dlpack__()) == "dltensor"
assert name(x.__dlpack__(max_version=(0, 8))) == "dltensor"
assert name(x.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"
assert name(x.__dlpack__(max_version=(3, 1), copy=True)) == "dltensor_versioned"
assert name(x.__dlpack__(max_version=(1, 3), copy=False, dl_device=(1, 0))) == "dltensor_versioned"
assert name(w.__dlpack__()) == "dltensor"
assert "takes no copy" in refused(copy=False)
assert "got a stream" in refused(stream=1, max_version=(1, 3))
assert "got device cuda 0, want cpu 0" in refused(dl_device=(2, 0), max_version=(1, 3))
held = x.__dlpack__(max_version=(1, 3))
try: w.__dlpack__(max_version=(1, 3))
except BufferError as e: assert "1 export is out" in str(e), e
else: raise AssertionError("a writable export beside another")
del held
held = w.__dlpack__(max_version=(1, 3))
assert "exported for writing" in refused(max_version=(1, 3))
del held
`)
	if !x.IsExclusive() {
		t.Errorf("after capsules that nobody took: %v, want an exclusive tensor", x.WhyNotWritable())
	}
	release(t, x)
	run(t, p, `assert "already released" in refused(max_version=(1, 3))`)
	collect(t, p, "x, w, name, refused")
	if n := len(exchange.tensors); n != 0 {
		t.Errorf("after Python freed its objects: got %d tensors remembered, want none", n)
	}
}

// TestArguments holds __dlpack__ to the types and values that the protocol has.
func TestArguments(t *testing.T) {
	p := python(t)
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arguments, raises string }{
		{"max_version=(2**40, 0)", ""}, {"max_version=(2**70, 2**70)", ""}, {"max_version=(1, 3), dl_device=(1, 0)", ""},
		{"max_version=(0, 2**40)", ""},
		{"max_version=(-1, 0)", "ValueError"}, {"max_version=(1, -1)", "ValueError"}, {"max_version=(-2**70, 0)", "ValueError"},
		{"max_version=(1.0, 3)", "TypeError"}, {"max_version=(1,)", "TypeError"}, {"max_version=(1, 3, 0)", "TypeError"},
		{"max_version=1", "TypeError"}, {"max_version='13'", "TypeError"}, {"max_version=[1, 3]", "TypeError"}, {"max_version=(1, None)", "TypeError"},
		{"copy='no'", "TypeError"}, {"copy=0", "TypeError"}, {"copy=()", "TypeError"},
		{"dl_device=(0, 0)", "BufferError"}, {"dl_device=(1, -1)", "BufferError"}, {"dl_device=(2, 0)", "BufferError"}, {"dl_device=(-1, 0)", "BufferError"},
		{"dl_device=(2**70, 0)", "BufferError"}, {"dl_device=(1, 2**31)", "BufferError"}, {"dl_device=(1, 2**32)", "BufferError"},
		{"dl_device=1", "TypeError"}, {"dl_device=(1,)", "TypeError"}, {"dl_device=('cpu', 0)", "TypeError"},
		{"stream=0", "BufferError"}, {"stream=-1", "BufferError"}, {"stream='s'", "BufferError"},
	} {
		source := fmt.Sprintf("def give(**kw):\n  kw.setdefault('max_version', (1, 3))\n  return x.__dlpack__(**kw)\n"+
			"try: give(%s)\nexcept Exception as e: got = type(e).__name__\nelse: got = ''\nassert got == %q, got", c.arguments, c.raises)
		if err := p.Run(source); err != nil {
			t.Errorf("%s: %v", c.arguments, err)
		}
	}
	run(t, p, `
x._key, key = 2**70, x._key
for change in (2**70, -1, 'key'):
    x._key = change
    try: x.__dlpack__()
    except (BufferError, OverflowError, TypeError): pass
    else: raise AssertionError(change)
x._key = key
`)
	release(t, x)
	collect(t, p, "x, give, got, key, change")
}

// numpyTypes are the element types that both sides have, by numpy's names.
var numpyTypes = map[string]dtype.DType{
	"bool": dtype.Bool, "int8": dtype.I8, "int16": dtype.I16, "int32": dtype.I32, "int64": dtype.I64, "uint8": dtype.U8, "uint16": dtype.U16,
	"uint32": dtype.U32, "uint64": dtype.U64, "float16": dtype.F16, "float32": dtype.F32, "float64": dtype.F64, "complex64": dtype.C64, "complex128": dtype.C128,
}

// layouts are views of an array a of shape [2,3,4], the same in both languages.
var layouts = []struct {
	numpy string
	view  func(*tensor.Tensor) (*tensor.Tensor, error)
}{
	{"a", (*tensor.Tensor).View},
	{"a.T", (*tensor.Tensor).Transpose},
	{"a[1:2]", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(tensor.Only(1)) }},
	{"a[:, 1:, ::2]", func(x *tensor.Tensor) (*tensor.Tensor, error) {
		return x.Slice(tensor.All, tensor.Range{Start: 1, Stop: tensor.End}, tensor.Range{Stop: tensor.End, Step: 2})
	}},
	{"a[:0]", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(tensor.Range{}) }},
	{"a[None, 1:2, :, None, 3]", func(x *tensor.Tensor) (*tensor.Tensor, error) {
		v, err := x.Slice(tensor.Only(1), tensor.All, tensor.Only(3))
		if err != nil {
			return nil, err
		}
		defer v.Release()
		return v.Permute(0, 1, 2)
	}},
}

// TestNumpy moves every element type that numpy has, in several layouts, both
// ways, and compares values and addresses.
func TestNumpy(t *testing.T) {
	p := numpy2(t)
	memorytest.Check(t)
	run(t, p, "import numpy as np\ndef address(v): return v.__array_interface__['data'][0]")
	for name, dt := range numpyTypes {
		s := shape.MustOf(2, 3, 4)
		bytes := make([]byte, ok(shape.Bytes(dt, s))(t))
		for i := range bytes {
			bytes[i] = byte(i*7+3) % 100
			if dt == dtype.Bool {
				bytes[i] &= 1
			}
		}
		x := ok(tensor.FromBytes(dt, s, bytes))(t)
		data, _ := x.UnsafeBytes()
		run(t, p, fmt.Sprintf("a = np.frombuffer(bytes(%s), np.%s).reshape(2, 3, 4)\nbase = %d", pyBytes(data), npName(name), address(data)))
		for i, l := range layouts[:5] {
			v := ok(l.view(x))(t)
			if err := p.Set("v", v); err != nil {
				t.Fatal(err)
			}
			run(t, p, fmt.Sprintf(`
want = %s
got = np.from_dlpack(v)
assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
assert (got == want).all(), (got, want)
assert got.size == 0 or address(got) - base == address(want) - address(a), "not the same bytes"
assert got.size == 0 or not got.flags.writeable # of an empty array numpy makes its own
copy = np.from_dlpack(v, copy=True)
assert (copy == want).all() and (copy.size == 0 or address(copy) != address(got)) and copy.flags.writeable
`, l.numpy))
			if t.Failed() {
				t.Fatalf("%s %s, layout %d", name, l.numpy, i)
			}
			y := ok(p.Get("want"))(t)
			wantSame(t, y, v)
			z := ok(p.Get("got"))(t) // our own bytes, by way of numpy
			if a, b := first(z), first(v); a != b {
				t.Errorf("%s %s: got %#x back, want %#x", name, l.numpy, a, b)
			}
			release(t, y)
			release(t, z)
			release(t, v)
			collect(t, p, "v, got, copy, want")
		}
		run(t, p, "r = np.array(a[::-1, :, ::-1], copy=True)[::-1, :, ::-1]; n = a[1, 2, 3]; n = np.array(n)")
		y, n := ok(p.Get("r"))(t), ok(p.Get("n"))(t)
		wantSame(t, y, x)
		if n.Shape().Rank() != 0 {
			t.Errorf("%s: rank 0: got shape %s", name, n.Shape())
		}
		release(t, y)
		release(t, n)
		release(t, x)
		collect(t, p, "a, base, r, n")
	}
	collect(t, p, "address")
}

func npName(name string) string {
	if name == "bool" {
		return "bool_"
	}
	return name
}

func pyBytes(b []byte) string { return strings.ReplaceAll(fmt.Sprint(b), " ", ", ") }

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func first(x *tensor.Tensor) uintptr {
	data, first := x.UnsafeBytes()
	if len(data) == 0 {
		return 0
	}
	return address(data[first:])
}

func wantSame(t *testing.T, got, want *tensor.Tensor) {
	t.Helper()
	if got.DType() != want.DType() || got.Shape() != want.Shape() {
		t.Errorf("got %s%s, want %s%s", got.DType(), got.Shape(), want.DType(), want.Shape())
		return
	}
	a, b := ok(got.Copy(memory.Scratch))(t), ok(want.Copy(memory.Scratch))(t)
	defer release(t, a)
	defer release(t, b)
	x, _ := a.UnsafeBytes()
	y, _ := b.UnsafeBytes()
	if string(x) != string(y) {
		t.Errorf("%s%s: got % x, want % x", got.DType(), got.Layout(), x, y)
	}
}

// TestNumpyWrites lets numpy write into a tensor, and not into one that is only
// read.
func TestNumpyWrites(t *testing.T) {
	p := numpy2(t)
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
	if err := errors.Join(p.Set("x", x), p.SetWritable("w", x)); err != nil {
		t.Fatal(err)
	}
	run(t, p, `
import numpy as np
a = np.from_dlpack(x)
try: a[0] = 5
except ValueError: pass
else: raise AssertionError("numpy wrote into a read-only tensor")
del a
b = np.from_dlpack(w)
b += 10
`)
	if _, err := tensor.Read[float32](x); !errors.Is(err, tensor.ErrWriting) {
		t.Errorf("read while numpy may write: got %v, want ErrWriting", err)
	}
	collect(t, p, "b, x, w")
	wantValues[float32](t, x, 11, 12, 13)
	release(t, x)
	run(t, p, "r = np.arange(3.0); r.flags.writeable = False")
	y := ok(p.Get("r", dlpack.AssumeExclusive()))(t)
	if y.IsExclusive() {
		t.Error("a read-only array is exclusive, although its producer says so")
	}
	release(t, y)
	collect(t, p, "r")
}

// TestLifetimesWithPython ends tensor, object and array in every order.
func TestLifetimesWithPython(t *testing.T) {
	p := numpy2(t)
	memorytest.Check(t)
	for _, order := range []string{"tva", "tav", "vta", "vat", "atv", "avt"} {
		before := memory.Stats().Total.Current
		x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
		if err := p.Set("v", x); err != nil {
			t.Fatal(err)
		}
		run(t, p, "import numpy as np\na = np.from_dlpack(v)[1:]\nassert a.tolist() == [2, 3]")
		arrayLives := true
		for _, who := range order {
			switch who {
			case 't':
				release(t, x)
			case 'v':
				collect(t, p, "v")
			case 'a':
				collect(t, p, "a")
				arrayLives = false
			}
			if arrayLives {
				run(t, p, "assert a.tolist() == [2, 3], a")
			}
		}
		if got := memory.Stats().Total.Current; got != before {
			t.Errorf("%s: got %d bytes left, want none", order, got-before)
		}
	}
	for _, dropFirst := range []bool{true, false} {
		run(t, p, "import weakref\na = np.arange(4.0); alive = weakref.ref(a)")
		y := ok(p.Get("a"))(t)
		if dropFirst {
			collect(t, p, "a")
			run(t, p, "assert alive() is not None")
		}
		wantValues[float32](t, y, 0, 1, 2, 3)
		release(t, y)
		if !dropFirst {
			run(t, p, "assert a.tolist() == [0, 1, 2, 3]")
			collect(t, p, "a")
		}
		run(t, p, "assert alive() is None")
	}
}

// A thread of a call stays attached to Python until the next, because libraries
// in C++ keep the thread state that they saw. What a call leaves in it is there
// in the next one.
func TestThreadStatesLast(t *testing.T) {
	p := python(t)
	run(t, p, "import threading\nhere = threading.local()\nhere.value = 7")
	for range 20 {
		run(t, p, "assert here.value == 7")
	}
	func() {
		defer func() {
			if v := recover(); v != "mine" {
				t.Errorf("got a panic of %v, want the caller's", v)
			}
		}()
		_ = p.within(func() error { panic("mine") })
	}()
	run(t, p, "assert here.value == 7")
}

// TestPythonThreads lets Python threads take and drop a tensor while Go does
// the same with an array.
func TestPythonThreads(t *testing.T) {
	p := numpy2(t)
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	run(t, p, `
import numpy as np, threading
shared, bad = np.arange(3.0), []
def take():
    for _ in range(300):
        if np.from_dlpack(x).tolist() != [1, 2, 3]: bad.append(1)
threads = [threading.Thread(target=take) for _ in range(4)]
for th in threads: th.start()
`)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for i := range 100 {
				y, err := p.Get("shared")
				if err != nil {
					t.Error(err)
					return
				}
				wantValues[float32](t, y, 0, 1, 2)
				release(t, y)
				if i%10 == 0 {
					runtime.GC()
				}
			}
		})
	}
	both.Wait()
	run(t, p, "for th in threads: th.join()\nassert not bad")
	if !x.IsExclusive() {
		t.Errorf("after all threads: %v, want an exclusive tensor", x.WhyNotWritable())
	}
	release(t, x)
	collect(t, p, "x, shared, bad, take, threads")
}

// TestTVM moves types that numpy does not have through tvm-ffi: bfloat16 and
// floats of 8, 6 and 4 bits, the latter packed. It takes them by the C exchange
// API and, for objects without it, by the legacy struct: then tensors that are
// lent for reading are copied.
func TestTVM(t *testing.T) {
	p := python(t, "tvm_ffi")
	memorytest.Check(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16, dtype.I64, dtype.Bool, dtype.F8E4M3FN, dtype.F8E4M3FNUZ, dtype.F8E5M2, dtype.F8E5M2FNUZ,
		dtype.F8E8M0, dtype.F8E3M4, dtype.F8E4M3, dtype.F8E4M3B11FNUZ, dtype.F4E2M1, dtype.F6E2M3FN, dtype.F6E3M2FN, dtype.I4, dtype.U4} {
		s := shape.MustOf(2, 8)
		bytes := make([]byte, ok(shape.Bytes(dt, s))(t))
		for i := range bytes {
			bytes[i] = byte(i) & 1
		}
		x, want := ok(tensor.FromBytes(dt, s, bytes))(t), ok(tensor.FromBytes(dt, s, bytes))(t)
		at := first(x)
		if err := errors.Join(p.Set("x", x), p.SetWritable("w", x)); err != nil {
			t.Fatal(err)
		}
		code, bits, lanes, _ := dt.DLPack()
		run(t, p, "class Plain:\n  __dlpack__, __dlpack_device__ = x.__dlpack__, x.__dlpack_device__")
		for _, name := range []string{"x", "w", "Plain"} {
			run(t, p, fmt.Sprintf(`
import tvm_ffi
y = tvm_ffi.from_dlpack(%s)
assert tuple(y.shape) == (2, 8), y.shape
assert (y.dtype.type_code, y.dtype.bits, y.dtype.lanes) == (%d, %d, %d), (y.dtype.type_code, y.dtype.bits, y.dtype.lanes)
`, name, code, bits, lanes))
			y, err := p.Get("y")
			if err != nil {
				t.Fatalf("%s: %v", dt, err)
			}
			wantSame(t, y, want)
			if (first(y) == at) == (name == "Plain") {
				t.Errorf("%s, %s: got bytes at %#x back, lent were those at %#x, want a copy: %t", dt, name, first(y), at, name == "Plain")
			}
			collect(t, p, "y")
			wantSame(t, y, want)
			release(t, y)
			memory.Reclaim()
		}
		release(t, x)
		release(t, want)
		collect(t, p, "x, w, Plain")
	}
}

// TestExchangeAPI calls the functions of the C exchange API as a consumer in C
// does.
func TestExchangeAPI(t *testing.T) {
	p := python(t)
	memorytest.Check(t)
	x := ok(tensor.Of([]int64{1, 2, 3}, 3))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	cell := ok(memory.Alloc(64, memory.Scratch))(t)
	defer cell.Release()
	out := address(cell.Bytes())
	got := func() uintptr { return *(*uintptr)(pointer(out)) }
	api := &exchange.api
	within := func(f func()) {
		t.Helper()
		if err := p.within(func() error { f(); return nil }); err != nil {
			t.Error(err)
		}
	}
	within(func() {
		if code, _, _ := purego.SyscallN(api.fromObject, p.c.DictGet(p.main, "x"), out); int32(code) != 0 {
			t.Fatalf("from object: got %d, want 0", int32(code))
		}
		m := (*dlpack.DLManagedTensorVersioned)(pointer(got()))
		if m.Flags != dlpack.FlagReadOnly || m.Tensor.Data != first(x) {
			t.Errorf("from object: got flags %d and data at %#x, want read-only and %#x", m.Flags, m.Tensor.Data, first(x))
		}
		if code, _, _ := purego.SyscallN(api.toObject, got(), out); int32(code) != 0 {
			t.Fatalf("to object: got %d, want 0", int32(code))
		}
		p.c.DictSet(p.main, "y", got())
		p.c.DecRef(got())
	})
	y := ok(p.Get("y"))(t)
	if first(y) != first(x) {
		t.Errorf("there and back: got data at %#x, want %#x", first(y), first(x))
	}
	release(t, y)
	collect(t, p, "y")
	if !x.IsExclusive() {
		t.Errorf("after the object's end: %v, want an exclusive tensor", x.WhyNotWritable())
	}
	release(t, x)
	within(func() {
		if code, _, _ := purego.SyscallN(api.fromObject, p.c.DictGet(p.main, "x"), out); int32(code) != -1 {
			t.Errorf("from the object of a released tensor: got %d, want -1", int32(code))
		}
		p.c.ErrClear()
		if code, _, _ := purego.SyscallN(api.fromObject, p.main, out); int32(code) != -1 {
			t.Errorf("from a dictionary: got %d, want -1", int32(code))
		}
		p.c.ErrClear()
		if code, _, _ := purego.SyscallN(api.currentWork, 1, 0, out); int32(code) != 0 || got() != 0 {
			t.Errorf("stream of the processor: got %d and %#x, want 0 and none", int32(code), got())
		}
		if code, _, _ := purego.SyscallN(api.currentWork, 2, 0, out); int32(code) != -1 {
			t.Errorf("stream of a GPU: got %d, want -1", int32(code))
		}
		p.c.ErrClear()
	})
	collect(t, p, "x")
	run(t, p, "import tenure\nassert repr(type(tenure.Tensor.__dlpack_c_exchange_api__)) == \"<class 'PyCapsule'>\" and 'dlpack_exchange_api' in repr(tenure.Tensor.__dlpack_c_exchange_api__)")
}

// TestExchangeAllocates asks for tensors by a prototype.
func TestExchangeAllocates(t *testing.T) {
	memorytest.Check(t)
	dims := []int64{2, 3}
	d := dlpack.DLTensor{Device: dlpack.Device{Type: dlpack.CPU}, NDim: 2, DType: dlpack.DataType{Code: dlpack.BFloat, Bits: 16, Lanes: 1}, Shape: uintptr(unsafe.Pointer(&dims[0]))}
	m := ok(newLike(&d))(t)
	x := ok(Import(m, dlpack.AssumeExclusive()))(t)
	if x.DType() != dtype.BF16 || x.Shape() != shape.MustOf(2, 3) || !x.IsExclusive() {
		t.Errorf("got %s%s, exclusive %t; want an exclusive bf16[2,3]", x.DType(), x.Shape(), x.IsExclusive())
	}
	release(t, x)
	for text, change := range map[string]func(d *dlpack.DLTensor){
		"got device cuda":     func(d *dlpack.DLTensor) { d.Device.Type = dlpack.CUDA },
		"with 3 bits":         func(d *dlpack.DLTensor) { d.DType.Bits = 3 },
		"got -1 dimensions":   func(d *dlpack.DLTensor) { d.NDim = -1 },
		"at address 0x0":      func(d *dlpack.DLTensor) { d.Shape = 0 },
		"dimension 1 is -3":   func(d *dlpack.DLTensor) { dims[1] = -3 },
		"memory limit":        func(d *dlpack.DLTensor) { dims[1] = 1 << 50 },
		"more than 2^58 elem": func(d *dlpack.DLTensor) { dims[1] = 1 << 60 },
	} {
		broken := d
		dims[1] = 3
		change(&broken)
		if _, err := newLike(&broken); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want an error with %q", err, text)
		}
	}
}

// TestTVMInC passes the versioned struct to a library in C, which counts the
// references to its tensors, and takes it back.
func TestTVMInC(t *testing.T) {
	p := python(t, "tvm_ffi", "numpy")
	memorytest.Check(t)
	run(t, p, "import glob, os, numpy as np\npath = glob.glob(os.path.join(os.path.dirname(tvm_ffi.__file__), 'lib', 'libtvm_ffi.*'))[0]")
	run(t, p, "path = np.frombuffer(path.encode(), np.uint8)")
	path := ok(p.Get("path"))(t)
	lib := ok(Open(string(ok(tensor.Values[uint8](path))(t))))(t)
	release(t, path)
	collect(t, p, "path")
	var c struct {
		From   func(m *dlpack.DLManagedTensorVersioned, alignment, contiguous int32, out *uintptr) int32 `c:"TVMFFITensorFromDLPackVersioned"`
		To     func(from uintptr, out *uintptr) int32                                                    `c:"TVMFFITensorToDLPackVersioned"`
		DecRef func(o uintptr) int32                                                                     `c:"TVMFFIObjectDecRef"`
	}
	if err := lib.bind(&c); err != nil {
		t.Fatal(err)
	}
	before := memory.Stats().Total.Current
	x := ok(tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	at := first(x)
	var object, struct_ uintptr
	if got := c.From(ok(dlpack.Export(x))(t), 0, 0, &object); got != 0 {
		t.Fatalf("from DLPack: got %d, want 0", got)
	}
	release(t, x)
	if got := c.To(object, &struct_); got != 0 {
		t.Fatalf("to DLPack: got %d, want 0", got)
	}
	y := ok(Import((*dlpack.DLManagedTensorVersioned)(pointer(struct_))))(t)
	c.DecRef(object)
	wantValues[float32](t, y, 1, 2, 3, 4, 5, 6)
	if first(y) != at {
		t.Errorf("got bytes at %#x back, want %#x", first(y), at)
	}
	release(t, y)
	if got := settled(before); got != before {
		t.Errorf("at the end: got %d bytes left, want none", got-before)
	}
}

// TestJax hands tensors to JAX on the CPU and takes its arrays.
func TestJax(t *testing.T) {
	p := python(t, "jax")
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1, 2, 3, 4}, 2, 2))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	run(t, p, "import jax, jax.numpy as jnp\na = jax.dlpack.from_dlpack(x)\nassert a.tolist() == [[1, 2], [3, 4]]\nb = jnp.asarray([1, 2.5], jnp.bfloat16)")
	y := ok(p.Get("b"))(t)
	if y.DType() != dtype.BF16 {
		t.Errorf("got %s, want bf16", y.DType())
	}
	wantValues[float32](t, y, 1, 2.5)
	release(t, y)
	release(t, x)
	collect(t, p, "x, a, b")
}

const exitChild = "TENURE_EXIT_CHILD"

// TestExit ends the process with exports and imports out, and the interpreter
// before the tensors: nothing may crash.
func TestExit(t *testing.T) {
	if os.Getenv(exitChild) != "" {
		exitWith(t, os.Getenv(exitChild))
		return
	}
	numpy2(t)
	for _, how := range []string{"exports out", "imports out", "interpreter first", "os.exit"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestExit$", "-test.count=1")
		cmd.Env = append(os.Environ(), exitChild+"="+how)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "reached the end") {
			t.Errorf("%s: got %v, want the process to end well; output:\n%s", how, err, out)
		}
	}
}

func exitWith(t *testing.T, how string) {
	p := numpy2(t)
	x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
	if err := p.Set("x", x); err != nil {
		t.Fatal(err)
	}
	run(t, p, "import numpy as np\na = np.from_dlpack(x)\nb = np.arange(3.0)")
	y := ok(p.Get("b"))(t)
	switch how {
	case "exports out":
		release(t, x)
		release(t, y)
	case "interpreter first":
		release(t, x)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Run("1"); err == nil {
			t.Error("run after Close: got no error")
		}
		wantValues[float32](t, y, 0, 1, 2)
		release(t, y)
	case "os.exit":
		fmt.Println("reached the end")
		os.Exit(0)
	}
	fmt.Println("reached the end")
}
