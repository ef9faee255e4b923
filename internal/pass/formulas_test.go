package pass_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// openDims are the dimensions of the drawn parameters as expressions, and their
// sizes for types by name.
func openDims(program *ir.Program) [][]*symbolic.Expr {
	all := make([][]*symbolic.Expr, len(program.Body.Params))
	for i, p := range program.Body.Params {
		for axis, dim := range p.Type.Shape.Dims() {
			e := symbolic.Symbol(dimName(program, i, axis))
			if n, ok := dim.Size(); ok {
				e = symbolic.Const(int64(n))
			}
			all[i] = append(all[i], e)
		}
	}
	return all
}

func dimName(p *ir.Program, param, axis int) string {
	if s, ok := p.Body.Params[param].Type.Shape.Dim(axis).Symbol(); ok {
		return s
	}
	return fmt.Sprintf("%d.%d", param, axis)
}

func named(p *ir.Program, types []op.Type) map[string]int64 {
	sizes := map[string]int64{}
	for i, t := range types {
		for axis, n := range t.Shape.Sizes() {
			sizes[dimName(p, i, axis)] = int64(n)
		}
	}
	return sizes
}

// TestFormulas draws programs with open dimensions, derives the formulas of
// their structures over boxes that have sizes of 0, or not, and compares them
// at the sizes of the box that a structure admits with what the concrete shape
// rules find.
func TestFormulas(t *testing.T) {
	known, unknown, compared := 0, 0, 0
	checkDrawn(t, 300, func(t *rapid.T) {
		d := randomprogram.DrawOpen(t)
		l := load(t, d)
		ctx, err := l.specialise(d.Sizes(t))
		if err != nil {
			return
		}
		s, _ := ctx.Structure()
		if s == nil {
			return
		}
		var boxes []symbolic.Box
		var formulas []*pass.Formulas
		for _, least := range []int64{0, 1, 2} {
			box := symbolic.Box{}
			for i, p := range d.Program.Body.Params {
				for axis := range p.Type.Shape.Rank() {
					box[dimName(d.Program, i, axis)] = symbolic.Range{Lo: least, Hi: 64}
				}
			}
			boxes = append(boxes, box)
			formulas = append(formulas, s.Formulas(openDims(d.Program), box))
		}
		for _, v := range ctx.Program.Body.Results {
			for _, e := range formulas[2].Dims(v.ID) {
				if e == nil {
					unknown++
				} else {
					known++
				}
			}
		}
		for range 8 {
			types := d.Sizes(t)
			found := s.Types(types, nil, &weights.Overlay{Base: l.constants})
			if found == nil {
				continue
			}
			sizes := named(d.Program, types)
			for i, f := range formulas {
				inside := true
				for name, n := range sizes {
					inside = inside && n >= boxes[i][name].Lo
				}
				if !inside {
					continue
				}
				compared++
				if err := f.Check(sizes, found); err != nil {
					t.Fatalf("over %v: %v\n%s", boxes[i], err, d.Program)
				}
			}
		}
	})
	t.Logf("dimensions of results: %d derived, %d not; %d instances compared", known, unknown, compared)
	if known < 6*unknown || compared < 200 {
		t.Errorf("got %d dimensions derived and %d not, %d instances compared, want most derived: what loops carry is not", known, unknown, compared)
	}
}
