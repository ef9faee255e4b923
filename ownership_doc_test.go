package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Example_ownership is the code of docs/ownership.md.
func Example_ownership() {
	m := must(tenure.Load("testdata/state.onnx")) // next = state + x
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	ctx := context.Background()

	x := must(tensor.Of(make([]float32, 64), 1, 64)) // copies the slice into bytes of its own
	defer x.Release()
	state := must(tensor.Of(make([]float32, 64), 1, 64))

	// Borrow: the run reads both, both stay mine.
	out := must(s.Run(ctx, tenure.Inputs{"state": state, "x": x}))
	out.Release() // outputs are mine too

	// Donate: the run may write into the bytes of state; the old handle is dead.
	old := state
	out = must(s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x}))
	state = out["next"] // in the bytes that old had
	out["y"].Release()
	_, err := tensor.Read[float32](old)
	fmt.Println(errors.Is(err, tenure.ErrDonated))

	// Donate, refused: somebody else shows these bytes. Nothing was consumed.
	view := must(state.Reshape(64))
	_, err = s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x})
	fmt.Println(errors.Is(err, tenure.ErrShared), state.Holders(), "holders")

	// Reuse: as donate where that is possible, into fresh bytes where it is not.
	out = must(s.Run(ctx, tenure.Inputs{"state": state.Reuse(), "x": x}))
	defer out.Release()
	fmt.Println(view.IsExclusive(), "since the run ended state, the other holder")
	view.Release()

	// Output:
	// true
	// true 2 holders
	// true since the run ended state, the other holder
}

// Example_eager is the other code of docs/ownership.md.
func Example_eager() {
	x := must(tensor.Of([]float32{1, -2, 3, -4}, 2, 2))
	defer x.Release() // also after a donation: then it only says that x is dead

	// One operation at a time: the result is mine, x too.
	y := must(eager.Relu(x))

	// In place: y is given up, the result lies in its bytes.
	z := must(eager.Neg(y.Donate()))
	defer z.Release()

	// A scope releases what it made; Keep takes one result out.
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

// TestOwnershipDoc holds the code on the page to the example, which runs.
func TestOwnershipDoc(t *testing.T) {
	page, err := os.ReadFile("docs/ownership.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("ownership_doc_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(string(source), "\n\t", "\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("docs/ownership.md: got no Go code, want some")
	}
	for _, b := range blocks {
		if !strings.Contains(code, "\n"+b[1]) {
			t.Errorf("docs/ownership.md: this code is not in ownership_doc_test.go:\n%s", b[1])
		}
	}
}
