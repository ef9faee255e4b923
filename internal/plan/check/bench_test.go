package check_test

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// residual is a program of n calls: chains that are added to their first
// operand, with weights and views.
func residual(b testing.TB, n int) *ir.Program {
	g := ir.NewBuilder("residual", testOps)
	x := g.Call("neg", nil, g.Param("x", vector(dtype.F32, 1<<10)))
	for done := 1; done < n-1; done += 7 {
		y := g.Call("add", nil, x, g.Weight("", vector(dtype.F32, 1<<10)))
		y = g.Call("relu", nil, y)
		y = g.Call("test.mix", op.Attrs{attr("size", int64(1<<9))}, y)
		y = g.Call("identity", nil, y)
		y = g.Call("add", nil, y, g.Weight("", vector(dtype.F32, 1<<9)))
		y = g.Call("concat", op.Attrs{attr("axis", int64(0))}, y, y)
		x = g.Call("add", nil, x, y)
	}
	g.Return(g.Call("neg", nil, x))
	p, err := g.Build()
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func BenchmarkCheck(b *testing.B) {
	p := residual(b, 700)
	d := planOf(p, nil, saveMost)
	b.ReportMetric(float64(len(d.Steps)), "calls")
	for b.Loop() {
		if err := check.Check(p, d, nil); err != nil {
			b.Fatal(err)
		}
	}
}
