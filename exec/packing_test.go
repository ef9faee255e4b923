package exec_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// table is a table of weights that notes what is given back.
type table struct {
	ir.WeightMap
	sparable bool
	spared   map[string]int
	moved    map[string]bool
	held     [][]byte
}

func (t *table) Sparable(*ir.Value, bool) bool { return t.sparable }

func (t *table) Spare(v *ir.Value, restore func([]byte)) error {
	t.spared[v.Name]++
	return nil
}

func (t *table) Hold(data []byte) { t.held = append(t.held, data) }

func (t *table) Private(v *ir.Value) ([]byte, error) {
	if t.moved[v.Name] {
		return nil, nil
	}
	return t.WeightMap[v.Name], nil
}

func (t *table) InPrivate() []*ir.Value { return nil }

func (t *table) Move(v *ir.Value, to []byte) error {
	t.WeightMap[v.Name], t.moved[v.Name] = to, true
	return nil
}

func tableFor(p *ir.Program) *table {
	t := &table{WeightMap: ir.WeightMap{}, sparable: true, spared: map[string]int{}, moved: map[string]bool{}}
	r := rand.New(rand.NewPCG(1, 2))
	for _, w := range p.Weights {
		t.WeightMap[w.Name] = bytesFor(w.Type, r)
	}
	return t
}

const twoProducts = `func @main(%x: f32[5,40]) -> (f32[5,100], f32[100]) {
	weight @w: f32[40,100]
	weight @v: f32[100,100]
	weight @b: f32[100]
	%h = matmul(%x, @w)
	%y = gemm(%h, @v, @b) {transB = 1}
	%s = reduce_sum(%y, _) {keepdims = 0}
	%z = add(@b, %s)
	return %y, %z
}`

// run runs an executable on the given input.
func runOnce(t *testing.T, e *exec.Executable, input []byte) [][]byte {
	t.Helper()
	pool := compute.NewPool(1)
	defer pool.Close()
	var slot exec.Slot
	defer slot.Release()
	r, err := slot.Runner(e)
	if err != nil {
		t.Fatal(err)
	}
	var outputs [][]byte
	for _, v := range e.Program.Body.Results {
		n, _ := v.Type.Bytes()
		outputs = append(outputs, make([]byte, n))
	}
	if err := r.Run(pool, nil, [][]byte{input}, outputs); err != nil {
		t.Fatal(err)
	}
	return outputs
}

func compileWith(t *testing.T, text string, weights ir.Weights, panels *exec.Panels) *exec.Executable {
	t.Helper()
	e, err := exec.Compile(context.Background(), parse(t, text), weights, exec.Options{Threads: 1, Panels: panels})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPanels packs the constants of a program: the plan says what that takes
// and spares, to the byte, and the results stay what they were.
func TestPanels(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, twoProducts)
	weights := tableFor(p)
	panels := exec.NewPanels(weights)
	e := compileWith(t, twoProducts, weights, panels)
	before := memory.Stats().Of(memory.Weights).Current
	if err := e.Pack(context.Background()); err != nil {
		t.Fatal(err)
	}
	taken := memory.Stats().Of(memory.Weights).Current - before
	var packed int64
	for _, w := range e.Plan.Packed {
		packed += w.Bytes
		size := int64(len(weights.WeightMap[w.Weight]))
		if w.Spared != size || w.Bytes < size {
			t.Errorf("weight %s: got %+v, want all %d bytes spared, and as many packed or more", w.Weight, w, size)
		}
	}
	if len(e.Plan.Packed) != 2 || packed != taken {
		t.Errorf("got %d weights packed in %d bytes, and %d bytes taken, want 2 in as many as are taken", len(e.Plan.Packed), packed, taken)
	}
	if want := packed + int64(len(weights.WeightMap["b"])); e.Plan.WeightBytes != want {
		t.Errorf("got %d bytes of weights, want the panels and the bias, %d", e.Plan.WeightBytes, want)
	}
	input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, 4)))
	want := interpret(t, p, weights, [][]byte{input})
	// Whoever reads a spared weight by mistake finds other numbers.
	for name := range weights.spared {
		for i := range weights.WeightMap[name] {
			weights.WeightMap[name][i] = 0x7f
		}
	}
	if len(weights.spared) != 2 {
		t.Errorf("got %v spared, want w and v", weights.spared)
	}
	for i, got := range runOnce(t, e, input) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("output %d differs from that of the interpreter", i)
		}
	}
	if err := panels.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestPanelsAreShared packs once for programs of two shapes.
func TestPanelsAreShared(t *testing.T) {
	memorytest.Check(t)
	weights := tableFor(parse(t, twoProducts))
	panels := exec.NewPanels(weights)
	defer panels.Release()
	if err := compileWith(t, twoProducts, weights, panels).Pack(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := memory.Stats().Of(memory.Weights)
	other := string(bytes.ReplaceAll([]byte(twoProducts), []byte("[5,"), []byte("[1,")))
	if err := compileWith(t, other, weights, panels).Pack(context.Background()); err != nil {
		t.Fatal(err)
	}
	if after := memory.Stats().Of(memory.Weights); after != before {
		t.Errorf("got %+v after the second program, want %+v: nothing new", after, before)
	}
}

// TestPanelsLeaveRawReaders keeps a weight as it is where another call reads
// it so: it would be there twice.
func TestPanelsLeaveRawReaders(t *testing.T) {
	memorytest.Check(t)
	const text = `func @main(%x: f32[5,64]) -> (f32[5,64], f32[64,64]) {
		weight @w: f32[64,64]
		%y = matmul(%x, @w)
		%e = exp(@w)
		return %y, %e
	}`
	p := parse(t, text)
	weights := tableFor(p)
	panels := exec.NewPanels(weights)
	defer panels.Release()
	e := compileWith(t, text, weights, panels)
	input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, 4)))
	want := interpret(t, p, weights, [][]byte{input})
	for i, got := range runOnce(t, e, input) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("output %d differs from that of the interpreter", i)
		}
	}
	if len(e.Plan.Packed) != 0 || len(weights.spared) != 0 || e.Plan.WeightBytes != 64*64*4 {
		t.Errorf("got %v packed, %v spared, %d bytes of weights, want the weight as it is", e.Plan.Packed, weights.spared, e.Plan.WeightBytes)
	}
}

// TestPanelsBesideTheWeight counts both where the table cannot give the
// weight's own bytes back.
func TestPanelsBesideTheWeight(t *testing.T) {
	memorytest.Check(t)
	weights := tableFor(parse(t, twoProducts))
	weights.sparable = false
	panels := exec.NewPanels(weights)
	defer panels.Release()
	e := compileWith(t, twoProducts, weights, panels)
	own := int64(len(weights.WeightMap["w"]) + len(weights.WeightMap["v"]) + len(weights.WeightMap["b"]))
	for _, w := range e.Plan.Packed {
		if w.Spared != 0 {
			t.Errorf("got %+v, want nothing spared", w)
		}
		own += w.Bytes
	}
	if e.Plan.WeightBytes != own {
		t.Errorf("got %d bytes of weights, want %d: the weights and the panels", e.Plan.WeightBytes, own)
	}
}
