package acceptance_test

import (
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// stacks take queries, keys and values out of one product, as exporters write
// it. The product has 96 KiB, the result of attention 32 KiB.
var stacks = map[string]string{
	"transposed, and gathered": `
		%f = matmul(%x, %w)
		%g = reshape(%f, @stacked)
		%t = transpose(%g) {perm = [2, 0, 3, 1, 4]}
		%q = gather(%t, @n0)
		%k = gather(%t, @n1)
		%v = gather(%t, @n2)`,
	"transposed, and split": `
		%f = matmul(%x, %w)
		%g = reshape(%f, @stacked)
		%t = transpose(%g) {perm = [2, 0, 3, 1, 4]}
		%q1, %k1, %v1 = split(%t) {axis = 0, num_outputs = 3}
		%q = squeeze(%q1, @i0)
		%k = squeeze(%k1, @i0)
		%v = squeeze(%v1, @i0)`,
	"beside the heads": `
		%f = matmul(%x, %w)
		%g = reshape(%f, @beside)
		%q1 = gather(%g, @n0) {axis = 3}
		%k1 = gather(%g, @n1) {axis = 3}
		%v1 = gather(%g, @n2) {axis = 3}
		%q = transpose(%q1) {perm = [0, 2, 1, 3]}
		%k = transpose(%k1) {perm = [0, 2, 1, 3]}
		%v = transpose(%v1) {perm = [0, 2, 1, 3]}`,
	"before samples and heads are merged": `
		%f = matmul(%x, %w)
		%g = reshape(%f, @merged)
		%t = transpose(%g) {perm = [3, 1, 2, 0, 4]}
		%s = squeeze(%t, @i3)
		%q1 = gather(%s, @n0)
		%k1 = gather(%s, @n1)
		%v1 = gather(%s, @n2)
		%q2 = reshape(%q1, @heads)
		%k2 = reshape(%k1, @heads)
		%v2 = reshape(%v1, @heads)
		%q3 = transpose(%q2) {perm = [1, 0, 2]}
		%k3 = transpose(%k2) {perm = [1, 0, 2]}
		%v3 = transpose(%v2) {perm = [1, 0, 2]}
		%q = reshape(%q3, @apart)
		%k = reshape(%k3, @apart)
		%v = reshape(%v3, @apart)`,
}

// Attention reads queries, keys and values where one product has put them, and
// nothing moves.
func TestStacksInPlace(t *testing.T) {
	for name, text := range stacks {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			p, err := ir.Parse(`func @main(%x: f32[1,64,128], %w: f32[128,384]) -> (f32[1,4,1,32]) {
				weight @n0: i64[]
				weight @n1: i64[]
				weight @n2: i64[]
				weight @i0: i64[1]
				weight @i3: i64[1]
				weight @axis: i64[1]
				weight @stacked: i64[5]
				weight @beside: i64[5]
				weight @merged: i64[5]
				weight @heads: i64[3]
				weight @apart: i64[4]`+text+`
				%kt = transpose(%k) {perm = [0, 1, 3, 2]}
				%a = matmul(%q, %kt)
				%b = softmax(%a)
				%c = matmul(%b, %v)
				%r = reduce_max(%c, @axis)
				return %r
			}`, op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			table := tableOf(map[string][]int64{"n0": {0}, "n1": {1}, "n2": {2}, "i0": {0}, "i3": {3}, "axis": {2}, "stacked": {1, 64, 3, 4, 32},
				"beside": {1, 64, 4, 3, 32}, "merged": {1, 64, 1, 3, 128}, "heads": {64, 4, 32}, "apart": {1, 4, 64, 32}})
			if err := ir.Infer(p, ir.Known(table)); err != nil {
				t.Fatal(err)
			}
			args, in := drawnInputs(t, p)
			want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, args...)
			if err != nil {
				t.Fatal(err)
			}
			m, err := tenure.LoadProgram(p, table)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			d, err := m.Plan(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(d); err != nil || d.ArenaBytes != 128<<10 || d.Moved() != 0 {
				t.Errorf("got an arena of %d bytes and %d moved (%v), want %d and none", d.ArenaBytes, d.Moved(), err, 128<<10)
			}
			out := modeltest.Run(t, modeltest.Session(t, m), in)
			defer out.Release()
			r, err := tensor.FromBytes(want[0].DType, want[0].Shape, want[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if fault := modeltest.Differs(out["r"], r, modeltest.Tolerance{RTol: 1e-5, ATol: 1e-5}); fault != "" {
				t.Error(fault)
			}
		})
	}
}
