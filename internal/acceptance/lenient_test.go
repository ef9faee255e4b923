package acceptance_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestStrangersModels runs models that other programs wrote and that every
// other runtime accepts, on inputs and outputs of ONNX Runtime.
func TestStrangersModels(t *testing.T) {
	dir := modeltest.SharedDir(t, "repro/models")
	files, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got no models in %s: %v", dir, err)
	}
	for _, file := range files {
		data := filepath.Join(filepath.Dir(file), "test_data_set_0")
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			memorytest.Check(t)
			m := modeltest.Load(t, file)
			in := tenure.Inputs{}
			for i, info := range m.Inputs() {
				in[info.Name] = readTensor(t, filepath.Join(data, fmt.Sprintf("input_%d.pb", i)))
			}
			out := modeltest.Run(t, modeltest.Session(t, m), in)
			for i, info := range m.Outputs() {
				path := filepath.Join(data, fmt.Sprintf("output_%d.pb", i))
				if _, err := os.Stat(path); err != nil && i > 0 {
					continue // the data have the first outputs only
				}
				want := readTensor(t, path)
				if d := modeltest.Differs(out[info.Name], want, modeltest.Tolerance{RTol: 1e-4, ATol: 1e-5}); d != "" {
					t.Errorf("output %q: %s", info.Name, d)
				}
			}
		})
	}
}

func readTensor(t *testing.T, path string) *tensor.Tensor {
	t.Helper()
	x := modeltest.ReadTensor(t, path)
	t.Cleanup(func() { x.Release() })
	return x
}

// lenient is a model that is not as the specification wants it, or as most
// programs write it, and that others accept.
type lenient struct {
	name string
	file func(g *onnxtest.Graph) []byte
	in   map[string][]float32
	dims map[string][]int
	want []float32 // of output y
	of   []int     // its sizes
	note string    // part of a note
}

var lenients = []lenient{
	{
		name: "nodes in reverse", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Node("Add", []string{"c", "b"}, []string{"y"})
			g.Node("Mul", []string{"b", "a"}, []string{"c"})
			g.Node("Neg", []string{"a"}, []string{"b"})
			g.Node("Add", []string{"x", "x"}, []string{"a"})
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, want: []float32{-4 - 2, -16 - 4},
	},
	{
		name: "a branch reads a later node, and is unsorted itself", file: func(g *onnxtest.Graph) []byte {
			var then, other onnxtest.Graph
			then.Node("Add", []string{"t", "later"}, []string{"r"})
			then.Node("Neg", []string{"x"}, []string{"t"})
			then.Output("r")
			other.Node("Identity", []string{"x"}, []string{"s"})
			other.Output("s")
			g.Input("x", onnxtest.F32, 2)
			g.Node("If", []string{"c"}, []string{"y"}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &other))
			g.Node("Mul", []string{"x", "x"}, []string{"later"})
			g.Node("Greater", []string{"sum", "zero"}, []string{"c"})
			g.Node("ReduceSum", []string{"x"}, []string{"sum"}, onnxtest.Int("keepdims", 0))
			g.Weight("zero", onnxtest.F32, make([]byte, 4))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {2, 3}}, want: []float32{2, 6},
	},
	{
		name: "a question mark is no name", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "?", "?")
			g.Node("Relu", []string{"x"}, []string{"y"})
			g.OutputOf("y", onnxtest.F32, "?", "?")
			return g.File()
		},
		in: map[string][]float32{"x": {1, -2, 3}}, dims: map[string][]int{"x": {1, 3}}, want: []float32{1, 0, 3}, of: []int{1, 3},
	},
	{
		name: "one name for two sizes", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "unk__12")
			g.Input("z", onnxtest.F32, "unk__12")
			g.Node("Concat", []string{"x", "z"}, []string{"y"}, onnxtest.Int("axis", 0))
			g.OutputOf("y", onnxtest.F32, "unk__12")
			return g.File()
		},
		in: map[string][]float32{"x": {1}, "z": {2, 3}}, want: []float32{1, 2, 3}, note: `dimensions named "unk__12" have had several sizes`,
	},
	{
		name: "one name for two sizes of one input", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "n", "n")
			g.Node("Transpose", []string{"x"}, []string{"y"})
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2, 3}}, dims: map[string][]int{"x": {1, 3}}, want: []float32{1, 2, 3}, of: []int{3, 1}, note: `dimensions named "n" have had several sizes`,
	},
	{
		name: "a name that the operators bind, with sums", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "past", 1)
			g.Input("z", onnxtest.F32, "past + 1", 1)
			g.Node("Concat", []string{"x", "z"}, []string{"y"}, onnxtest.Int("axis", 0))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1}, "z": {2, 3, 4}}, dims: map[string][]int{"x": {1, 1}, "z": {3, 1}}, want: []float32{1, 2, 3, 4}, note: `dimensions named "past + 1" have had several sizes`,
	},
	{
		name: "an output of another rank", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, 2)
			g.Node("Neg", []string{"x"}, []string{"y"})
			g.OutputOf("y", onnxtest.F32, 2)
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, dims: map[string][]int{"x": {1, 2}}, want: []float32{-1, -2}, of: []int{1, 2}, note: `the file declares f32[2], the nodes give f32[1,2]`,
	},
	{
		name: "an output of other sizes", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "n")
			g.Node("Concat", []string{"x", "x"}, []string{"y"}, onnxtest.Int("axis", 0))
			g.OutputOf("y", onnxtest.F32, 7)
			return g.File()
		},
		in: map[string][]float32{"x": {1}}, want: []float32{1, 1}, of: []int{2},
	},
	{
		name: "values inside of other ranks and sizes", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, 2)
			g.Node("Neg", []string{"x"}, []string{"a"})
			g.Node("Flatten", []string{"a"}, []string{"b"})
			g.Node("Neg", []string{"b"}, []string{"y"})
			g.Value("a", onnxtest.F32, 3, 1, 2)
			g.Value("b", onnxtest.F32, 1, 3)
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, dims: map[string][]int{"x": {1, 2}}, want: []float32{1, 2}, note: `value "a": the file declares f32[3,1,2], the nodes give f32[1,2]`,
	},
	{
		name: "com.microsoft without an import", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Node("com.microsoft::BiasAdd", []string{"x", "x", "x"}, []string{"y"})
			g.Output("y")
			return g.FileOf(13)
		},
		in: map[string][]float32{"x": {1, 2}}, want: []float32{3, 6}, note: `operators of domain "com.microsoft" and does not import them`,
	},
	{
		name: "ONNX itself without an import", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Node("Neg", []string{"x"}, []string{"y"})
			g.Output("y")
			return onnxtest.Message(nil).Varint(1, 8).Bytes(7, g.Encode()).Bytes(8, onnxtest.Message(nil).Text(1, "com.microsoft").Varint(2, 1))
		},
		in: map[string][]float32{"x": {1, 2}}, want: []float32{-1, -2}, note: `operators of domain "" and does not import them`,
	},
	{
		name: "a misspelt attribute that no runtime reads", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Floats("scale", 1, 1)
			g.Node("LayerNormalization", []string{"x", "scale"}, []string{"y"}, onnxtest.Float("epsion", 100), onnxtest.Int("axis", -1))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {-3, 3}}, want: []float32{-0.9999995, 0.9999995}, note: `the operator has no attribute "epsion"`,
	},
	{
		name: "sizes that are negative", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, -1, -2)
			g.Node("Neg", []string{"x"}, []string{"y"})
			g.OutputOf("y", onnxtest.F32, -7, -1)
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, dims: map[string][]int{"x": {2, 1}}, want: []float32{-1, -2}, of: []int{2, 1},
	},
	{
		name: "pads beside auto_pad", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, 1, 3)
			g.Node("MaxPool", []string{"x"}, []string{"a"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Text("auto_pad", "SAME_UPPER"), onnxtest.Ints("pads", 1, 0))
			g.Node("AveragePool", []string{"a"}, []string{"b"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Text("auto_pad", "VALID"), onnxtest.Ints("pads", 1, 0))
			g.Node("LpPool", []string{"b"}, []string{"y"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Text("auto_pad", "VALID"), onnxtest.Ints("pads", 1, 0), onnxtest.Int("p", 1))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2, 4}}, dims: map[string][]int{"x": {1, 1, 3}}, want: []float32{7}, of: []int{1, 1, 1},
	},
	{
		name: "an output that is listed twice", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Node("Neg", []string{"x"}, []string{"y"})
			g.Output("y")
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, want: []float32{-1, -2}, note: `the file lists output "y" again`,
	},
	{
		name: "a loop whose body takes and returns lists of one", file: func(g *onnxtest.Graph) []byte {
			var body onnxtest.Graph
			body.Input("i", onnxtest.I64, 1)
			body.Input("again", onnxtest.Bool, 1)
			body.Input("a", onnxtest.F32, 1)
			body.Node("Cast", []string{"i"}, []string{"f"}, onnxtest.Int("to", onnxtest.F32))
			body.Node("Concat", []string{"f", "a"}, []string{"both"}, onnxtest.Int("axis", 0))
			body.Node("ReduceSum", []string{"both"}, []string{"b"})
			body.Node("Identity", []string{"again"}, []string{"on"})
			body.OutputOf("on", onnxtest.Bool, 1)
			body.OutputOf("b", onnxtest.F32, 1)
			g.Input("x", onnxtest.F32, 1)
			g.Ints("trips", 4)
			g.Weight("yes", onnxtest.Bool, []byte{1}, 1)
			g.Node("Loop", []string{"trips", "yes", "x"}, []string{"y"}, onnxtest.Subgraph("body", &body))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {10}}, want: []float32{16},
	},
	{
		name: "conditions and numbers of several axes", file: func(g *onnxtest.Graph) []byte {
			var then, other, body onnxtest.Graph
			then.Node("Neg", []string{"x"}, []string{"r"})
			then.Output("r")
			other.Node("Abs", []string{"x"}, []string{"s"})
			other.Output("s")
			body.Input("i", onnxtest.I64)
			body.Input("again", onnxtest.Bool)
			body.Input("a", onnxtest.F32, 2)
			body.Node("Add", []string{"a", "a"}, []string{"b"})
			body.Node("Identity", []string{"again"}, []string{"on"})
			body.Output("on")
			body.Output("b")
			g.Input("x", onnxtest.F32, 2)
			g.Weight("yes", onnxtest.Bool, []byte{1}, 1, 1)
			g.Weight("three", onnxtest.I64, []byte{3, 0, 0, 0, 0, 0, 0, 0}, 1, 1, 1)
			g.Node("If", []string{"yes"}, []string{"z"}, onnxtest.Subgraph("then_branch", &then), onnxtest.Subgraph("else_branch", &other))
			g.Node("Loop", []string{"three", "yes", "z"}, []string{"y"}, onnxtest.Subgraph("body", &body))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, -2}}, want: []float32{-8, 16},
	},
	{
		name: "a BatchNormalization per element", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, "n", 2)
			g.Floats("one", 1, 1)
			g.Floats("mean", 1, 2)
			g.Floats("bias", 10, 20)
			g.Node("BatchNormalization", []string{"x", "one", "bias", "mean", "one"}, []string{"y"}, onnxtest.Int("spatial", 0), onnxtest.Float("epsilon", 3))
			g.Output("y")
			return g.FileOf(7)
		},
		in: map[string][]float32{"x": {1, 2, 3, 4}}, dims: map[string][]int{"x": {2, 2}}, want: []float32{10, 20, 11, 21},
	},
	{
		name: "a Dropout that trains and drops nothing", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2)
			g.Weight("none", onnxtest.F32, make([]byte, 4))
			g.Weight("training", onnxtest.Bool, []byte{1})
			g.Node("Dropout", []string{"x", "none", "training"}, []string{"y"})
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2}}, want: []float32{1, 2},
	},
	{
		name: "a signal of two dimensions", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, "length")
			g.Weight("step", onnxtest.I64, []byte{2, 0, 0, 0, 0, 0, 0, 0})
			g.Weight("frame", onnxtest.I64, []byte{2, 0, 0, 0, 0, 0, 0, 0})
			g.Node("STFT", []string{"x", "step", "", "frame"}, []string{"y"})
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2, 3, 5}}, dims: map[string][]int{"x": {1, 4}}, want: []float32{3, 0, -1, 0, 8, 0, -2, 0}, of: []int{1, 2, 2, 2},
	},
	{
		name: "a mask of integers", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, 1, 2, 1)
			g.Weight("mask", onnxtest.I32, []byte{0, 0, 0, 0, 0x00, 0xff, 0xff, 0xff}, 1, 2) // the second key counts for nothing
			g.Node("Attention", []string{"x", "x", "x", "mask"}, []string{"y"})
			g.Output("y")
			return g.FileOf(23)
		},
		in: map[string][]float32{"x": {1, 2}}, dims: map[string][]int{"x": {1, 1, 2, 1}}, want: []float32{1, 1},
	},
	{
		name: "a transposed batch", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 2, 3, 1)
			g.Floats("one", 1)
			g.Weight("w", onnxtest.F32, []byte{0, 0, 0x80, 0x3f}, 1, 1)
			g.Node("com.microsoft::FusedMatMul", []string{"x", "w"}, []string{"y"}, onnxtest.Int("transBatchA", 1))
			g.Output("y")
			return g.FileOf(13)
		},
		in: map[string][]float32{"x": {1, 2, 3, 4, 5, 6}}, dims: map[string][]int{"x": {2, 3, 1}}, want: []float32{1, 4, 2, 5, 3, 6}, of: []int{3, 2, 1}, note: `operators of domain "com.microsoft"`,
	},
	{
		name: "an LpPool whose sizes rounds up", file: func(g *onnxtest.Graph) []byte {
			g.Input("x", onnxtest.F32, 1, 1, "n")
			g.Node("LpPool", []string{"x"}, []string{"y"}, onnxtest.Ints("kernel_shape", 2), onnxtest.Ints("strides", 3), onnxtest.Int("ceil_mode", 1), onnxtest.Int("p", 1))
			g.Output("y")
			return g.File()
		},
		in: map[string][]float32{"x": {1, 2, 3, -4, 5, 6, 7}}, dims: map[string][]int{"x": {1, 1, 7}}, want: []float32{3, 9, 7}, of: []int{1, 1, 3},
	},
}

// TestLenient runs a model of each class of models that are read although the
// specification, or most writers, would have them otherwise.
func TestLenient(t *testing.T) {
	for _, tc := range lenients {
		t.Run(tc.name, func(t *testing.T) {
			memorytest.Check(t)
			var g onnxtest.Graph
			m := modeltest.LoadBytes(t, tc.file(&g))
			s := modeltest.Session(t, m)
			in := tenure.Inputs{}
			for name, data := range tc.in {
				dims := tc.dims[name]
				if dims == nil {
					dims = []int{len(data)}
				}
				in[name] = modeltest.Of(t, data, dims...)
			}
			for range 2 {
				y := modeltest.Run(t, s, in)["y"]
				near(t, "y", modeltest.Values(t, y), tc.want)
				if tc.of != nil && !slices.Equal(y.Shape().Sizes(), tc.of) {
					t.Errorf("got %s, want %v", y.Shape(), tc.of)
				}
			}
			if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("got notes %q, want %q", notes, tc.note)
			}
		})
	}
}

// TestNamesBind refuses two sizes of one name where an operator binds them,
// also one that would broadcast, by an error with the name, and leaves no note.
func TestNamesBind(t *testing.T) {
	memorytest.Check(t)
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n", 2)
	g.Input("z", onnxtest.F32, "n", 2)
	g.Input("mask", onnxtest.F32, "n + 1")
	g.Node("Add", []string{"x", "z"}, []string{"a"})
	g.Node("ReduceSum", []string{"mask"}, []string{"b"}, onnxtest.Int("keepdims", 0))
	g.Node("Add", []string{"a", "b"}, []string{"y"})
	g.Output("y")
	m := modeltest.LoadBytes(t, g.File())
	s := modeltest.Session(t, m)
	two, three, one := modeltest.Of(t, make([]float32, 4), 2, 2), modeltest.Of(t, make([]float32, 6), 3, 2), modeltest.Of(t, make([]float32, 2), 1, 2)
	mask := modeltest.Of(t, make([]float32, 3), 3)
	for _, z := range []*tensor.Tensor{three, one} {
		_, err := s.Run(t.Context(), tenure.Inputs{"x": two, "z": z, "mask": mask})
		if !errors.Is(err, tenure.ErrShape) || !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), `want f32[n,2] with n = 2 as in input "x"`) {
			t.Errorf("got %v", err)
		}
	}
	modeltest.Run(t, s, tenure.Inputs{"x": two, "z": two, "mask": mask})
	if len(m.Notes()) > 0 {
		t.Errorf("got notes %q, want none", m.Notes())
	}
}
