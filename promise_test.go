package tenure

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// A plan that takes more than the promise is not run: it is a fault where
// inputs are borrowed, an error where they are donated, and where they are to
// be reused the run only releases them.
func TestNoRunBeyondThePromise(t *testing.T) {
	memorytest.Check(t)
	p, err := ir.Parse(`
	func @f(%x: f32[n,4]) {
		weight @axes: i64[1]
		%a = exp(%x)
		%s = reduce_sum(%a, @axes) {keepdims = 1}
		%y = div(%a, %s)
		%z = transpose(%y) {perm = [1, 0]}
		return %z
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := LoadProgram(p, ir.WeightMap{"axes": make([]byte, 8)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession(WithUpTo("n", 8), WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(n int, give func(*tensor.Tensor) tensor.Operand) (alive bool, err error) {
		t.Helper()
		x, err := tensor.Of(make([]float32, 4*n), n, 4)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(t.Context(), Inputs{"x": give(x)})
		if err == nil {
			err = out.Release()
		}
		if alive = x.Alive(); alive {
			err = errors.Join(err, x.Release())
		}
		return alive, err
	}
	borrow := func(x *tensor.Tensor) tensor.Operand { return x }
	donate := func(x *tensor.Tensor) tensor.Operand { return x.Donate() }
	reuse := func(x *tensor.Tensor) tensor.Operand { return x.Reuse() }
	for _, give := range []func(*tensor.Tensor) tensor.Operand{borrow, donate, reuse} {
		if _, err := run(7, give); err != nil {
			t.Error(err)
		}
	}
	if alive, err := run(6, borrow); err != nil || !alive {
		t.Errorf("a borrowed input: alive %v, %v", alive, err)
	}
	s.opts.promise.figures.Arena.Bytes, s.opts.promise.capacity.Bytes = -1, -1
	if alive, err := run(6, donate); !errors.Is(err, ErrLimit) || !alive || !strings.Contains(err.Error(), "more than the promise: got ") {
		t.Errorf("a donated input: alive %v, %v, want ErrLimit", alive, err)
	}
	if alive, err := run(6, reuse); err != nil || alive {
		t.Errorf("an input to reuse: alive %v, %v, want it released and the plan of a borrowed one", alive, err)
	}
	if _, err := run(5, borrow); err == nil || !strings.Contains(err.Error(), "BUG: a plan within the bounds of a promise: got ") {
		t.Errorf("a plan that was not made before: got %v, want that it is refused", err)
	}
}
