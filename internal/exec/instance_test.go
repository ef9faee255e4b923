package exec_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
)

// sized returns a program text with a size in the place of N, and one before
// it, if there is one, in the place of B.
func sized(text, n string) string {
	b, after, found := strings.Cut(n, "x")
	if !found {
		b, after = "1", n
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "N", after), "[B", "["+b)
}

const layers = `func @main(%x: f32[N,40]) -> (f32[N,100], f32[100]) {
	weight @w: f32[40,100]
	weight @v: f32[100,100]
	weight @b: f32[100]
	%g = matmul(%x, @w)
	%h = relu(donate %g)
	%y = gemm(%h, @v, @b) {transB = 1}
	%s = reduce_sum(%y, _) {keepdims = 0}
	%z = add(@b, %s)
	return %y, %z
}`

// runSlot runs an executable in a slot on one input.
func runSlot(t *testing.T, slot *exec.Slot, e *exec.Executable, input []byte) [][]byte {
	t.Helper()
	pool := compute.NewPool(1)
	defer pool.Close()
	r, err := slot.Runner(e)
	if err != nil {
		t.Fatal(err)
	}
	var outputs [][]byte
	for i := range e.Program.Body.Results {
		n, _ := e.ResultType(i).Bytes()
		outputs = append(outputs, make([]byte, n))
	}
	if err := r.Run(pool, nil, [][]byte{input}, outputs); err != nil {
		t.Fatal(err)
	}
	return outputs
}

// Instances read the panels of the first executable, in slots that make their
// runners of the tasks of others.
func TestInstancesSharePanels(t *testing.T) {
	memorytest.Check(t)
	s, plain := storeOf(t, parse(t, sized(layers, "5")), weights.Options{})
	first := compileWith(t, sized(layers, "5"), s)
	mustPack(t, first)
	held := s.Figures()
	var slot exec.Slot
	defer slot.Release()
	made := map[string]*exec.Executable{"5": first}
	sizes := []string{"5", "7", "1", "64", "0", "5", "13", "2", "1", "100", "7"}
	for i, n := range sizes {
		p := parse(t, sized(layers, n))
		e := made[n]
		if e == nil {
			var err error
			if e, err = first.Instance(context.Background(), ir.TypesOf(p), s); err != nil {
				t.Fatal(err)
			}
			made[n] = e
		}
		input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, uint64(i))))
		want := interpret(t, p, plain, [][]byte{input})
		for k, got := range runSlot(t, &slot, e, input) {
			if !bytes.Equal(got, want[k]) {
				t.Errorf("size %s, output %d differs from that of the interpreter", n, k)
			}
		}
		a, b := planOf(t, e), planOf(t, first)
		if !slices.Equal(a.Packed, b.Packed) || a.WeightBytes != b.WeightBytes || a.Model == b.Model != (n == "5") {
			t.Errorf("size %s: got %v of model %s packed, want %v", n, a.Packed, a.Model, b.Packed)
		}
	}
	if got := s.Figures(); got != held {
		t.Errorf("got %+v after all runs, want %+v as after the first one was packed", got, held)
	}
	f := first.InstanceFigures()
	if f.Instances != 7 || f.Rebound != 0 {
		t.Errorf("got %+v, want 7 instances in the panels of the first", f)
	}
}

// An instance that a slot is ready to run, in tasks of another one, takes so
// many allocations, for a program of any number of calls.
func TestInstanceAllocations(t *testing.T) {
	if invariant.Enabled || invariant.Race {
		t.Skip("skipped: builds that check take more")
	}
	memorytest.Check(t)
	long := strings.Replace(layers, "%y = gemm(%h,", "%h1 = relu(donate %h)\n%h2 = neg(donate %h1)\n%h3 = abs(donate %h2)\n%y = gemm(%h3,", 1)
	for _, text := range []string{layers, long} {
		s, _ := storeOf(t, parse(t, sized(text, "5")), weights.Options{})
		first := compileWith(t, sized(text, "5"), s)
		mustPack(t, first)
		types := []ir.Types{ir.TypesOf(parse(t, sized(text, "7"))), ir.TypesOf(parse(t, sized(text, "64")))}
		var slot exec.Slot
		n := 0
		step := func() {
			n++
			e, err := first.Instance(context.Background(), types[n%2], s)
			if err == nil {
				_, err = slot.Runner(e)
			}
			if err != nil {
				t.Fatal(err)
			}
			slot.Keep(n, func(kept *exec.Executable) bool { return kept == e })
		}
		allocs := testing.AllocsPerRun(10, step)
		for range 9 {
			allocs = min(allocs, testing.AllocsPerRun(10, step))
		}
		if allocs != 16 {
			t.Errorf("got %v allocations for an instance, want 16", allocs)
		}
		if err := slot.Release(); err != nil {
			t.Error(err)
		}
	}
}

// Instances may be made, run and read from many goroutines.
func TestInstancesFromManyGoroutines(t *testing.T) {
	memorytest.Check(t)
	s, plain := storeOf(t, parse(t, sized(layers, "5")), weights.Options{})
	first := compileWith(t, sized(layers, "5"), s)
	mustPack(t, first)
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			var slot exec.Slot
			defer slot.Release()
			for i := range 12 {
				p := parse(t, sized(layers, strconv.Itoa(1+(g+i)%7)))
				e, err := first.Instance(context.Background(), ir.TypesOf(p), s)
				if err != nil {
					t.Error(err)
					return
				}
				input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, uint64(i))))
				want := interpret(t, p, plain, [][]byte{input})
				for k, got := range runSlot(t, &slot, e, input) {
					if !bytes.Equal(got, want[k]) {
						t.Errorf("output %d differs from that of the interpreter", k)
					}
				}
				slot.Keep(i+1, func(kept *exec.Executable) bool { return kept == e && i%3 > 0 })
				if i%4 == 0 {
					planOf(t, e)
				}
			}
		})
	}
	wait.Wait()
	if f := first.InstanceFigures(); f.Instances != 48 {
		t.Errorf("got %+v, want 48 instances", f)
	}
}

// A convolution reads its weights in one form at all sizes, whichever kernel
// the sizes want, and whichever size was first.
func TestInstancesOfConvolutions(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct{ name, text string }{
		{"few channels", `func @main(%x: f32[B,20,N]) -> (f32[B,12,N]) {
			weight @w: f32[12,20,3,3]
			%y = conv(%x, @w) {pads = [1,1,1,1]}
			return %y
		}`},
		{"few products", `func @main(%x: f32[B,4,N]) -> (f32[B,70,N]) {
			weight @w: f32[70,4,3,3]
			%y = conv(%x, @w) {pads = [1,1,1,1]}
			return %y
		}`},
		{"three channels", `func @main(%x: f32[B,20,N]) -> (f32[B,3,N]) {
			weight @w: f32[3,20,3,3]
			%y = conv(%x, @w) {pads = [1,1,1,1]}
			return %y
		}`},
		{"wide kernel", `func @main(%x: f32[B,5,N]) -> (f32[B,20,N]) {
			weight @w: f32[20,5,3,3]
			%y = conv(%x, @w) {pads = [400,1,400,1], dilations = [400,1]}
			return %y
		}`},
	} {
		t.Run(c.name, func(t *testing.T) { testInstancesOfConvolution(t, c.text) })
	}
}

func testInstancesOfConvolution(t *testing.T, text string) {
	sizes := []string{"64,64", "8,2", "31,9", "1,1", "0x1,5", "8,2", "3x64,63", "1,30000"}
	s, _ := storeOf(t, parse(t, sized(text, sizes[0])), weights.Options{})
	var packed []plan.Packed
	held := int64(-1)
	for _, base := range sizes[:5] {
		first := compileWith(t, sized(text, base), s)
		mustPack(t, first)
		if held < 0 {
			held, packed = memory.Stats().Of(memory.Weights).Current, planOf(t, first).Packed
		}
		var slot, own exec.Slot
		defer slot.Release()
		defer own.Release()
		for i, n := range sizes {
			p := parse(t, sized(text, n))
			e, err := first.Instance(context.Background(), ir.TypesOf(p), s)
			if err != nil {
				t.Fatal(err)
			}
			fresh := compileWith(t, sized(text, n), s)
			input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, uint64(i))))
			if got, want := runSlot(t, &slot, e, input), runSlot(t, &own, fresh, input); !bytes.Equal(got[0], want[0]) {
				t.Errorf("size %s of %s: the result differs from that of a program that was compiled from the start", n, base)
			}
			for _, e := range []*exec.Executable{e, fresh} {
				if got := planOf(t, e).Packed; !slices.Equal(got, packed) {
					t.Errorf("size %s of %s: got %+v packed, want %+v as of size %s", n, base, got, packed, sizes[0])
				}
			}
		}
		if f := first.InstanceFigures(); f.Rebound != 0 {
			t.Errorf("instances of size %s: got %+v, want no call bound anew", base, f)
		}
		if now := memory.Stats().Of(memory.Weights).Current; now != held {
			t.Errorf("got %d bytes of weights after all sizes of %s, want %d as after the first one", now, base, held)
		}
	}
}

// A program whose result becomes a view of its input has no plan: another one
// serves these sizes.
func TestInstanceOfAnotherStructure(t *testing.T) {
	const text = `func @main(%x: f32[N,8]) -> (f32[N,4]) {
		weight @i64_0: i64[1]
		weight @i64_4: i64[1]
		weight @i64_1: i64[1]
		%y: f32[N,4] = slice(%x, @i64_0, @i64_4, @i64_1)
		return %y
	}`
	p := parse(t, sized(text, "2"))
	table := weightsFor(p)
	e, err := exec.Compile(context.Background(), p, table, exec.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Instance(context.Background(), ir.TypesOf(parse(t, sized(text, "1"))), table); !errors.Is(err, exec.ErrStructure) {
		t.Errorf("got %v, want ErrStructure", err)
	}
	if _, err := e.Instance(context.Background(), nil, table); err == nil {
		t.Error("got no error for no types")
	}
	if _, err := e.Instance(context.Background(), ir.TypesOf(parse(t, sized(text, "3"))), table); err != nil {
		t.Errorf("after errors: %v", err)
	}
}
