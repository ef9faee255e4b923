package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// faultModel has something of everything that is decoded: weights raw and in
// lists, attributes of all kinds, a branch, a function.
func faultModel(t testing.TB) []byte {
	m := wiretest.ParseText(t, `
		opset 13
		opset acme 1
		func acme::Bias(x, b) -> (y) {scale = 1.0}
		  opset 13
		  s = Constant() {value_float = @scale}
		  t = Mul(x, s)
		  y = Add(t, b)
		end
		input x f32[n,3,4]
		input c bool[]
		init w f32[4,2] 1 2 3 4 5 6 7 8
		init b f32[2] 1 2
		graph yes
		  y = Relu(h)
		  output y f32[n,3,2]
		end
		graph no
		  k = Constant() {value = f32[2] 0.5 1.5}
		  y = Mul(h, k)
		  output y f32[n,3,2]
		end
		g = MatMul(x, w) as "product"
		h = acme::Bias(g, b) {scale = 2.0}
		z = If(c) {then_branch = yes, else_branch = no} as "branch"
		a, a2 = Split(z) {axis = 2} as "split"
		s = acme::Scale(a) {mode = "m", axes = [1,2], weights = [1.0,2.0], names = ["a"], to = 1}
		r = Transpose(s) {perm = [2,0,1]}
		output r f32[1,n,3]
		value g f32[n,3,2]
	`)
	list := wire.Tensor{Name: "list", Dims: []int64{3}, DataType: 7}
	list.Body = append(list.Body, 0x3a, 4, 1, 2, 0xac, 0x02)
	m.Graph.Initializers = append(m.Graph.Initializers, list)
	m.Graph.Nodes = append(m.Graph.Nodes, wire.Node{OpType: "Identity", Inputs: []string{"list"}, Outputs: []string{"list2"}})
	m.Graph.Outputs = append(m.Graph.Outputs, wire.Value{Name: "list2"})
	return wiretest.EncodeModel(m)
}

// parseAny parses a file with any content. The outcome must be an error in one
// line, or a model that verifies.
func parseAny(t testing.TB, data []byte) error {
	t.Helper()
	m, err := Parse(data, "", Options{Registry: testRegistry(t)})
	if err != nil {
		if text := err.Error(); !strings.HasPrefix(text, "onnx: ") || strings.Contains(text, "\n") {
			t.Errorf("got the error %q, want one line that starts with onnx:", text)
		}
		return err
	}
	if err := ir.VerifyKnown(m.Program, ir.Known(m.Weights)); err != nil {
		t.Errorf("%v in\n%s", err, m.Program)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	return nil
}

func TestTruncatedFiles(t *testing.T) {
	data := faultModel(t)
	if err := parseAny(t, data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		// Cut between two top-level fields the file is whole, but has no
		// graph or no opset.
		if err := parseAny(t, data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes: got a model, want an error", n, len(data))
		}
	}
}

func TestFlippedBits(t *testing.T) {
	original := faultModel(t)
	data := bytes.Clone(original)
	loaded := 0
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			if parseAny(t, data) == nil {
				loaded++
			}
			data[i] = original[i]
		}
	}
	// Most bits of numbers and names do not make a file unreadable.
	if loaded == 0 {
		t.Error("no flipped file was read: the test flips nothing that matters")
	}
}

// Overwritten ranges reach what single bits do not: lengths and names at once.
func TestScrambledFiles(t *testing.T) {
	original := faultModel(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		data := bytes.Clone(original)
		for range 1 + rnd.IntN(8) {
			switch at := rnd.IntN(len(data)); rnd.IntN(3) {
			case 0:
				data[at] = byte(rnd.Uint32())
			case 1: // one piece twice
				end := min(len(data), at+rnd.IntN(40))
				data = slices.Insert(data, at, bytes.Clone(data[at:end])...)
			case 2:
				data = slices.Delete(data, at, min(len(data), at+rnd.IntN(10)))
			}
			if len(data) == 0 {
				break
			}
		}
		parseAny(t, data)
	}
}

// allocated returns the bytes that f takes from the Go heap, freed ones
// included, and the most that it has of package memory at once.
func allocated(f func()) (heap, buffers int64) {
	var before, after runtime.MemStats
	memory.ResetPeak()
	start := memory.Stats().Total.Current
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), memory.Stats().Total.Peak - start
}

// A damaged file takes no more memory than twice its size plus the tensors
// that it declares: lengths and dims that lie are found out before anything is
// allocated for them.
func TestFlippedBitsTakeNoMemory(t *testing.T) {
	const weightBytes = 200_000
	m := wiretest.ParseText(t, "opset 13\ninput x f32[n,500]\ny = MatMul(x, w)\nz = Add(y, b)\noutput z f32[n,100]")
	m.Graph.Initializers = []wire.Tensor{
		{Name: "w", Dims: []int64{500, 100}, DataType: 1, Raw: make([]byte, weightBytes)},
		{Name: "b", Dims: []int64{100}, DataType: 1, Raw: make([]byte, 400)},
	}
	original := wiretest.EncodeModel(m)
	limit := int64(2*len(original) + weightBytes + 400)
	head := len(original) - 300 // names, dims and lengths stand before and behind the weights
	data := bytes.Clone(original)
	for i := range data {
		if i > 200 && i < head {
			continue
		}
		for bit := range 8 {
			data[i] ^= 1 << bit
			heap, buffers := allocated(func() { parseAny(t, data) })
			if heap+buffers > limit {
				t.Errorf("bit %d of byte %d: got %d bytes of heap and %d of buffers, want at most %d together", bit, i, heap, buffers, limit)
			}
			data[i] = original[i]
		}
	}
}

// Files made to grow take memory in proportion to their size.
func TestGreedyFiles(t *testing.T) {
	graphOf := func(field int, body []byte, n int) []byte {
		var one, all wiretest.Writer
		one.Bytes(field, body)
		all.Bytes(7, bytes.Repeat(one, n))
		return all
	}
	for _, tc := range []struct {
		name string
		data []byte
	}{
		{"nodes", graphOf(1, []byte{0x22, 1, 'X'}, 50_000)},
		{"nodes with outputs", graphOf(1, []byte{0x12, 0, 0x22, 1, 'X'}, 50_000)},
		{"attributes", graphOf(1, append([]byte{0x22, 1, 'X', 0x12, 0}, bytes.Repeat([]byte{0x2a, 5, 0x0a, 1, 'a', 0x18, 1}, 50_000)...), 1)},
		{"outputs", graphOf(1, append([]byte{0x22, 1, 'X'}, outputs(50_000)...), 1)},
		{"initializers", graphOf(5, nil, 50_000)},
		{"dims", graphOf(5, append([]byte{0x0a, 0xf0, 0x93, 0x09}, bytes.Repeat([]byte{1}, 150_000-16)...), 1)},
		{"inputs", graphOf(11, nil, 50_000)},
		{"values", graphOf(13, nil, 50_000)},
		{"functions", bytes.Repeat([]byte{0xca, 0x01, 3, 0x0a, 1, 'f'}, 50_000)},
		{"branches", nestedBranches(30, 200)},
		{"doubling functions", doublingFunctions(40)},
		{"deep functions", deepFunctions(5000)},
		{"long names", longNames(200)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			heap, buffers := allocated(func() {
				if err := parseAny(t, tc.data); err == nil {
					t.Error("got a model, want an error")
				}
			})
			if limit := int64(100*len(tc.data)) + 32<<20; heap+buffers > limit {
				t.Errorf("%d bytes of file: got %d of heap and %d of buffers, want at most %d", len(tc.data), heap, buffers, limit)
			}
		})
	}
}

func outputs(n int) []byte {
	var w wiretest.Writer
	for i := range n {
		w.Text(2, fmt.Sprintf("o%d", i))
	}
	return w
}

// nestedBranches has branches in branches, each with unknown operators.
func nestedBranches(depth, width int) []byte {
	g := &wire.Graph{Name: "g", Outputs: []wire.Value{{Name: "x0"}}}
	for d := range depth {
		outer := &wire.Graph{Name: "g", Outputs: []wire.Value{{Name: "x0"}}}
		for i := range width {
			outer.Nodes = append(outer.Nodes, wire.Node{OpType: "X", Outputs: []string{fmt.Sprintf("x%d", i)}})
		}
		outer.Nodes = append(outer.Nodes, wire.Node{OpType: "If", Inputs: []string{"x0"}, Outputs: []string{fmt.Sprintf("i%d", d)},
			Attrs: []wire.Attribute{{Name: "then_branch", Value: g}, {Name: "else_branch", Value: &wire.Graph{Outputs: []wire.Value{{Name: "x0"}}}}}})
		g = outer
	}
	return wiretest.EncodeModel(&wire.Model{Opsets: []wire.Opset{{Version: 13}}, Graph: g})
}

// callOf is a model with a call of a function of domain f.
func callOf(function string) *wire.Model {
	return &wire.Model{Opsets: []wire.Opset{{Version: 13}, {Domain: "f", Version: 1}}, Graph: &wire.Graph{
		Inputs:  []wire.Value{{Name: "x", Type: wire.Type{Kind: "tensor", ElemType: 1}}},
		Outputs: []wire.Value{{Name: "y"}},
		Nodes:   []wire.Node{{OpType: function, Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"}}},
	}}
}

// doublingFunctions would expand to 2^n nodes.
func doublingFunctions(n int) []byte {
	opsets := []wire.Opset{{Version: 13}, {Domain: "f", Version: 1}}
	m := callOf("F0")
	for i := range n {
		next := fmt.Sprintf("F%d", i+1)
		f := wire.Function{Name: fmt.Sprintf("F%d", i), Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"}, Opsets: opsets, Nodes: []wire.Node{
			{OpType: next, Domain: "f", Inputs: []string{"x"}, Outputs: []string{"t"}},
			{OpType: next, Domain: "f", Inputs: []string{"t"}, Outputs: []string{"y"}},
		}}
		m.Functions = append(m.Functions, f)
	}
	m.Functions = append(m.Functions, wire.Function{Name: fmt.Sprintf("F%d", n), Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"}, Opsets: opsets,
		Nodes: []wire.Node{{OpType: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}}})
	return wiretest.EncodeModel(m)
}

// deepFunctions has n functions, each of which calls the next.
func deepFunctions(n int) []byte {
	m := callOf("F0")
	for i := range n {
		m.Functions = append(m.Functions, wire.Function{Name: fmt.Sprintf("F%d", i), Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"},
			Opsets: []wire.Opset{{Version: 13}, {Domain: "f", Version: 1}}, Nodes: []wire.Node{{OpType: fmt.Sprintf("F%d", i+1), Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"}}}})
	}
	return wiretest.EncodeModel(m)
}

// longNames calls a function of long names from nodes of long names.
func longNames(calls int) []byte {
	long := strings.Repeat("n", wire.MaxName)
	m := callOf("F")
	m.Graph.Nodes = nil
	m.Functions = []wire.Function{{Name: "F", Domain: "f", Inputs: []string{"x"}, Outputs: []string{"y"}, Opsets: []wire.Opset{{Version: 13}}, Nodes: []wire.Node{
		{OpType: "Relu", Inputs: []string{"x"}, Outputs: []string{long}},
		{OpType: "Unknown", Name: long, Inputs: []string{long}, Outputs: []string{"y"}},
	}}}
	for i := range calls {
		m.Graph.Nodes = append(m.Graph.Nodes, wire.Node{OpType: "F", Domain: "f", Name: long[:len(long)-4] + fmt.Sprint(1000+i), Inputs: []string{"x"}, Outputs: []string{fmt.Sprint("y", i)}})
	}
	m.Graph.Outputs[0].Name = "y0"
	return wiretest.EncodeModel(m)
}

// maxSeed is the size of the largest file that is a seed: few changes of a
// large one meet its structure.
const maxSeed = 4 << 10

// FuzzParse parses files of any content. Its seeds are the models of the golden
// files, which have every kind of value, attribute and weight.
func FuzzParse(f *testing.F) {
	for _, data := range wiretest.TextModels(f, "testdata/import") {
		if len(data) <= maxSeed {
			f.Add(data)
		}
	}
	f.Add(faultModel(f))
	f.Add(nestedBranches(2, 1))
	f.Add(doublingFunctions(1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) { parseAny(t, data) })
}

func FuzzReadTensor(f *testing.F) {
	f.Add(listTensor(dtype.I8, wire.Int32Data, true, []uint64{1, 2}, 2))
	f.Add(listTensor(dtype.F64, wire.DoubleData, false, []uint64{1, 2}, 2))
	f.Add(listTensor(dtype.I4, wire.Int32Data, true, []uint64{0x21}, 1, 2))
	for _, data := range stringFiles(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, _, err := ReadTensor(data)
		if err != nil {
			return
		}
		if n, err := shape.Bytes(x.DType(), x.Shape()); err != nil || n != x.NumBytes() {
			t.Errorf("got %s%s of %d bytes, %v", x.DType(), x.Shape(), x.NumBytes(), err)
		}
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	})
}

// What is too much for a file, or no model at all, is refused in words.
func TestLargeAndOtherFiles(t *testing.T) {
	attrs := make([]wire.Attribute, 300)
	for i := range attrs {
		attrs[i] = wire.Attribute{Name: fmt.Sprint("a", i), Value: int64(i)}
	}
	node := func(n wire.Node) []byte {
		m := callOf(n.OpType)
		m.Graph.Nodes = []wire.Node{n}
		return wiretest.EncodeModel(m)
	}
	texts := func(name string) string {
		return fmt.Sprintf("init %s string[4000] %q %s\n", name, strings.Repeat("x", 3000), strings.Repeat(`"" `, 3999))
	}
	whole := faultModel(t)
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"attributes", node(wire.Node{OpType: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}, Attrs: attrs}), `Relu: got 300 attributes, want at most 256 ("Relu#0")`},
		{"no outputs", node(wire.Node{OpType: "Relu", Inputs: []string{"x"}}), `node "Relu#0": got no outputs, want one or more`},
		{"deep functions", deepFunctions(100), "functions call each other deeper than 64: f::F"},
		{"doubling functions", doublingFunctions(40), "the functions of the model expand to more than "},
		{"a long sequence", node(wire.Node{OpType: "SequenceConstruct", Inputs: slices.Repeat([]string{"x"}, 5000), Outputs: []string{"y"}}), "a sequence of more than 4096 values"},
		{"strings", wiretest.ModelText(t, "opset 19\ninput x f32[2]\n"+texts("a")+texts("b")+"y = Equal(a, b)\noutput y bool\n"), "the strings and functions of the model expand to more than "},
		{"sequences", wiretest.ModelText(t, growingSequences()), "the sequences and functions of the model expand to more than "},
		{"an empty model", []byte{8, 8}, "got no graph: this is no ONNX model"},
		{"half a model", whole[:len(whole)/2], " bytes, want all of them: the file ends early, as after a download that was cut off"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := parseAny(t, tc.data); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Sequences do not grow a small file beyond all memory.
func TestSequencesStaySmall(t *testing.T) {
	_, err := Parse(wiretest.ModelText(t, growingSequences()), "", Options{})
	if !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), "sequences and functions") {
		t.Errorf("got %v, want an error about what sequences expand to", err)
	}
}

// growingSequences is a model of many sequences of many values.
func growingSequences() string {
	var text strings.Builder
	text.WriteString("opset 12\ninput x f32[4096]\ns0 = SplitToSequence(x)\n")
	for i := range 200 {
		fmt.Fprintf(&text, "s%d = SequenceErase(s%d)\n", i+1, i)
	}
	text.WriteString("n = SequenceLength(s200)\noutput n i64[]\n")
	return text.String()
}
