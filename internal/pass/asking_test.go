package pass_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files that may read sizes: where questions are asked and answered, what a
// structure repeats step by step, and what runs when a model is read, before
// there is one.
var mayRead = []string{"sizes.go", "fold.go", "budget.go", "recorder.go", "visit.go", "looptypes.go", "deciding.go", "structure.go", "aliases.go", "ranges.go",
	"formulas.go", "formularules.go", "formulawindows.go", "formulacontents.go", "box.go", "boxaliases.go", "rows.go", "unstack.go", "unstack_reshape.go",
	"quantised.go", "quantised_function.go", "quantised_move.go", "quantised_product.go", "quantised_arithmetic.go", "dequantised.go"}

// The names that a file may use beyond those that all may. Outputs, marks and
// donate read the alias rules, which a structure evaluates again for every call
// (aliases.go); freeze reads whether values have sizes, which a structure
// requires to stay; context makes constants and knows them.
var mayName = map[string][]string{
	"outputs.go": {"Sig", "known", "ir.ResultFaults", "ir.RegionFaults", "op.Sig", "Type"},
	"donate.go":  {"Sig", "known", "AliasOf", "AliasAlone", "op.AliasKind", "op.Permute", "IsStatic", "ir.NewDonations", "ir.Donations", "ir.Violation", "op.Sig", "Type"},
	"marks.go":   {"known", "ir.NewDonations"},
	"freeze.go":  {"IsStatic", "Type", "Bound", "compute.NeedsValue", "ir.LoopArgs"},
	"context.go": {"Bytes", "Type", "Bound"},
	"affine.go":  {"shape.Of"},
	"doc.go":     nil,
}

// Names that lead to sizes, or to constants, which may depend on sizes.
var leads = []string{"Type", "Shape", "Sig", "Bytes", "Known", "KnownInts", "known", "AliasOf", "ViewOf", "MayAlias", "AliasAlone", "IsStatic", "NumElements",
	"Sizes", "Size", "Dim", "Dims", "Strides", "ReduceAxes", "AppendReduceAxes", "SliceAxes", "AppendSliceAxes", "Infer", "Bound", "Largest", "Extents", "Overlap"}

// The names of the compiler's other packages that files may use: none of them
// has sizes.
var plain = []string{"op.Attrs", "op.Builtin", "op.ChainStep", "op.ChainFuncs", "op.Variadic", "op.View", "op.Type", "op.Def",
	"ir.Program", "ir.Block", "ir.Call", "ir.Value", "ir.Operand", "ir.Weight", "ir.Weights", "ir.Param", "ir.Result"}

// TestPassesAskForSizes refuses passes that learn a size in another way than by
// a question that is recorded as a guard.
func TestPassesAskForSizes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files (%v), want those of the package", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(mayRead, file) {
			continue
		}
		for _, fault := range readings(t, file, nil) {
			t.Error(fault)
		}
	}
}

// TestReadingsAreFound breaks the rule in the ways that are likely.
func TestReadingsAreFound(t *testing.T) {
	for _, body := range []string{
		"return a.Type == b.Type",
		"return a.Type.Shape.Rank() > 2",
		"t := a.Type; return t.IsStatic()",
		"return a.Def.Sig(nil).Args[0] == a.Def.Sig(nil).Results[0]",
		"data, _ := c.known(a); return len(data) > 2",
		"data, _ := c.Constants.Bytes(a); return len(data) > 2",
		"return ir.ResultFaults(c.Program, nil)[0] == \"\"",
		"_, _, ok := op.BlockOf(nil, nil); return ok",
	} {
		src := "package pass\nfunc (c *Context) f(a, b *ir.Value) bool { " + body + " }\n"
		if len(readings(t, "new.go", src)) == 0 {
			t.Errorf("%s: got no fault, want one", body)
		}
	}
	if got := readings(t, "new.go", "package pass\nfunc f(c *Context, a, b *ir.Value) bool { return a.Type.DType == b.Type.DType && c.sameType(a, b) }\n"); len(got) > 0 {
		t.Errorf("a question: got %v, want no fault", got)
	}
}

// readings returns where a file names what leads to sizes. src is its text, nil
// to read it.
func readings(t *testing.T, file string, src any) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	element := map[ast.Node]bool{} // x.Type of x.Type.DType
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if s.Sel.Name == "DType" {
			element[s.X] = true
		}
		name := s.Sel.Name
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"op", "ir", "shape", "compute"}, x.Name) {
			name = x.Name + "." + name
			if slices.Contains(plain, name) || slices.Contains(mayName[file], name) {
				return true
			}
		} else if element[s] || !slices.Contains(leads, name) || slices.Contains(mayName[file], name) {
			return true
		}
		faults = append(faults, fmt.Sprintf("%s: %s may depend on sizes: ask by a question of sizes.go", set.Position(s.Pos()), name))
		return true
	})
	return faults
}
