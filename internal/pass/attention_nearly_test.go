package pass_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// floatLine is a line of a spelled attention that computes floats.
var floatLine = regexp.MustCompile(`^(%t\d+) = (matmul|mul|div|add|where|tanh|softmax|exp|sub|transpose|cast|reduce_max|reduce_sum|unsqueeze|expand|tile|reshape)\(`)

// twist changes a spelled attention in one place, so that it is one nearly or
// in another way, and says how.
func twist(r *rand.Rand, s *spelledAttention) string {
	var lines []int
	for i, line := range s.body {
		if floatLine.MatchString(line) {
			lines = append(lines, i)
		}
	}
	at := lines[r.IntN(len(lines))]
	name := floatLine.FindStringSubmatch(s.body[at])[1]
	last := len(s.body) - 1
	switch kind := r.IntN(5); kind {
	case 0, 1:
		s.body[last] += ", " + name
		return name + " is a result"
	case 2:
		changed := []string{"neg(%u)", "add(%u, %u)", "tanh(%u)", "abs(%u)"}[r.IntN(4)]
		s.body[at] = strings.Replace(s.body[at], name+" =", "%u =", 1)
		s.body = slices.Insert(s.body, at+1, name+" = "+changed)
		return name + " is " + changed
	case 3:
		for i, line := range s.body {
			if strings.Contains(line, "= softmax(") {
				s.body[i] = line[:strings.Index(line, ")")] + ") {axis = -2}"
				return "softmax along another axis"
			}
		}
	}
	s.body = slices.Insert(s.body, last, "%u = exp("+name+")")
	s.body[last+1] += ", %u"
	return name + " is read elsewhere"
}

// TestAttentionNearly draws programs that differ from attention in one place,
// and compares what the passes make of them with the interpreter. Both those
// that are found and those that are not occur.
func TestAttentionNearly(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 18))
	found, others := 0, 0
	for i := range 300 {
		f := drawForm(r)
		if strings.HasSuffix(f.typ, "f16") {
			f.typ, f.wide = "f32", false // the comparison is exact to rounding
		}
		s := spell(f)
		how := twist(r, s)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if meetsInterpreter(t, r, s, s.text(f), how) {
				found++
			} else {
				others++
			}
		})
	}
	if found < 20 || others < 100 {
		t.Errorf("got %d programs with attention and %d without, want 20 and 100", found, others)
	}
}

// meetsInterpreter compares a program with the interpreter at one set of sizes,
// and reports whether attention was found.
func meetsInterpreter(t *testing.T, r *rand.Rand, s *spelledAttention, text, how string) bool {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	table := s.table(p)
	ctx := &pass.Context{Program: p.Clone(), Constants: &weights.Overlay{Base: table}, MaxFold: 64 << 10}
	if err := pass.Run(ctx, pass.Load, verified); err != nil {
		t.Fatal(err)
	}
	inputs := attentionInputs(r, p, [3]int{4, 6, 9})
	types := make([]op.Type, len(inputs))
	for i := range inputs {
		types[i] = inputs[i].Type
	}
	fresh, err := specialise(ctx.Program, ctx.Constants, types, func(i int) []byte { return inputs[i].Data }, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&ir.Interpreter{Eval: evalRubbish(t), Weights: fresh.Constants}).Run(fresh.Program, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		if at := differsAt(got[k], want[k]); at != "" {
			t.Fatalf("%s: result %d: %s\n%s\nbecame\n%s", how, k, at, text, fresh.Program)
		}
	}
	return slices.Contains(names(fresh.Program), "fused_attention")
}

// differsAt compares results to rounding.
func differsAt(got, want op.Arg) string {
	if got.Type != want.Type {
		return fmt.Sprintf("got %s, want %s", got.Type, want.Type)
	}
	dt := want.Type.DType
	if !dt.IsFloat() {
		if string(got.Data) != string(want.Data) {
			return "integers differ"
		}
		return ""
	}
	for i := range want.Type.Shape.NumElements() {
		x, y := floatAt(got.Data, dt, i), floatAt(want.Data, dt, i)
		if x != y && !(abs(x-y) <= nearness[dtype.F32]*max(1, abs(y))) && !(x != x && y != y) {
			return fmt.Sprintf("element %d: got %v, want %v", i, x, y)
		}
	}
	return ""
}

func abs(x float64) float64 { return max(x, -x) }

// TestAttentionExporters has forms of exporters whose operands lie otherwise
// than those that are drawn: heads that are one axis with the batch, with a
// mask for each sample or a bias for each head.
func TestAttentionExporters(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 18))
	for _, c := range []struct {
		name, inputs string
		body         func(s *spelledAttention)
	}{
		{"heads in the batch, a mask per sample", "%q: f32[12,7,6], %k: f32[12,9,6], %v: f32[12,9,5], %a: f32[3,1,7,9]", func(s *spelledAttention) {
			x := s.let("matmul(%%q, %s)", s.let("transpose(%%k) {perm = [0, 2, 1]}"))
			x = s.let("add(%s, %%a)", s.let("reshape(%s, %s)", x, s.list(3, 4, 7, 9)))
			x = s.let("softmax(%s)", s.let("reshape(%s, %s)", x, s.list(12, 7, 9)))
			s.body = append(s.body, "return "+s.let("matmul(%s, %%v)", x))
		}},
		{"softmax of samples and heads, a bias before", "%q: f32[12,7,6], %k: f32[12,9,6], %v: f32[12,9,5], %a: f32[12,1,9], %m: bool[3,1,7,9]", func(s *spelledAttention) {
			x := s.let("matmul(%%q, %s)", s.let("transpose(%%k) {perm = [0, 2, 1]}"))
			x = s.let("add(%s, %%a)", s.let("mul(%s, %s)", x, s.number(0.4)))
			x = s.let("where(%%m, %s, %s)", s.let("reshape(%s, %s)", x, s.list(3, 4, 7, 9)), s.number(-1e30))
			x = s.let("reshape(%s, %s)", s.let("softmax(%s)", x), s.list(12, 7, 9))
			s.body = append(s.body, "return "+s.let("matmul(%s, %%v)", x))
		}},
		{"windows, of one head", "%q: f32[6,1,7,6], %k: f32[6,1,7,6], %v: f32[6,1,7,5], %a: f32[1,1,7,7], %m: f32[1,3,1,7,7]", func(s *spelledAttention) {
			x := s.let("matmul(%%q, %s)", s.let("transpose(%%k) {perm = [0, 1, 3, 2]}"))
			x = s.let("reshape(%s, %s)", s.let("add(%s, %%a)", x), s.list(2, 3, 1, 7, 7))
			x = s.let("reshape(%s, %s)", s.let("add(%s, %%m)", x), s.list(-1, 1, 7, 7))
			s.body = append(s.body, "return "+s.let("matmul(%s, %%v)", s.let("softmax(%s)", x)))
		}},
		{"a causal mask cut from a buffer", "%q: f32[2,3,7,6], %k: f32[2,3,9,6], %v: f32[2,3,9,5], %c: bool[1,1,20,20], %m: f32[2,1,1,9]", func(s *spelledAttention) {
			x := s.let("div(%s, %s)", s.let("matmul(%%q, %s)", s.let("transpose(%%k) {perm = [0, 1, 3, 2]}")), s.number(2.5))
			c := s.let("slice(%%c, %s, %s, %s)", s.list(2, 0), s.list(9, 9), s.list(2, 3))
			x = s.let("add(%s, %%m)", s.let("where(%s, %s, %s)", c, x, s.number(-1e30)))
			s.body = append(s.body, "return "+s.let("matmul(%s, %%v)", s.let("softmax(%s)", x)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &spelledAttention{typ: "f32", weights: map[string][]float64{}}
			c.body(s)
			text := fmt.Sprintf("func @a(%s) {\n%s\n%s\n}", c.inputs, strings.Join(s.head, "\n"), strings.Join(s.body, "\n"))
			if !meetsInterpreter(t, r, s, text, c.name) {
				t.Errorf("got no attention, want one call")
			}
		})
	}
}
