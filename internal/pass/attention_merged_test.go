package pass_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// TestMergedHeads has products that see samples and heads as one axis, as
// decoders are exported. No transpose is left where the call can read and write
// rows in their order.
func TestMergedHeads(t *testing.T) {
	const bloom = `func @a(%q: f32[B,3,4,6], %k: f32[B,5,4,6], %v: f32[B,5,4,7], %slopes: f32[N,1,5], %mask: f32[B,1,3,5]) {
		weight @qs: i64[3]
		weight @ks: i64[3]
		weight @vs: i64[3]
		weight @split: i64[4]
		weight @flat: i64[3]
		weight @ys: i64[4]
		%q1 = transpose(%q) {perm = [0, 2, 1, 3]}
		%q2 = reshape(%q1, @qs)
		%k1 = transpose(%k) {perm = [0, 2, 3, 1]}
		%k2 = reshape(%k1, @ks)
		%v1 = transpose(%v) {perm = [0, 2, 1, 3]}
		%v2 = reshape(%v1, @vs)
		%s = matmul(%q2, %k2)
		%t = add(%s, %slopes)
		%u = reshape(%t, @split)
		%w = add(%u, %mask)
		%p = softmax(%w)
		%f = reshape(%p, @flat)
		%r = matmul(%f, %v2)
		%x = reshape(%r, @ys)
		%y = transpose(%x) {perm = [0, 2, 1, 3]}
		return %y
	}`
	plain := strings.NewReplacer("%t = add(%s, %slopes)\n", "", "%u = reshape(%t,", "%u = reshape(%s,").Replace(bloom)
	for _, c := range []struct {
		name, text string
		batch      int
		transposes int
	}{
		{"slopes per head, one sample", bloom, 1, 0},
		{"slopes per sample and head", bloom, 2, 4},
		{"no slopes", plain, 2, 0},
		{"another split of the result", strings.ReplaceAll(plain, "@ys", "@zs"), 2, 4},
		{"q is read elsewhere", strings.Replace(plain, "return %y", "return %y, %q2", 1), 2, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, n := float64(c.batch), float64(4*c.batch)
			text := strings.NewReplacer("[B,", fmt.Sprintf("[%v,", b), "[N,", fmt.Sprintf("[%v,", n)).Replace(c.text)
			p, err := ir.Parse(text, op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			table := (&spelledAttention{weights: map[string][]float64{
				"qs": {n, 3, 6}, "ks": {n, 6, 5}, "vs": {n, 5, 7}, "split": {b, 4, 3, 5}, "flat": {n, 3, 5}, "ys": {b, 4, 3, 7}, "zs": {4, b, 3, 7},
			}}).table(p)
			ctx := &pass.Context{Program: p.Clone(), Constants: &weights.Overlay{Base: table}, MaxFold: 64 << 10}
			inputs := attentionInputs(rand.New(rand.NewPCG(7, 8)), p, [3]int{})
			if err := pass.Run(ctx, []pass.Pass{pass.Fold, pass.CSE, pass.DCE, pass.Attention, pass.DCE}, verified); err != nil {
				t.Fatal(err)
			}
			calls := names(ctx.Program)
			if got := strings.Count(strings.Join(calls, " "), "transpose"); got != c.transposes || !slices.Contains(calls, "fused_attention") {
				t.Fatalf("got the calls %v, want one of attention and %d transposes", calls, c.transposes)
			}
			want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, inputs...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := (&ir.Interpreter{Eval: compute.Eval, Weights: ctx.Constants}).Run(ctx.Program, inputs...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want[0].Type.Shape.NumElements() {
				x, y := floatAt(got[0].Data, got[0].Type.DType, i), floatAt(want[0].Data, want[0].Type.DType, i)
				if !(math.Abs(x-y) <= 2e-6) {
					t.Fatalf("element %d: got %v, want %v", i, x, y)
				}
			}
		})
	}
}
