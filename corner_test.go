package tenure_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// corner is a model at a corner of what its operator means, with what it gives for the input x.
type corner struct {
	build func(g *graph)
	x     []float32
	dims  []int
	cast  dtype.DType // of x and y; the zero value for f32
	want  []float32
}

var corners = map[string]corner{
	"LpPool of halves, whose powers are no halves": {
		build: func(g *graph) {
			g.node("LpPool", one("x"), one("y"), attrInts("kernel_shape", 2), attrInt("p", 3))
		},
		x: []float32{88, 0, 2, 2}, dims: []int{1, 1, 4}, cast: dtype.F16, want: []float32{88, 2, 2.5195312},
	},
	"LRN of halves, whose squares are no halves": {
		build: func(g *graph) {

			g.node("LRN", one("x"), one("y"), attrInt("size", 1), attrFloat("alpha", 1), attrFloat("beta", 0.5), attrFloat("bias", 0))
		},
		x: []float32{1000, -300}, dims: []int{1, 2, 1, 1}, cast: dtype.F16, want: []float32{1, -1},
	},
	"LpPool with auto_pad, which ceil_mode does not change": {
		build: func(g *graph) {
			g.node("LpPool", one("x"), one("y"), attrInts("kernel_shape", 2), attrInts("strides", 2), attrInt("p", 1),
				attrText("auto_pad", "SAME_LOWER"), attrInt("ceil_mode", 1))
		},
		x: []float32{1, 2, 3}, dims: []int{1, 1, 3}, want: []float32{1, 5},
	},
	"Resize that keeps an aspect samples by its scale, not by sizes that are rounded": {
		build: func(g *graph) {
			g.ints("sizes", 2, 1)
			g.node("Resize", []string{"x", "", "", "sizes"}, one("y"), attrText("mode", "linear"), attrText("keep_aspect_ratio_policy", "not_larger"),
				attrText("coordinate_transformation_mode", "asymmetric"))
		},
		x: []float32{1, 2, 4, 8, 16, 32}, dims: []int{3, 2}, want: []float32{1, 16}, // by 1/2: the second row is the last one of three
	},
	"Resize to one element takes the first one with pytorch_half_pixel": {
		build: func(g *graph) {
			g.ints("sizes", 1, 1, 1, 1)
			g.node("Resize", []string{"x", "", "", "sizes"}, one("y"), attrText("mode", "cubic"), attrText("coordinate_transformation_mode", "pytorch_half_pixel"))
		},
		x: []float32{5, 2, 4, 8}, dims: []int{1, 1, 1, 4}, want: []float32{5},
	},
	"Resize with the coordinates of opset 11": {
		build: func(g *graph) {
			g.floats("scales", 1, 2)
			g.node("Resize", []string{"x", "", "scales"}, one("y"), attrText("coordinate_transformation_mode", "tf_half_pixel_for_nn"), attrText("nearest_mode", "floor"))
		},
		x: []float32{1, 2, 4}, dims: []int{1, 3}, want: []float32{1, 1, 2, 2, 4, 4},
	},
	"Pad that wraps what it has left": {
		build: func(g *graph) {
			g.ints("pads", -1, 3)
			g.node("Pad", []string{"x", "pads"}, one("y"), attrText("mode", "wrap"))
		},
		x: []float32{1, 2, 3}, dims: []int{3}, want: []float32{2, 3, 2, 3, 2},
	},
}

func TestCorners(t *testing.T) {
	for name, c := range corners {
		t.Run(name, func(t *testing.T) {
			var g graph
			dims := make([]any, len(c.dims))
			for i, n := range c.dims {
				dims[i] = n
			}
			in, out := "in", "out"
			if c.cast == dtype.Invalid {
				in, out = "x", "y"
			}
			g.input(in, f32Type, dims...)
			if c.cast != dtype.Invalid {
				g.node("Cast", one(in), one("x"), attrInt("to", int64(c.cast.ONNX())))
			}
			c.build(&g)
			if c.cast != dtype.Invalid {
				g.node("Cast", one("y"), one(out), attrInt("to", f32Type))
			}
			g.output(out)
			c.run(t, g.file(), in, out)
		})
	}
}

func (c corner) run(t *testing.T, file []byte, in, out string) {
	got := run(t, sessionOf(t, file), tenure.Inputs{in: of(t, c.x, c.dims...)})
	y := values(t, got[out])
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

// TestUnalignedComplexWeight reads complex numbers where the file has them at each offset: kernels move them as words of 8 bytes.
func TestUnalignedComplexWeight(t *testing.T) {
	const c64Type = 14
	for skip := range 8 {
		var g graph
		g.floats(strings.Repeat("n", 1+skip), 1) // moves the weight
		g.weight("w", c64Type, make([]byte, 16), 2)
		g.input("x", c64Type, 2)
		g.node("Concat", []string{"x", "w"}, one("y"), attrInt("axis", 0))
		g.output("y")
		s := sessionOf(t, g.file())
		x, err := tensor.New(dtype.C64, shape.MustOf(2))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		run(t, s, tenure.Inputs{"x": x})
	}
}

// TestAxesOfARun reduces along axes that a run gives, where the sizes of the result do not tell that it needs them.
func TestAxesOfARun(t *testing.T) {
	var g graph
	g.input("x", f32Type, 2)
	g.input("axes", i64Type, 1)
	g.node("ReduceSum", []string{"x", "axes"}, one("y"), attrInt("keepdims", 0))
	g.output("y")
	s := sessionOf(t, g.file())
	x := of(t, []float32{1, 2}, 2)
	for axis, want := range map[int64]error{-1: nil, 0: nil, 3: tenure.ErrShape} {
		axes := of(t, []int64{axis}, 1)
		out, err := s.Run(context.Background(), tenure.Inputs{"x": x, "axes": axes})
		if !errors.Is(err, want) {
			t.Errorf("axis %d: got %v, want %v", axis, err, want)
		}
		if err == nil {
			if y := values(t, out["y"]); y[0] != 3 {
				t.Errorf("axis %d: got %v, want 3", axis, y)
			}
			out.Release()
		}
	}
}
