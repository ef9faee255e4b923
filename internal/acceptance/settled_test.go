package acceptance_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestSettled has a case for each question that the text of ONNX, its
// reference implementation and ONNX Runtime answer differently.
// docs/onnx-differences.md has the reasons.
func TestSettled(t *testing.T) {
	infinity := float32(math.Inf(-1))
	numbers := []float32{1, 2, 3, 4, 5, 6}
	line := func(op string, attrs ...onnxtest.Message) func(g *onnxtest.Graph) {
		return func(g *onnxtest.Graph) { g.Node(op, []string{"x"}, []string{"y"}, attrs...) }
	}
	spread := func(w []float32, stride int64) func(g *onnxtest.Graph) {
		return func(g *onnxtest.Graph) {
			g.Floats("flat", w...)
			g.Ints("sizes", 1, 1, -1)
			g.Node("Reshape", []string{"flat", "sizes"}, []string{"w"})
			g.Node("ConvTranspose", []string{"x", "w"}, []string{"y"}, onnxtest.Ints("strides", stride), onnxtest.Text("auto_pad", "SAME_UPPER"))
		}
	}
	crop := func(lo, hi, scale float32) func(g *onnxtest.Graph) {
		return func(g *onnxtest.Graph) {
			g.Floats("region", 0, 0, lo, 1, 1, hi)
			g.Floats("scales", 1, 1, scale)
			g.Node("Resize", []string{"x", "region", "scales"}, []string{"y"}, onnxtest.Text("mode", "linear"),
				onnxtest.Text("coordinate_transformation_mode", "tf_crop_and_resize"))
		}
	}
	nan := float32(math.NaN())
	inDouble := func(op string) func(g *onnxtest.Graph) {
		return func(g *onnxtest.Graph) {
			g.Node("Cast", []string{"x"}, []string{"wide"}, onnxtest.Int("to", int64(dtype.F64.ONNX())))
			g.Node(op, []string{"wide"}, []string{"result"})
			g.Node("Cast", []string{"result"}, []string{"y"}, onnxtest.Int("to", onnxtest.F32))
		}
	}
	// The scale is 1: quotients are the elements, and results integers.
	dynamic := func(g *onnxtest.Graph) {
		g.Node("DynamicQuantizeLinear", []string{"x"}, []string{"q", "scale", "zero"})
		g.Node("DequantizeLinear", []string{"q", "scale", "zero"}, []string{"y"})
	}
	quantised := func(g *onnxtest.Graph) {
		g.Weight("one", onnxtest.F32, []byte{0, 0, 0x80, 0x3f})
		g.Weight("zero", int64(dtype.I8.ONNX()), []byte{0})
		g.Node("QuantizeLinear", []string{"x", "one", "zero"}, []string{"q"})
		g.Node("DequantizeLinear", []string{"q", "one", "zero"}, []string{"y"})
	}
	kernel, strides, ceil := func(n int64) onnxtest.Message { return onnxtest.Ints("kernel_shape", n) }, func(n int64) onnxtest.Message { return onnxtest.Ints("strides", n) }, onnxtest.Int("ceil_mode", 1)
	same, valid := onnxtest.Text("auto_pad", "SAME_UPPER"), onnxtest.Text("auto_pad", "VALID")
	for _, tc := range []struct {
		name  string
		model func(g *onnxtest.Graph)
		x     []float32 // [1,1,n]
		want  []float32
		error string
	}{
		{"a stride above the window: the rest at the end is 0", spread([]float32{1}, 2), numbers[:2], []float32{1, 0, 2, 0}, ""},
		{"a stride above the window of two", spread([]float32{1, 2}, 3), numbers[:2], []float32{1, 2, 0, 2, 4, 0}, ""},
		{"SAME counts dilations", line("MaxPool", kernel(2), onnxtest.Ints("dilations", 2), same), numbers[:4], []float32{2, 3, 4, 3}, ""},
		{"SAME with a window below its stride begins at the first element", line("MaxPool", kernel(1), strides(3), same), numbers[:5], []float32{1, 4}, ""},
		{"VALID rounds nothing up", line("MaxPool", kernel(3), strides(2), ceil, valid), numbers[:4], []float32{3}, ""},
		{"a window larger than the input, rounded up", line("MaxPool", kernel(3), strides(2), ceil), numbers[:2], []float32{2}, ""},
		{"a mean over it", line("AveragePool", kernel(3), strides(2), ceil), numbers[:2], []float32{1.5}, ""},
		{"a norm over it", line("LpPool", kernel(3), strides(2), ceil, onnxtest.Int("p", 1)), numbers[:2], []float32{3}, ""},
		{"a window larger than the input", line("MaxPool", kernel(3), strides(2)), numbers[:2], nil, `want at least the window of 3`},
		{"Gelu at negative infinity", line("Gelu"), []float32{infinity, -20}, []float32{0, 0}, ""},
		{"Gelu of double precision at negative infinity", inDouble("Gelu"), []float32{infinity, -20}, []float32{0, 0}, ""},
		{"Gelu by tanh at infinities", line("Gelu", onnxtest.Text("approximate", "tanh")), []float32{infinity, -20, -infinity}, []float32{nan, 0, -infinity}, ""},
		{"quotients half way between integers", dynamic, []float32{0, 0.5, 1.5, 2.5, 255}, []float32{0, 0, 2, 2, 255}, ""},
		{"quotients half way below zero", dynamic, []float32{-1.5, 0, 2.5, 253.5}, []float32{-2, 0, 2, 253}, ""},
		{"halves that are quantised go to the even number", quantised, []float32{0.5, 1.5, 2.5, -0.5, -1.5, -2.5}, []float32{0, 2, 2, 0, -2, -2}, ""},
		{"a normalisation of one element", line("MeanVarianceNormalization", onnxtest.Ints("axes", 2)), numbers[:1], []float32{0}, ""},
		{"a region, with a size that is rounded", crop(0.25, 0.9, 1.3), numbers, []float32{2.25, 2.791667, 3.333333, 3.875, 4.416667, 4.958333, 5.5}, ""},
		{"a region of as many elements", crop(0.2, 0.7, 1), numbers, []float32{2, 2.5, 3, 3.5, 4, 4.5}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			memorytest.Check(t)
			for _, open := range []any{"n", len(tc.x)} {
				var g onnxtest.Graph
				g.Input("x", onnxtest.F32, 1, 1, open)
				tc.model(&g)
				g.Output("y")
				m, err := tenure.LoadBytes(g.FileOf(20))
				if err == nil {
					t.Cleanup(func() { m.Close() })
					var out tenure.Outputs
					out, err = modeltest.Session(t, m).Run(t.Context(), tenure.Inputs{"x": modeltest.Of(t, tc.x, 1, 1, len(tc.x))})
					defer out.Release()
					if err == nil && tc.error == "" {
						got := slices.Clone(modeltest.Values(t, out["y"]))
						near(t, "y", got, tc.want)
					}
				}
				if tc.error == "" && err != nil || tc.error != "" && (!errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), tc.error)) {
					t.Errorf("got the error %v, want %q", err, tc.error)
				}
			}
		})
	}
}

// TestPoolsOfEveryOpset has the questions about pools with the operators of
// every opset that has them so.
func TestPoolsOfEveryOpset(t *testing.T) {
	memorytest.Check(t)
	kernel, strides := func(n int64) onnxtest.Message { return onnxtest.Ints("kernel_shape", n) }, func(n int64) onnxtest.Message { return onnxtest.Ints("strides", n) }
	ceil, same, valid := onnxtest.Int("ceil_mode", 1), onnxtest.Text("auto_pad", "SAME_UPPER"), onnxtest.Text("auto_pad", "VALID")
	for _, tc := range []struct {
		op    string
		since int64
		attrs []onnxtest.Message
		x     []float32 // [1,1,n]
		want  []float32 // nil: the window is larger than the input
	}{
		{"MaxPool", 10, []onnxtest.Message{kernel(2), onnxtest.Ints("dilations", 2), same}, []float32{1, 2, 3, 4}, []float32{2, 3, 4, 3}},
		{"MaxPool", 6, []onnxtest.Message{kernel(1), strides(3), same}, []float32{1, 2, 3, 4, 5}, []float32{1, 4}},
		{"MaxPool", 10, []onnxtest.Message{kernel(3), strides(2), ceil, valid}, []float32{1, 2, 3, 4}, []float32{3}},
		{"MaxPool", 10, []onnxtest.Message{kernel(3), strides(2), ceil}, []float32{1, 2}, []float32{2}},
		{"MaxPool", 6, []onnxtest.Message{kernel(3), strides(2)}, []float32{1, 2}, nil},
		{"AveragePool", 19, []onnxtest.Message{kernel(2), onnxtest.Ints("dilations", 2), same}, []float32{1, 2, 3, 4}, []float32{2, 2, 3, 3}},
		{"AveragePool", 7, []onnxtest.Message{kernel(1), strides(3), same}, []float32{1, 2, 3, 4, 5}, []float32{1, 4}},
		{"AveragePool", 10, []onnxtest.Message{kernel(3), strides(2), ceil, valid}, []float32{1, 2, 3, 4}, []float32{2}},
		{"AveragePool", 10, []onnxtest.Message{kernel(3), strides(2), ceil}, []float32{1, 2}, []float32{1.5}},
		{"AveragePool", 7, []onnxtest.Message{kernel(3), strides(2)}, []float32{1, 2}, nil},
		{"LpPool", 18, []onnxtest.Message{kernel(2), onnxtest.Ints("dilations", 2), same, onnxtest.Int("p", 1)}, []float32{1, 2, 3, 4}, []float32{2, 4, 6, 3}},
		{"LpPool", 6, []onnxtest.Message{kernel(1), strides(3), same, onnxtest.Int("p", 1)}, []float32{1, 2, 3, 4, 5}, []float32{1, 4}},
		{"LpPool", 18, []onnxtest.Message{kernel(3), strides(2), ceil, onnxtest.Int("p", 1)}, []float32{1, 2}, []float32{3}},
		{"LpPool", 6, []onnxtest.Message{kernel(3), strides(2), onnxtest.Int("p", 1)}, []float32{1, 2}, nil},
	} {
		for opset := tc.since; opset <= 25; opset++ {
			var g onnxtest.Graph
			g.Input("x", onnxtest.F32, 1, 1, "n")
			g.Node(tc.op, []string{"x"}, []string{"y"}, tc.attrs...)
			g.Output("y")
			s := modeltest.SessionOf(t, g.FileOf(opset))
			out, err := s.Run(t.Context(), tenure.Inputs{"x": modeltest.Of(t, tc.x, 1, 1, len(tc.x))})
			switch {
			case tc.want == nil && (!errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), "want at least the window of 3")):
				t.Errorf("%s of opset %d with a window larger than the input: got %v", tc.op, opset, err)
			case tc.want != nil && err != nil:
				t.Errorf("%s of opset %d: %v", tc.op, opset, err)
			case tc.want != nil:
				near(t, tc.op, modeltest.Values(t, out["y"]), tc.want)
			}
			out.Release()
		}
	}
}
