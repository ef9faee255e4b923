package eager_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// A scope releases the results that are not kept, and holds the first error.
func Example() {
	x, err := tensor.Of([]float32{1, -2, 3, -4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()

	s := eager.NewScope()
	defer s.Close()
	y := s.MatMul(x, x)
	y = s.AddScalar(y.Donate(), 10)
	y = s.Keep(s.Relu(y.Donate()))
	if s.Err() != nil {
		log.Fatal(s.Err())
	}
	defer y.Release()
	fmt.Println(y)
	fmt.Printf("%d results in place, %d fresh\n", s.Stats().InPlace, s.Stats().Fresh)
	// Output:
	// f32[2,2]
	// [[ 5. 16.]
	//  [ 1. 20.]]
	// 2 results in place, 1 fresh
}

// A donated tensor is dead after the call; the error of a later use names the
// operation.
func ExampleNeg() {
	x, err := tensor.Of([]float32{1, 2}, 2)
	if err != nil {
		log.Fatal(err)
	}
	y, err := eager.Neg(x.Donate()) // in the bytes of x
	if err != nil {
		log.Fatal(err)
	}
	defer y.Release()
	_, err = eager.Neg(x) //tenure:ignore this shows the error
	fmt.Println(errors.Is(err, tensor.ErrDonated))
	fmt.Println(y)
	// Output:
	// true
	// f32[2] [-1. -2.]
}

// The best answers and their numbers, in one call.
func ExampleTopK() {
	scores, err := tensor.Of([]float32{.1, .6, .05, .25}, 4)
	if err != nil {
		log.Fatal(err)
	}
	defer scores.Release()
	values, indices, err := eager.TopK(scores, 2, -1)
	if err != nil {
		log.Fatal(err)
	}
	defer values.Release()
	defer indices.Release()
	fmt.Println(values)
	fmt.Println(indices)
	// Output:
	// f32[2] [ 0.6 0.25]
	// i64[2] [1 3]
}

// Pictures of one size make a batch.
func ExampleStack() {
	a, err := tensor.Of([]uint8{1, 2}, 1, 2)
	if err != nil {
		log.Fatal(err)
	}
	b, err := tensor.Of([]uint8{3, 4}, 1, 2)
	if err != nil {
		log.Fatal(err)
	}
	batch, err := eager.Stack(0, a.Reuse(), b.Reuse()) // a and b are given up
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Release()
	fmt.Println(batch.Shape(), a.Alive())
	// Output: [2,1,2] false
}

// A loop whose results come from an arena allocates memory once, for results of
// any size.
func ExampleFrom() {
	arena, err := memory.NewArena(1<<20, memory.Activations)
	if err != nil {
		log.Fatal(err)
	}
	defer arena.Close()
	x, err := tensor.Full[float32](2, 100, 100)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	for range 10 {
		s := eager.NewScope(eager.From(arena, eager.CopyOut))
		y := s.Keep(s.ReduceSum(s.Mul(x, x), nil, false)) // copied out of the arena
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
		y.Release()
	}
	stats := arena.Stats()
	fmt.Println(stats.Fresh, "taken,", stats.Reused, "reused,", stats.Buffers, "out")
	// Output: 2 taken, 18 reused, 0 out
}

// A builder configures any operator of the table in steps.
func ExampleOp() {
	x, err := tensor.Of([]float32{-10, 2}, 2)
	if err != nil {
		log.Fatal(err)
	}
	y, err := eager.Op("leaky_relu").On(x).InPlaceIfPossible().Float("alpha", 0.5).Run()
	if err != nil {
		log.Fatal(err)
	}
	defer y.Release()
	fmt.Println(y, x.Alive())
	// Output: f32[2] [-5.  2.] false
}

// A function of one's own over elements, under the same rules.
func ExampleMap() {
	x, err := tensor.Of([]int32{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	y, err := eager.Map(x.Donate(), func(v int32) int32 { return v * v })
	if err != nil {
		log.Fatal(err)
	}
	defer y.Release()
	fmt.Println(y)
	// Output: i32[3] [1 4 9]
}

// A function over tensors that says which of them it consumes.
func ExampleFunc() {
	square, err := eager.NewFunc("square plus", 2, []int{0}, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		y := s.Mul(x[0], x[0])
		return []*tensor.Tensor{s.Keep(s.Add(y.Donate(), x[1]))}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	x, err := tensor.Of([]float32{1, 2, 3}, 3)
	if err != nil {
		log.Fatal(err)
	}
	one, err := tensor.Of([]float32{1}, 1)
	if err != nil {
		log.Fatal(err)
	}
	defer one.Release()
	ys, err := square.Call(x.Donate(), one)
	if err != nil {
		log.Fatal(err)
	}
	defer ys[0].Release()
	fmt.Println(ys[0], x.Alive())
	// Output: f32[3] [ 2.  5. 10.] false
}
