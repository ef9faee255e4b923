package check_test

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
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

// dense is a block of n layers, each of which reads what all before it have
// computed, side by side.
func dense(b testing.TB, n int) *ir.Program {
	g := ir.NewBuilder("dense", testOps)
	image := func() op.Type { return op.Type{DType: dtype.F32, Shape: shape.MustOf(2, 8, 4, 4)} }
	x := g.Call("neg", nil, g.Param("x", image()))
	all := []ir.Arg{x}
	for range n {
		y := g.Call("relu", nil, x)
		all = append(all, y)
		x = g.Call("test.box", op.Attrs{attr("axis", int64(1)), attr("from", int64(0)), attr("size", int64(8))},
			g.Call("concat", op.Attrs{attr("axis", int64(1))}, all...))
	}
	g.Return(g.Call("neg", nil, x))
	p, err := g.Build()
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkProve proves the layouts of a program for one set of sizes after
// another: of contiguous values, and of boxes.
func BenchmarkProve(b *testing.B) {
	for name, p := range map[string]*ir.Program{"contiguous": residual(b, 700), "boxes": dense(b, 40)} {
		b.Run(name, func(b *testing.B) {
			d := planOf(p, nil, saveMost)
			l, _ := layoutOf(p, d)
			prover, types := check.NewProver(p), ir.TypesOf(p)
			strided := 0
			for _, v := range d.Values {
				if v.Strides != nil {
					strided++
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := prover.Prove(types, l, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(strided), "strided")
		})
	}
}
