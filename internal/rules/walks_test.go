package rules_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// step is a declaration and its file, as a walk names them.
var step = regexp.MustCompile("`([A-Za-z][A-Za-z0-9.]*)`,? \\(?`([a-z0-9_/]+\\.go)`")

// TestWalks looks up every declaration that a walk of ARCHITECTURE.md names in
// the file that it names, and holds a walk to five steps.
func TestWalks(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, found := strings.Cut(string(text), "\n## Walks\n")
	walks, _, closed := strings.Cut(walks, "\n## ")
	if !found || !closed {
		t.Fatal("ARCHITECTURE.md has no section Walks")
	}
	declared := map[string]map[string]bool{}
	for _, s := range sources(t) {
		declared[s.path] = map[string]bool{}
		for _, d := range s.file.Decls {
			for _, name := range namesOf(d) {
				declared[s.path][name] = true
			}
		}
	}
	for _, walk := range strings.Split(walks, "\n**")[1:] {
		title, _, _ := strings.Cut(walk, "\n")
		steps := step.FindAllStringSubmatch(walk, -1)
		if len(steps) < 3 || strings.Contains(walk, "\n6. ") {
			t.Errorf("%s: got %d declarations with their files, want three or more, in five steps at most", title, len(steps))
		}
		for _, s := range steps {
			_, unqualified, _ := strings.Cut(s[1], ".") // of package.Name
			if here := declared[s[2]]; !here[s[1]] && !here[unqualified] {
				t.Errorf("%s: %s declares no %s", title, s[2], s[1])
			}
		}
	}
}

// namesOf returns the names that a declaration declares: Name, or Type.Name for
// a method.
func namesOf(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names = append(names, id.Name)
				}
			}
		}
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && names == nil { // the first one is the type, others its parameters
				names = []string{id.Name + "." + d.Name.Name}
			}
			return true
		})
	}
	return names
}
