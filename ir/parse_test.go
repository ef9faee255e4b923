package ir_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var update = flag.Bool("update", false, "rewrite the want sections of the golden files")

// golden runs f over the file "in" of every archive that matches and compares
// its result with the file "want".
func golden(t *testing.T, pattern string, f func(t *testing.T, a *txtar.Archive) string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s", pattern)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := f(t, a)
			if *update {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := section(a, "want"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func TestParseGolden(t *testing.T) {
	golden(t, "testdata/parse/*.txtar", func(t *testing.T, a *txtar.Archive) string {
		p, err := ir.Parse(section(a, "in"), testOps)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		checkFixedPoint(t, p.String(), testOps)
		return p.String()
	})
}

func checkFixedPoint(t rapid.TB, text string, r *op.Registry) {
	t.Helper()
	p, err := ir.Parse(text, r)
	if err != nil {
		t.Fatalf("the printed text does not parse: %v\n%s", err, text)
	}
	if again := p.String(); again != text {
		t.Fatalf("printed again:\n%s\nwant:\n%s", again, text)
	}
}

func mustParse(t testing.TB, text string) *ir.Program {
	t.Helper()
	p, err := ir.Parse(text, testOps)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func TestParseUnsupportedOperator(t *testing.T) {
	_, err := ir.Parse("func @f() { %a = nothing() return %a }", testOps)
	if !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

func TestParsedNamesLeaveRoomForNewOnes(t *testing.T) {
	p := mustParse(t, "func @f(%x: f32[2]) {\n %9 = relu(%x)\n return %9\n}")
	for range 12 {
		if v := p.NewValue(ir.Result, "", op.Type{}); v.Name == "9" {
			t.Fatalf("a new value got the name 9, which the program has")
		}
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(section(a, "in"))
	}
	f.Add(`func @f(%x: f32[1,3,8,8], donate %c: f32[1,2,16,8], %at: i64[1], %k: f32[1,2,1,8]) {
	weight @w: f32[4,3,3,3] weight @s: i64[2]
	%y = conv(%x, @w) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
	%r = relu(%y) %f = reshape(%r, @s) %t = transpose(%f) {perm = [1, 0]}
	%n = tensor_scatter(donate %c, %k, %at) {axis = 2}
	%a, %b = split(%k, _) {axis = 3, num_outputs = 2}
	return %t, %n, %a, %b }`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []*op.Registry{testOps, op.Builtin()} {
			p, err := ir.Parse(text, r)
			if err != nil {
				continue
			}
			checkFixedPoint(t, p.String(), r)
			if p.Hash() != p.Clone().Hash() {
				t.Errorf("the hash of a clone differs")
			}
			_ = ir.Verify(p)
		}
	})
}
