package rules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readPromised returns the packages that ARCHITECTURE.md promises.
func readPromised(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```promised\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("ARCHITECTURE.md has no block ```promised")
	}
	return strings.FieldsFunc(string(m[1]), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// TestPromised checks that promised packages use only each other's types, and
// that the comments of the other public packages say that they are not
// promised.
func TestPromised(t *testing.T) {
	promised := readPromised(t)
	comments := map[string]string{} // of importable packages
	for _, s := range everySource(t) {
		if s.isTest || strings.Contains("/"+s.pkg+"/", "/internal/") || strings.HasPrefix(s.pkg, "cmd/") || strings.HasPrefix(s.pkg, "python") || free(s.pkg) || s.pkg == "share/model" {
			continue
		}
		comments[s.pkg] += s.file.Doc.Text()
		if slices.Contains(promised, s.pkg) {
			for _, fault := range unpromisedTypes(s, promised) {
				t.Errorf("%s: %s", s.path, fault)
			}
		}
	}
	for _, pkg := range promised {
		if _, ok := comments[pkg]; !ok {
			t.Errorf("ARCHITECTURE.md promises %s, which is no public package", pkg)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(comments)) {
		says := strings.Contains(strings.Join(strings.Fields(comments[pkg]), " "), "its API is not promised: see ARCHITECTURE.md")
		switch {
		case slices.Contains(promised, pkg) && says:
			t.Errorf("package %s: ARCHITECTURE.md promises it, its comment says that it is not promised", pkg)
		case !slices.Contains(promised, pkg) && !says:
			t.Errorf("package %s: ARCHITECTURE.md does not promise it, its comment does not say so", pkg)
		}
	}
}

// maxOpening is how many lines of a package comment come before its first
// heading at most: with the example, one screen.
const maxOpening = 30

// TestPromisedPackagesOpenWithAnExample holds the comments of promised packages
// to a summary and an example before any heading.
func TestPromisedPackagesOpenWithAnExample(t *testing.T) {
	promised := readPromised(t)
	for _, s := range everySource(t) {
		text := s.file.Doc.Text()
		if s.isTest || !strings.HasPrefix(text, "Package ") || !slices.Contains(promised, s.pkg) {
			continue
		}
		opening, _, _ := strings.Cut(text, "\n# ")
		if n := strings.Count(opening, "\n"); n > maxOpening {
			t.Errorf("%s: the comment has %d lines before its first heading, want at most %d", s.path, n, maxOpening)
		}
		if !strings.Contains(opening, "\n\t") {
			t.Errorf("%s: the comment has no example before its first heading", s.path)
		}
	}
}

// TestOnlyPromisedPackagesAreUsed holds the command, the examples and the
// benchmarks to what other programs can use. Packages cuda, serve and
// serve/sampling are public, too, and not promised yet.
func TestOnlyPromisedPackagesAreUsed(t *testing.T) {
	promised := readPromised(t)
	for _, s := range everySource(t) {
		if !free(s.pkg) && !strings.HasPrefix(s.pkg, "cmd/") && s.pkg != "internal/command" {
			continue
		}
		for _, imp := range s.imports {
			if !slices.Contains(promised, imp) && !strings.Contains("/"+imp, "/internal/") && !free(imp) && imp != "python/pythontest" && imp != "cuda" && imp != "serve" && imp != "serve/sampling" {
				t.Errorf("%s imports %s, which is not promised", s.path, imp)
			}
		}
	}
}

// unpromisedTypes returns the exported declarations of a file that name
// something of a package of this module that is not promised.
func unpromisedTypes(s source, promised []string) (faults []string) {
	names := map[string]string{} // packages by their name in the file
	for _, spec := range s.file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		pkg := packageOf(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"))
		if !strings.HasPrefix(path, module) || slices.Contains(promised, pkg) {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = pkg
	}
	look := func(what string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if list, ok := n.(*ast.FieldList); ok {
				for _, f := range list.List { // fields and methods that are not exported do not count
					if len(f.Names) > 0 && !ast.IsExported(f.Names[0].Name) && strings.HasPrefix(what, "type ") {
						f.Type = ast.NewIdent("_")
					}
				}
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
					faults = append(faults, fmt.Sprintf("%s names %s.%s, which is not promised", what, x.Name, sel.Sel.Name))
				}
			}
			return true
		})
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if ast.IsExported(d.Name.Name) && (d.Recv == nil || ast.IsExported(receiver(d))) {
				look("func "+d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if ast.IsExported(spec.Name.Name) {
						look("type "+spec.Name.Name, spec.Type)
					}
				case *ast.ValueSpec:
					if ast.IsExported(spec.Names[0].Name) && spec.Type != nil {
						look("value "+spec.Names[0].Name, spec.Type)
					}
				}
			}
		}
	}
	return faults
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestUnpromisedTypesAreFound gives the rule one declaration of each kind.
func TestUnpromisedTypesAreFound(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", `package x

import (
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/plan"
)

type hidden struct{ E *exec.Slot }
type T struct {
	P *plan.Plan
	e *exec.Slot
}
type Open struct{ E *exec.Slot }
type Alias = exec.Runner

var V exec.Options

func F(e *exec.Slot) { var _ exec.Slot }
func f(e *exec.Slot) {}
func (t T) Method() (e exec.Slot) { return e }
func (h hidden) Method() (e exec.Slot) { return e }
func Good(p *plan.Plan) { var _ exec.Slot }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := unpromisedTypes(source{path: "x.go", file: file, fset: fset}, []string{"plan"})
	want := []string{"type Open", "type Alias", "value V", "func F", "func Method"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want one for each of %q", got, want)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w+" ") {
			t.Errorf("got %q, want it about %s", got[i], w)
		}
	}
}
