package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// The model of the examples computes next = state + x and y from them, for
// tensors f32[n,64].
const model = "../../testdata/state.onnx"

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Buffers that are made once and run on again and again.
func Example_fixedBuffers() {
	m := must(tenure.Load(model))
	defer m.Close()
	s := must(m.NewSession(tenure.WithThreads(2)))
	defer s.Close()
	ctx := context.Background()
	sh := must(shape.Of(1, 64))

	x := must(tensor.New(dtype.F32, sh))
	defer x.Release()
	state := must(tensor.New(dtype.F32, sh))
	defer state.Release()
	next := must(tensor.New(dtype.F32, sh))
	defer next.Release()

	for step := range 3 {
		w := must(tensor.Write[float32](x)) // w.Data is x's own memory
		w.Data[0] = float32(step)
		w.Release()
		out := must(s.Run(ctx, tenure.Inputs{"x": x, "state": state}, tenure.Into("next", next)))
		out.Release() // the outputs that have no buffer of mine
		r := must(tensor.Read[float32](next))
		fmt.Println(r.Data[0])
		r.Release()
	}

	// Output:
	// 0
	// 1
	// 2
}

// One set of results that each run overwrites.
func Example_binding() {
	m := must(tenure.Load(model))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	ctx := context.Background()
	x := must(tensor.Full[float32](2, 1, 64))
	defer x.Release()
	state := must(tensor.Full[float32](1, 1, 64))
	defer state.Release()

	b := must(s.Bind())
	defer b.Close()
	var out []*tensor.Tensor // the results of the last run, by position: the binding's own
	for range 3 {
		out = must(b.Run(ctx, state, x))
	}
	fmt.Println(must(tensor.Values[float32](out[0]))[0])

	// Output: 3
}

// A state that goes round without a copy.
func Example_state() {
	m := must(tenure.Load(model))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	ctx := context.Background()

	ones := make([]float32, 64)
	for i := range ones {
		ones[i] = 1
	}
	x := must(tensor.Wrap(ones, 1, 64)) // the slice itself: it must stay until the release
	defer x.Release()
	state := must(tensor.Of(make([]float32, 64), 1, 64))
	for range 5 {
		out := must(s.Run(ctx, tenure.Inputs{"x": x, "state": state.Donate()}))
		state = out["next"] // the same bytes, written in place
		out["y"].Release()
	}
	defer state.Release()
	fmt.Println(must(tensor.Float32s(state))[0])

	// Output: 5
}

// Inputs, outputs and memory before a run, and errors.
func Example_questions() {
	m := must(tenure.Load(model))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()

	for _, in := range m.Inputs() {
		fmt.Println(in)
	}
	p := must(m.Plan(context.Background(), tenure.Shapes{"x": {3, 64}, "state": {3, 64}}))
	fmt.Println(p.IOBytes, "bytes of inputs and outputs")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x := must(tensor.Of(make([]float32, 32), 1, 32))
	defer x.Release()
	_, err := s.Run(ctx, tenure.Inputs{"x": x, "state": x})
	fmt.Println(errors.Is(err, tenure.ErrShape))

	// Output:
	// state: f32[n,64]
	// x: f32[n,64]
	// 2308 bytes of inputs and outputs
	// true
}

// A function over tensors, computed at once.
func Example_eager() {
	x := must(tensor.Of([]float32{3, 4}, 1, 2))
	defer x.Release()

	s := eager.NewScope()
	defer s.Close() // releases the tensors that were not kept
	sum := s.ReduceSum(s.Mul(x, x), nil, false)
	norm := s.Keep(s.Sqrt(sum.Donate())) // in the bytes of the sum
	if err := s.Err(); err != nil {
		log.Fatal(err)
	}
	defer norm.Release()
	fmt.Println(must(tensor.Float32s(norm)))

	// Output: [5]
}

// TestPage holds the code on the page to the examples, which run.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("migrating_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(string(source), "\n\t", "\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Fatalf("docs/migrating.md: got %d blocks of Go code, want one per example", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(code, "\n"+b[1]) {
			t.Errorf("docs/migrating.md: this code is not in migrating_test.go:\n%s", b[1])
		}
	}
}
