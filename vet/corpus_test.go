package vet_test

import (
	"go/ast"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/tenure-go/tenure/vet"
)

// unfound are the mistakes of the corpus that the analysis leaves alone. The
// package documentation says why.
var unfound = []string{"aliasOfAContainer", "leakInASliceOfOurs"}

// quiet is a Testing that does not look at facts and comments.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}

// reports returns the functions of a package, and the reports about each.
func reports(t *testing.T, path string) (functions []string, found map[string][]string) {
	t.Helper()
	t.Setenv("GOPROXY", "off")
	found = map[string][]string{}
	for _, r := range analysistest.Run(quiet{}, analysistest.TestData(), vet.Analyzer, path) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, file := range r.Pass.Files {
			for _, d := range file.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				functions = append(functions, fn.Name.Name)
				for _, d := range r.Diagnostics {
					if fn.Pos() <= d.Pos && d.Pos < fn.End() {
						found[fn.Name.Name] = append(found[fn.Name.Name], r.Pass.Fset.Position(d.Pos).String()+": "+d.Message)
					}
				}
			}
		}
	}
	if len(functions) == 0 {
		t.Fatalf("%s: got no functions", path)
	}
	return functions, found
}

func TestMistakesAreFound(t *testing.T) {
	functions, found := reports(t, "mistakes")
	all, missed := 0, []string(nil)
	for _, name := range functions {
		if name == "use" {
			continue
		}
		all++
		switch n := len(found[name]); {
		case n == 0:
			missed = append(missed, name)
		case n > 1:
			t.Errorf("%s: got %d reports of one mistake: %q", name, n, found[name])
		}
	}
	slices.Sort(missed)
	t.Logf("found %d of %d mistakes; left alone: %q", all-len(missed), all, missed)
	if !slices.Equal(missed, unfound) {
		t.Errorf("got %q that are not found, want %q", missed, unfound)
	}
}

func TestCorrectProgramsAreLeftAlone(t *testing.T) {
	functions, found := reports(t, "correct")
	for name, list := range found {
		t.Errorf("%s: got %q, want no report", name, list)
	}
	t.Logf("%d of %d correct functions are reported", len(found), len(functions))
}
