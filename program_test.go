package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// A program that is built in Go, or parsed, runs as a model of a file does.
func ExampleLoadProgram() {
	p := must(ir.Parse(`
		func @step(donate %state: f32[1,3], %x: f32[1,3]) {
			weight @decay: f32[3]
			%old = mul(%state, @decay)
			%next = add(%old, %x)
			return %next
		}`, op.Builtin()))
	decay := []byte{0, 0, 0, 63, 0, 0, 0, 63, 0, 0, 0, 63} // 0.5, three times
	m := must(tenure.LoadProgram(p, ir.WeightMap{"decay": decay}))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Of([]float32{1, 2, 3}, 1, 3))
	defer x.Release()
	state := must(tensor.Of([]float32{2, 2, 2}, 1, 3))
	out := must(s.Run(context.Background(), tenure.Inputs{"state": state.Donate(), "x": x}))
	defer out.Release()
	fmt.Println(must(tensor.Values[float32](out["next"])))
	// Output: [2 3 4]
}

func TestLoadProgram(t *testing.T) {
	memorytest.Check(t)
	f32 := op.Type{DType: dtype.F32, Shape: shape.MustOf(2, 2)}
	b := ir.NewBuilder("product", op.Builtin())
	x, w := b.Param("x", f32), b.Weight("w", f32)
	b.Return(b.Call("matmul", nil, x, w))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := p.String()
	data := make([]byte, 16+1)[1:] // at an address that is not aligned
	for i, v := range []byte{63, 64, 64, 64} {
		data[4*i+2], data[4*i+3] = 0x80, v // 1, 4, 4, 4
	}
	m, err := tenure.LoadProgram(p, ir.WeightMap{"w": data}, tenure.WithWeights(tenure.Compressed))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	one, err := tensor.Of([]float32{1, 0, 0, 1}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context(), tenure.Inputs{"x": one})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensor.Values[float32](out[m.Outputs()[0].Name])
	if want := []float32{1, 4, 4, 4}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if err := errors.Join(out.Release(), one.Release(), s.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	if p.String() != before {
		t.Errorf("the program was changed:\n%s", p)
	}

	for name, table := range map[string]ir.Weights{"no table": nil, "no bytes": ir.WeightMap{}, "too few": ir.WeightMap{"w": data[:8]}} {
		if _, err := tenure.LoadProgram(p, table); err == nil || !strings.Contains(err.Error(), `weight "w"`) {
			t.Errorf("%s: got %v, want an error about the weight", name, err)
		}
	}
	if _, err := tenure.LoadProgram(nil, nil); err == nil {
		t.Error("no program: got no error")
	}
	broken := p.Clone()
	broken.Body.Calls[0].Args[0] = ir.Donate(broken.Weights[0])
	if _, err := tenure.LoadProgram(broken, ir.WeightMap{"w": data}); err == nil || !strings.Contains(err.Error(), "V") {
		t.Errorf("a weight is donated: got %v, want what Verify says", err)
	}
}

func TestPasses(t *testing.T) {
	names := tenure.Passes()
	if !slices.Contains(names, "fuse") || !slices.Contains(names, "donate") {
		t.Errorf("got %v, want fuse and donate among them", names)
	}
	if s := slices.Clone(names); len(slices.Compact(slices.Sorted(slices.Values(s)))) != len(names) {
		t.Errorf("got %v, want each once", names)
	}
}

// TestMarksBehindWhichReadsMove runs programs whose marks hold as they are
// written: a pass then makes calls that read what is given up part of later
// ones.
func TestMarksBehindWhichReadsMove(t *testing.T) {
	memorytest.Check(t)
	for name, text := range map[string]string{
		"attention": `func @f(%x: f32[1,16,4,64]) -> (f32[1,4,16,64], f32[1,16,4,64]) {
			%r = neg(%x)
			%q = transpose(%r) {perm = [0, 2, 1, 3]}
			%k = transpose(%r) {perm = [0, 2, 3, 1]}
			%z = relu(donate %r)
			%s = matmul(%q, %k)
			%p = softmax(%s)
			%y = matmul(%p, %q)
			return %y, %z
		}`,
		"a stack": `func @f(%x: f32[1,16,4,64]) -> (f32[1,16,64], f32[1,16,4,64]) {
			weight @zero: i64[]
			weight @one: i64[]
			%r = neg(%x)
			%t = transpose(%r) {perm = [2, 0, 1, 3]}
			%z = relu(donate %r)
			%a = gather(%t, @zero)
			%b = gather(%t, @one)
			%y = sub(%a, %b)
			return %y, %z
		}`,
	} {
		p := must(ir.Parse(text, op.Builtin()))
		table := ir.WeightMap{"zero": make([]byte, 8), "one": {1, 0, 0, 0, 0, 0, 0, 0}}
		m := must(tenure.LoadProgram(p, table))
		defer m.Close()
		s := modeltest.Session(t, m)
		x := modeltest.Of(t, modeltest.Ramp(16*4*64), 1, 16, 4, 64)
		data, _ := x.UnsafeBytes()
		want := must((&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, op.Arg{Type: op.Type{DType: x.DType(), Shape: x.Shape()}, Data: data}))
		out := modeltest.Run(t, s, tenure.Inputs{"x": x})
		for i, info := range m.Outputs() {
			w := must(tensor.FromBytes(want[i].DType, want[i].Shape, want[i].Data))
			if fault := modeltest.Differs(out[info.Name], w, modeltest.Tolerance{RTol: 1e-5, ATol: 1e-5}); fault != "" {
				t.Errorf("%s: output %q: %s", name, info.Name, fault)
			}
			w.Release()
		}
		out.Release()
	}
}
