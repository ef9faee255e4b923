package tenure_test

import (
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
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
	image := of(b, make([]float32, 64), 1, 1, 8, 8)
	b.Run("digits", bench(filepath.Join("examples", "digits", "digits.onnx"), func() tenure.Inputs { return tenure.Inputs{"image": image} }, release))
	state, x := of(b, make([]float32, 64), 1, 64), of(b, make([]float32, 64), 1, 64)
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
