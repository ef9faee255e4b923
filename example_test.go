package tenure_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// must ends the program with the error of a call that should not fail.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Load a model, run it on a []float32, read the answer, release.
func Example() {
	pixels := make([]float32, 64) // one image of 8x8
	pixels[27], pixels[28], pixels[35], pixels[36] = 1, 1, 1, 1

	m := must(tenure.Load("examples/digits/digits.onnx"))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Of(pixels, 1, 1, 8, 8))
	defer x.Release()
	out := must(s.Run(context.Background(), tenure.Inputs{"image": x}))
	defer out.Release()
	y := must(tensor.Read[float32](out["probabilities"]))
	defer y.Release()
	fmt.Println(len(y.Data), "probabilities")
	// Output: 10 probabilities
}

// Any value of the model's graph can be an output: this one is computed between
// two layers. What it does not need is not part of the model.
func ExampleWithOutputs() {
	m := must(tenure.Load("testdata/state.onnx", tenure.WithOutputs("product")))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Full[float32](2, 1, 64))
	defer x.Release()
	out := must(s.Run(context.Background(), tenure.Inputs{"state": x, "x": x}))
	defer out.Release()
	fmt.Println(m.Outputs()[0], must(tensor.At[float32](out["product"], 0, 0)))
	// Output: product: f32[n,64] 8
}

// The memory of a run is known beforehand: every byte, for these shapes.
func ExampleModel_Plan() {
	m := must(tenure.Load("examples/digits/digits.onnx"))
	defer m.Close()
	p := must(m.Plan(context.Background(), tenure.Shapes{"image": {32, 1, 8, 8}}, tenure.WithThreads(1)))
	fmt.Println("arena", p.ArenaBytes, "of at least", p.LowerBoundBytes)
	fmt.Println("inputs and outputs", p.IOBytes)
	// Output:
	// arena 98304 of at least 98304
	// inputs and outputs 9472
}

// A state that is donated comes back in the same bytes: no copy is made.
func ExampleSession_Run_donate() {
	m := must(tenure.Load("testdata/state.onnx")) // next = state + x
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Of(make([]float32, 64), 1, 64))
	defer x.Release()
	state := must(tensor.Of(make([]float32, 64), 1, 64))
	for range 3 {
		out := must(s.Run(context.Background(), tenure.Inputs{"state": state.Donate(), "x": x}))
		out["y"].Release()
		state = out["next"]
	}
	fmt.Println(state.Shape(), state.IsExclusive())
	state.Release()
	// Output: [1,64] true
}

// A binding writes the results of every run into the same tensors, and a state
// that is donated stays its tensor.
func ExampleSession_Bind() {
	m := must(tenure.Load("testdata/state.onnx")) // next, y = state + x, sum(next * x)
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Full[float32](1, 1, 64))
	defer x.Release()
	zero := must(tensor.Zeros[float32](1, 64))

	b := must(s.Bind())
	defer b.Close()
	out := must(b.Run(context.Background(), zero.Donate(), x))
	for range 2 {
		out = must(b.Run(context.Background(), out[0].Donate(), x))
	}
	fmt.Println(must(tensor.At[float32](out[0], 0, 0)), must(tensor.At[float32](out[1])))
	// Output: 3 192
}

// The tensors that one run makes are those that the next one writes into.
func ExampleSession_RunInto() {
	m := must(tenure.Load("examples/digits/digits.onnx"))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Zeros[float32](1, 1, 8, 8))
	defer x.Release()
	out := make([]*tensor.Tensor, len(m.Outputs()))
	for range 3 {
		if err := s.RunInto(context.Background(), []tensor.Operand{x}, out); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(out[0].Shape())
	out[0].Release()
	// Output: [1,10]
}

// A profile has the time, the bytes and the live memory of every step of its
// runs.
func ExampleProfile() {
	m := must(tenure.Load("testdata/state.onnx"))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.Full[float32](1, 1, 64))
	defer x.Release()
	var p tenure.Profile
	for range 10 {
		out := must(s.Run(context.Background(), tenure.Inputs{"state": x, "x": x}, tenure.WithProfile(&p)))
		out.Release()
	}
	for _, step := range p.Steps()[:3] {
		fmt.Println(step.Node, step.Op, step.Read, step.Written, step.Live)
	}
	runs, _ := p.Time()
	fmt.Println(runs, "runs")
	// Output:
	// update add 256 256 0
	// product mul 512 256 256
	// sum reduce_sum 256 4 256
	// 10 runs
}

// Text goes in and comes out as bytes of one width.
func ExampleSession_Run_text() {
	m := must(tenure.Load("testdata/text.onnx"))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	x := must(tensor.OfStrings([]string{"Hello", "to", "the", "World"}, 4))
	defer x.Release()
	out := must(s.Run(context.Background(), tenure.Inputs{"words": x}))
	defer out.Release()
	fmt.Println(m.Inputs()[0])
	fmt.Printf("%q\n", must(tensor.Strings(out["shouted"])))
	fmt.Println(must(tensor.Values[bool](out["greets"])))
	// Output:
	// words: string[n]
	// ["hello!" "world!"]
	// [true false]
}
