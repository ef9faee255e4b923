//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64))

package cuda_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// These tests exchange tensors with libraries on a device of this computer.

// torchRig opens a device and a Python with torch on it, or skips.
func torchRig(t *testing.T) (*rig, *capi.Python) {
	t.Helper()
	r := realRig(t, 1)
	p := python(t, "torch")
	if err := p.Run("assert torch.cuda.is_available()"); err != nil {
		t.Skip("this torch has no CUDA")
	}
	run(t, p, "%s", torchHelpers)
	t.Cleanup(func() { run(t, p, "gc.collect(); torch.cuda.synchronize(); torch.cuda.empty_cache()") })
	return r, p
}

// torchHelpers: On is a tensor whose library is asked for it while a stream is
// the current one, which torch knows for each thread.
const torchHelpers = `
import gc, torch
class On:
    def __init__(self, of, stream): self.of, self.stream = of, stream
    def __dlpack_device__(self): return self.of.__dlpack_device__()
    def __dlpack__(self, **kw):
        self.asked = kw
        with torch.cuda.stream(self.stream): return self.of.__dlpack__(**kw)
def content(t): return t.contiguous().view(torch.uint8).flatten().cpu().tolist()
LONG = 400_000_000 # clock cycles of torch.cuda._sleep: a fifth of a second
`

// where returns the address of element [0,...,0].
func where(t testing.TB, x *tensor.Tensor) uintptr {
	t.Helper()
	export := dlpack.Export
	if x.Device() != nil {
		export = func(x *tensor.Tensor) (*dlpack.DLManagedTensorVersioned, error) {
			return dlpack.ExportOn(x, dlpack.NoSync)
		}
	}
	m := must(export(x))(t)
	defer m.Delete(nil)
	return m.Tensor.Data
}

// onDevice returns a tensor whose bytes count from 0, modulo 100.
func onDevice(t testing.TB, d *cuda.Device, dt dtype.DType, dims ...int) *tensor.Tensor {
	t.Helper()
	sh := shape.MustOf(dims...)
	data := make([]byte, must(shape.Bytes(dt, sh))(t))
	for i := range data {
		if data[i] = byte(i % 100); dt == dtype.Bool {
			data[i] &= 1
		}
	}
	h := must(tensor.FromBytes(dt, sh, data))(t)
	return must(tensor.To(t.Context(), h.Reuse(), d.Memory()))(t)
}

// TestTorchTakes lends tensors to torch: all types, and views.
func TestTorchTakes(t *testing.T) {
	r, p := torchRig(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16, dtype.F64, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.Bool, dtype.C64} {
		x := onDevice(t, r.devices[0], dt, 4, 6)
		views := map[string]*tensor.Tensor{
			"a":            must(x.View())(t),
			"a.t()":        must(x.Transpose())(t),
			"a[1:3]":       must(x.Slice(tensor.Range{Start: 1, Stop: 3}))(t),
			"a[2:, 1::2]":  must(x.Slice(tensor.Range{Start: 2, Stop: tensor.End}, tensor.Range{Start: 1, Stop: tensor.End, Step: 2}))(t),
			"a[:0]":        must(x.Slice(tensor.Range{}))(t),
			"a[3:, 5:][0]": must(x.Slice(tensor.Range{Start: 3, Stop: tensor.End}, tensor.Range{Start: 5, Stop: tensor.End}))(t),
		}
		must(0, p.Set("x", x))(t)
		run(t, p, "a = torch.from_dlpack(x)\nassert a.is_cuda and a.data_ptr() == %d, (a.device, a.data_ptr())\n"+
			"assert content(a) == [i %% 100 & %d for i in range(a.numel() * a.element_size())]", where(t, x), map[bool]int{true: 1, false: 127}[dt == dtype.Bool])
		for name, v := range views {
			must(0, p.Set("v", v))(t)
			run(t, p, "b, want = torch.from_dlpack(v), %s\nassert torch.equal(b.reshape(want.shape), want) and (b.numel() == 0 or b.data_ptr() == want.data_ptr()), (%q, b, want)", name, dt.String()+" "+name)
			v.Release()
		}
		x.Release()
		collect(t, p, "x, v, a, b, want")
	}
	eventually(t, "torch gives everything back", func() bool { return r.devices[0].Memory().Stats().Total.Current == 0 })
}

// TestTorchGives imports tensors of torch in place, and lends them back.
func TestTorchGives(t *testing.T) {
	r, p := torchRig(t)
	run(t, p, "torch.cuda.empty_cache()\nbefore = torch.cuda.memory_allocated()")
	for _, expression := range []string{
		"torch.arange(24, device='cuda', dtype=torch.float32).reshape(4, 6)", "torch.ones(5, device='cuda', dtype=torch.bfloat16)",
		"torch.arange(24, device='cuda').reshape(4, 6).t()", "torch.arange(24, device='cuda', dtype=torch.uint8).reshape(4, 6)[1:, ::2]",
		"torch.zeros(0, 3, device='cuda')", "torch.tensor(7.5, device='cuda')",
	} {
		run(t, p, "u = %s", expression)
		y, err := p.Get("u")
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if y.Device() != r.devices[0].Memory() || y.IsExclusive() {
			t.Errorf("%s: got it on %s, exclusive %t", expression, y.Device(), y.IsExclusive())
		}
		c := must(r.devices[0].Main().Copy(y))(t)
		must(0, p.Set("y", y))(t)
		must(0, p.Set("c", c))(t)
		run(t, p, "back, copy = torch.from_dlpack(y), torch.from_dlpack(c)\n"+
			"assert torch.equal(back, u) and back.data_ptr() == u.data_ptr() == %d, (back, u)\n"+
			"assert torch.equal(copy, u) and (u.numel() == 0 or copy.data_ptr() != u.data_ptr()), (copy, u)", where(t, y))
		y.Release()
		c.Release()
		collect(t, p, "u, y, c, back, copy")
	}
	eventually(t, "torch's allocator has its memory again", func() bool { return p.Run("assert torch.cuda.memory_allocated() == before") == nil })
	collect(t, p, "before")
}

// TestTorchWrites: what either side writes, the other sees.
func TestTorchWrites(t *testing.T) {
	r, p := torchRig(t)
	d, s := r.devices[0], r.stream(t, 0)
	x := must(s.Zeros(dtype.F32, shape.MustOf(1<<20)))(t)
	must(0, p.SetWritable("w", x))(t)
	run(t, p, `
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    v = torch.from_dlpack(w)
    torch.cuda._sleep(LONG)
    v += 3
`)
	if _, err := s.Copy(x); err == nil {
		t.Error("a tensor that torch may write was read")
	}
	collect(t, p, "v") // its work is still under way
	eventually(t, "torch gives it back", x.IsExclusive)
	wantFloats(t, must(s.Copy(x))(t), 3)
	y := must(s.Fill(x.Donate(), float32(5)))(t)
	must(0, p.Set("y", y))(t)
	run(t, p, "u = torch.from_dlpack(y)\nassert u.sum().item() == 5 * (1 << 20)")
	collect(t, p, "w, y, u, side")
	eventually(t, "torch gives it back", y.IsExclusive)
	y.Release()
	if f := d.Memory().Stats().Total; f.Current != 0 {
		t.Errorf("got %d bytes left", f.Current)
	}
}

// wantFloats downloads and releases x, whose elements are all v.
func wantFloats(t *testing.T, x *tensor.Tensor, v float32) {
	t.Helper()
	back := must(tensor.To(t.Context(), x.Reuse(), nil))(t)
	defer back.Release()
	for i, got := range must(tensor.Values[float32](back))(t) {
		if got != v {
			t.Errorf("element %d: got %v, want %v", i, got, v)
			return
		}
	}
}

// TestTorchOrder: a long kernel on one side comes before what the other side
// reads, whatever streams they use; no call waits for it.
func TestTorchOrder(t *testing.T) {
	r, p := torchRig(t)
	s := r.stream(t, 0)
	// The driver loads a kernel when it is first used, and waits for running
	// ones to do so.
	run(t, p, "torch.zeros(1 << 20, device='cuda').fill_(7).sum().item()")
	const writes = `
side = torch.cuda.Stream()
u = torch.zeros(1 << 20, device='cuda')
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.cuda._sleep(LONG)
    u.fill_(7)
done = torch.cuda.Event()
done.record(side)
`
	run(t, p, "%s", writes)
	y := must(p.Get("On(u, side)"))(t)
	copied := must(s.Copy(y))(t)
	run(t, p, "assert not done.query(), 'something waited for the kernel'")
	wantFloats(t, copied, 7)
	y.Release()

	run(t, p, "%s", writes)
	y = must(p.Get("On(u, side)", dlpack.ReadyOn(dlpack.Stream(s.Handle()))))(t)
	wantFloats(t, must(r.devices[0].Main().Copy(y))(t), 7)
	y.Release()

	// Without synchronisation the test must see what was there before, or it
	// would show nothing.
	run(t, p, "%s", writes)
	y = must(p.Get("On(u, side)", dlpack.ReadyOn(dlpack.NoSync)))(t)
	wantFloats(t, must(s.Copy(y))(t), 0)
	y.Release()
	run(t, p, "side.synchronize()")

	// The other direction: torch's current stream waits for a stream of ours
	// that is busy.
	x := must(s.Zeros(dtype.F32, shape.MustOf(1<<20)))(t)
	x = must(s.Fill(x.Donate(), float32(1)))(t)
	run(t, p, "ours = torch.cuda.ExternalStream(%d)\ntorch.cuda.synchronize()\nwith torch.cuda.stream(ours): torch.cuda._sleep(LONG)", s.Handle())
	x = must(s.Fill(x.Donate(), float32(9)))(t)
	must(0, p.Set("x", x))(t)
	run(t, p, `
with torch.cuda.stream(side):
    v = torch.from_dlpack(x)
    total = v.sum()
assert not ours.query(), "something waited for the kernel"
side.synchronize()
assert total.item() == 9 * (1 << 20), total
`)
	collect(t, p, "u, side, done, x, v, total, ours")
	eventually(t, "torch gives it back", x.IsExclusive)
	x.Release()
}

// TestTorchLifetime: memory of either side stays while the other one, or its
// work, uses it, and then returns to its allocator.
func TestTorchLifetime(t *testing.T) {
	r, p := torchRig(t)
	d, s := r.devices[0], r.stream(t, 0)
	run(t, p, "gc.collect(); torch.cuda.synchronize(); before = torch.cuda.memory_allocated()")
	isBack := func() bool { return p.Run("assert torch.cuda.memory_allocated() == before") == nil }

	run(t, p, "u = torch.full((1 << 20,), 4., device='cuda')")
	y := must(p.Get("u"))(t)
	run(t, p, "del u; gc.collect(); assert torch.cuda.memory_allocated() >= before + (4 << 20)")
	wantFloats(t, must(s.Copy(y))(t), 4) // torch's object is gone, its bytes are not
	y.Release()
	eventually(t, "torch has its memory again", isBack)

	run(t, p, "u = torch.full((1 << 20,), 4., device='cuda')")
	must(p.Get("u"))(t).Release() // in the other order
	run(t, p, "assert u.sum().item() == 4 << 20; del u")
	eventually(t, "torch has its memory again", isBack)

	// A release whose work is still under way: torch must not get the memory
	// before, or its next tensor overwrites what is read.
	run(t, p, "u = torch.full((1 << 20,), 6., device='cuda')\ntorch.cuda.synchronize()")
	y = must(p.Get("u"))(t)
	run(t, p, "with torch.cuda.stream(torch.cuda.ExternalStream(%d)): torch.cuda._sleep(LONG)", s.Handle())
	c := must(s.Copy(y))(t)
	y.Release()
	run(t, p, "at = u.data_ptr(); del u; gc.collect()\nn = [torch.full((1 << 20,), 1., device='cuda') for _ in range(8)]\nassert at not in [x.data_ptr() for x in n]")
	wantFloats(t, c, 6)
	run(t, p, "del n")
	eventually(t, "torch has its memory again", isBack)

	x := onDevice(t, d, dtype.F32, 1<<20)
	must(0, p.Set("x", x))(t)
	run(t, p, "v = torch.from_dlpack(x); want = v.clone()")
	x.Release()
	if f := d.Memory().Stats().Total; f.Current != 4<<20 {
		t.Errorf("got %d bytes while torch has a tensor, want %d", f.Current, 4<<20)
	}
	run(t, p, "assert torch.equal(v, want)")
	collect(t, p, "x, v, want, before, at")
	eventually(t, "the device has its memory again", func() bool { return d.Memory().Stats().Total.Current == 0 })
}

// TestTorchElsewhere: host memory that the device can address, and copies to
// the host.
func TestTorchElsewhere(t *testing.T) {
	r, p := torchRig(t)
	d := r.devices[0]
	x, h := onDevice(t, d, dtype.F32, 100), must(d.Pinned(dtype.F32, shape.MustOf(100)))(t)
	must(0, p.Set("x", x))(t)
	must(0, p.Set("h", h))(t)
	run(t, p, `
a = torch.from_dlpack(x, device="cpu")
assert not a.is_cuda and content(a) == [i %% 100 for i in range(400)]
b = torch.from_dlpack(h, device="cpu")
assert not b.is_cuda and b.is_pinned() and b.data_ptr() == %d
q = torch.full((10,), 2., pin_memory=True)
`, where(t, h))
	y := must(p.Get("q"))(t)
	if y.Device() != nil || must(tensor.At[float32](y, 9))(t) != 2 {
		t.Errorf("page-locked memory of torch: got it on %s", y.Device())
	}
	y.Release()
	collect(t, p, "a, b, q, x, h")
	if *managedMemory {
		m := must(d.Managed(dtype.F32, shape.MustOf(100)))(t)
		m = must(d.Main().Fill(m.Donate(), float32(3)))(t)
		must(0, p.Set("m", m))(t)
		run(t, p, "a = torch.from_dlpack(m, device='cuda')\nassert a.sum().item() == 300")
		collect(t, p, "a, m")
		m.Release()
	}
	x.Release()
	h.Release()
}

// TestCupyOnDevice and TestJAXOnDevice: both directions in place.
func TestCupyOnDevice(t *testing.T) {
	r := realRig(t, 1)
	p := python(t, "cupy")
	if err := p.Run("cupy.zeros(1)"); err != nil {
		t.Skipf("cupy does not work: %v", err)
	}
	d := r.devices[0]
	x := onDevice(t, d, dtype.F32, 4, 6)
	must(0, p.Set("x", x))(t)
	if err := p.Run("a = cupy.from_dlpack(x)"); err != nil {
		t.Logf("cupy takes no tensor for reading: %v", err)
		must(0, p.SetWritable("x", x))(t)
	}
	at := where(t, x)
	run(t, p, "a = cupy.from_dlpack(x)\nassert a.data.ptr == %d and a.view(cupy.uint8).ravel().tolist() == list(range(96))\nu = a.T + 1", at)
	y := must(p.Get("u"))(t)
	run(t, p, "assert u.data.ptr == %d", where(t, y))
	must(0, p.Set("y", y))(t)
	run(t, p, "assert (cupy.from_dlpack(y) == u).all()")
	y.Release()
	collect(t, p, "a, u, x, y")
	must(0, p.SetWritable("w", x))(t)
	run(t, p, "b = cupy.from_dlpack(w); b[...] = 2")
	collect(t, p, "b, w")
	eventually(t, "cupy gives it back", x.IsExclusive)
	wantFloats(t, must(d.Main().Copy(x))(t), 2)
	x.Release()
	if *managedMemory {
		run(t, p, "cupy.cuda.set_allocator(cupy.cuda.malloc_managed)\nu = cupy.full(50, 8, cupy.float32)")
		y := must(p.Get("u"))(t)
		if place := must(dlpack.DeviceOf(y))(t); place.Type != dlpack.CUDAManaged {
			t.Errorf("managed memory of cupy: got %s", place.Type)
		}
		wantFloats(t, must(d.Main().Copy(y))(t), 8)
		y.Release()
		collect(t, p, "u")
		run(t, p, "cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)")
	}
}

func TestJAXOnDevice(t *testing.T) {
	t.Setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
	r := realRig(t, 1)
	p := python(t)
	if err := p.Run("import os; os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'\nimport jax, jax.numpy as jnp\nassert jax.default_backend() == 'gpu'"); err != nil {
		text := strings.TrimSpace(err.Error())
		t.Skipf("no JAX on a GPU: %s", text[strings.LastIndexByte(text, '\n')+1:])
	}
	d := r.devices[0]
	x := must(d.Main().Zeros(dtype.F32, shape.MustOf(1000)))(t)
	x = must(d.Main().Fill(x.Donate(), float32(3)))(t)
	must(0, p.Set("x", x))(t)
	run(t, p, "a = jnp.from_dlpack(x)\nassert (a == 3).all()\nprint('jax: in place for reading:', a.unsafe_buffer_pointer() == %d)\nu = (a + 1).block_until_ready()", where(t, x))
	y := must(p.Get("u"))(t)
	run(t, p, "assert u.unsafe_buffer_pointer() == %d", where(t, y))
	wantFloats(t, must(d.Main().Copy(y))(t), 4)
	y.Release()
	collect(t, p, "a, u, x")
	eventually(t, "jax gives it back", x.IsExclusive)
	at := where(t, x)
	must(0, p.SetWritable("w", x))(t)
	run(t, p, "a = jnp.from_dlpack(w)\nassert a.unsafe_buffer_pointer() == %d and (a == 3).all()", at)
	collect(t, p, "a, w")
	eventually(t, "jax gives it back", x.IsExclusive)
	x.Release()
}

// BenchmarkTorch measures an exchange in each direction.
func BenchmarkTorch(b *testing.B) {
	r := realRig(b, 1)
	p := python(b, "torch")
	x := onDevice(b, r.devices[0], dtype.F32, 1000)
	defer x.Release()
	must(0, p.Set("x", x))(b)
	const loop = "import time\nbegin = time.perf_counter()\nfor _ in range(%d): %s\nprint('%s:', round((time.perf_counter() - begin) / %d * 1e9), 'ns')"
	run(b, p, "u = torch.zeros(1000, device='cuda'); torch.cuda.synchronize()")
	for _, c := range []struct{ what, do string }{{"torch.from_dlpack of a tensor", "torch.from_dlpack(x)"}, {"torch.from_dlpack of a tensor of torch", "torch.from_dlpack(u)"}} {
		run(b, p, "%s", fmt.Sprintf(loop, 10000, c.do, c.what, 10000))
	}
	for b.Loop() {
		must(p.Get("u"))(b).Release()
	}
	collect(b, p, "x, u")
}
