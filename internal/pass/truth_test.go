package pass

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// drawnSizes are values whose dimensions are drawn expressions over a drawn
// box.
type drawnSizes struct {
	*Formulas
	points []map[string]int64
}

func drawSizes(t *rapid.T, ranks ...int) *drawnSizes {
	box := symbolic.Box{}
	points := []map[string]int64{{}}
	for _, name := range []string{"a", "b"} {
		lo := int64(rapid.IntRange(0, 3).Draw(t, "lo"))
		hi := lo + int64(rapid.IntRange(0, 3).Draw(t, "wide"))
		box[name] = symbolic.Range{Lo: lo, Hi: hi}
		var next []map[string]int64
		for _, at := range points {
			for n := lo; n <= hi; n++ {
				next = append(next, map[string]int64{"a": at["a"], name: n})
			}
		}
		points = next
	}
	s := &Structure{types: make([]op.Type, len(ranks)+1), initial: make([]op.Type, len(ranks)+1)}
	f := s.newFormulas(nil, box)
	a, b := symbolic.Symbol("a"), symbolic.Symbol("b")
	for i, rank := range ranks {
		dims := []*symbolic.Expr{}
		for range rank {
			n := symbolic.Const(int64(rapid.IntRange(0, 3).Draw(t, "n")))
			dims = append(dims, rapid.SampledFrom([]*symbolic.Expr{n, n, a, a, b, a.Add(n), a.Add(b), a.Mul(b)}).Draw(t, "dim"))
		}
		f.first[i+1], f.dims[i+1] = op.Type{DType: dtype.F32, Shape: shape.MustOf(make([]int, rank)...)}, dims
	}
	return &drawnSizes{f, points}
}

// checkMany is rapid.Check with a number of checks that a flag may change.
func checkMany(t *testing.T, checks int, check func(t *rapid.T)) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set(f.Name, strconv.Itoa(checks)); err != nil {
			t.Fatal(err)
		}
		defer flag.Set(f.Name, f.DefValue)
	}
	rapid.Check(t, check)
}

// TestAnswersOver compares the answers to questions over boxes with those for
// each of their sizes.
func TestAnswersOver(t *testing.T) {
	decided, open := map[question]int{}, map[question]int{}
	checkMany(t, 3000, func(t *rapid.T) {
		ranks := []int{rapid.IntRange(1, 4).Draw(t, "rank"), rapid.IntRange(1, 4).Draw(t, "rank")}
		if rapid.Bool().Draw(t, "one rank") {
			ranks[1] = ranks[0]
		}
		d := drawSizes(t, ranks...)
		if rapid.Bool().Draw(t, "alike") && ranks[0] == ranks[1] {
			copy(d.dims[2][1:], d.dims[1][1:])
		}
		g := guard{question: question(rapid.IntRange(0, int(questions)-1).Draw(t, "question")), a: 1, b: 2}
		g.x, g.y = rapid.IntRange(0, ranks[0]-1).Draw(t, "x"), rapid.IntRange(0, ranks[1]-1).Draw(t, "y")
		switch g.question {
		case fewRows:
			if g.x = 4; ranks[0] < 2 || ranks[1] < 2 {
				return
			}
		case atMost:
			g.b, g.x = 0, rapid.IntRange(0, 9).Draw(t, "most")
		case sizeOf:
			g.b = 0
		case alongRow:
			g.x = min(g.x, ranks[1])
		case perChannel:
			if ranks[1] < 2 {
				return
			}
		case spelledOut:
			return // TestOver has constants
		}
		answer, ok := d.answerOver(g)
		if !ok {
			open[g.question]++
			return
		}
		decided[g.question]++
		for _, at := range d.points {
			var of [2]fact
			for i, id := range []int{g.a, g.b} {
				if id != 0 {
					of[i].Type, _ = d.TypeAt(id, at)
				}
			}
			if got := g.question.answer(of[0], of[1], g.x, g.y); got != answer {
				t.Fatalf("%s of %v and %v (%d, %d) is %d over %v, but %d at %v", questionNames[g.question], d.dims[1], d.dims[2], g.x, g.y, answer, d.box, got, at)
			}
		}
	})
	for q := range questions {
		if q != spelledOut && (decided[q] == 0 || open[q] == 0) {
			t.Errorf("%s: got %d answers, and none %d times, want both", questionNames[q], decided[q], open[q])
		}
	}
}

// TestAliasesOver compares the alias rules of operators over boxes with their
// answers for each of the sizes that the shape rules accept.
func TestAliasesOver(t *testing.T) {
	calls := []struct {
		name  string
		attrs op.Attrs
		args  int
	}{
		{"concat", op.Attrs(nil).With("axis", int64(0)), 2}, {"transpose", op.Attrs(nil).With("perm", []int64{1, 0, 2}), 1}, {"transpose", nil, 1},
		{"split", op.Attrs(nil).With("axis", int64(1)).With("num_outputs", int64(2)), 1}, {"add", nil, 2}, {"identity", nil, 1},
		{"split", op.Attrs(nil).With("axis", int64(0)).With("num_outputs", int64(2)), 1},
	}
	decided, open := map[string]int{}, 0
	checkMany(t, 1500, func(t *rapid.T) {
		of := rapid.SampledFrom(calls).Draw(t, "call")
		d := drawSizes(t, 3, 3, 3, 3)
		def := op.Builtin().Lookup(of.name)
		v := &visit{shadow: shadow{args: []int{1, 2}[:of.args], results: []int{3, 4}[:1]}}
		if of.name == "split" {
			v.results = []int{3, 4}
		}
		if of.name == "add" && rapid.Bool().Draw(t, "same") {
			d.dims[2] = slices.Clone(d.dims[1])
			d.dims[2][rapid.IntRange(0, 2).Draw(t, "broadcast")] = rapid.SampledFrom([]*symbolic.Expr{symbolic.Const(1), d.dims[1][0]}).Draw(t, "dim")
		}
		v.sig.Def, v.sig.Attrs = def, of.attrs
		c := &formulaCall{Formulas: d.Formulas, visit: v}
		c.sig = v.sig
		for i, id := range v.results {
			if rule := sizeRules[of.name]; rule != nil {
				d.dims[id] = rule(c, i)
			} else if d.dims[id] = d.dims[1]; of.name == "transpose" {
				p := d.dims[1]
				d.dims[id] = []*symbolic.Expr{p[2], p[1], p[0]}
				if of.attrs != nil {
					d.dims[id] = []*symbolic.Expr{p[1], p[0], p[2]}
				}
			}
			if d.dims[id] == nil || !(&overBox{Formulas: d.Formulas}).isDerived(id) {
				return
			}
		}
		arg, result := rapid.IntRange(0, of.args-1).Draw(t, "arg"), rapid.IntRange(0, len(v.results)-1).Draw(t, "result")
		kind, whole, ok := c.aliasOver(arg, result)
		if !ok {
			open++
			return
		}
		for _, at := range d.points {
			sig := &op.Sig{Def: def, Attrs: of.attrs, Results: make([]op.Type, len(v.results))}
			for _, id := range v.args {
				typ, _ := d.TypeAt(id, at)
				sig.Args = append(sig.Args, typ)
			}
			if def.Infer(sig) != nil {
				continue
			}
			decided[fmt.Sprint(of.name, kind)]++
			got, offset := sig.AliasOf(arg, result)
			n, _ := sig.Args[arg].Bytes()
			m, _ := sig.Results[result].Bytes()
			if got != kind || kind == op.View && whole != undecided && (whole == yes) != (offset == 0 && n == m) {
				t.Fatalf("%s of %v: operand %d, result %d: got %v, whole %v over %v, but %v at %d of %d bytes for %v", of.name, d.dims[1:], arg, result, kind, whole, d.box, got, offset, n, at)
			}
		}
	})
	t.Logf("%v, %d open", decided, open)
	for _, want := range []string{"concatview", "concatfresh", "transposeview", "transposefresh", "splitview", "splitfresh", "addsame", "addfresh", "identityview"} {
		if decided[want] == 0 {
			t.Errorf("got no %s, want some", want)
		}
	}
}

// TestEveryConditionIsKnown compares the tables of alias rules for expressions
// with the operators.
func TestEveryConditionIsKnown(t *testing.T) {
	for _, def := range op.Builtin().Defs() {
		for _, r := range def.Alias.Rules() {
			if r.Kind != op.Permute && r.When != nil && conditions[def.Name] == nil {
				t.Errorf("%s: got no condition for expressions, want one", def.Name)
			}
			if r.Offset != nil && pieces[def.Name] == nil {
				t.Errorf("%s: got no rule for parts of the operand, want one", def.Name)
			}
		}
	}
}
