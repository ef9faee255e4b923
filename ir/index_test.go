package ir_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A program with a loop in a branch: calls are numbered in the order of Walk,
// and values know the call that defines them.
func TestIndex(t *testing.T) {
	p, err := ir.Parse(`func @main(%x: f32[4], %c: bool[], %n: i64[]) -> (f32[4]) {
		weight @w: f32[4]
		%a = neg(%x)
		%y = if(%c) {
			%l = loop(%n, _, %a) (%i: i64[], %r: bool[], %s: f32[4]) {
				%t = add(%s, @w)
				return %r, %t
			}
			return %l
		} {
			%e = exp(%a)
			return %e
		}
		%z = neg(%y)
		return %z
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	x := ir.NewIndex(p)
	values := map[string]*ir.Value{}
	for _, v := range slices.Concat(p.Body.Params, p.Weights) {
		values[v.Name] = v
	}
	k := 0
	p.Walk(func(b *ir.Block, c *ir.Call) {
		if x.Calls[k].Call != c || x.Calls[k].Block != b {
			t.Errorf("call %d: got %s, want %s", k, x.Calls[k], c)
		}
		for v := range c.Defs() {
			values[v.Name] = v
		}
		k++
	})
	ends := []int{}
	for _, c := range x.Calls {
		ends = append(ends, c.End)
	}
	if want := []int{1, 5, 4, 4, 5, 6}; !slices.Equal(ends, want) {
		t.Errorf("got calls that end at %v, want %v", ends, want)
	}
	for name, want := range map[string]int{"x": -1, "w": -1, "a": 0, "y": 1, "l": 2, "i": 2, "r": 2, "s": 2, "t": 3, "e": 4, "z": 5} {
		v := values[name]
		if got := x.Def(v); got != want {
			t.Errorf("%s: got call %d, want %d", name, got, want)
		}
		if _, got := x.LoopOf(v); got != (want == 2 && name != "l") {
			t.Errorf("%s: got a parameter of a loop %v", name, got)
		}
		if got := x.IsInside(v, 1); got != (want > 1 && want < 5) {
			t.Errorf("%s: got inside of the branch %v", name, got)
		}
		if got := x.IsInside(v, 2); got != (name == "i" || name == "r" || name == "s" || name == "t") {
			t.Errorf("%s: got inside of the loop %v", name, got)
		}
	}
	var used []string
	for v := range p.Body.Calls[1].Uses() {
		used = append(used, v.Name)
	}
	if want := []string{"c", "n", "a", "s", "w", "r", "t", "l", "a", "e"}; !slices.Equal(used, want) {
		t.Errorf("got uses %v, want %v", used, want)
	}
	for range p.Body.Calls[1].Uses() {
		break // the rest is not asked for
	}
}

// IDs do not jump with names that are numbers: tables by ID stay as small as
// the program.
func TestNumIDs(t *testing.T) {
	f32 := op.Type{DType: dtype.F32, Shape: shape.MustOf(4)}
	b := ir.NewBuilder("main", op.Builtin())
	x := b.Param("1073741822", f32)
	y := b.Call("neg", nil, x)
	b.Return(y)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if x.ID != 1 || y.ID != 2 || p.NumIDs() != 3 || p.Clone().NumIDs() != 3 {
		t.Errorf("got IDs %d and %d of %d, want 1 and 2 of 3", x.ID, y.ID, p.NumIDs())
	}
	if y.Name != "1073741823" {
		t.Errorf("got the name %s, want 1073741823: no other value has it", y.Name)
	}
}
