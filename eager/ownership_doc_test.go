package eager_test

import (
	"fmt"
	"log"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Example_ownership is the code of docs/ownership.md that computes one
// operation at a time.
func Example_ownership() {
	x := must(tensor.Of([]float32{1, -2, 3, -4}, 2, 2))
	defer x.Release() // also after a donation: then it only says that x is dead

	// One operation at a time: the result is mine, x too.
	y := must(eager.Relu(x))

	// In place: y is given up, the result lies in its bytes.
	z := must(eager.Neg(y.Donate()))
	defer z.Release()

	// A scope releases the tensors made in it; Keep takes one result out.
	s := eager.NewScope()
	defer s.Close()
	h := s.MatMul(z, x)                     // fresh bytes
	h = s.Softmax(h.Donate(), -1)           // in those bytes
	p := s.Keep(s.MulScalar(h.Donate(), 2)) // and again
	if s.Err() != nil {
		fmt.Println(s.Err())
	}
	defer p.Release()

	// Bytes that come back and are used again, under a limit.
	arena := must(memory.NewArena(1<<20, memory.Activations))
	in := eager.NewScope(eager.From(arena, eager.CopyOut))
	out := in.Keep(in.Add(x, z)) // copied out of the arena
	in.Close()
	fmt.Println(arena.Close() == nil, s.Stats().InPlace, "in place")
	defer out.Release()

	// Output: true 2 in place
}
