package pass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
)

// Constants that grow from call to call are folded while the budget lasts; the
// rest stays in the program.
func TestFoldKeepsToItsBudget(t *testing.T) {
	var text strings.Builder
	text.WriteString("func @double() -> (f32[...]) {\n  weight @v0: f32[1]\n")
	const doubled = 36
	last := "@v0"
	for i := range doubled {
		fmt.Fprintf(&text, "  %%v%d: f32[...] = concat(%s, %s) {axis = 0}\n", i+1, last, last)
		last = fmt.Sprintf("%%v%d", i+1)
	}
	fmt.Fprintf(&text, "  return %s\n}\n", last)
	ctx := context(t, text.String())
	ctx.MaxFold = 1 << 16
	if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, w := range ctx.Program.Weights {
		data, _ := ctx.Constants.Bytes(w)
		bytes += len(data)
	}
	if calls := len(ctx.Program.Body.Calls); calls == 0 || calls == doubled || bytes > 17<<20 {
		t.Errorf("got %d of %d calls left and %d bytes of constants, want some calls folded, into at most 17 MiB", calls, doubled, bytes)
	}
}

// A product of constants that is small in bytes may be large in work.
func TestFoldLeavesLongWork(t *testing.T) {
	ctx := context(t, `func @product() -> (f32[2048,2048]) {
  weight @a: f32[2048,2048]
  weight @b: f32[2048,2048]
  %p: f32[2048,2048] = matmul(@a, @b)
  return %p
}
`)
	if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
		t.Fatal(err)
	}
	if calls := len(ctx.Program.Body.Calls); calls != 1 {
		t.Errorf("got %d calls left, want the matmul", calls)
	}
}
