package pass_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// unstacked are bodies of programs over %x: f32[2,3,4,3,5], what they return,
// and the operators that are left.
var unstacked = []struct{ name, body, want string }{
	{"queries, keys and values behind one transpose", `
		%t = transpose(%x) {perm = [3, 0, 2, 1, 4]}
		%a = gather(%t, @n0)
		%b = gather(%t, @n1)
		%c = gather(%t, @n2)
		return %a, %b, %c`, "slice squeeze transpose slice squeeze transpose slice squeeze transpose"},
	{"the axis alone is moved", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @n0)
		%b = gather(%t, @n1)
		%c = gather(%t, @n2)
		return %a, %b, %c`, "slice squeeze slice squeeze slice squeeze"},
	{"by a split", `
		%t = transpose(%x) {perm = [0, 3, 1, 2, 4]}
		%p, %q, %r = split(%t) {axis = -4, num_outputs = 3}
		%a = squeeze(%p, @i1)
		%b = squeeze(%q, @i1)
		%c = squeeze(%r, @i1)
		return %a, %b, %c`, "split squeeze squeeze squeeze"},
	{"some elements", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @n2)
		%b = gather(%t, @minus)
		%c = gather(%t, @n2)
		return %a, %b, %c`, "gather gather gather"},
	{"something else reads the transpose", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @n0)
		%b = gather(%t, @n1)
		%c = relu(%t)
		return %a, %b, %c`, "transpose gather gather relu"},
	{"the transpose is a result", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @n0)
		%b = gather(%t, @n1)
		return %a, %b, %t`, "transpose gather gather"},
	{"elements along two axes", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @n0)
		%b = gather(%t, @n1) {axis = 1}
		%c = gather(%t, @n1)
		return %a, %b, %c`, "transpose gather gather gather"},
	{"an index with an axis", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%a = gather(%t, @i0)
		%b = gather(%t, @n1)
		return %a, %b, %b`, "transpose gather gather"},
	{"a squeeze of another axis", `
		%t = transpose(%x) {perm = [3, 0, 1, 2, 4]}
		%p, %q, %r = split(%t) {axis = 0, num_outputs = 3}
		%a = squeeze(%p, @i0)
		%b = relu(%q)
		%c = squeeze(%r, @i0)
		return %a, %b, %c`, "transpose split squeeze relu squeeze"},
	{"an axis is dropped first", `
		%u = unsqueeze(%x, @i0)
		%t = transpose(%u) {perm = [4, 1, 3, 2, 0, 5]}
		%s = squeeze(%t, @i4)
		%a = gather(%s, @n0)
		%b = gather(%s, @n1)
		%c = gather(%s, @n2)
		return %a, %b, %c`, "unsqueeze squeeze slice squeeze transpose slice squeeze transpose slice squeeze transpose"},
	{"a stack along the last but one axis", `
		%a = gather(%x, @n0) {axis = 3}
		%b = gather(%x, @n2) {axis = 3}
		%c = gather(%x, @n1) {axis = -2}
		return %a, %b, %c`, "slice squeeze slice squeeze slice squeeze"},
	{"one token", `
		%a = gather(%x, @n0) {axis = 1}
		%b = neg(%a)
		return %a, %b, %b`, "gather neg"},
	{"axes of a transpose are split", `
		%t = transpose(%x) {perm = [1, 0, 2, 3, 4]}
		%a = reshape(%t, @split)
		return %a, %x, %x`, "reshape transpose"},
	{"axes of a transpose are merged", `
		%t = transpose(%x) {perm = [1, 0, 2, 3, 4]}
		%a = reshape(%t, @merged)
		return %a, %x, %x`, "transpose reshape"},
}

const unstackedHead = `func @main(%x: f32[2,3,4,3,5]) {
	weight @n0: i64[]
	weight @n1: i64[]
	weight @n2: i64[]
	weight @minus: i64[]
	weight @i0: i64[1]
	weight @i1: i64[1]
	weight @i4: i64[1]
	weight @split: i64[7]
	weight @merged: i64[3]
`

// Stacks are taken apart where they lie, and what is computed is the same.
func TestUnstack(t *testing.T) {
	for _, c := range unstacked {
		t.Run(c.name, func(t *testing.T) {
			p, err := ir.Parse(unstackedHead+c.body+"\n}", op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			table := ir.WeightMap{"n0": littleInts(0), "n1": littleInts(1), "n2": littleInts(2), "minus": littleInts(-1), "i0": littleInts(0), "i1": littleInts(1),
				"i4": littleInts(4), "split": littleInts(1, 3, 2, 2, 2, 3, 5), "merged": littleInts(6, 4, 15)}
			if got := checkUnstack(t, p, table); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRandomStacks draws transposes of which elements are read.
func TestRandomStacks(t *testing.T) {
	exchanged := 0
	checkDrawn(t, 1000, func(t *rapid.T) {
		n := func(low, high int) int { return rapid.IntRange(low, high).Draw(t, "n") }
		sizes := make([]int, n(3, 5))
		for i := range sizes {
			sizes[i] = n(1, 3)
		}
		perm := rapid.Permutation(slices.Collect(upTo(len(sizes)))).Draw(t, "perm")
		axis := n(0, len(sizes)-1)
		count := sizes[perm[axis]]
		text := fmt.Sprintf("func @main(%%x: f32%s) {\n weight @axis: i64[1]\n", strings.ReplaceAll(fmt.Sprint(sizes), " ", ","))
		table, results := ir.WeightMap{"axis": littleInts(int64(axis))}, []string{}
		body := fmt.Sprintf(" %%t = transpose(%%x) {perm = %s}\n", strings.ReplaceAll(fmt.Sprint(perm), " ", ", "))
		if n(0, 1) == 0 {
			var parts []string
			for i := range count {
				parts = append(parts, fmt.Sprintf("%%p%d", i))
			}
			body += fmt.Sprintf(" %s = split(%%t) {axis = %d, num_outputs = %d}\n", strings.Join(parts, ", "), axis, count)
			for i, part := range parts {
				body += fmt.Sprintf(" %%e%d = squeeze(%s, @axis)\n", i, part)
				results = append(results, fmt.Sprintf("%%e%d", i))
			}
		} else {
			for i := range n(1, 4) {
				text += fmt.Sprintf(" weight @n%d: i64[]\n", i)
				table[fmt.Sprintf("n%d", i)] = littleInts(int64(n(-count, count-1)))
				body += fmt.Sprintf(" %%e%d = gather(%%t, @n%d) {axis = %d}\n", i, i, axis)
				results = append(results, fmt.Sprintf("%%e%d", i))
			}
		}
		p, err := ir.Parse(text+body+" return "+strings.Join(results, ", ")+"\n}", op.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(checkUnstack(t, p, table), "transpose") {
			exchanged++
		}
	})
	if exchanged == 0 {
		t.Error("got no program whose transpose was exchanged, want some")
	}
}

func littleInts(list ...int64) (data []byte) {
	for _, n := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	return data
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// checkUnstack runs the pass and says which operators are left, of a program
// that computes what it did before, to the bit.
func checkUnstack(t rapid.TB, p *ir.Program, table ir.WeightMap) string {
	t.Helper()
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: table}}
	verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }
	if err := pass.Run(ctx, []pass.Pass{pass.Fold}, verify); err != nil {
		t.Fatal(err)
	}
	run := func() []op.Arg {
		x := p.Body.Params[0].Type
		out, err := (&ir.Interpreter{Eval: compute.Eval, Weights: ctx.Constants}).Run(p, op.Arg{Type: x, Data: signed(x)})
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		return out
	}
	want := run()
	if err := pass.Run(ctx, []pass.Pass{pass.Unstack, pass.DCE, pass.Fold}, verify); err != nil {
		t.Fatal(err)
	}
	for i, got := range run() {
		if got.Type != want[i].Type || !bytes.Equal(got.Data, want[i].Data) {
			t.Errorf("result %d: got %v, want %v, and the same bytes\n%s", i, got.Type, want[i].Type, p)
		}
	}
	var names []string
	for _, c := range p.Body.Calls {
		names = append(names, c.Op.Name)
	}
	return strings.Join(names, " ")
}
