package acceptance

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// final is a final program of a model with all that compiles it.
type final struct {
	program *ir.Program
	table   *weights.Overlay
	options exec.Options
}

// finalOf loads a model and specialises it for inputs of the given sizes.
func finalOf(b *testing.B, path string, sizes [][]int) final {
	b.Helper()
	m, err := onnx.Load(path, onnx.Options{Registry: op.Builtin()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	})
	p := m.Program
	if err := pass.Run(&pass.Context{Program: p, Constants: m.Weights, MaxFold: 64 << 10, MaxFill: 1 << 30}, pass.Load, nil); err != nil {
		b.Fatal(err)
	}
	if err := m.Weights.Prune(p); err != nil {
		b.Fatal(err)
	}
	types := make([]op.Type, len(sizes))
	for i, v := range p.Body.Params {
		types[i] = op.Type{DType: v.Type.DType, Shape: shape.MustOf(sizes[i]...)}
	}
	if err := p.Bind(types...); err != nil {
		b.Fatal(err)
	}
	table := &weights.Overlay{Base: m.Weights}
	c := &pass.Context{Program: p, Constants: table, MaxFold: 64 << 10}
	if err := pass.Run(c, pass.Specialise, nil); err != nil {
		b.Fatal(err)
	}
	return final{p, table, exec.Options{Threads: 2, Declined: c.Declined, Copies: c.Copies, Store: m.Weights}}
}

// BenchmarkCompile measures the compilation of a final program until it can
// run, and its parts that have functions of their own: the rules of the program
// (verify), the whole of exec.Compile, the proof of its document (check), the
// tasks of a runner, and an instance of other sizes that a slot is ready to
// run.
func BenchmarkCompile(b *testing.B) {
	for _, model := range []struct {
		name  string
		sizes func(n int) [][]int
	}{
		{"bert_tiny", func(n int) [][]int { return [][]int{{2, 13 + n}, {2, 13 + n}, {2, 13 + n}} }},
		{"gpt2_tiny", func(n int) [][]int {
			past := []int{1, 4, 11 + n, 24}
			return [][]int{{1, 1}, {1, 12 + n}, past, past, past, past, past, past}
		}},
		{"resnet18_thin", func(n int) [][]int { return [][]int{{2 + n, 3, 96, 96}} }},
		{"unet_tiny", func(n int) [][]int { return [][]int{{1, 3, 48, 64 + 8*n}} }},
	} {
		b.Run(model.name, func(b *testing.B) {
			path := filepath.Join(modeltest.SharedDir(b, filepath.Join("models", model.name)), "model.onnx")
			var sizes []final
			for n := range 10 {
				f := finalOf(b, path, model.sizes(n))
				if len(sizes) == 0 || f.program.With(ir.TypesOf(sizes[0].program)).String() == sizes[0].program.String() {
					sizes = append(sizes, f)
				}
			}
			benchmarkCompile(b, sizes)
		})
	}
}

// BenchmarkCompileEncoder is BenchmarkCompile of a generated program of some
// 300 steps: attention and two products per layer, with no use of earlier
// values but residual sums.
func BenchmarkCompileEncoder(b *testing.B) {
	var sizes []final
	for n := range 10 {
		sizes = append(sizes, encoderOf(b, 20+n))
	}
	benchmarkCompile(b, sizes)
}

// encoder returns the program of an encoder for so many tokens, and its
// weights.
func encoder(b *testing.B, tokens shape.Dim) (*ir.Program, ir.WeightMap) {
	const layers, width, heads = 17, 32, 4
	f32 := func(dims ...int) op.Type { return op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)} }
	input, err := shape.FromDims(tokens, shape.N(width))
	if err != nil {
		b.Fatal(err)
	}
	table := ir.WeightMap{}
	g := ir.NewBuilder("encoder", op.Builtin())
	weight := func(dims ...int) *ir.Value {
		w := g.Weight("", f32(dims...))
		table[w.Name] = make([]byte, 4*w.Type.Shape.NumElements())
		return w
	}
	sizes := func(list ...int64) *ir.Value {
		w := g.Weight("", op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))})
		for _, n := range list {
			table[w.Name] = binary.LittleEndian.AppendUint64(table[w.Name], uint64(n))
		}
		return w
	}
	attrs := func(name string, value any) op.Attrs { return op.Attrs{{Name: name, Value: value}} }
	apart, joined := sizes(0, heads, width/heads), sizes(0, width)
	split := func(x, w *ir.Value, perm ...int64) *ir.Value {
		return g.Call("transpose", attrs("perm", perm), g.Call("reshape", nil, g.Call("matmul", nil, x, w), apart))
	}
	x := g.Call("relu", nil, g.Param("x", op.Type{DType: dtype.F32, Shape: input}))
	for range layers {
		q, k, v := split(x, weight(width, width), 1, 0, 2), split(x, weight(width, width), 1, 2, 0), split(x, weight(width, width), 1, 0, 2)
		seen := g.Call("softmax", attrs("axis", int64(-1)), g.Call("matmul", nil, q, k))
		y := g.Call("reshape", nil, g.Call("transpose", attrs("perm", []int64{1, 0, 2}), g.Call("matmul", nil, seen, v)), joined)
		x = g.Call("add", nil, x, g.Call("matmul", nil, y, weight(width, width)))
		y = g.Call("relu", nil, g.Call("matmul", nil, x, weight(width, 4*width)))
		x = g.Call("add", nil, x, g.Call("matmul", nil, y, weight(4*width, width)))
	}
	g.Return(x)
	p, err := g.Build()
	if err != nil {
		b.Fatal(err)
	}
	return p, table
}

// encoderOf returns the final program of an encoder for so many tokens.
func encoderOf(b *testing.B, tokens int) final {
	p, table := encoder(b, shape.N(tokens))
	constants := &weights.Overlay{Base: table}
	c := &pass.Context{Program: p, Constants: constants, MaxFold: 64 << 10}
	if err := pass.Run(c, pass.Specialise, nil); err != nil {
		b.Fatal(err)
	}
	return final{p, constants, exec.Options{Threads: 2, Declined: c.Declined, Copies: c.Copies}}
}

// benchmarkCompile compiles the first program, and makes instances of it for
// the sizes of the others.
func benchmarkCompile(b *testing.B, sizes []final) {
	f := sizes[0]
	exe, err := exec.Compile(b.Context(), f.program, f.table, f.options)
	if err != nil {
		b.Fatal(err)
	}
	document, err := exe.Plan()
	if err != nil {
		b.Fatal(err)
	}
	phase := func(name string, run func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(document.Steps)), "ns/step")
		})
	}
	phase("verify", func() error { return ir.VerifyKnown(f.program, ir.Known(f.table)) })
	phase("compile", func() error {
		_, err := exec.Compile(b.Context(), f.program, f.table, f.options)
		return err
	})
	phase("check", func() error { return check.Check(f.program, document, f.table) })
	phase("runner", func() error {
		_, err := exe.NewRunner()
		return err
	})
	var types []ir.Types
	for _, f := range sizes {
		types = append(types, ir.TypesOf(f.program))
	}
	n := 0
	var slot exec.Slot
	defer slot.Release()
	phase("instance", func() error {
		n++
		e, err := exe.Instance(b.Context(), types[n%len(types)], sizes[n%len(types)].table)
		if err == nil {
			_, err = slot.Runner(e)
		}
		slot.Keep(n, func(kept *exec.Executable) bool { return kept == e })
		return err
	})
	b.Logf("%d steps, %d sizes of one structure, %+v", len(document.Steps), len(sizes), exe.InstanceFigures())
}
