package tenure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// inBoxes makes a promise for few sizes as if they were many.
func inBoxes(few int) SessionOption {
	return func(o *sessionOptions) { o.limits.each, o.limits.few = 0, few }
}

// promiseOf makes a promise with options.
func promiseOf(t testing.TB, m *Model, opts ...SessionOption) (*promise, sessionOptions, error) {
	t.Helper()
	o, err := configure(opts)
	if err != nil {
		return nil, o, err
	}
	p, err := m.promise(t.Context(), o)
	o.promise = p
	return p, o, err
}

// checkPromise plans every size within the bounds, as runs do, and compares the
// proofs with the promise. It returns the first fault.
func checkPromise(t testing.TB, m *Model, p *promise, o sessionOptions) (fault string) {
	t.Helper()
	f := &p.figures
	var most struct{ arena, scratch, io, sum int64 }
	var held exec.Holdings
	sizes := 0
	for at := range p.sizes.all() {
		types, err := p.sizes.types(at)
		if err != nil {
			continue
		}
		exe, err := m.planSize(t.Context(), types, o)
		if err != nil {
			return fmt.Sprintf("%s: %v", f.Where(at), err)
		}
		if exe == nil {
			continue
		}
		sizes++
		proof := exe.Proof()
		scratch := proof.ScratchPerThread * int64(f.Threads)
		if proof.ArenaBytes > f.Arena.Bytes || scratch > f.Scratch.Bytes || proof.IOBytes > f.IO.Bytes {
			return fmt.Sprintf("%s takes %d of arena, %d of scratch, %d of inputs and outputs, promised %d, %d and %d",
				f.Where(at), proof.ArenaBytes, scratch, proof.IOBytes, f.Arena.Bytes, f.Scratch.Bytes, f.IO.Bytes)
		}
		if slices.Equal(at, f.Arena.At) && proof.ArenaBytes != f.Arena.Bytes || slices.Equal(at, f.Scratch.At) && scratch != f.Scratch.Bytes && !f.Scratch.Bound ||
			slices.Equal(at, f.IO.At) && proof.IOBytes != f.IO.Bytes {
			return fmt.Sprintf("%s takes %+v, want a figure of the promise: %+v", f.Where(at), proof, *f)
		}
		most.arena, most.scratch, most.io = max(most.arena, proof.ArenaBytes), max(most.scratch, scratch), max(most.io, proof.IOBytes)
		most.sum = max(most.sum, proof.ArenaBytes+scratch+proof.IOBytes)
		held.Add(exe)
		exe.Yield()
	}
	if most.arena != f.Arena.Bytes || most.scratch != f.Scratch.Bytes && !f.Scratch.Bound || most.io != f.IO.Bytes || most.sum > f.Worst.Bytes {
		return fmt.Sprintf("got at most %+v, promised %+v", most, *f)
	}
	if held.Bytes() > f.WeightBytes {
		return fmt.Sprintf("got %d bytes of weights, promised %d", held.Bytes(), f.WeightBytes)
	}
	if sizes > f.Sizes || f.Boxes == 0 && sizes != f.Sizes {
		return fmt.Sprintf("got %d sizes, promised %d", sizes, f.Sizes)
	}
	return ""
}

// CompareBoxes makes the promise of a model by expressions where it can, and
// compares it with the plans of all sizes and with the promise that is made of
// these. It returns the promise and the first fault. The error is that of both
// promises.
func CompareBoxes(t testing.TB, m *Model, few int, opts ...SessionOption) (r *plan.Range, fault string, err error) {
	t.Helper()
	p, o, err := promiseOf(t, m, append(slices.Clone(opts), inBoxes(few))...)
	each, _, wrong := promiseOf(t, m, opts...)
	switch {
	case (err == nil) != (wrong == nil):
		return nil, fmt.Sprintf("got %v, and %v for every size", err, wrong), nil
	case err != nil:
		return nil, "", err
	}
	got, want := p.figures, each.figures
	if got.Sizes+got.Refused != want.Sizes+want.Refused || got.Refused > want.Refused || got.IO.Bytes != want.IO.Bytes || got.Scratch.Bytes < want.Scratch.Bytes || got.Scratch.Bytes > want.Scratch.Bytes && !got.Scratch.Bound {
		return p.document(), fmt.Sprintf("got %+v, want %+v", got, want), nil
	}
	return p.document(), checkPromise(t, m, p, o), nil
}

// TestBoxesWithoutProof shows that the comparison of promises with all plans
// finds a promise of another corner's arena, and one of too little scratch.
func TestBoxesWithoutProof(t *testing.T) {
	memorytest.Check(t)
	m := loadText(t, `
	func @f(%x: f32[n,m]) {
		%t = transpose(%x) {perm = [1, 0]}
		%p = matmul(%x, %t)
		%e = exp(%p)
		%q = matmul(%e, %x)
		return %q
	}`)
	defer m.Close()
	for name, change := range map[string]func(p *promise){
		"":        func(*promise) {},
		"arena":   func(p *promise) { p.figures.Arena.Bytes -= 64; p.capacity.Bytes -= 64 },
		"scratch": func(p *promise) { p.figures.Scratch.Bytes -= 64 * int64(p.figures.Threads) },
		"io":      func(p *promise) { p.figures.IO.Bytes-- },
		"weights": func(p *promise) { p.figures.Worst.Bytes-- },
	} {
		promised, o, err := promiseOf(t, m, WithUpTo("n", 20), WithUpTo("m", 30), inBoxes(2), WithThreads(2))
		if err != nil {
			t.Fatal(err)
		}
		if promised.figures.ByExpressions < 400 {
			t.Errorf("got %+v, want most sizes proved by expressions", promised.figures)
		}
		change(promised)
		if fault := checkPromise(t, m, promised, o); (fault == "") != (name == "") {
			t.Errorf("a promise with another %q: got the fault %q", name, fault)
		}
	}
}

// TestBoxesOfClasses has a residual that fits every second size: those of one
// rest are proved together.
func TestBoxesOfClasses(t *testing.T) {
	memorytest.Check(t)
	p, err := ir.Parse(`
	func @f(%x: f32[b,2,n]) {
		weight @w: f32[2,2,2]
		%e = exp(%x)
		%p = average_pool(%e) {kernel_shape = [2], strides = [2]}
		%u = conv_transpose(%p, @w) {strides = [2]}
		%r = add(%u, %e)
		%s = softmax(%r) {axis = -1}
		return %s
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := LoadProgram(p, ir.WeightMap{"w": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, opts := range [][]SessionOption{{WithUpTo("b", 3), WithUpTo("n", 61)}, {WithSizes("b", 2), WithSizes("n", 4, 8, 12, 16, 20, 24, 28, 32)}, {WithSizes("b", 2), WithSizes("n", 4, 6, 12, 14, 20, 24, 28, 32)}} {
		r, fault, err := CompareBoxes(t, m, 3, append(opts, WithThreads(2))...)
		if err != nil || fault != "" {
			t.Fatalf("got %v, %s", err, fault)
		}
		if i < 2 && (r.Boxes > 12 || 3*r.ByExpressions < 2*r.Sizes) {
			t.Errorf("got %d sizes of %d in %d boxes, want most in a few", r.ByExpressions, r.Sizes, r.Boxes)
		}
	}
}

// TestTooManySizes has a loop, of which no range is proved by expressions.
func TestTooManySizes(t *testing.T) {
	memorytest.Check(t)
	m := loadText(t, `
	func @f(%x: f32[n,m], %k: bool[]) {
		%y = if(%k) {
			%a = exp(%x)
			return %a
		} {
			%b = abs(%x)
			return %b
		}
		return %y
	}`)
	defer m.Close()
	_, err := m.PlanUpTo(t.Context(), WithUpTo("n", 1000), WithUpTo("m", 1000))
	if want := "What is not proved for a range, and of how many sizes: a branch"; !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// loadText loads a program without weights.
func loadText(t *testing.T, text string) *Model {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := LoadProgram(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBoxesOfJoinedKeys has attention whose heads are cut out of rows that are
// joined: the passes ask whether a join repeats heads, of a value with fewer
// axes than repeated heads have.
func TestBoxesOfJoinedKeys(t *testing.T) {
	p, err := ir.Parse(`func @a(%x: f32[2,s,8]) {
		weight @heads: i64[4]
		%z = neg(%x)
		%xz = concat(%x, %z) {axis = 1}
		%zx = concat(%z, %x) {axis = 1}
		%q = reshape(%x, @heads)
		%k = reshape(%xz, @heads)
		%v = reshape(%zx, @heads)
		%a = transpose(%q) {perm = [0, 2, 1, 3]}
		%b = transpose(%k) {perm = [0, 2, 3, 1]}
		%c = transpose(%v) {perm = [0, 2, 1, 3]}
		%scores = matmul(%a, %b)
		%p = softmax(%scores)
		%y = matmul(%p, %c)
		return %y
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	var heads []byte
	for _, n := range []int64{0, -1, 2, 4} {
		heads = binary.LittleEndian.AppendUint64(heads, uint64(n))
	}
	m, err := LoadProgram(p, ir.WeightMap{"heads": heads})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession(WithUpTo("s", 5000))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
