package rules_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tenure-go/tenure"

// source is one Go file of this module.
type source struct {
	path    string // from the root, with slashes
	pkg     string // directory from the root; "tenure" for the root
	file    *ast.File
	fset    *token.FileSet
	lines   int
	isTest  bool
	isGen   bool
	imports []string // packages of this module, by directory
}

var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sources parses every Go file of the module, whatever its build tags.
func sources(t *testing.T) []source {
	return sourcesWith(t, func(dir string) bool { return !isModule(dir) })
}

// everySource is sources with those of the modules inside this one.
func everySource(t *testing.T) []source { return sourcesWith(t, func(string) bool { return true }) }

// sourcesWith parses the Go files of every folder that enter wants.
func sourcesWith(t *testing.T, enter func(dir string) bool) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || !enter(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		s, err := parse(p)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func parse(p string) (source, error) {
	text, err := os.ReadFile(p)
	if err != nil {
		return source{}, err
	}
	s := source{path: filepath.ToSlash(p), fset: token.NewFileSet(), lines: bytes.Count(text, []byte("\n"))}
	s.isTest = strings.HasSuffix(p, "_test.go")
	s.isGen = generatedHeader.Match(text)
	s.pkg = packageOf(path.Dir(s.path))
	if s.file, err = parser.ParseFile(s.fset, p, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return s, err
	}
	for _, spec := range s.file.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if name == module || strings.HasPrefix(name, module+"/") {
			s.imports = append(s.imports, packageOf(strings.TrimPrefix(strings.TrimPrefix(name, module), "/")))
		}
	}
	return s, nil
}

func packageOf(dir string) string {
	if dir == "." || dir == "" {
		return "tenure"
	}
	return dir
}

// lattice is an import rule of ARCHITECTURE.md.
type lattice struct {
	below map[string][]string // the packages that a package may import directly by rule
	never [][2]string
}

// readLattice reads the block of ARCHITECTURE.md that is fenced by ```fence.
func readLattice(t *testing.T, fence string) *lattice {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```"+fence+"\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatalf("ARCHITECTURE.md has no block ```%s", fence)
	}
	l := &lattice{below: map[string][]string{}}
	lines := bufio.NewScanner(strings.NewReader(block))
	for lines.Scan() {
		if err := l.add(lines.Text()); err != nil {
			t.Fatalf("ARCHITECTURE.md: %v", err)
		}
	}
	return l
}

func (l *lattice) add(line string) error {
	if names, ok := strings.CutSuffix(line, ": nothing of ours"); ok {
		for _, n := range list(names) {
			l.name(n)
		}
		return nil
	}
	if pairs, ok := strings.CutPrefix(line, "never: "); ok {
		for _, p := range list(pairs) {
			from, to, ok := strings.Cut(p, " -> ")
			if !ok {
				return fmt.Errorf("got %q, want a -> b", p)
			}
			l.never = append(l.never, [2]string{from, to})
		}
		return nil
	}
	chain := strings.Split(line, " < ")
	if len(chain) < 2 {
		return fmt.Errorf("got %q, want a < b", line)
	}
	for i, names := range chain {
		for _, n := range list(names) {
			l.name(n)
			if i > 0 {
				l.below[n] = append(l.below[n], list(chain[i-1])...)
			}
		}
	}
	return nil
}

// name makes pkg known to the rule.
func (l *lattice) name(pkg string) {
	if _, ok := l.below[pkg]; !ok {
		l.below[pkg] = nil
	}
}

func list(s string) []string { return strings.Split(s, ", ") }

// reach returns every package that pkg may import.
func (l *lattice) reach(pkg string) map[string]bool {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(p string) {
		for _, q := range l.below[p] {
			if !seen[q] {
				seen[q] = true
				visit(q)
			}
		}
	}
	visit(pkg)
	return seen
}

// free packages may import any promised package and are imported by none.
func free(pkg string) bool {
	return strings.HasPrefix(pkg, "examples") || strings.HasPrefix(pkg, "bench")
}

func TestImportRule(t *testing.T) {
	l := readLattice(t, "imports")
	for pkg := range l.below {
		if l.reach(pkg)[pkg] {
			t.Errorf("the rule lets %s import itself", pkg)
		}
	}
	for _, n := range l.never {
		if l.reach(n[0])[n[1]] {
			t.Errorf("the rule lets %s import %s, which it says must never be", n[0], n[1])
		}
	}
	for _, s := range everySource(t) {
		if fault := l.fault(s); fault != "" {
			t.Errorf("%s: %s", s.path, fault)
		}
	}
}

func (l *lattice) fault(s source) string {
	if free(s.pkg) {
		own, _, _ := strings.Cut(s.pkg, "/")
		for _, imp := range s.imports {
			if !strings.HasPrefix(imp, own+"/") && (free(imp) || strings.Contains(imp, "internal/")) {
				return "imports " + imp + ", which is not public"
			}
		}
		return ""
	}
	if _, named := l.below[s.pkg]; !named {
		return "package " + s.pkg + " is not named in the import rule of ARCHITECTURE.md"
	}
	may := l.reach(s.pkg)
	for _, imp := range s.imports {
		ok := may[imp]
		if s.isTest {
			ok = ok || imp == s.pkg || slices.Contains([]string{"memory/memorytest", "internal/kernel/ref", "internal/kernel/kerneltest", "op/optest", "internal/opcases", "internal/weights", "python/pythontest",
				"internal/modeltest", "internal/onnxtest", "internal/onnx/wire/wiretest", "cuda/internal/driver/drivertest", "cuda/internal/ptx", "cuda/internal/fake"}, imp)
			ok = ok || s.pkg == "cuda" && (imp == "eager" || imp == "dlpack/capi") // the same operations on the host, and other libraries
			// A test in a package of its own may import any package that builds
			// on the tested one.
			ok = ok || strings.HasSuffix(s.file.Name.Name, "_test") && l.reach(imp)[s.pkg]
		}
		if !ok {
			return "imports " + imp + "; the import rule of ARCHITECTURE.md does not allow it for " + s.pkg
		}
	}
	return ""
}

// TestImportRuleRejects breaks the rule in each way once.
func TestImportRuleRejects(t *testing.T) {
	l := readLattice(t, "imports")
	file := &ast.File{Name: ast.NewIdent("x")}
	for _, s := range []source{
		{pkg: "plan", imports: []string{"ir"}, file: file},
		{pkg: "internal/plan/check", imports: []string{"internal/plan/solve"}, file: file},
		{pkg: "tensor", imports: []string{"op"}, file: file, isTest: true},
		{pkg: "internal/exec", imports: []string{"internal/onnx"}, file: file},
		{pkg: "nowhere", file: file},
		{pkg: "examples/first", imports: []string{"internal/cpu"}, file: file},
		{pkg: "examples/first", imports: []string{"bench/internal/suite"}, file: file},
		{pkg: "bench/models", imports: []string{"examples/first"}, file: file},
		{pkg: "internal/exec", imports: []string{"bench/internal/suite"}, file: file, isTest: true},
	} {
		if l.fault(s) == "" {
			t.Errorf("package %s importing %v: got no fault, want one", s.pkg, s.imports)
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	docs, examples := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
					examples[s.pkg] = true
				}
			}
			continue
		}
		docs[s.pkg] += s.file.Doc.Text()
	}
	for _, pkg := range slices.Sorted(maps.Keys(docs)) {
		if len(docs[pkg]) < 80 {
			t.Errorf("package %s: got a package comment of %d characters, want one that says what it gives, who owns memory, and its concurrency", pkg, len(docs[pkg]))
		}
		public := !strings.Contains(pkg, "internal/") && !strings.HasPrefix(pkg, "cmd/") && !free(pkg)
		if public && !examples[pkg] {
			t.Errorf("package %s: got no Example function, want one", pkg)
		}
	}
}

// TestBudgets holds files to 1,000 lines and functions to 70, generated files
// and tests' functions aside. A function that is one table or one flat switch
// may be longer.
func TestBudgets(t *testing.T) {
	for _, s := range sources(t) {
		if s.isGen {
			continue
		}
		if s.lines > 1000 {
			t.Errorf("%s: got %d lines, want at most 1000", s.path, s.lines)
		}
		if s.isTest {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.linesOf(f.Body); n > 72 && !s.isTable(f.Body, n) {
				t.Errorf("%s: %s has %d lines, want at most 70", s.path, f.Name.Name, n)
			}
		}
	}
}

func (s source) linesOf(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// isTable reports whether one switch or one literal makes up most of a body
// of n lines.
func (s source) isTable(body *ast.BlockStmt, n int) bool {
	table := false
	ast.Inspect(body, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.CompositeLit:
			table = table || s.linesOf(node)*5 >= n*4
		}
		return !table
	})
	return table
}

// TestSpeaksOfItself keeps out of the sources what belongs to one person's
// machine or to a list of things to do.
func TestSpeaksOfItself(t *testing.T) {
	forbidden := regexp.MustCompile(`["` + "`" + `](/home|/root|/Users)/|TODO|FIXME|\bXXX\b`)
	for _, s := range sources(t) {
		if s.path == "internal/rules/rules_test.go" {
			continue
		}
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if m := forbidden.Find(text); m != nil {
			t.Errorf("%s: contains %q", s.path, m)
		}
	}
}
