package ir_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
)

// TestAliasGolden lists for every value the byte ranges in which it may lie:
// "x[0:16]" exactly there, "x(0:16)" somewhere in it.
func TestAliasGolden(t *testing.T) {
	golden(t, "testdata/alias/*.txtar", func(t *testing.T, a *txtar.Archive) string {
		p := mustParse(t, section(a, "in"))
		if err := ir.Verify(p); err != nil {
			t.Fatal(err)
		}
		aliases := ir.AliasesOf(p, nil)
		var out strings.Builder
		p.Walk(func(_ *ir.Block, c *ir.Call) {
			for _, v := range c.Results {
				if v != nil {
					fmt.Fprintf(&out, "%s:%s\n", v, extentText(aliases.Extents(v)))
				}
			}
		})
		return out.String()
	})
}

func extentText(extents []ir.Extent) string {
	out := ""
	for _, e := range extents {
		high, root := fmt.Sprint(e.High), "?"
		if e.Root != nil {
			root = e.Root.Name
		}
		if e.High == math.MaxInt64 {
			high = ""
		}
		form := " %s(%d:%s)"
		if e.Exact {
			form = " %s[%d:%s]"
		}
		out += fmt.Sprintf(form, root, e.Low, high)
	}
	return out
}

func TestOverlapIsByBytes(t *testing.T) {
	p := mustParse(t, `func @f(%x: f32[8]) {
  %a = rows(%x) {from = 0, to = 3}
  %b = rows(%x) {from = 3, to = 8}
  %c = rows(%b) {from = 0, to = 1}
  %d = rows(%x) {from = 3, to = 3}
  %e = copy(%x)
  %f = mystery(%d)
  %g = every_other(%x)
  %h = rows(%g) {from = 1, to = 1}
  return %x
}`)
	a := ir.AliasesOf(p, nil)
	overlapping := map[string]bool{}
	for _, pair := range strings.Fields("xa xb xc bc xg ag bg cg") {
		overlapping[pair] = true
	}
	const names = "xabcdefgh"
	for i, x := range names {
		for _, y := range names[i+1:] {
			v, w := find(t, p, "%"+string(x)), find(t, p, "%"+string(y))
			if got, want := a.Overlap(v, w), overlapping[string(x)+string(y)]; got != want {
				t.Errorf("%s and %s: got overlap %v, want %v", v, w, got, want)
			}
			if a.Overlap(v, w) != a.Overlap(w, v) {
				t.Errorf("%s and %s: overlap is not symmetric", v, w)
			}
		}
	}
}

// TestExtentsAreBounded follows a chain of undeclared operators, each of
// which adds a root, until the value may lie anywhere.
func TestExtentsAreBounded(t *testing.T) {
	b := ir.NewBuilder("chain", testOps)
	x := b.DonatedParam("x", typ(dtype.F32, 4))
	other := b.Call("neg", nil, x)
	v := x
	for range 100 {
		v = b.Call("mystery", nil, v)
	}
	last := b.Call("neg", nil, v)
	b.Return(last)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	a := ir.AliasesOf(p, nil)
	if got := a.Extents(v); len(got) != 1 || got[0].Root != nil || got[0].Exact {
		t.Errorf("got extents%s, want anywhere", extentText(got))
	}
	if !a.Overlap(v, other) || !a.Overlap(other, v) || a.Overlap(last, other) {
		t.Error("what may lie anywhere must overlap with all else, and a fresh value with nothing")
	}
	last.Def.Args[0].Donate = true
	const want = "V13: %103 = neg(donate %102) donates %102, which may lie in the bytes of more values than are followed; drop the mark \"donate\", or donate a copy"
	if err := ir.Verify(p); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	other.Def.Args[0].Donate = true
	if err := ir.Verify(p); err == nil || !strings.Contains(err.Error(), "V15: %2 = neg(donate %x)") {
		t.Errorf("got %v, want V15", err)
	}
	p.Body.Calls[1].Args[0].Value = other // the chain starts at the result
	p.Body.Results = append(p.Body.Results, v)
	last.Def.Args[0] = ir.Donate(other)
	if err := ir.Verify(p); err == nil || !strings.Contains(err.Error(), "V14: %103 = neg(donate %2) donates %2, but %102 may share its bytes") {
		t.Errorf("got %v, want V14 for what may lie anywhere", err)
	}
}

func TestDonationsSayWhyNot(t *testing.T) {
	p := mustParse(t, `func @f(donate %x: f32[4], %y: f32[4]) {
  %a = add(%x, %y)
  %b = neg(%a)
  %c = add(%b, %a)
  return %c
}`)
	marks := ir.NewDonations(p, nil)
	want := []struct{ call, arg, invariant int }{{0, 0, 0}, {0, 1, 13}, {1, 0, 15}, {2, 0, 0}, {2, 1, 0}}
	for _, w := range want {
		c := p.Body.Calls[w.call]
		err := marks.Mark(c, w.arg)
		got := 0
		if v, ok := err.(*ir.Violation); ok {
			got = v.Invariant
		}
		if got != w.invariant || c.Args[w.arg].Donate != (got == 0) {
			t.Errorf("call %d operand %d: got %v, marked %v, want V%d", w.call, w.arg, err, c.Args[w.arg].Donate, w.invariant)
		}
	}
	if err := ir.Verify(p); err != nil {
		t.Error(err)
	}
}

// TestDonationsKnowTheirMarks has a program in which each of two donations is
// legal alone: a in one branch, and r, which lies in a's bytes if that branch
// ran, while s lies there if the other did.
func TestDonationsKnowTheirMarks(t *testing.T) {
	p := mustParse(t, `func @f(%x: f32[4], %y: f32[4], %c: bool[]) {
  %a = neg(%x)
  %r, %s = if(%c) {
    %t = relu(%a)
    return %t, %y
  } {
    %u = relu(%x)
    return %u, %a
  }
  %v = neg(%r)
  %w = add(%v, %s)
  return %w
}`)
	var got []string
	for _, o := range markAll(p) {
		got = append(got, o.Value.Name)
	}
	if err := ir.Verify(p); err != nil {
		t.Error(err)
	}
	if want := "a v"; strings.Join(got, " ") != want {
		t.Errorf("donated %s, want %s", strings.Join(got, " "), want)
	}
}
