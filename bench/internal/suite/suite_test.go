package suite

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/tensor"
)

func write(t *testing.T, g *onnxfile.Graph) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := g.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t *testing.T, file []byte) *tenure.Model {
	t.Helper()
	m, err := tenure.LoadBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Every model loads, and takes and gives what its name says.
func TestModels(t *testing.T) {
	want := map[string]struct {
		nodes           []string // operators that the file must have
		weights, result int64    // bytes
	}{
		"mlp":           {[]string{"MatMul"}, 4 * (1024*1024 + 1024) * 4, 32 * 1024 * 4},
		"encoder":       {[]string{"Erf", "Softmax"}, 6 * 4 * (4*(384*384+384) + 384*1536 + 1536 + 1536*384 + 384 + 4*384), 128 * 384 * 4},
		"elementwise":   {[]string{"Tanh"}, 0, 64 << 20},
		"decode":        {[]string{"Concat", "Softmax"}, 4 * 4 * (512*512 + 512), 512*4 + 2*8*2048*64*4},
		"scatter":       {[]string{"ScatterND"}, 0, 32 << 20},
		"scatter-given": {[]string{"ScatterND"}, 0, 32 << 20},
	}
	for _, m := range Models(nil) {
		w, ok := want[m.Name]
		if !ok {
			t.Errorf("got model %s, want it in this table", m.Name)
			continue
		}
		delete(want, m.Name)
		g, err := m.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.WeightBytes(); got != w.weights {
			t.Errorf("%s: got %d bytes of weights, want %d", m.Name, got, w.weights)
		}
		file := write(t, g)
		loaded := open(t, file)
		p, err := loaded.Plan(context.Background(), nil)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		var given int64
		for _, in := range g.Inputs() {
			n := int64(4)
			if in.Elem == onnxfile.I64 {
				n = 8
			}
			for _, d := range in.Dims {
				n *= int64(d)
			}
			given += n
		}
		if got := p.IOBytes - given; got != w.result {
			t.Errorf("%s: got %d bytes of outputs, want %d", m.Name, got, w.result)
		}
		for _, node := range w.nodes {
			if !bytes.Contains(file, []byte(node+" of ")) {
				t.Errorf("%s: got no %s, want one", m.Name, node)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("got no models %v, want them", want)
	}
}

// run runs a graph of one input x and one output y.
func run(t *testing.T, g *onnxfile.Graph, values []float32, dims ...int) []float32 {
	t.Helper()
	s, err := open(t, write(t, g)).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := tensor.Of(values, dims...)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	out, err := s.Run(context.Background(), tenure.Inputs{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	y, err := tensor.Float32s(out["y"])
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// normalised reports rows whose mean is not about 0 or whose variance is not
// about 1: scales are between 0.8 and 1.2, shifts up to 0.1.
func normalised(t *testing.T, y []float32) {
	t.Helper()
	for row := range slices.Chunk(y, width) {
		sum, squares := 0.0, 0.0
		for _, v := range row {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		if mean, square := sum/width, squares/width; mean < -0.1 || mean > 0.1 || square < 0.8 || square > 1.3 {
			t.Fatalf("got a row of mean %.3f and mean square %.3f, want about 0 and 1", mean, square)
		}
	}
}

func TestEncoderIsNormalised(t *testing.T) {
	values := make([]float32, tokens*width)
	onnxfile.Uniform(5, 100)()(values)
	normalised(t, run(t, encoder(), values, 1, tokens, width))
}

// The normalisation and the GELU that are made of other operators equal their
// definitions, on numbers around 5.
func TestPartsOfTheEncoder(t *testing.T) {
	values := make([]float32, 3*width)
	onnxfile.Between(5, 4, 6)()(values)
	part := func(end func(b *builder) string) *onnxfile.Graph {
		b := &builder{Graph: onnxfile.New(13)}
		b.Input("x", onnxfile.F32, 3, width)
		b.constants()
		b.finish(end(b), "y")
		return b.Graph
	}
	normalised(t, run(t, part(func(b *builder) string { return b.norm("x", "n") }), values, 3, width))
	onnxfile.Uniform(6, 4)()(values)
	for i, got := range run(t, part(func(b *builder) string { return b.gelu("x") }), values, 3, width) {
		x := float64(values[i])
		if want := x / 2 * (1 + math.Erf(x/math.Sqrt2)); math.Abs(float64(got)-want) > 1e-5 {
			t.Fatalf("gelu(%v): got %v, want %v", x, got, want)
		}
	}
}

// The light models of the optional data folder are found, reweighed and load.
func TestLightModels(t *testing.T) {
	folders := LightFolders()
	var list []Model
	for _, m := range Models(folders[:1]) {
		if m.Name == "squeezenet" || m.Name == "densenet121" || m.Name == "resnet50" {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		t.Skipf("no light models in %s", folders[0])
	}
	for _, m := range list {
		g, err := m.Build()
		if err != nil {
			t.Fatal(err)
		}
		loaded := open(t, write(t, g))
		if got := loaded.Inputs(); len(got) != 1 || !strings.HasSuffix(got[0].String(), "f32[1,3,224,224]") {
			t.Errorf("%s: got inputs %v, want one picture", m.Name, got)
		}
		if _, err := loaded.Plan(context.Background(), nil); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestLightNames(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"light_b.onnx", "light_a/model.onnx", "light_b/model.onnx", "other.onnx"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte{7<<3 | 2, 9}, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	all := Models([]string{dir})
	for _, m := range all {
		names = append(names, m.Name)
	}
	if got, want := names[6:], []string{"b", "a"}; !slices.Equal(got, want) {
		t.Errorf("got light models %v, want %v, each once", got, want)
	}
	if _, err := all[6].Build(); err == nil || !strings.Contains(err.Error(), "light_b.onnx: model: ") {
		t.Errorf("got error %v, want one with the file", err)
	}
	if _, err := Choose(all, "mlp,none"); err == nil || !strings.Contains(err.Error(), `got "none"`) {
		t.Errorf("got error %v, want one with the name", err)
	}
	if got, err := Choose(all, "a,mlp"); err != nil || len(got) != 2 || got[0].Name != "a" {
		t.Errorf("got %v, %v, want a and mlp", got, err)
	}
}
