package tenure_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// network writes a model whose values the passes fold, fuse and merge: a
// convolution with its normalisation, products with bias and activation, a
// branch that reads a value around it, and a second head. Its outputs are the
// named values.
func network(head bool, outputs ...string) []byte {
	var g, yes, no onnxtest.Graph
	weights := func(name string, dims ...int64) {
		n := 1
		for _, d := range dims {
			n *= int(d)
		}
		var raw []byte
		for _, v := range modeltest.Ramp(n) {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v/4+0.125))
		}
		g.Weight(name, onnxtest.F32, raw, dims...)
	}
	g.Input("x", onnxtest.F32, "n", 2, 6, 6)
	g.Input("c", onnxtest.Bool)
	weights("filter", 4, 2, 3, 3)
	for _, name := range []string{"scale", "shift", "mean", "variance"} {
		weights(name, 4)
	}
	weights("w1", 64, 32)
	weights("b1", 32)
	weights("w2", 32, 8)
	g.Node("Conv", []string{"x", "filter"}, []string{"conv"}, onnxtest.Ints("pads", 0, 0, 0, 0))
	g.Node("BatchNormalization", []string{"conv", "scale", "shift", "mean", "variance"}, []string{"norm"})
	g.Node("Relu", []string{"norm"}, []string{"relu"})
	g.Node("Flatten", []string{"relu"}, []string{"flat"})
	g.Node("MatMul", []string{"flat", "w1"}, []string{"product"})
	g.Node("Add", []string{"product", "b1"}, []string{"sum"})
	g.Node("Relu", []string{"sum"}, []string{"hidden"})
	g.Node("Dropout", []string{"hidden"}, []string{"dropped"})
	yes.Node("Neg", []string{"hidden"}, []string{"negative"})
	yes.Output("negative")
	no.Node("Abs", []string{"sum"}, []string{"positive"})
	no.Output("positive")
	g.Node("If", []string{"c"}, []string{"chosen"}, onnxtest.Subgraph("then_branch", &yes), onnxtest.Subgraph("else_branch", &no))
	g.Node("MatMul", []string{"chosen", "w2"}, []string{"scores"})
	g.Node("Softmax", []string{"scores"}, []string{"probabilities"})
	if head {
		g.Node("acme::Unheard", []string{"hidden"}, []string{"second"})
	}
	for _, name := range outputs {
		g.Output(name)
	}
	return g.File()
}

func networkInputs(t *testing.T) tenure.Inputs {
	return tenure.Inputs{"x": modeltest.Of(t, modeltest.Ramp(3*72), 3, 2, 6, 6), "c": modeltest.Of(t, []bool{true})}
}

// TestWithOutputs chooses each value of a model by its name, and compares it
// with that of a file that declares it as an output.
func TestWithOutputs(t *testing.T) {
	memorytest.Check(t)
	in := networkInputs(t)
	for _, names := range [][]string{
		{"conv"}, {"norm"}, {"relu"}, {"flat"}, {"product"}, {"sum"}, {"hidden"}, {"dropped"}, {"chosen"}, {"scores"}, {"probabilities"},
		{"x"}, {"w2"}, {"scores", "conv", "norm", "w1", "x"}, {"probabilities", "sum", "dropped", "hidden"},
	} {
		chosen := modeltest.LoadBytes(t, network(true, "probabilities", "second"), tenure.WithOutputs(names...))
		declared := modeltest.LoadBytes(t, network(false, names...))
		if got := namesOf(chosen.Outputs()); !slices.Equal(got, names) {
			t.Errorf("%v: got outputs %v", names, got)
		}
		if got := namesOf(chosen.Inputs()); !slices.Equal(got, []string{"x", "c"}) {
			t.Errorf("%v: got inputs %v, want those of the model", names, got)
		}
		got := modeltest.Run(t, modeltest.Session(t, chosen), in)
		want := modeltest.Run(t, modeltest.Session(t, declared), in)
		for _, name := range names {
			if d := modeltest.Differs(got[name], want[name], modeltest.Tolerance{}); d != "" {
				t.Errorf("%v: %q: %s", names, name, d)
			}
		}
	}
}

func namesOf(infos []tenure.Info) (names []string) {
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return names
}

// TestWhatIsNotAskedFor is neither computed nor planned: steps, arena, weights
// and outputs are those of the chosen values.
func TestWhatIsNotAskedFor(t *testing.T) {
	memorytest.Check(t)
	shapes := tenure.Shapes{"x": {3, 2, 6, 6}}
	file := network(true, "probabilities", "second")
	_, err := tenure.LoadBytes(file)
	wantMisuse(t, "the whole model", err, tenure.ErrUnsupported, "acme::Unheard")
	whole := modeltest.LoadBytes(t, file, tenure.WithOutputs("probabilities"))
	all := modeltest.Must(whole.Plan(t.Context(), shapes, tenure.WithThreads(1)))
	for _, c := range []struct {
		names   []string
		steps   int
		weights int64
		io      int64 // beside the inputs
	}{
		{[]string{"relu"}, 1, 4 * (72 + 4), 4 * 3 * 64},
		{[]string{"hidden"}, 3, 4 * (72 + 4 + 64*32 + 32), 4 * 3 * 32},
		{[]string{"w2"}, 1, 4 * 32 * 8, 4 * 32 * 8},
	} {
		m := modeltest.LoadBytes(t, file, tenure.WithOutputs(c.names...))
		p := modeltest.Must(m.Plan(t.Context(), shapes, tenure.WithThreads(1)))
		var ops []string
		for _, s := range p.Steps {
			ops = append(ops, s.Op)
		}
		inputs, own := int64(4*3*72+1), p.WeightBytes
		for _, w := range p.Packed { // panels may have elements that fill them up
			own -= w.Bytes - w.Unloaded
		}
		if len(p.Steps) > c.steps || len(p.Steps) >= len(all.Steps) || own != c.weights || p.IOBytes != inputs+c.io || p.ArenaBytes > all.ArenaBytes {
			t.Errorf("%v: got steps %v, %d bytes of weights, %d of inputs and outputs, an arena of %d; want at most %d steps of %d, %d, %d, at most %d",
				c.names, ops, own, p.IOBytes, p.ArenaBytes, c.steps, len(all.Steps), c.weights, inputs+c.io, all.ArenaBytes)
		}
		if err := m.Check(p); err != nil {
			t.Errorf("%v: %v", c.names, err)
		}
		if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, "of the nodes") {
			t.Errorf("%v: got notes %q, want one about the nodes that are left out", c.names, notes)
		}
	}
}

// TestWithOutputsMisuse requests outputs that the model does not have.
func TestWithOutputsMisuse(t *testing.T) {
	memorytest.Check(t)
	load := func(names ...string) error {
		m, err := tenure.LoadBytes(network(false, "probabilities"), tenure.WithOutputs(names...))
		return errors.Join(err, m.Close())
	}
	wantMisuse(t, "none", load(), tenure.ErrInput, "got no name")
	wantMisuse(t, "twice", load("relu", "sum", "relu"), tenure.ErrInput, `got "relu" twice`)
	wantMisuse(t, "typo", load("hiden"), tenure.ErrInput, `got "hiden"`, `such as "hidden"`)
	wantMisuse(t, "case", load("Probabilities"), tenure.ErrInput, `such as "probabilities"`)
	wantMisuse(t, "a part of the name", load("probab"), tenure.ErrInput, `such as "probabilities"`)
	wantMisuse(t, "with a path around", load("model/norm:0"), tenure.ErrInput, `such as "norm"`)
	wantMisuse(t, "empty", load(""), tenure.ErrInput, `got ""`)
	wantMisuse(t, "within a branch", load("negative"), tenure.ErrInput, "no value of the model")
	long := strings.Repeat("é", 1000)
	wantMisuse(t, "long", load(long), tenure.ErrInput, "no value of the model")

	// A file without the declared outputs that are not asked for is read; one
	// that lacks an asked one is not.
	if err := load("relu"); err != nil {
		t.Error(err)
	}
}

// TestWithOutputsOfAProgram chooses values of a program that was built in Go,
// where marks said that they end earlier.
func TestWithOutputsOfAProgram(t *testing.T) {
	memorytest.Check(t)
	p := modeltest.Must(ir.Parse(`
		func @f(donate %x: f32[3]) {
			weight @w: f32[3]
			%a = relu(donate %x)
			%b = neg(donate %a)
			%c = mul(%b, @w)
			return %c
		}`, op.Builtin()))
	before := p.String()
	table := ir.WeightMap{"w": make([]byte, 12)}
	m := modeltest.Must(tenure.LoadProgram(p, table, tenure.WithOutputs("b", "a", "x", "w")))
	defer m.Close()
	s := modeltest.Session(t, m)
	out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, []float32{-1, 2, 3}, 3)})
	for name, want := range map[string][]float32{"b": {0, -2, -3}, "a": {0, 2, 3}, "x": {-1, 2, 3}, "w": {0, 0, 0}} {
		if got := modeltest.Values(t, out[name]); fmt.Sprint(got) != strings.ReplaceAll(fmt.Sprint(want), "[0 -2", "[-0 -2") {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if p.String() != before {
		t.Errorf("the program was changed:\n%s", p)
	}
	_, err := tenure.LoadProgram(p, table, tenure.WithOutputs("aa"))
	wantMisuse(t, "typo", err, tenure.ErrInput, `got "aa"`, `"a"`)
}

// The chosen order is that of results by position.
func TestWithOutputsByPosition(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, "testdata/state.onnx", tenure.WithOutputs("product", "next"))
	s := modeltest.Session(t, m)
	b := modeltest.Must(s.Bind())
	defer b.Close()
	x := modeltest.Must(tensor.Full[float32](2, 1, 64))
	defer x.Release()
	out := modeltest.Must(b.Run(t.Context(), x, x))
	if p, next := modeltest.Values(t, out[0])[5], modeltest.Values(t, out[1])[5]; p != 8 || next != 4 || out[0].DType() != dtype.F32 {
		t.Errorf("got %v and %v, want 8 and 4", p, next)
	}
}
