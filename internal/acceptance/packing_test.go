package acceptance_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// packedModel has a convolution whose weights a normalisation is folded into,
// and two products. The name of its first node moves the weights in the file.
func packedModel(first string) []byte {
	raw := func(n int) []byte {
		var b []byte
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%23-11)/32))
		}
		return b
	}
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n", 16, 4, 4)
	g.Weight("k", onnxtest.F32, raw(64*16*9), 64, 16, 3, 3)
	for _, name := range []string{"scale", "shift", "mean", "variance"} {
		g.Weight(name, onnxtest.F32, raw(64 * 64)[4*40:4*104], 64)
	}
	g.Floats("ones", make([]float32, 64)...)
	g.Weight("w", onnxtest.F32, raw(1024*256), 1024, 256)
	g.Weight("v", onnxtest.F32, raw(256*192), 192, 256)
	g.Weight("b", onnxtest.F32, raw(192), 192)
	g.Node("Conv", []string{"x", "k"}, []string{first}, onnxtest.Ints("kernel_shape", 3, 3), onnxtest.Ints("pads", 1, 1, 1, 1))
	g.Node("BatchNormalization", []string{first, "scale", "shift", "mean", "scale"}, []string{"n"})
	g.Node("Flatten", []string{"n"}, []string{"f"})
	g.Node("MatMul", []string{"f", "w"}, []string{"h"})
	g.Node("Gemm", []string{"h", "v", "b"}, []string{"y"}, onnxtest.Int("transB", 1))
	g.Output("y")
	return g.File()
}

// TestPackedWeights loads a model whose weights lie at every distance from an
// aligned address. A session holds them once, in the forms of the kernels, as
// the plan says, for any shapes that it runs; the results are those of the
// program as it was read.
func TestPackedWeights(t *testing.T) {
	for pad := range 4 {
		t.Run(fmt.Sprint(pad), func(t *testing.T) { testPackedWeights(t, packedModel(strings.Repeat("c", 1+pad))) })
	}
}

func testPackedWeights(t *testing.T, data []byte) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "packed.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	file := modeltest.Must(memory.MapFile(path))
	trimmable := file.IsTrimmable()
	if err := file.Release(); err != nil {
		t.Fatal(err)
	}
	m := modeltest.Load(t, path)
	s := modeltest.Session(t, m, tenure.WithThreads(2))
	var held int64
	for _, batch := range []int{1, 5, 1} {
		x := modeltest.Of(t, modeltest.Ramp(batch*16*16), batch, 16, 4, 4)
		out := modeltest.Run(t, s, tenure.Inputs{"x": x})
		p, err := s.Plan(context.Background(), tenure.Shapes{"x": {batch, 16, 4, 4}})
		if err != nil {
			t.Fatal(err)
		}
		now := memory.Stats()
		inMemory := now.Of(memory.Weights).Current - now.Files
		if held == 0 {
			held = inMemory
		}
		var packed, unloaded int64
		transformed := false
		for _, w := range p.Packed {
			packed, unloaded = packed+w.Bytes, unloaded+w.Unloaded
			transformed = transformed || strings.Contains(w.Form, "transformed")
		}
		// Weights that are not packed lie in the file or, in all less than
		// this, beside it. The portable kernels pack no weights of
		// convolutions, and from transformed ones these cannot be made again.
		const conv, products = 4 * 64 * 16 * 9, 4 * (1024*256 + 192*256)
		rest := int64(8 << 10)
		want := int64(0)
		if trimmable {
			want = products
		}
		if len(p.Packed) < 3 || transformed {
			rest += conv
		} else {
			want += conv // not in the file as it is: computed, and so given back everywhere
		}
		if inMemory != held || inMemory < packed || inMemory > packed+rest {
			t.Errorf("batch %d: got %d bytes of weights in memory, want the same %d at all times, and little more than the %d packed", batch, inMemory, held, packed)
		}
		if unloaded != want {
			t.Errorf("batch %d: got %d bytes unloaded, want %d: of the convolution and, where the pages of files can be given back, the products", batch, unloaded, want)
		}
		wantPlain(t, path, x, out["y"])
		if err := out.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// wantPlain holds a result to that of the program as it is in the file, call
// by call.
func wantPlain(t *testing.T, path string, x, y *tensor.Tensor) {
	t.Helper()
	file, err := onnx.Load(path, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	use, err := x.Use()
	if err != nil {
		t.Fatal(err)
	}
	defer use.Release()
	in := ir.Interpreter{Eval: compute.Eval, Weights: file.Weights}
	results, err := in.Run(file.Program, op.Arg{Type: op.Type{DType: x.DType(), Shape: x.Shape()}, Data: use.Data})
	if err != nil {
		t.Fatal(err)
	}
	got := modeltest.Values(t, y)
	for i, v := range got {
		want := math.Float32frombits(binary.LittleEndian.Uint32(results[0].Data[4*i:]))
		if math.Abs(float64(v-want)) > 1e-4*(1+math.Abs(float64(want))) {
			t.Fatalf("element %d: got %v, want %v", i, v, want)
		}
	}
}

// TestFoldedWeightsAreNotThereTwice folds a normalisation into convolutions
// and packs them: at no moment is more in memory than the packed weights and
// one other weight.
func TestFoldedWeightsAreNotThereTwice(t *testing.T) {
	memorytest.Check(t)
	const channels, layers = 64, 6
	const each = 4 * channels * channels * 9
	raw := make([]byte, each)
	for i := 0; i < each; i += 4 {
		binary.LittleEndian.PutUint32(raw[i:], math.Float32bits(float32(i/4%23-11)/256))
	}
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1, channels, 4, 4)
	ones := make([]float32, channels)
	for i := range ones {
		ones[i] = 1 + float32(i)/channels
	}
	g.Floats("ones", ones...)
	last := "x"
	for i := range layers {
		k, c, n := fmt.Sprintf("k%d", i), fmt.Sprintf("c%d", i), fmt.Sprintf("n%d", i)
		g.Weight(k, onnxtest.F32, raw, channels, channels, 3, 3)
		g.Node("Conv", []string{last, k}, []string{c}, onnxtest.Ints("kernel_shape", 3, 3), onnxtest.Ints("pads", 1, 1, 1, 1))
		g.Node("BatchNormalization", []string{c, "ones", "ones", "ones", "ones"}, []string{n})
		last = n
	}
	g.Output(last)
	path := filepath.Join(t.TempDir(), "folded.onnx")
	if err := os.WriteFile(path, g.File(), 0o666); err != nil {
		t.Fatal(err)
	}
	memory.ResetPeak()
	before := memory.Stats().Of(memory.Weights).Current
	m := modeltest.Load(t, path)
	if loaded := m.WeightMemory().Private; loaded > each/4 {
		t.Errorf("loaded: got %d bytes of weights in memory, want biases only", loaded)
	}
	s := modeltest.Session(t, m, tenure.WithThreads(2))
	x := modeltest.Of(t, modeltest.Ramp(channels*4*4), 1, channels, 4, 4)
	out := modeltest.Run(t, s, tenure.Inputs{"x": x})
	now := memory.Stats()
	wantPlain(t, path, x, out[last])
	if err := out.Release(); err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(t.Context(), tenure.Shapes{"x": {1, channels, 4, 4}})
	if err != nil {
		t.Fatal(err)
	}
	var packed int64
	for _, w := range p.Packed {
		packed += w.Bytes
	}
	if len(p.Packed) == 0 { // the portable kernels read them as they are
		packed = layers * each
	}
	if peak := now.Of(memory.Weights).Peak - before - now.Files; peak > packed+each+each/2 || peak < packed {
		t.Errorf("got a peak of %d bytes of weights in memory, want at most %d and one weight of %d", peak, packed, each)
	}
}

// TestSizesFromValues: the sizes of a picture follow from the values of an
// input although the shapes of all inputs are fixed, and with them the form in
// which weights are read. Each run computes what a model computes that had no
// other sizes before.
func TestSizesFromValues(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1, 24, 5, 5)
	g.Input("sizes", onnxtest.I64, 4)
	var raw []byte
	for _, x := range modeltest.Ramp(48 * 24 * 9) {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x/10000))
	}
	g.Weight("k", onnxtest.F32, raw, 48, 24, 3, 3)
	g.Node("Resize", []string{"x", "", "", "sizes"}, []string{"larger"}, onnxtest.Text("mode", "linear"))
	g.Node("Conv", []string{"larger", "k"}, []string{"y"}, onnxtest.Ints("kernel_shape", 3, 3), onnxtest.Ints("pads", 1, 1, 1, 1))
	g.Output("y")
	at := func(t *testing.T, s *tenure.Session, size int64) []float32 {
		x, sizes := modeltest.Of(t, modeltest.Ramp(24*25), 1, 24, 5, 5), modeltest.Of(t, []int64{1, 24, size, size}, 4)
		return modeltest.Values(t, modeltest.Run(t, s, tenure.Inputs{"x": x, "sizes": sizes})["y"])
	}
	sizes := []int64{3, 14, 2, 7, 3, 20, 1}
	wants := make([][]float32, len(sizes))
	for i, size := range sizes {
		t.Run(fmt.Sprint("alone ", i), func(t *testing.T) { wants[i] = at(t, modeltest.SessionOf(t, g.File()), size) })
	}
	s := modeltest.SessionOf(t, g.File())
	for i, size := range sizes {
		if got := at(t, s, size); !slices.Equal(got, wants[i]) {
			t.Errorf("run %d, of %dx%d: got other results than those of a model that had no other sizes", i, size, size)
		}
	}
}
