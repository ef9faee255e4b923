package ir_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// TestRunGolden verifies and interprets programs. Those that the verifier
// accepts must have the same results with all sharing that donation allows;
// those that it rejects are interpreted, too, and their golden files have the
// outcome.
func TestRunGolden(t *testing.T) {
	golden(t, "testdata/run/*.txtar", func(t *testing.T, a *txtar.Archive) string {
		p := mustParse(t, section(a, "in"))
		weights := ir.WeightMap{}
		for line := range strings.Lines(section(a, "weights")) {
			name, data, _ := strings.Cut(line, ":")
			weights[name] = parseData(t, find(t, p, "@"+name).Type, data)
		}
		var inputs []op.Arg
		for line := range strings.Lines(section(a, "inputs")) {
			typeText, data, _ := strings.Cut(line, ":")
			typ := parseType(t, typeText)
			inputs = append(inputs, arg(typ, parseData(t, typ, data)))
		}
		verified := ir.VerifyKnown(p, ir.Known(weights))
		out := ""
		if verified != nil {
			out = verified.Error() + "\n"
		}
		results, err := (&ir.Interpreter{Weights: weights}).Run(p, inputs...)
		if err != nil {
			return out + "error: " + err.Error() + "\n"
		}
		if verified == nil {
			s := &sharing{weights: weights, pick: func(int) int { return 0 }}
			shared, err := s.run(p, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := resultText(shared), resultText(results); got != want {
				t.Errorf("sharing bytes gives:\n%s\nwant:\n%s", got, want)
			}
		}
		return out + resultText(results)
	})
}

func parseData(t *testing.T, typ op.Type, text string) []byte {
	t.Helper()
	var data []byte
	for _, word := range strings.Fields(text) {
		x, err := strconv.ParseFloat(word, 32)
		if err != nil {
			t.Fatal(err)
		}
		switch typ.DType {
		case dtype.F32:
			data = append(data, f32Bytes(float32(x))...)
		case dtype.I64:
			data = append(data, i64Bytes(int64(x))...)
		case dtype.Bool:
			data = append(data, byte(x))
		default:
			t.Fatalf("no text form for %s", typ)
		}
	}
	return data
}

func resultText(results []op.Arg) string {
	var out strings.Builder
	for _, r := range results {
		fmt.Fprintf(&out, "%s:", r.Type)
		switch r.DType {
		case dtype.F32:
			for i := range count(r) {
				fmt.Fprintf(&out, " %v", getF32(r, i))
			}
		default:
			fmt.Fprintf(&out, " %v", r.Data)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestInterpreterLeavesInputsAndWeightsAlone(t *testing.T) {
	p := mustParse(t, "func @f(donate %x: f32[2]) {\n weight @w: f32[2]\n %y = add(donate %x, @w)\n return %y, %y, @w\n}")
	x, w := f32Bytes(1, 2), f32Bytes(3, 4)
	in := &ir.Interpreter{Weights: ir.WeightMap{"w": w}}
	out, err := in.Run(p, arg(typ(dtype.F32, 2), x))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range out {
		clear(r.Data[:4])
	}
	if !bytes.Equal(x, f32Bytes(1, 2)) || !bytes.Equal(w, f32Bytes(3, 4)) {
		t.Error("the input or the weight was overwritten")
	}
	if !bytes.Equal(out[1].Data, f32Bytes(0, 6)) {
		t.Error("two results share their bytes, or a result shares a weight's")
	}
}

// TestInterpreterOverwritesTheDead uses a kernel that keeps a slice, which no
// kernel may: it finds nothing in it.
func TestInterpreterOverwritesTheDead(t *testing.T) {
	var kept []byte
	r, err := (&op.Registry{}).With(&op.Def{Name: "keep", MinArgs: 1, MaxArgs: 1, Infer: sameAsFirst, Alias: op.SameAs(0), Kernel: func(c *op.Call) error {
		kept = c.In[0].Data
		return copyFrom(0)(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, donate := range []bool{false, true} {
		p, err := ir.Parse("func @f(donate %x: f32[1]) { %y = keep(%x) return %y }", r)
		if err != nil {
			t.Fatal(err)
		}
		p.Body.Calls[0].Args[0].Donate = donate
		out, err := (&ir.Interpreter{}).Run(p, arg(typ(dtype.F32, 1), f32Bytes(7)))
		if err != nil || getF32(out[0], 0) != 7 {
			t.Fatalf("got %v, %v", out, err)
		}
		if overwritten := !bytes.Equal(kept, f32Bytes(7)); overwritten != donate {
			t.Errorf("donate %v: overwritten %v", donate, overwritten)
		}
	}
}

func TestInterpreterUsesEvalAndScratch(t *testing.T) {
	boom := errors.New("boom")
	custom, err := (&op.Registry{}).With(
		&op.Def{Name: "outside", MinArgs: 1, MaxArgs: 1, Infer: sameAsFirst},
		&op.Def{Name: "inside", MinArgs: 1, MaxArgs: 1, Infer: sameAsFirst,
			Scratch: func(*op.Sig) (int, error) { return 3, nil },
			Kernel: func(c *op.Call) error {
				if len(c.Scratch) != 3 {
					return fmt.Errorf("got %d bytes of scratch, want 3", len(c.Scratch))
				}
				return copyFrom(0)(c)
			}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ir.Parse("func @f(%x: f32[1]) {\n %y = inside(%x)\n %z = outside(%y) \"there\"\n return %z\n}", custom)
	if err != nil {
		t.Fatal(err)
	}
	x := arg(typ(dtype.F32, 1), f32Bytes(7))
	var node string
	out, err := (&ir.Interpreter{Eval: func(c *op.Call) error {
		node = c.Node
		setF32(c.Out[0], 0, getF32(c.In[0], 0)+1)
		return nil
	}}).Run(p, x)
	if err != nil || getF32(out[0], 0) != 8 || node != "there" {
		t.Errorf("got %v, %v at node %q, want 8 at node there", out, err, node)
	}
	if _, err := (&ir.Interpreter{}).Run(p, x); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("without Eval: got %v, want ErrUnsupported", err)
	}
	if _, err := (&ir.Interpreter{Eval: func(*op.Call) error { return boom }}).Run(p, x); !errors.Is(err, boom) ||
		!strings.Contains(err.Error(), `node "there"`) {
		t.Errorf("got %v, want boom at node there", err)
	}
}

func TestInterpreterErrors(t *testing.T) {
	x := arg(typ(dtype.F32, 2), f32Bytes(1, 2))
	cases := []struct{ name, text, want string }{
		{"input count", "func @f() { return }", "ir: @f: got 1 inputs, want 0"},
		{"input type", "func @f(%x: f32[3]) { return %x }", "input \"x\": got f32[2], want f32[3]"},
		{"weight", "func @f(%x: f32[2]) { weight @v: f32[2] return %x }", "ir: weight @v has no bytes"},
		{"weight size", "func @f(%x: f32[2]) { weight @w: f32[3] return %x }", "ir: weight @w: got 8 bytes, want 12 of f32[3]"},
		{"donated weight", "func @f(%x: f32[2]) { weight @w: f32[2] %y = neg(donate @w) return %y }", "ir: %y = neg(donate @w): @w is a weight, which is never donated"},
		{"declared type", "func @f(%x: f32[n]) { %y: f32[3] = neg(%x) return %y }", "ir: %y = neg(%x): %y: got f32[2], want f32[3]"},
		{"shape rule", "func @f(%x: f32[n]) { %y = rows(%x) {from = 1, to = 3} return %y }", "ir: %y = rows(%x) {from = 1, to = 3}: rows: got rows 1 to 3"},
		{"loop", "func @f(%x: f32[2]) { %y = repeat(%x) { return %x } return %y }", "ir: %y = repeat(%x) {...}: repeat has regions of a kind"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := (&ir.Interpreter{Weights: ir.WeightMap{"w": f32Bytes(1, 2)}}).Run(mustParse(t, c.text), x)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := (&ir.Interpreter{MaxBytes: 7}).Run(mustParse(t, "func @f(%x: f32[2]) { %y = neg(%x) return %y }"), x); err == nil ||
		err.Error() != "ir: %y = neg(%x): result 0: got f32[2], want at most 7 bytes: shape does not fit" {
		t.Errorf("got %v, want an error for a result above MaxBytes", err)
	}
	stacked, err := ir.Parse(`func @f(%x: f32[2]) {
		weight @limit: i64[]
		%y = loop(@limit, _) (%round: i64[], %again: bool[]) { return %again, %x }
		return %y
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	rounds := ir.WeightMap{"limit": {9, 0, 0, 0, 0, 0, 0, 0}}
	if _, err := (&ir.Interpreter{Weights: rounds, MaxBytes: 20}).Run(stacked, x); err == nil || !strings.Contains(err.Error(), "result 0: got 24 bytes after 3 rounds, want at most 20 bytes") {
		t.Errorf("got %v, want an error for a stack above MaxBytes", err)
	}
	short := arg(typ(dtype.F32, 2), f32Bytes(1))
	if _, err := (&ir.Interpreter{}).Run(mustParse(t, "func @f(%x: f32[2]) { return %x }"), short); err == nil ||
		err.Error() != "ir: input %x: got 4 bytes, want 8 of f32[2]" {
		t.Errorf("got %v", err)
	}
}
