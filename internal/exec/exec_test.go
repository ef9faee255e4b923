package exec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

func parse(t testing.TB, text string) *ir.Program {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bytesFor makes bytes of a type: small floats, zeros and ones else.
func bytesFor(t op.Type, r *rand.Rand) []byte {
	n, _ := t.Bytes()
	data := make([]byte, max(n, 8))[:n]
	if t.DType == dtype.F32 {
		for i := range n / 4 {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(r.IntN(17)-8)/4))
		}
		return data
	}
	for i := range data {
		data[i] = byte(r.IntN(2))
	}
	return data
}

// weightsFor makes the weights that are named by their values.
func weightsFor(p *ir.Program) ir.WeightMap {
	weights := ir.WeightMap{}
	for _, w := range p.Weights {
		v, named := map[string]int{"zero": 0, "axis": 0, "one": 1, "three": 3, "last": 1 << 20}[w.Name]
		if n, ok := strings.CutPrefix(w.Name, "i64_"); ok { // a list of one integer
			v, _ = strconv.Atoi(n)
			named = true
		}
		if list, ok := strings.CutPrefix(w.Name, "ints_"); ok {
			for n := range strings.SplitSeq(list, "_") {
				v, _ := strconv.Atoi(n)
				if n == "rest" {
					v = -1
				}
				weights[w.Name] = binary.LittleEndian.AppendUint64(weights[w.Name], uint64(v))
			}
		}
		if named {
			weights[w.Name] = binary.LittleEndian.AppendUint64(nil, uint64(v))
		}
	}
	return weights
}

// start compiles a program and returns it with a runner and a pool of one
// thread, which end with the test.
func start(t *testing.T, p *ir.Program, weights ir.Weights) (*exec.Executable, *exec.Runner, *compute.Pool) {
	t.Helper()
	exe, err := exec.Compile(context.Background(), p, weights, exec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot, pool := new(exec.Slot), compute.NewPool(1)
	t.Cleanup(func() {
		pool.Close()
		if err := slot.Release(); err != nil {
			t.Error(err)
		}
	})
	runner, err := slot.Runner(exe)
	if err != nil {
		t.Fatal(err)
	}
	return exe, runner, pool
}

// runBoth runs a program as planned and by the reference interpreter, and
// compares the results bit by bit.
func runBoth(t *testing.T, p *ir.Program, seed uint64) *plan.Plan {
	t.Helper()
	return runWith(t, p, seed, exec.Options{Threads: 2})
}

func runWith(t *testing.T, p *ir.Program, seed uint64, o exec.Options) *plan.Plan {
	t.Helper()
	memorytest.Check(t)
	r := rand.New(rand.NewPCG(seed, 1))
	weights := weightsFor(p)
	for _, w := range p.Weights {
		if weights[w.Name] == nil {
			weights[w.Name] = bytesFor(w.Type, r)
		}
	}
	if err := ir.Infer(p, ir.Known(weights)); err != nil {
		t.Fatal(err)
	}
	var inputs, want [][]byte
	for _, v := range p.Body.Params {
		inputs = append(inputs, bytesFor(v.Type, r))
	}
	want = interpret(t, p, weights, inputs)
	exe, err := exec.Compile(context.Background(), p, weights, o)
	if err != nil {
		t.Fatal(err)
	}
	var slot exec.Slot
	defer slot.Release()
	pool := compute.NewPool(2)
	defer pool.Close()
	runner, err := slot.Runner(exe)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		given := make([][]byte, len(inputs))
		for i := range inputs {
			given[i] = append(make([]byte, 0, len(inputs[i])+8), inputs[i]...)
		}
		var outputs [][]byte
		for i, v := range p.Body.Results {
			n := 0
			if v.Type.IsStatic() {
				n, _ = v.Type.Bytes()
			}
			if in := exe.OutputInInput(i); in >= 0 {
				outputs = append(outputs, given[in][:n])
				continue
			}
			outputs = append(outputs, make([]byte, n))
		}
		if err := runner.Run(pool, nil, given, outputs); err != nil {
			t.Fatal(err)
		}
		takeResults(t, runner, p, outputs)
		for i := range want {
			if string(outputs[i]) != string(want[i]) {
				t.Fatalf("round %d, output %d: got % x, want % x\n%s", round, i, outputs[i], want[i], p)
			}
		}
		for i, v := range p.Body.Params {
			if !v.Donated && string(given[i]) != string(inputs[i]) {
				t.Fatalf("round %d: input %d was written", round, i)
			}
		}
	}
	return planOf(t, exe)
}

// takeResults takes the results whose size depends on data, checks that they
// have no other holder, and releases them.
func takeResults(t *testing.T, runner *exec.Runner, p *ir.Program, outputs [][]byte) {
	t.Helper()
	for i, v := range p.Body.Results {
		if v.Type.IsStatic() {
			continue
		}
		buf, typ := runner.TakeDynamic(i)
		n, err := typ.Bytes()
		if err != nil || (buf == nil) != (n == 0) {
			t.Fatalf("output %d: got %s, %v", i, typ, err)
		}
		if buf == nil {
			continue
		}
		defer buf.Release()
		if outputs[i] = bytes.Clone(buf.Bytes()[:n]); buf.Holders() != 1 || buf.Purpose() != memory.IO {
			t.Fatalf("output %d: got %d holders of its buffer, of %s, want 1, of %s", i, buf.Holders(), buf.Purpose(), memory.IO)
		}
	}
	if n := exec.Leftover(); n != 0 {
		t.Fatalf("got %d holds left over, want none", n)
	}
}

func interpret(t *testing.T, p *ir.Program, weights ir.Weights, inputs [][]byte) [][]byte {
	t.Helper()
	in := ir.Interpreter{Eval: compute.Eval, Weights: weights}
	var args []op.Arg
	for i, v := range p.Body.Params {
		args = append(args, op.Arg{Type: v.Type, Data: inputs[i]})
	}
	results, err := in.Run(p, args...)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, r := range results {
		out = append(out, r.Data)
	}
	return out
}

func TestRunEqualsInterpreter(t *testing.T) {
	for name, text := range map[string]string{
		"chain in place": `func @main(%x: f32[100]) -> (f32[100]) {
			%a = relu(%x)
			%b = exp(donate %a)
			%c = neg(donate %b)
			return %c
		}`,
		"output from a part of a value": `func @main(%x: f32[4,8]) -> (f32[2,8], f32[1,16]) {
			%a = exp(%x)
			%h, %t = split(%a) {axis = 0}
			%b = relu(donate %h)
			%c = neg(donate %t)
			%d = flatten(%c) {axis = 0}
			return %b, %d
		}`,
		"output from a part of a donated input": `func @main(donate %x: f32[4,8]) -> (f32[2,8]) {
			%h, %t = split(%x) {axis = 0}
			%b = neg(donate %t)
			return %b
		}`,
		"part of a block at the peak": `func @main(%x: f32[40]) -> (f32[20]) {
			%a = exp(%x)
			%h, %t = split(%a) {axis = 0}
			%b = concat(%t, %t, %t, %t, %t, %t, %t, %t) {axis = 0}
			%c = exp(%b)
			%d, %e, %f, %g, %i, %j, %k, %l = split(%c) {axis = 0}
			%m = add(%d, %t)
			return %m
		}`,
		"unused result of a branch": `func @main(%x: f32[32], %c: bool[]) -> (f32[32]) {
			%r, %s = if(%c) {
				%a = neg(%x)
				%b = exp(%x)
				return %a, %b
			} {
				%d = exp(%x)
				%e = neg(%x)
				%f = relu(%e)
				return %d, %f
			}
			return %s
		}`,
		"residual": `func @main(%x: f32[64,8]) -> (f32[64,8]) {
			weight @w: f32[64,8]
			%a = relu(%x)
			%b = mul(%a, @w)
			%c = add(donate %b, %a)
			%d = sub(%a, donate %c)
			return %d
		}`,
		"views": `func @main(%x: f32[2,3,4], %y: f32[24]) -> (f32[24], f32[12]) {
			weight @i64_24: i64[1]
			%a = relu(%x)
			%v: f32[24] = reshape(%a, @i64_24)
			%b = add(%v, %y)
			%c, %d = split(%b) {num_outputs = 2}
			%e = mul(%c, %d)
			%f = exp(donate %b)
			return %f, %e
		}`,
		"donated state": `func @main(donate %kv: f32[4,8], %new: f32[8]) -> (f32[4,8], f32[8]) {
			%a = add(donate %kv, %new)
			%b = reduce_sum(%a, _) {keepdims = 0}
			%c = mul(%new, %b)
			return %a, %c
		}`,
		"branches": `func @main(%x: f32[32], %c: bool[]) -> (f32[32], f32[16]) {
			%a = relu(%x)
			%b = exp(%x)
			%r, %q = if(%c) {
				%p = neg(%a)
				%h, %l = split(%p) {num_outputs = 2}
				%m = add(%h, %l)
				%n = tanh(%p)
				return %n, %m
			} {
				%s = add(%a, %b)
				%t, %u = split(%b) {num_outputs = 2}
				%v = sub(%t, %u)
				return %s, %v
			}
			%y = add(%r, %b)
			%z = neg(%q)
			return %y, %z
		}`,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				d := runBoth(t, parse(t, text), seed)
				if d.ArenaBytes < d.LowerBoundBytes {
					t.Errorf("got an arena of %d bytes below the bound of %d", d.ArenaBytes, d.LowerBoundBytes)
				}
			}
		})
	}
}

// TestPlannedBytes pins figures that can be counted by hand.
func TestPlannedBytes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		arena, io  int64
	}{
		{"one output needs no arena", `func @main(%x: f32[1024]) -> (f32[1024]) {
			%a = relu(%x)
			%b = exp(donate %a)
			return %b
		}`, 0, 8192},
		{"two live values", `func @main(%x: f32[1024]) -> (f32[]) {
			%a = relu(%x)
			%b = exp(%a)
			%c = add(donate %a, %b)
			%d = reduce_sum(%c, _) {keepdims = 0}
			return %d
		}`, 8192, 4100},
		{"a donated input takes the chain", `func @main(donate %x: f32[1024]) -> (f32[1024]) {
			%a = relu(donate %x)
			%b = exp(donate %a)
			return %b
		}`, 0, 4096},
	} {
		d := runBoth(t, parse(t, c.text), 1)
		if d.ArenaBytes != c.arena || d.IOBytes != c.io || d.LowerBoundBytes != c.arena {
			t.Errorf("%s: got arena %d, bound %d, io %d, want arena %d, io %d", c.name, d.ArenaBytes, d.LowerBoundBytes, d.IOBytes, c.arena, c.io)
		}
	}
}
