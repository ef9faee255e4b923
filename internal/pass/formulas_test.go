package pass_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/op"
)

// openDims are the dimensions of the drawn parameters as expressions, and their
// sizes for types by name.
func (d *drawer) openDims() [][]*symbolic.Expr {
	all := make([][]*symbolic.Expr, len(d.block.Params))
	for i, p := range d.block.Params {
		for axis, dim := range p.Type.Shape.Dims() {
			e := symbolic.Symbol(d.dimName(i, axis))
			if n, ok := dim.Size(); ok {
				e = symbolic.Const(int64(n))
			}
			all[i] = append(all[i], e)
		}
	}
	return all
}

func (d *drawer) dimName(param, axis int) string {
	if s, ok := d.block.Params[param].Type.Shape.Dim(axis).Symbol(); ok {
		return s
	}
	return fmt.Sprintf("%d.%d", param, axis)
}

func (d *drawer) named(types []op.Type) map[string]int64 {
	sizes := map[string]int64{}
	for i, t := range types {
		for axis, n := range t.Shape.Sizes() {
			sizes[d.dimName(i, axis)] = int64(n)
		}
	}
	return sizes
}

// TestFormulas draws programs with open dimensions, derives the formulas of their
// structures over boxes that have sizes of 0, or not, and compares them at the
// sizes of the box that a structure admits with what the concrete shape rules find.
func TestFormulas(t *testing.T) {
	known, unknown, compared := 0, 0, 0
	checkDrawn(t, 1000, func(t *rapid.T) {
		d := drawOpen(t)
		l := load(t, d)
		ctx, err := l.specialise(d.sizes())
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
			for i, p := range d.block.Params {
				for axis := range p.Type.Shape.Rank() {
					box[d.dimName(i, axis)] = symbolic.Range{Lo: least, Hi: 64}
				}
			}
			boxes = append(boxes, box)
			formulas = append(formulas, s.Formulas(d.openDims(), box))
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
			types := d.sizes()
			found := s.Types(types, nil, &weights.Overlay{Base: l.constants})
			if found == nil {
				continue
			}
			sizes := d.named(types)
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
					t.Fatalf("over %v: %v\n%s", boxes[i], err, d.program)
				}
			}
		}
	})
	t.Logf("dimensions of results: %d derived, %d not; %d instances compared", known, unknown, compared)
	if known < 20*unknown || compared < 500 {
		t.Errorf("got %d dimensions derived and %d not, %d instances compared, want nearly all derived", known, unknown, compared)
	}
}
