package acceptance_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// corner is a model of a corner case of its operator, with its output for the
// input x.
type corner struct {
	build func(g *onnxtest.Graph)
	x     []float32
	dims  []int
	cast  dtype.DType // of x and y; the zero value for f32
	want  []float32
}

var corners = map[string]corner{
	"LpPool of halves, whose powers are no halves": {
		build: func(g *onnxtest.Graph) {
			g.Node("LpPool", []string{"x"}, []string{"y"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Int("p", 3))
		},
		x: []float32{88, 0, 2, 2}, dims: []int{1, 1, 4}, cast: dtype.F16, want: []float32{88, 2, 2.5195312},
	},
	"LRN of halves, whose squares are no halves": {
		build: func(g *onnxtest.Graph) {

			g.Node("LRN", []string{"x"}, []string{"y"}, onnxtest.Int("size", 1), onnxtest.Float("alpha", 1), onnxtest.Float("beta", 0.5), onnxtest.Float("bias", 0))
		},
		x: []float32{1000, -300}, dims: []int{1, 2, 1, 1}, cast: dtype.F16, want: []float32{1, -1},
	},
	"LpPool with auto_pad, which ceil_mode does not change": {
		build: func(g *onnxtest.Graph) {
			g.Node("LpPool", []string{"x"}, []string{"y"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Ints("strides", 2), onnxtest.Int("p", 1),
				onnxtest.Text("auto_pad", "SAME_LOWER"), onnxtest.Int("ceil_mode", 1))
		},
		x: []float32{1, 2, 3}, dims: []int{1, 1, 3}, want: []float32{1, 5},
	},
	"Resize that keeps an aspect samples by its scale, not by sizes that are rounded": {
		build: func(g *onnxtest.Graph) {
			g.Ints("sizes", 2, 1)
			g.Node("Resize", []string{"x", "", "", "sizes"}, []string{"y"}, onnxtest.Text("mode", "linear"), onnxtest.Text("keep_aspect_ratio_policy", "not_larger"),
				onnxtest.Text("coordinate_transformation_mode", "asymmetric"))
		},
		x: []float32{1, 2, 4, 8, 16, 32}, dims: []int{3, 2}, want: []float32{1, 16}, // by 1/2: the second row is the last one of three
	},
	"Resize to one element takes the first one with pytorch_half_pixel": {
		build: func(g *onnxtest.Graph) {
			g.Ints("sizes", 1, 1, 1, 1)
			g.Node("Resize", []string{"x", "", "", "sizes"}, []string{"y"}, onnxtest.Text("mode", "cubic"), onnxtest.Text("coordinate_transformation_mode", "pytorch_half_pixel"))
		},
		x: []float32{5, 2, 4, 8}, dims: []int{1, 1, 1, 4}, want: []float32{5},
	},
	"Resize with the coordinates of opset 11": {
		build: func(g *onnxtest.Graph) {
			g.Floats("scales", 1, 2)
			g.Node("Resize", []string{"x", "", "scales"}, []string{"y"}, onnxtest.Text("coordinate_transformation_mode", "tf_half_pixel_for_nn"), onnxtest.Text("nearest_mode", "floor"))
		},
		x: []float32{1, 2, 4}, dims: []int{1, 3}, want: []float32{1, 1, 2, 2, 4, 4},
	},
	"Pad that wraps what it has left": {
		build: func(g *onnxtest.Graph) {
			g.Ints("pads", -1, 3)
			g.Node("Pad", []string{"x", "pads"}, []string{"y"}, onnxtest.Text("mode", "wrap"))
		},
		x: []float32{1, 2, 3}, dims: []int{3}, want: []float32{2, 3, 2, 3, 2},
	},
}

func TestCorners(t *testing.T) {
	for name, c := range corners {
		t.Run(name, func(t *testing.T) {
			var g onnxtest.Graph
			dims := make([]any, len(c.dims))
			for i, n := range c.dims {
				dims[i] = n
			}
			in, out := "in", "out"
			if c.cast == dtype.Invalid {
				in, out = "x", "y"
			}
			g.Input(in, onnxtest.F32, dims...)
			if c.cast != dtype.Invalid {
				g.Node("Cast", []string{in}, []string{"x"}, onnxtest.Int("to", int64(c.cast.ONNX())))
			}
			c.build(&g)
			if c.cast != dtype.Invalid {
				g.Node("Cast", []string{"y"}, []string{out}, onnxtest.Int("to", onnxtest.F32))
			}
			g.Output(out)
			c.run(t, g.File(), in, out)
		})
	}
}

func (c corner) run(t *testing.T, file []byte, in, out string) {
	got := modeltest.Run(t, modeltest.SessionOf(t, file), tenure.Inputs{in: modeltest.Of(t, c.x, c.dims...)})
	y := modeltest.Values(t, got[out])
	if len(y) != len(c.want) {
		t.Fatalf("got %v, want %v", y, c.want)
	}
	for i, v := range c.want {
		if d := y[i] - v; d > 1e-6 || d < -1e-6 || d != d {
			t.Errorf("got %v, want %v", y, c.want)
			break
		}
	}
}

// TestUnalignedComplexWeight reads complex numbers where the file has them at
// each offset: kernels move them as words of 8 bytes.
func TestUnalignedComplexWeight(t *testing.T) {
	const c64Type = 14
	for skip := range 8 {
		var g onnxtest.Graph
		g.Floats(strings.Repeat("n", 1+skip), 1) // moves the weight
		g.Weight("w", c64Type, make([]byte, 16), 2)
		g.Input("x", c64Type, 2)
		g.Node("Concat", []string{"x", "w"}, []string{"y"}, onnxtest.Int("axis", 0))
		g.Output("y")
		s := modeltest.SessionOf(t, g.File())
		x, err := tensor.New(dtype.C64, shape.MustOf(2))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		modeltest.Run(t, s, tenure.Inputs{"x": x})
	}
}

// TestAxesOfARun reduces along axes that are inputs of the run, where the sizes
// of the result do not show that it needs them.
func TestAxesOfARun(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 2)
	g.Input("axes", onnxtest.I64, 1)
	g.Node("ReduceSum", []string{"x", "axes"}, []string{"y"}, onnxtest.Int("keepdims", 0))
	g.Output("y")
	s := modeltest.SessionOf(t, g.File())
	x := modeltest.Of(t, []float32{1, 2}, 2)
	for axis, want := range map[int64]error{-1: nil, 0: nil, 3: tenure.ErrShape} {
		axes := modeltest.Of(t, []int64{axis}, 1)
		out, err := s.Run(context.Background(), tenure.Inputs{"x": x, "axes": axes})
		if !errors.Is(err, want) {
			t.Errorf("axis %d: got %v, want %v", axis, err, want)
		}
		if err == nil {
			if y := modeltest.Values(t, out["y"]); y[0] != 3 {
				t.Errorf("axis %d: got %v, want 3", axis, y)
			}
			out.Release()
		}
	}
}
