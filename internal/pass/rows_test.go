package pass_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

func TestRows(t *testing.T) {
	for _, c := range []struct {
		name, x, index, attrs, result string
		value                         int64
		want                          string // operators
	}{
		{"a scalar index", "f32[3,2,4]", "i64[]", "", "f32[2,4]", 1, "neg slice squeeze relu"},
		{"from the end", "f32[3,2,4]", "i64[]", "", "f32[2,4]", -1, "neg slice squeeze relu"},
		{"the first axis from the end", "f32[3,2,4]", "i64[]", " {axis = -3}", "f32[2,4]", 2, "neg slice squeeze relu"},
		{"an index with an axis", "f32[3,2,4]", "i64[1]", "", "f32[1,2,4]", 2, "neg slice relu"},
		{"another axis", "f32[3,2,4]", "i64[]", " {axis = 1}", "f32[3,4]", 1, "neg gather relu"},
		{"out of range", "f32[3,2,4]", "i64[]", "", "f32[2,4]", 3, "neg gather relu"},
		{"a list", "f32[3]", "i64[]", "", "f32[]", 1, "neg gather relu"},
		{"an unknown size", "f32[n,2,4]", "i64[]", "", "f32[2,4]", 1, "neg gather relu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ir.Parse("func @f(%x: "+c.x+") -> ("+c.result+`) {
  weight @i: `+c.index+`
  %a = neg(%x)
  %g = gather(%a, @i)`+c.attrs+`
  %r = relu(%g)
  return %r
}`, op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			data := binary.LittleEndian.AppendUint64(nil, uint64(c.value))
			ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: ir.WeightMap{"i": data}}}
			if err := pass.Run(ctx, []pass.Pass{pass.Rows}, func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range p.Body.Calls {
				got = append(got, c.Op.Name)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}
