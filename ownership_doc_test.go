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

	// Donate: the run may write into state's bytes; the old handle is dead.
	old := state
	out = must(s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x}))
	state = out["next"] // in the bytes that old had
	out["y"].Release()
	_, err := tensor.Read[float32](old)
	fmt.Println(errors.Is(err, tenure.ErrDonated))

	// Donate, refused: another tensor shares these bytes. Nothing was consumed.
	view := must(state.Reshape(64))
	_, err = s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x})
	fmt.Println(errors.Is(err, tenure.ErrShared), state.Holders(), "holders")

	// Reuse: as donate where possible, into fresh bytes where it is not.
	out = must(s.Run(ctx, tenure.Inputs{"state": state.Reuse(), "x": x}))
	defer out.Release()
	fmt.Println(view.IsExclusive(), "since the run ended state, the other holder")
	view.Release()

	// Output:
	// true
	// true 2 holders
	// true since the run ended state, the other holder
}

// TestOwnershipDoc holds the code on the page to this example and that of
// package eager, which run.
func TestOwnershipDoc(t *testing.T) {
	page, err := os.ReadFile("docs/ownership.md")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, name := range []string{"ownership_doc_test.go", "eager/ownership_doc_test.go"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code += strings.ReplaceAll(string(source), "\n\t", "\n")
	}
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
