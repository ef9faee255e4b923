package onnxfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

func file(t *testing.T, g *Graph) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := g.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Errorf("WriteTo: got %d, want the %d bytes that it wrote", n, b.Len())
	}
	return b.Bytes()
}

// run runs a model of float inputs and returns its first output.
func run(t *testing.T, model []byte, output string, inputs map[string][]float32, dims map[string][]int) []float32 {
	t.Helper()
	m, err := tenure.LoadBytes(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession(tenure.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := tenure.Inputs{}
	for name, data := range inputs {
		x, err := tensor.Of(data, dims[name]...)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		in[name] = x
	}
	out, err := s.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	values, err := tensor.Float32s(out[output])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// count is a source of 1, 2, 3 and so on.
func count() Source {
	next := float32(0)
	return func(dst []float32) {
		for i := range dst {
			next++
			dst[i] = next
		}
	}
}

func TestGraphIsAModel(t *testing.T) {
	g := New(13)
	g.Input("x", F32, 1, 2)
	g.Weight("w", count, 2, 3)
	g.Floats("b", 0.5, 0.25, 0.125)
	g.Scalar("two", 2)
	g.Sizes("sizes", 3, 1)
	g.Node("MatMul", []string{"x", "w"}, []string{"m"})
	g.Node("Add", []string{"m", "b"}, []string{"a"})
	g.Node("Mul", []string{"a", "two"}, []string{"p"})
	g.Node("LeakyRelu", []string{"p"}, []string{"r"}, Float("alpha", 0.5))
	g.Node("Reshape", []string{"r", "sizes"}, []string{"s"})
	g.Node("Transpose", []string{"s"}, []string{"u"}, Ints("perm", 1, 0))
	g.Node("Softmax", []string{"u"}, []string{"unused"}, Int("axis", -1))
	g.Output("u", F32)
	got := run(t, file(t, g), "u", map[string][]float32{"x": {1, -10}}, map[string][]int{"x": {1, 2}})
	// (1*1-10*4)*2+1 = -77, halved by LeakyRelu, and so on.
	if want := []float32{-38.5, -47.75, -56.875}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := g.WeightBytes(), int64(24); got != want {
		t.Errorf("WeightBytes: got %d, want %d", got, want)
	}
}

// A weight is longer than the part in which it is drawn.
func TestWeightInParts(t *testing.T) {
	g := New(13)
	g.Input("x", F32, 1)
	const n = 1<<14*2 + 5
	g.Weight("w", count, n)
	g.Node("Mul", []string{"w", "x"}, []string{"y"})
	g.Output("y", F32)
	got := run(t, file(t, g), "y", map[string][]float32{"x": {1}}, map[string][]int{"x": {1}})
	for i, v := range got {
		if v != float32(i+1) {
			t.Fatalf("element %d: got %v, want %d", i, v, i+1)
		}
	}
	if len(got) != n {
		t.Errorf("got %d elements, want %d", len(got), n)
	}
}

// TestBytes reads back an initializer of bytes, which its seed decides.
func TestBytes(t *testing.T) {
	draw := func(seed uint64) []float32 {
		g := New(13)
		g.Input("x", F32, 1)
		g.Bytes("w", seed, 50, 2)
		g.Node("Cast", []string{"w"}, []string{"f"}, Int("to", int64(F32)))
		g.Node("Mul", []string{"f", "x"}, []string{"y"})
		g.Output("y", F32)
		if got, want := g.WeightBytes(), int64(100); got != want {
			t.Errorf("WeightBytes: got %d, want %d", got, want)
		}
		return run(t, file(t, g), "y", map[string][]float32{"x": {1}}, map[string][]int{"x": {1}})
	}
	a := draw(1)
	if len(a) != 100 || slices.Max(a) < 200 || slices.Min(a) < 0 || slices.Min(a) > 55 {
		t.Errorf("got %v, want 100 bytes of all sizes", a)
	}
	if !slices.Equal(a, draw(1)) || slices.Equal(a, draw(2)) {
		t.Error("want the same bytes of one seed, others of another one")
	}
}

func TestSources(t *testing.T) {
	draw := func(s Source) []float32 {
		all := make([]float32, 40000)
		s(all[:7])
		s(all[7:])
		return all
	}
	for _, c := range []struct {
		name           string
		source         func() Source
		low, high      float64
		mean, variance float64
	}{
		{"uniform", Uniform(1, 0.5), -0.5, 0.5, 0, 1. / 12},
		{"between", Between(2, 0.8, 1.2), 0.8, 1.2, 1, 0.16 / 12},
		{"he", He(3, 50), -math.Sqrt(6. / 50), math.Sqrt(6. / 50), 0, 2. / 50},
	} {
		a, b := draw(c.source()), draw(c.source())
		if !slices.Equal(a, b) {
			t.Errorf("%s: got two sequences from one seed, want one", c.name)
		}
		sum, squares := 0.0, 0.0
		for _, v := range a {
			if v := float64(v); v < c.low-1e-6 || v > c.high+1e-6 {
				t.Fatalf("%s: got %v, want a number from %v to %v", c.name, v, c.low, c.high)
			}
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / float64(len(a))
		if variance := squares/float64(len(a)) - mean*mean; math.Abs(mean-c.mean) > 0.01 || math.Abs(variance-c.variance) > 0.03*c.variance {
			t.Errorf("%s: got mean %.4f and variance %.4f, want %.4f and %.4f", c.name, mean, variance, c.mean, c.variance)
		}
	}
	if slices.Equal(draw(Uniform(1, 1)()), draw(Uniform(2, 1)())) {
		t.Error("got one sequence from two seeds, want two")
	}
}

// lightModel is a model as the light ones are: version 3 of the format, in
// which initializers are inputs too, and weights from ConstantOfShape.
func lightModel() []byte {
	shape := func(name string, sizes ...int64) wire {
		var raw []byte
		for _, n := range sizes {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(n))
		}
		return wire(nil).varint(1, int64(len(sizes))).varint(2, int64(I64)).text(8, name).bytes(9, raw)
	}
	g := New(9)
	for _, w := range []string{"w", "b", "scale", "shift", "mean", "var", "f", "more"} {
		g.Node("ConstantOfShape", []string{w + "_shape"}, []string{w})
	}
	g.Node("Conv", []string{"x", "w", "b"}, []string{"c"})
	g.Node("BatchNormalization", []string{"c", "scale", "shift", "mean", "var"}, []string{"n"})
	g.Node("Unsqueeze", []string{"more"}, []string{"wide"}, Ints("axes", 1, 2))
	g.Node("Add", []string{"n", "wide"}, []string{"a"})
	g.Node("Reshape", []string{"a", "flat"}, []string{"r"})
	g.Node("Gemm", []string{"r", "f"}, []string{"y"}, Int("transB", 1))
	g.Node("Softmax", []string{"y"}, []string{"p"})
	g.Input("x", F32, 1, 2, 3, 3)
	g.Output("p", F32)
	inits := map[string]wire{"flat": shape("flat", 1, 36)}
	for name, sizes := range map[string][]int64{"w": {4, 2, 1, 1}, "b": {4}, "scale": {4}, "shift": {4}, "mean": {4}, "var": {4}, "f": {5, 36}, "more": {4}} {
		inits[name+"_shape"] = shape(name+"_shape", sizes...)
	}
	body := append(slices.Clone(g.nodes), g.inputs...)
	for name, init := range inits {
		body = body.bytes(5, init)
		body = body.bytes(11, wire(nil).text(1, name))
	}
	body = append(body, g.outputs...)
	return wire(nil).varint(1, 3).bytes(8, wire(nil).varint(2, 9)).bytes(7, body)
}

func TestReweigh(t *testing.T) {
	g, err := Reweigh(lightModel())
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Inputs(); len(got) != 1 || got[0].Name != "x" || got[0].Elem != F32 || !slices.Equal(got[0].Dims, []int{1, 2, 3, 3}) {
		t.Errorf("inputs: got %v, want x alone", got)
	}
	if got, want := g.Outputs(), []string{"y", "p"}; !slices.Equal(got, want) {
		t.Errorf("outputs: got %v, want %v", got, want)
	}
	ranges := map[string][2]float64{"w": {-math.Sqrt(3), math.Sqrt(3)}, "f": {-math.Sqrt(6. / 36), math.Sqrt(6. / 36)},
		"b": {-0.1, 0.1}, "shift": {-0.1, 0.1}, "mean": {-0.1, 0.1}, "more": {-0.1, 0.1}, "scale": {0.8, 1.2}, "var": {0.8, 1.2}}
	for _, w := range g.weights {
		want, ok := ranges[w.name]
		if !ok {
			t.Errorf("got weight %s, want it once", w.name)
		}
		delete(ranges, w.name)
		values := make([]float32, 1000)
		w.source()(values)
		low, high := float64(slices.Min(values)), float64(slices.Max(values))
		if width := want[1] - want[0]; low < want[0]-1e-6 || high > want[1]+1e-6 || high-low < 0.95*width {
			t.Errorf("weight %s: got numbers from %.3f to %.3f, want from %.3f to %.3f", w.name, low, high, want[0], want[1])
		}
	}
	if len(ranges) != 0 {
		t.Errorf("got no weights %v, want them", ranges)
	}
	x := make([]float32, 18)
	for i := range x {
		x[i] = float32(i)
	}
	p := run(t, file(t, g), "p", map[string][]float32{"x": x}, map[string][]int{"x": {1, 2, 3, 3}})
	sum := 0.0
	for _, v := range p {
		sum += float64(v)
	}
	if len(p) != 5 || math.Abs(sum-1) > 1e-5 || slices.Max(p)-slices.Min(p) < 0.01 {
		t.Errorf("got probabilities %v, want five that differ and add up to 1", p)
	}
}

func TestReweighRefuses(t *testing.T) {
	model := func(op string, in ...string) []byte {
		g := New(9)
		g.Node("ConstantOfShape", []string{"s"}, []string{"w"})
		g.Node(op, in, []string{"y"})
		return wire(nil).bytes(7, g.nodes.bytes(5, wire(nil).varint(2, 7).varint(7, 4).text(8, "s")))
	}
	open := wire(nil).bytes(7, wire(nil).bytes(11, wire(nil).text(1, "x").bytes(2, wire(nil).bytes(1, wire(nil).varint(1, 1).bytes(2, wire(nil).bytes(1, wire(nil).text(2, "batch")))))))
	computed := New(9)
	computed.Node("ConstantOfShape", []string{"s"}, []string{"w"})
	for _, c := range []struct {
		name, want string
		model      []byte
	}{
		{"cut", "got a length of 5, want at most 1", []byte{7<<3 | 2, 5, 0}},
		{"wire type", "got wire type 3, want 0, 1, 2 or 5", []byte{7<<3 | 3}},
		{"short", "got 2 bytes, want 4", []byte{7<<3 | 5, 0, 0}},
		{"unknown use", "weight w: got operand 0 of Cos, want one whose distribution is known", model("Cos", "w")},
		{"computed shape", "w: got a shape that is computed, want an initializer", wire(nil).bytes(7, computed.nodes)},
		{"open dimension", "input x: got an open dimension, want a size", open},
	} {
		if _, err := Reweigh(c.model); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.name, err, c.want)
		}
	}
}
