package tenure_test

import (
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// BenchmarkRun is what a run costs beside its kernels: models so small that little else is left.
func BenchmarkRun(b *testing.B) {
	bench := func(file string, in func() tenure.Inputs, after func(out tenure.Outputs)) func(b *testing.B) {
		return func(b *testing.B) {
			m, err := tenure.Load(file)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			s, err := m.NewSession(tenure.WithThreads(1))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Run(b.Context(), in())
				if err != nil {
					b.Fatal(err)
				}
				after(out)
			}
		}
	}
	release := func(out tenure.Outputs) {
		if err := out.Release(); err != nil {
			b.Fatal(err)
		}
	}
	of := func(dims ...int) *tensor.Tensor {
		x, err := tensor.Of(make([]float32, 64), dims...)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	image := of(1, 1, 8, 8)
	defer image.Release()
	b.Run("digits", bench(filepath.Join("examples", "digits", "digits.onnx"), func() tenure.Inputs { return tenure.Inputs{"image": image} }, release))
	state, x := of(1, 64), of(1, 64)
	defer x.Release()
	b.Run("state", bench(filepath.Join("testdata", "state.onnx"),
		func() tenure.Inputs { return tenure.Inputs{"state": state.Donate(), "x": x} },
		func(out tenure.Outputs) {
			state = out["next"]
			delete(out, "next")
			release(out)
		}))
	if err := state.Release(); err != nil {
		b.Fatal(err)
	}
}
