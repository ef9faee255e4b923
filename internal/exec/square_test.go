package exec_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
)

// A transpose that exchanges two axes of one size, of many bytes, needs them
// once.
func TestSquareTransposeInPlace(t *testing.T) {
	const text = `func @f(%x: SHAPE) -> (SHAPE) {
  %a = neg(%x)
  %b = transpose(DONATE%a) {perm = [PERM]}
  %c = softmax(donate %b) {axis = 0}
  %d = transpose(DONATE%c) {perm = [PERM]}
  %e = exp(donate %d)
  %g = softmax(donate %e) {axis = 1}
  return %g
}`
	for _, c := range []struct {
		shape, perm          string
		donated, leastMemory bool
		arena                int64
	}{
		{"f32[400,400]", "1, 0", true, false, 0},
		{"f32[400,400]", "1, 0", false, false, 1_280_000},
		{"f32[400,400]", "1, 0", true, true, 0},
		{"f32[2,400,200]", "0, 2, 1", false, false, 1_280_000},
		{"f32[4,201,201]", "0, 2, 1", true, false, 0},
		{"f16[64,10,64,7]", "2, 1, 0, 3", true, false, 0},
		{"f32[40,40]", "1, 0", true, false, 12_800},
		{"f32[40,40]", "1, 0", true, true, 0},
	} {
		donate := ""
		if c.donated {
			donate = "donate "
		}
		p := parse(t, strings.NewReplacer("SHAPE", c.shape, "PERM", c.perm, "DONATE", donate).Replace(text))
		if err := ir.Infer(p, nil); err != nil {
			t.Fatal(err)
		}
		if !c.leastMemory {
			runBoth(t, p, 1)
		}
		e, err := exec.Compile(context.Background(), p, nil, exec.Options{Threads: 2, LeastMemory: c.leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		if want := (c.arena + 63) &^ 63; e.ArenaBytes != want {
			t.Errorf("%+v: got an arena of %d bytes, want %d", c, e.ArenaBytes, want)
		}
	}
}
