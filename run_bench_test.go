package tenure

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// BenchmarkRun measures the time of a run without its kernels: models so small
// that little else is left. For each model it runs the steps alone, without the
// session, runs by position into the same tensors, and runs by name.
func BenchmarkRun(b *testing.B) {
	of := func(dims ...int) *tensor.Tensor {
		x, err := tensor.Of(make([]float32, 64), dims...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = x.Release() })
		return x
	}
	b.Run("digits", func(b *testing.B) {
		s := benchSession(b, filepath.Join("examples", "digits", "digits.onnx"))
		image := of(1, 1, 8, 8)
		benchSteps(b, s, image)
		benchPositions(b, s, image)
		b.Run("by name", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Run(b.Context(), Inputs{"image": image})
				if err != nil {
					b.Fatal(err)
				}
				if err := out.Release(); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("state", func(b *testing.B) {
		s := benchSession(b, filepath.Join("testdata", "state.onnx"))
		state, x := of(1, 64), of(1, 64)
		benchSteps(b, s, state, x)
		benchPositions(b, s, state, x)
		b.Run("by position, donated", func(b *testing.B) {
			b.ReportAllocs()
			out := []*tensor.Tensor{state, nil}
			for b.Loop() {
				if err := s.RunInto(b.Context(), []tensor.Operand{state.Donate(), x}, out); err != nil {
					b.Fatal(err)
				}
			}
			_ = out[1].Release()
		})
		b.Run("by name, donated", func(b *testing.B) {
			b.ReportAllocs()
			state := of(1, 64)
			for b.Loop() {
				out, err := s.Run(b.Context(), Inputs{"state": state.Donate(), "x": x})
				if err != nil {
					b.Fatal(err)
				}
				state = out["next"]
				_ = out["y"].Release()
			}
			_ = state.Release()
		})
	})
}

// BenchmarkRow writes one row of 8 heads into a cache of 32 MiB that is
// donated: the whole run, and the step that writes alone.
func BenchmarkRow(b *testing.B) {
	for name, text := range map[string]string{
		"TensorScatter": `func @f(donate %cache: f32[1,8,16384,64], %row: f32[1,8,1,64], %at: i64[1]) {
			%next = tensor_scatter(donate %cache, %row, %at) {axis = 2} return %next }`,
		"ScatterND": `func @f(donate %cache: f32[16384,512], %row: f32[1,512], %at: i64[1,1]) {
			%next = scatter_nd(donate %cache, %at, %row) return %next }`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := ir.Parse(text, op.Builtin())
			if err != nil {
				b.Fatal(err)
			}
			m, err := LoadProgram(p, nil)
			s := benchSessionOf(b, m, err)
			var in []*tensor.Tensor
			for _, v := range p.Body.Params {
				x, err := tensor.New(v.Type.DType, v.Type.Shape)
				if err != nil {
					b.Fatal(err)
				}
				in = append(in, x)
				defer func() { _ = x.Release() }()
			}
			row, at := in[1], in[2]
			b.Run("RunInto", func(b *testing.B) {
				b.ReportAllocs()
				out := []*tensor.Tensor{in[0]}
				operands := []tensor.Operand{in[0].Donate(), row, at}
				for b.Loop() {
					if err := s.RunInto(b.Context(), operands, out); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("step", func(b *testing.B) {
				var times int
				var sum time.Duration
				watch := Watch(func(_ *ir.Call, took time.Duration) { times, sum = times+1, sum+took })
				out := []*tensor.Tensor{in[0]}
				for b.Loop() {
					if err := s.RunInto(b.Context(), []tensor.Operand{in[0].Donate(), row, at}, out, watch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(sum.Nanoseconds())/float64(times), "ns/step")
			})
		})
	}
}

func benchSession(b *testing.B, file string) *Session {
	m, err := Load(file)
	return benchSessionOf(b, m, err)
}

func benchSessionOf(b *testing.B, m *Model, err error) *Session {
	if err != nil {
		b.Fatal(err)
	}
	s, err := m.NewSession(WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = s.Close()
		_ = m.Close()
	})
	return s
}

// benchSteps runs the plan's steps and nothing else.
func benchSteps(b *testing.B, s *Session, in ...*tensor.Tensor) {
	b.Run("steps", func(b *testing.B) {
		types := make([]op.Type, len(in))
		inputs := make([][]byte, len(in))
		for i, x := range in {
			types[i] = typeOf(x)
			inputs[i], _ = x.UnsafeBytes()
		}
		exe, err := s.executable(context.Background(), target{types: types, donated: make([]bool, len(in))})
		if err != nil {
			b.Fatal(err)
		}
		outputs := make([][]byte, len(s.model.outputs))
		for i := range outputs {
			n, err := exe.ResultType(i).Bytes()
			if err != nil {
				b.Fatal(err)
			}
			outputs[i] = make([]byte, n)
		}
		slot, err := s.takeSlot(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		defer func() { s.slots <- slot }()
		runner, err := slot.Runner(exe)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := runner.Run(s.pool, nil, inputs, outputs); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchPositions runs into the tensors of the run before.
func benchPositions(b *testing.B, s *Session, in ...*tensor.Tensor) {
	operands := make([]tensor.Operand, len(in))
	for i, x := range in {
		operands[i] = x
	}
	b.Run("RunInto", func(b *testing.B) {
		b.ReportAllocs()
		out := make([]*tensor.Tensor, len(s.model.outputs))
		for b.Loop() {
			if err := s.RunInto(b.Context(), operands, out); err != nil {
				b.Fatal(err)
			}
		}
		for _, y := range out {
			_ = y.Release()
		}
	})
	b.Run("Binding", func(b *testing.B) {
		b.ReportAllocs()
		bound, err := s.Bind()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := bound.Run(b.Context(), operands...); err != nil {
				b.Fatal(err)
			}
		}
		_ = bound.Close()
	})
}
