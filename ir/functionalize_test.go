package ir_test

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// TestFunctionalizeGolden holds each program to the pure program that it
// becomes, or to its errors. The section weights holds integers.
func TestFunctionalizeGolden(t *testing.T) {
	golden(t, "testdata/functionalize/*.txtar", func(t *testing.T, a *txtar.Archive) string {
		p, err := ir.Parse(section(a, "in"), op.Builtin())
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		checkFixedPoint(t, p.String(), op.Builtin())
		weights := ir.WeightMap{}
		for line := range strings.Lines(section(a, "weights")) {
			words := strings.Fields(line)
			for _, w := range words[1:] {
				n, err := strconv.ParseInt(w, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				weights[words[0]] = append(weights[words[0]], i64Bytes(n)...)
			}
		}
		before := p.String()
		pure, err := ir.Functionalize(p, ir.Known(weights))
		if p.String() != before {
			t.Errorf("the program was changed:\n%s\nwas\n%s", p, before)
		}
		if _, name, _ := strings.Cut(t.Name(), "/v2"); name != "" {
			number, _, _ := strings.Cut("2"+name, "-")
			if err == nil || !strings.Contains("\n"+err.Error(), "\nV"+number+", line ") {
				t.Errorf("got %v, want a violation of V%s", err, number)
			}
		}
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		if again, err := ir.Functionalize(pure, nil); err != nil || again != pure || !pure.IsPure() {
			t.Errorf("made pure again: %v\n%s", err, again)
		}
		checkFixedPoint(t, pure.String(), op.Builtin())
		return pure.String()
	})
}
