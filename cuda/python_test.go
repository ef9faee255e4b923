//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64))

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// interpreter is the Python of the tests, $TENURE_PYTHON or python3, in this
// process. $TENURE_LIBPYTHON is the library of an installation that has none:
// one of the same version, whose home $PYTHONHOME is.
var interpreter = sync.OnceValues(func() (*capi.Python, error) {
	name := pythontest.Command()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var in capi.Interpreter
	var err error
	if lib := os.Getenv("TENURE_LIBPYTHON"); lib != "" {
		var out []byte
		c := exec.CommandContext(ctx, name, "-c", `import sys; print("\n".join(p for p in sys.path if p))`)
		c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PYTHONHOME=") })
		out, err = c.Output()
		in = capi.Interpreter{Library: lib, Path: strings.Fields(string(out))}
	} else {
		in, err = capi.FindPython(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	return capi.OpenPython(in)
})

// python skips where there is no Python with the modules that a test wants.
func python(t testing.TB, modules ...string) *capi.Python {
	t.Helper()
	p, err := interpreter()
	pythontest.Need(t, p, err, modules...)
	return p
}

func run(t testing.TB, p *capi.Python, format string, args ...any) {
	t.Helper()
	pythontest.Run(t, p, fmt.Sprintf(format, args...))
}

// collect deletes names and lets Python free the objects that they referred to.
func collect(t testing.TB, p *capi.Python, names string) {
	t.Helper()
	pythontest.Collect(t, p, names)
	memory.Reclaim()
}

// TestPythonProtocol holds the objects of tensors on a device to the rules of
// __dlpack__ in the array API standard, and the consumer to them with a
// producer that notes its arguments.
func TestPythonProtocol(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		p := python(t)
		d := r.devices[0]
		s := r.stream(t, 0)
		x := must(s.Zeros(dtype.F32, shape.MustOf(2, 3)))(t)
		h := must(d.Pinned(dtype.F32, shape.MustOf(4)))(t)
		must(0, p.Set("x", x))(t)
		must(0, p.SetWritable("w", x))(t)
		must(0, p.Set("h", h))(t)
		run(t, p, `
def name(c): return repr(c).split('"')[1]
def refused(o, kind=BufferError, **kw):
    try: o.__dlpack__(**{"max_version": (1, 3), **kw})
    except kind as e: return str(e)
    raise AssertionError(f"not refused: {kw}")
assert x.__dlpack_device__() == (2, 0) and type(x.__dlpack_device__()) is tuple
assert name(x.__dlpack__(max_version=(1, 3))) == "dltensor_versioned"
for stream in None, 1, 2, -1, %d:
    assert name(x.__dlpack__(stream=stream, max_version=(1, 3))) == "dltensor_versioned"
    assert name(x.__dlpack__(stream=stream)) == "dltensor"
    assert name(w.__dlpack__(stream=stream)) == "dltensor"
assert "got stream 0 for cuda, want 1 for the legacy default stream" in refused(x, stream=0)
assert "got stream -2 for cuda" in refused(x, stream=-2)
assert "got stream 's', want an integer or None" in refused(x, TypeError, stream="s")
assert "want the address of one" in refused(x, stream=2**70)
assert name(x.__dlpack__(max_version=(1, 3), dl_device=(2, 0), copy=False)) == "dltensor_versioned"
assert name(x.__dlpack__(max_version=(1, 3), copy=True)) == "dltensor_versioned"
assert name(x.__dlpack__(max_version=(1, 3), dl_device=(1, 0))) == "dltensor_versioned"
assert "takes no copy, want it on cuda 0" in refused(x, dl_device=(1, 0), copy=False)
assert "got device cuda 5, want cuda 0 or cpu 0" in refused(x, dl_device=(2, 5))
assert h.__dlpack_device__() == (3, 0)
assert "got a stream, want none for host memory" in refused(h, stream=1)
assert name(h.__dlpack__(max_version=(1, 3), dl_device=(1, 0), copy=False)) == "dltensor_versioned"

class Producer:
    def __init__(self, of, place=None, old=False): self.of, self.place, self.old = of, place, old
    def __dlpack_device__(self): return self.place or self.of.__dlpack_device__()
    def __dlpack__(self, **kw):
        self.asked = kw
        if self.old and "max_version" in kw: raise TypeError
        return self.of.__dlpack__(**kw)
p, old, far, liar = Producer(x), Producer(w, old=True), Producer(x, (2, 9)), Producer(h, (2, 0))
`, s.Handle())
		memory.Reclaim()
		checkConsumer(t, p, d, s, x)
		x.Release()
		h.Release()
		collect(t, p, "x, w, h, p, old, far, liar, Producer, name, refused")
	})
}

// checkConsumer imports what producers that note their arguments give.
func checkConsumer(t *testing.T, p *capi.Python, d *cuda.Device, s *cuda.Stream, x *tensor.Tensor) {
	place := func(y *tensor.Tensor) uintptr {
		m := must(dlpack.ExportOn(y, dlpack.NoSync))(t)
		defer m.Delete(nil)
		return m.Tensor.Data
	}
	want := place(x)
	y := must(p.Get("p"))(t)
	if y.Device() != d.Memory() || place(y) != want || y.Shape() != x.Shape() {
		t.Errorf("got %s%s on %s at %#x, want it in place at %#x", y.DType(), y.Shape(), y.Device(), place(y), want)
	}
	run(t, p, "assert p.asked == {'stream': %d, 'max_version': (1, 3)}, p.asked", d.Main().Handle())
	y.Release()
	y = must(p.Get("p", dlpack.ReadyOn(dlpack.Stream(s.Handle()))))(t)
	run(t, p, "assert p.asked == {'stream': %d, 'max_version': (1, 3)}, p.asked", s.Handle())
	y.Release()
	eventually(t, "the imports end", x.IsExclusive)
	y = must(p.Get("old"))(t) // of before DLPack 1.0, lent for writing
	run(t, p, "assert old.asked == {'stream': %d}, old.asked", d.Main().Handle())
	y.Release()
	eventually(t, "the writer ends", x.IsExclusive)
	for _, c := range []struct {
		name, want string
		kind       error
	}{
		{"far", "got a tensor on cuda 9, want one in host memory or on a device that is open (cuda 0", tensor.ErrUnsupported},
		{"liar", "got a stream, want none for host memory", capi.ErrPython},
	} {
		if _, err := p.Get(c.name); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if !x.IsExclusive() {
		t.Errorf("after all exchanges: %v", x.WhyNotWritable())
	}
}
