package eager_test

import (
	"runtime"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/tensor"
)

// An operation in place allocates the header of its result and nothing else.
func TestInPlaceAllocatesOneHeader(t *testing.T) {
	if invariant.Enabled || invariant.Race {
		t.Skip("this build remembers call sites or drops pooled memory at random")
	}
	x, y := of(t, make([]float32, 16), 16), of(t, make([]float32, 16), 16)
	for name, step := range map[string]func(){
		"relu": func() { x = ok(eager.Relu(x.Donate()))(t) },
		"add":  func() { x = ok(eager.Add(x.Reuse(), y))(t) },
	} {
		step()
		if got := testing.AllocsPerRun(100, step); got > 1 {
			t.Errorf("%s in place: got %v allocations, want at most 1", name, got)
		}
	}
	release(t, x, y)
}

func BenchmarkInPlace(b *testing.B) {
	y := of(b, make([]float32, 16), 16)
	defer y.Release()
	for name, step := range map[string]func(x *tensor.Tensor) (*tensor.Tensor, error){
		"relu/donate": func(x *tensor.Tensor) (*tensor.Tensor, error) { return eager.Relu(x.Donate()) },
		"add/donate":  func(x *tensor.Tensor) (*tensor.Tensor, error) { return eager.Add(x.Donate(), y) },
		"add/reuse":   func(x *tensor.Tensor) (*tensor.Tensor, error) { return eager.Add(y, x.Reuse()) },
	} {
		b.Run(name+"/16", func(b *testing.B) {
			b.ReportAllocs()
			x := of(b, make([]float32, 16), 16)
			for b.Loop() {
				var err error
				if x, err = step(x); err != nil {
					b.Fatal(err)
				}
			}
			release(b, x)
		})
	}
	b.Run("relu/fresh/16", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := eager.Relu(y)
			if err != nil {
				b.Fatal(err)
			}
			_ = x.Release()
		}
	})
	runtime.KeepAlive(y)
}
