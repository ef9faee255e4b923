package acceptance_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// contribFile is a model of one node of ONNX Runtime's own.
func contribFile(g *onnxtest.Graph, opType string, in, out []string, attrs ...onnxtest.Message) []byte {
	w := onnxtest.Message(nil)
	for _, name := range in {
		w = w.Text(1, name)
	}
	for _, name := range out {
		w = w.Text(2, name)
		g.Output(name)
	}
	w = w.Text(3, "node").Text(4, opType).Text(7, "com.microsoft")
	for _, a := range attrs {
		w = w.Bytes(5, a)
	}
	g.Nodes = g.Nodes.Bytes(1, w)
	return onnxtest.Message(g.File()).Bytes(8, onnxtest.Message(nil).Text(1, "com.microsoft").Varint(2, 1))
}

// TestMatMulNBits multiplies by weights of 4 bits: the lower half of a byte
// comes first, and 8 stands for 0.
func TestMatMulNBits(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n", 4)
	g.Weight("w", 2, []byte{0x98, 0xba, 0x77, 0x08}, 2, 2, 1) // rows 0 1 | 2 3 and -1 -1 | 0 -8
	g.Floats("scales", 1, 10, 2, 0.5)
	file := contribFile(&g, "MatMulNBits", []string{"x", "w", "scales"}, []string{"y"},
		onnxtest.Int("K", 4), onnxtest.Int("N", 2), onnxtest.Int("bits", 4), onnxtest.Int("block_size", 2))
	out := modeltest.Run(t, modeltest.SessionOf(t, file), tenure.Inputs{"x": modeltest.Of(t, []float32{1, 2, 3, 4, 0, 0, 0, 1}, 2, 4)})
	y := modeltest.Values(t, out["y"])
	// Row 0 is 0, 1, 20, 30; row 1 is -2, -2, 0, -4.
	if want := []float32{2 + 60 + 120, -2 - 4 - 16, 30, -4}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
}

// attentionFile is an Attention of one head of one number, whose scores are 0:
// the result is the mean of the keys that count.
func attentionFile(dims []any, mask []any) []byte {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, dims...)
	g.Input("mask", onnxtest.I32, mask...)
	g.Weight("w", onnxtest.F32, []byte{8: 0, 10: 0x80, 0x3f}, 1, 3) // 0, 0 and 1
	return contribFile(&g, "Attention", []string{"x", "w", "", "mask"}, []string{"y"}, onnxtest.Int("num_heads", 1))
}

// TestAttentionMask reads masks whose sizes are not known when the model is
// read.
func TestAttentionMask(t *testing.T) {
	x := modeltest.Of(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3, 1)
	for _, c := range []struct {
		dims, mask []any
		value      *tensor.Tensor
		want       []float32
	}{
		{[]any{"batch", "time", 1}, []any{"batch"}, modeltest.Of(t, []int32{2, 1}, 2), []float32{1.5, 1.5, 1.5, 4, 4, 4}},
		{[]any{2, "time", 1}, []any{4}, modeltest.Of(t, []int32{2, 3, 0, 1}, 4), []float32{1.5, 1.5, 1.5, 5.5, 5.5, 5.5}},
		{[]any{2, "time", 1}, []any{8}, modeltest.Of(t, []int32{2, 0, 0, 1, 2, 3, 4, 5}, 8), []float32{1.5, 1.5, 1.5, 5, 5, 5}},
		{[]any{"batch", "time", 1}, []any{"batch", "time"}, modeltest.Of(t, []int32{1, 0, 1, 0, 0, 0}, 2, 3), []float32{2, 2, 2, 5, 5, 5}},
		{
			[]any{"batch", "time", 1}, []any{"batch", "time", "keys"},
			modeltest.Of(t, []int32{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1}, 2, 3, 3), []float32{1, 2, 3, 4.5, 5, 5},
		},
	} {
		out := modeltest.Run(t, modeltest.SessionOf(t, attentionFile(c.dims, c.mask)), tenure.Inputs{"x": x, "mask": c.value})
		if got := modeltest.Values(t, out["y"]); !slices.Equal(got, c.want) {
			t.Errorf("mask %v of %v: got %v, want %v", c.mask, c.dims, got, c.want)
		}
	}
}

// TestAttentionMaskIsRefused reads masks whose meaning is undefined, or that
// fit no sample.
func TestAttentionMaskIsRefused(t *testing.T) {
	for _, c := range []struct {
		dims, mask []any
		want       string
	}{
		{[]any{"batch", "time", 1}, []any{"other"}, "not known at load whether it has one number per sample"},
		{[]any{"batch", "time", 1}, []any{4}, "not known at load whether it has one number per sample"},
		{[]any{"batch", "time", 1}, []any{"batch", 1, "most", "most"}, "want 1 to 3 dimensions"},
		{[]any{2, 3, 1}, []any{3}, "want one or two numbers for each"},
		{[]any{2, 3, 1}, []any{2, 4}, "want [2 3]"},
		{[]any{2, 3, 1}, []any{2, 1, 3}, "want [2 3 3]"},
		{[]any{2, 3, 4, 1}, []any{2}, "want 3 dimensions"},
	} {
		m, err := tenure.LoadBytes(attentionFile(c.dims, c.mask))
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, tenure.ErrUnsupported) && !errors.Is(err, tenure.ErrShape) {
			t.Errorf("mask %v of %v: got %v, want %q", c.mask, c.dims, err, c.want)
		}
	}
}

// TestAttentionPast decodes: each step has the keys and values of the steps
// before it, of which sizes are not known when the model is read.
func TestAttentionPast(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "batch", "time", 1)
	g.Input("past", onnxtest.F32, 2, "batch", 1, "before", 1)
	g.Weight("w", onnxtest.F32, []byte{8: 0, 10: 0x80, 0x3f}, 1, 3)
	s := modeltest.SessionOf(t, contribFile(&g, "Attention", []string{"x", "w", "", "", "past"}, []string{"y", "present"},
		onnxtest.Int("num_heads", 1), onnxtest.Int("unidirectional", 1)))
	past := modeltest.Of(t, []float32{0, 5}, 2, 1, 1, 1, 1)
	for _, step := range []struct{ x, y, present []float32 }{
		{[]float32{1}, []float32{3}, []float32{0, 0, 5, 1}},
		{[]float32{6, 8}, []float32{4, 5}, []float32{0, 0, 0, 0, 5, 1, 6, 8}},
	} {
		out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, step.x, 1, len(step.x), 1), "past": past})
		past = out["present"]
		if y, present := modeltest.Values(t, out["y"]), modeltest.Values(t, past); !slices.Equal(y, step.y) || !slices.Equal(present, step.present) {
			t.Errorf("got %v and %v, want %v and %v", y, present, step.y, step.present)
		}
	}
}

// TestMatMulNBitsMemory multiplies by weights that stay packed: a session holds
// their bytes and those of scales once, in panels, wherever in the file they
// lie.
func TestMatMulNBitsMemory(t *testing.T) {
	memorytest.Check(t)
	const rows, k, block = 512, 1024, 16
	for _, bits := range []int64{4, 8} {
		var g onnxtest.Graph
		g.Input("x", onnxtest.F32, 1, k)
		packed := make([]byte, rows*k*bits/8)
		for i := range packed {
			packed[i] = byte(i)
		}
		g.Weight("w", 2, packed, rows, k/block, block*bits/8)
		g.Weight("scales", onnxtest.F32, bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, rows*k/block), rows*k/block) // ones
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, contribFile(&g, "MatMulNBits", []string{"x", "w", "scales"}, []string{"y"},
			onnxtest.Int("K", k), onnxtest.Int("N", rows), onnxtest.Int("bits", bits), onnxtest.Int("block_size", block)), 0o666); err != nil {
			t.Fatal(err)
		}
		held := func() int64 { return memory.Stats().Of(memory.Weights).Current - memory.Stats().Files }
		before := held()
		s := modeltest.Session(t, modeltest.Load(t, path))
		x := make([]float32, k)
		x[1] = 1
		out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, x, 1, k)})
		if took, want := held()-before, int64(len(packed)+4*rows*k/block); took != want {
			t.Errorf("%d bits: got %d bytes of weights beside the file's, want %d of panels and scales", bits, took, want)
		}
		each := map[int64]float32{4: 0 - 8, 8: 1 - 128}[bits] // the second element of every row
		if y := modeltest.Values(t, out["y"]); slices.Min(y) != each || slices.Max(y) != each {
			t.Errorf("%d bits: got %v to %v, want %v", bits, slices.Min(y), slices.Max(y), each)
		}
	}
}

// TestMatMulNBitsThreads multiplies on several threads: the results are the
// same bits, for floats and for bytes, few rows and many, and sizes that are no
// whole number of blocks, panels or tiles.
func TestMatMulNBitsThreads(t *testing.T) {
	const rows, k, block, blocks = 611, 493, 32, 16
	for _, bits := range []int64{2, 4, 8} {
		for _, level := range []int64{0, 4} {
			var g onnxtest.Graph
			g.Input("x", onnxtest.F32, "n", k)
			packed := make([]byte, rows*blocks*block*bits/8)
			for i := range packed {
				packed[i] = byte(i * i >> 3)
			}
			g.Weight("w", 2, packed, rows, blocks, block*bits/8)
			scales := make([]float32, rows*blocks)
			for i := range scales {
				scales[i] = float32(i%7+1) / 64
			}
			g.Floats("scales", scales...)
			m := modeltest.LoadBytes(t, contribFile(&g, "MatMulNBits", []string{"x", "w", "scales"}, []string{"y"},
				onnxtest.Int("K", k), onnxtest.Int("N", rows), onnxtest.Int("bits", bits), onnxtest.Int("block_size", block), onnxtest.Int("accuracy_level", level)))
			for _, n := range []int{1, 3, 150} {
				var want []byte
				for _, threads := range []int{1, 2, 3, 8} {
					s := modeltest.Session(t, m, tenure.WithThreads(threads))
					x := modeltest.Of(t, modeltest.Ramp(n*k), n, k)
					got := bytesIn(t, modeltest.Run(t, s, tenure.Inputs{"x": x})["y"])
					if want == nil {
						want = bytes.Clone(got)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%d bits, accuracy_level %d, %d rows: %d threads give other bits than one", bits, level, n, threads)
					}
				}
			}
		}
	}
}
