package ir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestVerifyRejects holds each fixture to its exact error. A fixture is a
// program that parses and, where the text form cannot hold the fault, edits.
func TestVerifyRejects(t *testing.T) {
	golden(t, "testdata/verify/*.txtar", func(t *testing.T, a *txtar.Archive) string {
		p, err := ir.Parse(section(a, "in"), testOps)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(section(a, "edit")) {
			edit(t, p, strings.Fields(line))
		}
		err = ir.Verify(p)
		if err == nil {
			t.Fatalf("accepted:\n%s", p)
		}
		_ = p.String() // malformed programs print
		number := invariantOf(t)
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^V%d(, line \d+)?: `, number)).MatchString(err.Error()) {
			t.Errorf("got %v, want a violation of V%d", err, number)
		}
		return err.Error() + "\n"
	})
}

// invariantOf reads the number from the name of a fixture: v07-kind.
func invariantOf(t *testing.T) int {
	_, name, _ := strings.Cut(t.Name(), "/")
	digits, _, _ := strings.Cut(strings.TrimPrefix(name, "v"), "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatalf("the fixture %s is not named after an invariant", name)
	}
	return n
}

// edit breaks a program: "rename %a b" and so on, see the cases.
func edit(t *testing.T, p *ir.Program, words []string) {
	t.Helper()
	v := find(t, p, words[1])
	switch words[0] {
	case "rename":
		v.Name = strings.Trim(words[2], `"`)
	case "id":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		v.ID = n
	case "type":
		v.Type = op.Type{}
		if words[2] != "none" {
			v.Type = parseType(t, words[2])
		}
	case "mark":
		v.Donated = true
	case "unlink":
		v.Def = nil
	case "index":
		v.Index++
	case "give": // as a parameter too
		p.Body.Params = append(p.Body.Params, v)
	case "return-nothing":
		p.Body.Results[0] = nil
	case "operator":
		v.Def.Op = &op.Def{Name: words[2], Infer: v.Def.Op.Infer}
		if words[2] == "none" {
			v.Def.Op = nil
		}
	case "rule-less":
		v.Def.Op = &op.Def{Name: v.Def.Op.Name}
	case "no-call":
		p.Body.Calls[0] = nil
	case "no-region":
		v.Def.Regions[0] = nil
	case "same-region":
		v.Def.Regions[1] = v.Def.Regions[0]
	case "drop-region":
		v.Def.Regions = v.Def.Regions[:1]
	case "drop-operand":
		v.Def.Args = v.Def.Args[:len(v.Def.Args)-1]
	case "absent-operand":
		v.Def.Args[0].Value = nil
	case "operand":
		v.Def.Args[0].Value = find(t, p, words[2])
	case "donate-absent":
		v.Def.Args = append(v.Def.Args, ir.Operand{Donate: true})
	case "attribute":
		v.Def.Attrs = append(op.Attrs{{Name: words[2], Value: words[3]}}, v.Def.Attrs...)
	case "repeat-call":
		p.Body.Calls = append(p.Body.Calls, v.Def)
	case "last": // moves the call to the end of the body
		i := slices.Index(p.Body.Calls, v.Def)
		p.Body.Calls = append(slices.Delete(slices.Clone(p.Body.Calls), i, i+1), v.Def)
	default:
		t.Fatalf("unknown edit %q", words[0])
	}
}

func find(t *testing.T, p *ir.Program, text string) *ir.Value {
	t.Helper()
	all := append(slices.Clone(p.Weights), p.Body.Params...)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		all = append(all, c.Results...)
		for _, r := range c.Regions {
			all = append(all, r.Params...)
		}
	})
	for _, v := range all {
		if v != nil && v.String() == text {
			return v
		}
	}
	t.Fatalf("no value %s in\n%s", text, p)
	return nil
}

func parseType(t *testing.T, text string) op.Type {
	t.Helper()
	p := mustParse(t, "func @t(%x: "+text+") { return }")
	return p.Body.Params[0].Type
}

// TestEveryInvariantHasAFixture reads the list at the head of verify.go.
func TestEveryInvariantHasAFixture(t *testing.T) {
	src, err := os.ReadFile("verify.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^//\tV(\d+) `).FindAllStringSubmatch(string(src), -1)
	if len(listed) < 24 {
		t.Fatalf("found %d invariants in verify.go, want 24 or more", len(listed))
	}
	for i, m := range listed {
		if m[1] != strconv.Itoa(i+1) {
			t.Errorf("invariant %d is numbered V%s", i+1, m[1])
		}
		if fixtures, _ := filepath.Glob(fmt.Sprintf("testdata/*/v%02d-*.txtar", i+1)); len(fixtures) == 0 {
			t.Errorf("V%s has no fixture that breaks it", m[1])
		}
	}
}

func TestVerifyErrorsAreTyped(t *testing.T) {
	p := mustParse(t, "func @f(%x: f32[2], %y: f32[2]) {\n %z = add(%x, %y)\n return %z\n}")
	p.Body.Params[1].Type.Shape = shape.MustOf(3)
	p.Body.Params[1].Name = "x"
	err := ir.Verify(p)
	var v *ir.Violation
	if !errors.As(err, &v) || v.Invariant != 4 || !errors.Is(err, shape.ErrShape) {
		t.Errorf("got %v, want V4 and V8 with ErrShape", err)
	}
	if got := strings.Count(err.Error(), "\n"); got != 1 {
		t.Errorf("got %d lines, want both violations: %v", got+1, err)
	}
}

func TestVerifyKnownIsExact(t *testing.T) {
	p := mustParse(t, `func @f(donate %x: f32[8]) {
  weight @low: i64[2]
  weight @high: i64[2]
  %a: f32[4] = dyn_rows(%x, @low)
  %b: f32[4] = dyn_rows(%x, @high)
  %c = relu(donate %a)
  %d = add(%b, %c)
  return %d
}`)
	if err := ir.Verify(p); err == nil || !strings.Contains(err.Error(), "V14, line 6: %c = relu(donate %a) donates %a, but %b may share its bytes") {
		t.Errorf("without the bounds: got %v, want V14", err)
	}
	table := ir.WeightMap{"low": i64Bytes(0, 4), "high": i64Bytes(4, 8)}
	if err := ir.VerifyKnown(p, ir.Known(table)); err != nil {
		t.Errorf("with bounds that do not overlap: %v", err)
	}
	table["high"] = i64Bytes(3, 7)
	if err := ir.VerifyKnown(p, ir.Known(table)); err == nil {
		t.Error("accepted with bounds that overlap")
	}
	table["high"] = i64Bytes(3, 8)
	if err := ir.VerifyKnown(p, ir.Known(table)); err == nil || !strings.Contains(err.Error(), "V8, line 5: %b = dyn_rows(%x, @high): got type f32[4] of %b, want f32[5]") {
		t.Errorf("with other bounds than the type says: got %v, want V8", err)
	}
}

// TestVerifyDonationOfTypesToCome accepts what some sizes allow, and refuses
// it once the sizes are known not to.
func TestVerifyDonationOfTypesToCome(t *testing.T) {
	const text = "func @f(donate %x: f32[n], %y: f32[m]) {\n %z = add(donate %x, %y)\n return %z\n}"
	p := mustParse(t, text)
	if err := ir.Verify(p); err != nil {
		t.Error(err)
	}
	for n, ok := range map[int]bool{4: true, 1: false} {
		p := mustParse(t, text)
		if err := p.Bind(parseType(t, fmt.Sprintf("f32[%d]", n)), parseType(t, "f32[4]")); err != nil {
			t.Fatal(err)
		}
		if err := ir.Infer(p, nil); err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(p); (err == nil) != ok {
			t.Errorf("n = %d: got %v", n, err)
		}
	}
}
