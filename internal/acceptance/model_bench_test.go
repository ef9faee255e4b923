package acceptance

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/tensor"
)

// BenchmarkModel runs each model of the optional test data on its first
// inputs, on one thread and on two, into the same outputs each time.
// bench/commits compares it with that of an earlier commit.
func BenchmarkModel(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(modeltest.SharedDir(b, "models"), "*", "model.onnx"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		b.Run(filepath.Base(folder), func(b *testing.B) {
			m, err := tenure.Load(file)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = m.Close() }()
			var inputs []tensor.Operand
			for i := range m.Inputs() {
				x := modeltest.ReadTensor(b, filepath.Join(folder, "test_data_set_0", fmt.Sprintf("input_%d.pb", i)))
				defer func() { _ = x.Release() }()
				inputs = append(inputs, x)
			}
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) { benchModel(b, m, threads, inputs) })
			}
		})
	}
}

func benchModel(b *testing.B, m *tenure.Model, threads int, inputs []tensor.Operand) {
	s, err := m.NewSession(tenure.WithThreads(threads))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	out := make([]*tensor.Tensor, len(m.Outputs()))
	// The first run makes the plan and packs weights.
	if err := s.RunInto(b.Context(), inputs, out); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.RunInto(b.Context(), inputs, out); err != nil {
			b.Fatal(err)
		}
	}
	for _, y := range out {
		_ = y.Release()
	}
}
