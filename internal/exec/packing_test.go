package exec_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// storeOf returns a store of a program's weights, which lie in memory, and the
// same bytes beside it.
func storeOf(t *testing.T, p *ir.Program, o weights.Options) (*weights.Store, ir.WeightMap) {
	t.Helper()
	plain := ir.WeightMap{}
	r := rand.New(rand.NewPCG(1, 2))
	for _, w := range p.Weights {
		plain[w.Name] = bytesFor(w.Type, r)
	}
	return storeWith(t, p, plain, o), plain
}

func storeWith(t *testing.T, p *ir.Program, plain ir.WeightMap, o weights.Options) *weights.Store {
	t.Helper()
	s := weights.New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, w := range p.Weights {
		if err := s.Add(w.Name, w.Type, plain[w.Name]); err != nil {
			t.Fatal(err)
		}
	}
	return s
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

func compileWith(t *testing.T, text string, s *weights.Store) *exec.Executable {
	t.Helper()
	e, err := exec.Compile(context.Background(), parse(t, text), s, exec.Options{Threads: 1, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustPack(t *testing.T, e *exec.Executable) {
	t.Helper()
	if err := e.Pack(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// wantPlain runs an executable once and compares its outputs with the
// interpreter's.
func wantPlain(t *testing.T, e *exec.Executable, p *ir.Program, plain ir.WeightMap) {
	t.Helper()
	input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, 4)))
	want := interpret(t, p, plain, [][]byte{input})
	for i, got := range runOnce(t, e, input) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("output %d differs from that of the interpreter", i)
		}
	}
}

// TestPacking packs the constants of a program: the plan states the packed and
// unloaded bytes exactly, and the results stay the same.
func TestPacking(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, twoProducts)
	s, plain := storeOf(t, p, weights.Options{})
	e := compileWith(t, twoProducts, s)
	before := memory.Stats().Of(memory.Weights).Current
	mustPack(t, e)
	taken := memory.Stats().Of(memory.Weights).Current - before
	var packed, unloaded int64
	for _, w := range planOf(t, e).Packed {
		packed, unloaded = packed+w.Bytes, unloaded+w.Unloaded
		size := int64(len(plain[w.Weight]))
		if w.Unloaded != size || w.Bytes < size {
			t.Errorf("weight %s: got %+v, want all %d bytes unloaded, and as many packed or more", w.Weight, w, size)
		}
	}
	if len(planOf(t, e).Packed) != 2 || packed-unloaded != taken {
		t.Errorf("got %d weights packed in %d bytes, %d unloaded, and %d bytes taken, want 2 in as many as are taken", len(planOf(t, e).Packed), packed, unloaded, taken)
	}
	bias := int64(len(plain["b"]))
	if want := packed + bias; planOf(t, e).WeightBytes != want {
		t.Errorf("got %d bytes of weights, want the panels and the bias, %d", planOf(t, e).WeightBytes, want)
	}
	wantPlain(t, e, p, plain)
	// A run that read an unloaded weight by mistake would have loaded it.
	if got := s.Figures(); got != (weights.Figures{Derived: bias}) {
		t.Errorf("got %+v after a run, want only the bias loaded", got)
	}
}

// TestProgramsSharePanels packs once for programs of two shapes.
func TestProgramsSharePanels(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, twoProducts)
	s, plain := storeOf(t, p, weights.Options{})
	mustPack(t, compileWith(t, twoProducts, s))
	before := memory.Stats().Of(memory.Weights)
	other := strings.ReplaceAll(twoProducts, "[5,", "[1,")
	e := compileWith(t, other, s)
	mustPack(t, e)
	if after := memory.Stats().Of(memory.Weights); after != before {
		t.Errorf("got %+v after the second program, want %+v: nothing new", after, before)
	}
	wantPlain(t, e, parse(t, other), plain)
}

// TestPackingLeavesUnpackedReaders keeps a weight as it is where another call
// reads it so: it would be there twice.
func TestPackingLeavesUnpackedReaders(t *testing.T) {
	memorytest.Check(t)
	const text = `func @main(%x: f32[5,64]) -> (f32[5,64], f32[64,64]) {
		weight @w: f32[64,64]
		%y = matmul(%x, @w)
		%e = exp(@w)
		return %y, %e
	}`
	p := parse(t, text)
	s, plain := storeOf(t, p, weights.Options{})
	e := compileWith(t, text, s)
	wantPlain(t, e, p, plain)
	if got := s.Figures(); len(planOf(t, e).Packed) != 0 || got.Derived != 64*64*4 || planOf(t, e).WeightBytes != 64*64*4 {
		t.Errorf("got %v packed, %+v loaded, %d bytes of weights, want the weight as it is", planOf(t, e).Packed, got, planOf(t, e).WeightBytes)
	}
}

// TestPanelsBesideTheWeight counts both where the weight's own bytes cannot be
// given back: here another weight shares them.
func TestPanelsBesideTheWeight(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, twoProducts)
	s, plain := storeOf(t, p, weights.Options{})
	for _, w := range p.Weights {
		view := &ir.Value{Kind: ir.Weight, Name: w.Name + " once more", Type: w.Type}
		if err := s.Derive(view, w, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	e := compileWith(t, twoProducts, s)
	own := int64(len(plain["w"]) + len(plain["v"]) + len(plain["b"]))
	for _, w := range planOf(t, e).Packed {
		if w.Unloaded != 0 {
			t.Errorf("got %+v, want nothing unloaded", w)
		}
		own += w.Bytes
	}
	if len(planOf(t, e).Packed) != 2 || planOf(t, e).WeightBytes != own {
		t.Errorf("got %d weights packed and %d bytes of weights, want 2 and %d: the weights and the panels", len(planOf(t, e).Packed), planOf(t, e).WeightBytes, own)
	}
	mustPack(t, e)
	if got, _ := s.InMemory(); got != own {
		t.Errorf("got %d bytes in memory, want %d", got, own)
	}
	wantPlain(t, e, p, plain)
}
