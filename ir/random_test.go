package ir_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// TestMain draws more programs than rapid does by itself: they are small.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// drawn is a random program without donations, and what to run it on.
type drawn struct {
	prog    *ir.Program
	inputs  []op.Arg
	weights ir.WeightMap
}

func drawProgram(t *rapid.T) drawn {
	d := drawn{weights: ir.WeightMap{}}
	g := &generator{t: t, b: ir.NewBuilder("random", testOps)}
	data := func(n int) []byte {
		var out []byte
		for range n {
			out = append(out, f32Bytes(float32(rapid.IntRange(-4, 4).Draw(t, "element")))...)
		}
		return out
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "parameters") {
		n := rapid.SampledFrom([]int{4, 4, 8, 2}).Draw(t, "size")
		param := g.b.Param
		if rapid.Bool().Draw(t, "donated") {
			param = g.b.DonatedParam
		}
		g.vectors = append(g.vectors, param(fmt.Sprintf("p%d", i), typ(dtype.F32, n)))
		d.inputs = append(d.inputs, arg(typ(dtype.F32, n), data(n)))
	}
	if rapid.Bool().Draw(t, "weight") {
		g.vectors = append(g.vectors, g.b.Weight("w", typ(dtype.F32, 4)))
		d.weights["w"] = data(4)
	}
	g.calls(rapid.IntRange(1, 10).Draw(t, "calls"), 0)
	var results []*ir.Value
	for range rapid.IntRange(1, 3).Draw(t, "results") {
		results = append(results, g.vector())
	}
	g.b.Return(results...)
	var err error
	if d.prog, err = g.b.Build(); err != nil {
		t.Fatal(err)
	}
	return d
}

type generator struct {
	t       *rapid.T
	b       *ir.Builder
	vectors []*ir.Value // visible values of type f32[n]
}

// vector prefers late values: long chains are where donation happens.
func (g *generator) vector() *ir.Value {
	back := min(rapid.IntRange(0, 3).Draw(g.t, "back"), len(g.vectors)-1)
	if rapid.IntRange(0, 3).Draw(g.t, "any") == 0 {
		return rapid.SampledFrom(g.vectors).Draw(g.t, "vector")
	}
	return g.vectors[len(g.vectors)-1-back]
}

// like returns a vector of the same size, x itself if there is no other.
func (g *generator) like(x *ir.Value) *ir.Value {
	for range 4 {
		if y := g.vector(); y.Type == x.Type && y != x {
			return y
		}
	}
	return x
}

func (g *generator) calls(n, depth int) {
	for range n {
		g.call(depth)
	}
}

func (g *generator) call(depth int) {
	x := g.vector()
	size := x.Type.Shape.Size(0)
	kinds := []string{"neg", "relu", "add", "sub", "accumulate", "add_one", "copy", "flat", "rows", "rows", "halves", "every_other", "put", "put", "concat", "mystery", "if", "if"}
	kind := rapid.SampledFrom(kinds).Draw(g.t, "operator")
	switch {
	case kind == "add" || kind == "sub" || kind == "accumulate":
		g.give(g.b.Call(kind, nil, x, g.like(x)))
	case kind == "rows" && size > 0:
		from := rapid.IntRange(0, size-1).Draw(g.t, "from")
		g.give(g.b.Call("rows", op.Attrs{{Name: "from", Value: int64(from)},
			{Name: "to", Value: int64(rapid.IntRange(from, size).Draw(g.t, "to"))}}, x))
	case kind == "halves" && size%2 == 0:
		g.give(g.b.CallN(2, "halves", nil, x)...)
	case kind == "put":
		piece := g.vector()
		free := size - piece.Type.Shape.Size(0)
		if free < 0 {
			x, piece, free = piece, x, -free
		}
		g.give(g.b.Call("put", op.Attrs{{Name: "offset", Value: int64(rapid.IntRange(0, free).Draw(g.t, "offset"))}}, x, piece))
	case kind == "concat" && size < 16:
		g.give(g.b.Call("concat", nil, x, g.vector()))
	case kind == "mystery":
		g.give(g.b.Call("mystery", nil, x, g.vector()))
	case kind == "if" && depth < 2:
		g.branch(x, depth)
	case kind == "rows" || kind == "halves" || kind == "concat" || kind == "if":
		g.give(g.b.Call("neg", nil, x))
	default:
		g.give(g.b.Call(kind, nil, x))
	}
}

func (g *generator) give(values ...*ir.Value) { g.vectors = append(g.vectors, values...) }

// branch makes an if whose branches return vectors of the type of x.
func (g *generator) branch(x *ir.Value, depth int) {
	results := rapid.IntRange(1, 2).Draw(g.t, "branch results")
	block := func() []*ir.Value {
		outer := len(g.vectors)
		g.calls(rapid.IntRange(0, 3).Draw(g.t, "branch calls"), depth+1)
		var out []*ir.Value
		for range results {
			out = append(out, g.like(x))
		}
		g.vectors = g.vectors[:outer:outer]
		return out
	}
	g.give(g.b.If(g.b.Call("is_positive", nil, g.vector()), block, block)...)
}

func (d drawn) interpret(p *ir.Program) ([]op.Arg, error) {
	return (&ir.Interpreter{Weights: d.weights}).Run(p, d.inputs...)
}

func same(a, b []op.Arg) bool {
	for i := range a {
		if a[i].Type != b[i].Type || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return len(a) == len(b)
}

// operands lists every present operand of the program.
func operands(p *ir.Program) (out []*ir.Operand) {
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			if c.Args[i].Value != nil {
				out = append(out, &c.Args[i])
			}
		}
	})
	return out
}

// markAll marks every operand that may be donated.
func markAll(p *ir.Program) (marked []*ir.Operand) {
	marks := ir.NewDonations(p, nil)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			if marks.Mark(c, i) == nil {
				marked = append(marked, &c.Args[i])
			}
		}
	})
	return marked
}

func TestRandomProgramsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawProgram(t)
		for _, o := range operands(d.prog) {
			o.Donate = rapid.IntRange(0, 5).Draw(t, "donate") == 0
		}
		text := d.prog.String()
		checkFixedPoint(t, text, testOps)
		parsed, err := ir.Parse(text, testOps)
		if err != nil {
			t.Fatal(err)
		}
		got, want := fmt.Sprint(ir.Verify(parsed)), fmt.Sprint(ir.Verify(d.prog))
		if got = regexp.MustCompile(`, line \d+: `).ReplaceAllString(got, ": "); got != want {
			t.Fatalf("the parsed program verifies as\n%s\nwant\n%s", got, want)
		}
		if err := ir.Infer(parsed, nil); err != nil || parsed.String() != text {
			t.Fatalf("inferring again gives %v and\n%s\nwant\n%s", err, parsed, text)
		}
	})
}

// TestLegalDonationsDoNotShow marks all that may be marked.
func TestLegalDonationsDoNotShow(t *testing.T) {
	takes := 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawProgram(t)
		want, err := d.interpret(d.prog)
		if err != nil {
			t.Fatal(err)
		}
		markAll(d.prog)
		if err := ir.Verify(d.prog); err != nil {
			t.Fatalf("%v\n%s", err, d.prog)
		}
		takes += d.compare(t, want)
	})
	if takes == 0 {
		t.Error("no donated operand was ever taken")
	}
}

// compare runs a verified program with donations both ways.
func (d drawn) compare(t *rapid.T, want []op.Arg) (takes int) {
	got, err := d.interpret(d.prog)
	if err != nil || !same(got, want) {
		t.Fatalf("interpreted: got %v\n%swant\n%s%s", err, resultText(got), resultText(want), d.prog)
	}
	s := &sharing{weights: d.weights, pick: func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "take") }}
	got, err = s.run(d.prog, d.inputs)
	if err != nil || !same(got, want) {
		t.Fatalf("sharing bytes: got %v\n%swant\n%s%s", err, resultText(got), resultText(want), d.prog)
	}
	return s.takes
}

// TestAcceptedDonationsDoNotShow marks operands at random. Programs that the
// verifier accepts must have the same results as without donations; some that
// it rejects must have different ones, or this test cannot detect a fault.
func TestAcceptedDonationsDoNotShow(t *testing.T) {
	accepted, rejected, caught, corrupt := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawProgram(t)
		want, err := d.interpret(d.prog)
		if err != nil {
			t.Fatal(err)
		}
		ops := operands(d.prog)
		legal := markAll(d.prog)
		for _, o := range legal {
			o.Donate = false
		}
		for range rapid.IntRange(1, 3).Draw(t, "marks") {
			from := ops
			if len(legal) > 0 && rapid.IntRange(0, 2).Draw(t, "legal") > 0 {
				from = legal
			}
			from[rapid.IntRange(0, len(from)-1).Draw(t, "mark")].Donate = true
		}
		if ir.Verify(d.prog) == nil {
			accepted++
			d.compare(t, want)
			return
		}
		rejected++
		if got, err := d.interpret(d.prog); err != nil || !same(got, want) {
			caught++
		}
		s := &sharing{weights: d.weights, pick: func(int) int { return 0 }}
		if got, err := s.run(d.prog, d.inputs); err != nil || !same(got, want) {
			corrupt++
		}
	})
	t.Logf("accepted %d; rejected %d, of which the interpreter fails %d and sharing corrupts %d", accepted, rejected, caught, corrupt)
	if accepted == 0 || rejected == 0 || caught == 0 || corrupt == 0 {
		t.Error("want some of each")
	}
}
