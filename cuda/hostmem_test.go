package cuda_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// managedMemory: some virtual machines do not bear managed memory of a device.
var managedMemory = flag.Bool("managed", false, "use managed memory of devices")

// TestHostMemory: page-locked and managed memory are tensors like others, whose
// consumers are told what they are.
func TestHostMemory(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		d := r.devices[0]
		sh := shape.MustOf(1000)
		h := must(d.Pinned(dtype.F32, sh))(t)
		m := must(dlpack.Export(h))(t)
		if m.Tensor.Device != (dlpack.Device{Type: dlpack.CUDAHost}) || h.Device() != nil || must(tensor.At[float32](h, 999))(t) != 0 {
			t.Errorf("page-locked: got %+v on %s, want zeros of cuda_host", m.Tensor, h.Device())
		}
		at := m.Tensor.Data
		m.Delete(nil)
		far := must(tensor.To(t.Context(), h, d.Memory()))(t)
		back := must(tensor.To(t.Context(), far.Reuse(), nil))(t)
		back.Release()
		if err := d.Close(); !errors.Is(err, memory.ErrShared) || !strings.Contains(err.Error(), "got 1 tensors that are imported or in page-locked memory") {
			t.Errorf("close with page-locked memory: got %v", err)
		}
		h.Release()
		h = must(d.Pinned(dtype.F32, sh))(t)
		if m = must(dlpack.Export(h))(t); m.Tensor.Data != at {
			t.Errorf("got page-locked memory at %#x, want that of before at %#x", m.Tensor.Data, at)
		}
		m.Delete(nil)
		h.Release()

		if r.Machine == nil && !*managedMemory {
			return
		}
		x := must(d.Managed(dtype.F32, sh))(t)
		x = must(d.Main().Fill(x.Donate(), float32(0)))(t)
		m = must(dlpack.Export(x))(t)
		if m.Tensor.Device.Type != dlpack.CUDAManaged || x.Device() != d.Memory() {
			t.Errorf("managed: got %+v on %s", m.Tensor, x.Device())
		}
		back = must(tensor.To(t.Context(), x, nil))(t)
		if got := must(tensor.At[float32](back, 999))(t); got != 0 {
			t.Errorf("managed: got %v, want 0", got)
		}
		back.Release()
		x.Release()
		m.Delete(nil)
		memory.Reclaim()
	})
}
