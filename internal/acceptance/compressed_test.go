package acceptance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// compressedModel has products with constant matrices on all ways that reach
// kernels: with and without a bias, an activation, a factor and a residual,
// stored by rows and by columns. Their numbers are those of trained weights,
// but for one matrix that is noise.
func compressedModel() []byte {
	r := rand.New(rand.NewPCG(5, 6))
	numbers := func(n int, noise bool) []byte {
		var b []byte
		for range n {
			x := math.Float32bits(float32(r.NormFloat64() / 16))
			if noise {
				x = r.Uint32() &^ (3 << 29) // small ones, of all exponents
			}
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n", 300)
	g.Weight("a", onnxtest.F32, numbers(300*260, false), 300, 260)
	g.Weight("b", onnxtest.F32, numbers(260*300, false), 300, 260)
	g.Weight("c", onnxtest.F32, numbers(300*500, false), 300, 500)
	g.Weight("d", onnxtest.F32, numbers(500*300, true), 500, 300)
	g.Weight("e", onnxtest.F32, numbers(300*70, false), 70, 300)
	g.Weight("bias", onnxtest.F32, numbers(300, false), 300)
	g.Weight("bias500", onnxtest.F32, numbers(500, false), 500)
	g.Node("MatMul", []string{"x", "a"}, []string{"1"})
	g.Node("Gemm", []string{"1", "b", "bias"}, []string{"2"}, onnxtest.Int("transB", 1))
	g.Node("Relu", []string{"2"}, []string{"3"})
	g.Node("Gemm", []string{"3", "c", "bias500"}, []string{"4"}, onnxtest.Float("alpha", 0.3), onnxtest.Float("beta", 2))
	g.Node("MatMul", []string{"4", "d"}, []string{"5"})
	g.Node("Add", []string{"5", "3"}, []string{"6"})
	g.Node("Gemm", []string{"6", "e"}, []string{"y"}, onnxtest.Float("alpha", -1.5), onnxtest.Int("transB", 1))
	g.Output("6")
	g.Output("y")
	return g.File()
}

// TestCompressedWeights runs a model with and without compressed weights: the
// results are the same bits, for any number of rows and threads, and memory
// use equals that of the plan, which is less.
func TestCompressedWeights(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "compressed.onnx")
	if err := os.WriteFile(path, compressedModel(), 0o666); err != nil {
		t.Fatal(err)
	}
	plain, compressed := modeltest.Load(t, path), modeltest.Load(t, path, tenure.WithWeights(tenure.Compressed))
	results := func(m *tenure.Model, rows, threads int) [2][]byte {
		s := modeltest.Session(t, m, tenure.WithThreads(threads))
		defer s.Close()
		x := modeltest.Of(t, modeltest.Ramp(rows*300), rows, 300)
		out, err := s.Run(context.Background(), tenure.Inputs{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Release()
		return [2][]byte{bytesIn(t, out["6"]), bytesIn(t, out["y"])}
	}
	for _, rows := range []int{1, 3, 64} {
		for threads := 1; threads <= 3; threads++ {
			if want, got := results(plain, rows, threads), results(compressed, rows, threads); !bytes.Equal(got[0], want[0]) || !bytes.Equal(got[1], want[1]) {
				t.Errorf("%d rows, %d threads: the results differ from those of weights that are not compressed", rows, threads)
			}
		}
	}
	shapes := tenure.Shapes{"x": {1, 300}}
	size := func(m *tenure.Model) (promised, held int64) {
		p, err := m.Plan(context.Background(), shapes)
		if err != nil {
			t.Fatal(err)
		}
		var packed int64
		for _, w := range p.Packed {
			packed += w.Bytes
		}
		held = m.WeightMemory().Private
		if len(p.Packed) != 5 || held < packed || held > packed+8<<10 {
			t.Errorf("got %d weights packed in %d bytes, and %d in memory, want 5 and no more than biases beside them", len(p.Packed), packed, held)
		}
		return p.WeightBytes, held
	}
	full, inFull := size(plain)
	less, held := size(compressed)
	const saved = 4 * (300*260 + 260*300 + 300*500 + 70*300) * 3 / 32 // of all but the noise, at the least
	if full-less < saved || inFull-held < saved {
		t.Errorf("got %d bytes of weights in the plan and %d in memory, want %d less than %d and %d", less, held, saved, full, inFull)
	}
}

func bytesIn(t *testing.T, x *tensor.Tensor) []byte {
	t.Helper()
	use, err := x.Use()
	if err != nil {
		t.Fatal(err)
	}
	defer use.Release()
	return bytes.Clone(use.Data)
}

// TestCompressingTakesNoMore watches memory while a model of several matrices
// is compressed: it is never above the end's figure by more than one matrix.
func TestCompressingTakesNoMore(t *testing.T) {
	memorytest.Check(t)
	const layers, side = 5, 256
	r := rand.New(rand.NewPCG(7, 8))
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 1, side)
	last := "x"
	for i := range layers {
		raw := make([]byte, 4*side*side)
		for at := 0; at < len(raw); at += 4 {
			binary.LittleEndian.PutUint32(raw[at:], math.Float32bits(float32(r.NormFloat64()/16)))
		}
		w, y := fmt.Sprint("w", i), fmt.Sprint("y", i)
		g.Weight(w, onnxtest.F32, raw, side, side)
		g.Node("MatMul", []string{last, w}, []string{y})
		last = y
	}
	g.Output(last)
	path := filepath.Join(t.TempDir(), "layers.onnx")
	if err := os.WriteFile(path, g.File(), 0o666); err != nil {
		t.Fatal(err)
	}
	m := modeltest.Load(t, path, tenure.WithWeights(tenure.Compressed))
	memory.ResetPeak()
	if _, err := modeltest.Session(t, m).Plan(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	now := memory.Stats()
	held := m.WeightMemory().Private
	if peak := now.Of(memory.Weights).Peak - now.Files; peak > held+4*side*side || held > layers*4*side*side*7/8 {
		t.Errorf("got a peak of %d bytes of weights and %d held, want one matrix of %d above, and an eighth saved", peak, held, 4*side*side)
	}
}
