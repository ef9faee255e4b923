package onnx

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// refusal is a place in the importer that refuses a file.
type refusal struct {
	at     string // file:line
	call   string // the function that makes the error: Unsupported, Corruptf and so on
	format string
}

// verb matches a verb of a format.
var verb = regexp.MustCompile(`%[+#]?[a-zA-Z]`)

// pattern matches the texts that the format of a refusal makes.
func (r *refusal) pattern() *regexp.Regexp {
	parts := verb.Split(r.format, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.ReplaceAll(parts[i], "%%", "%"))
	}
	return regexp.MustCompile(strings.Join(parts, ".*"))
}

// longest returns the longest part of the text that is always the same.
func (r *refusal) longest() string {
	parts := verb.Split(r.format, -1)
	return strings.TrimSpace(slices.MaxFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
}

// refusals returns the places in the packages of the importer that refuse a
// file as not supported or as corrupt.
func refusals(t *testing.T) (list []refusal) {
	t.Helper()
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if call, format := refusalOf(c); format != "" {
					list = append(list, refusal{set.Position(c.Pos()).String(), call, format})
				}
			}
			return true
		})
	})
	return list
}

// eachFile calls f with each Go file of the importer's packages.
func eachFile(t *testing.T, f func(path string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err == nil {
			f(filepath.ToSlash(path), file, set)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refusalOf returns the function of a call that makes the error of a refusal,
// and the format of the text, "" for any other call.
func refusalOf(c *ast.CallExpr) (call, format string) {
	var name string
	switch f := c.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	at := 0
	switch name {
	case "Unsupported", "Corruptf", "tooMuchf":
	case "Errorf":
		last, ok := c.Args[len(c.Args)-1].(*ast.SelectorExpr)
		if !ok || last.Sel.Name != "ErrUnsupported" {
			return "", ""
		}
	case "add": // missing.add
		if at = 2; len(c.Args) != 4 {
			return "", ""
		}
	default:
		return "", ""
	}
	text, ok := c.Args[at].(*ast.BasicLit)
	if !ok {
		return "", ""
	}
	format, err := strconv.Unquote(text.Value)
	if err != nil {
		return "", ""
	}
	return name, strings.TrimSuffix(format, ": %w")
}

// goldenErrors returns the errors of the golden files, by file and name.
func goldenErrors(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	errors := map[string]string{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".error"); ok {
				errors[fmt.Sprintf("%s: %s", path, name)] = strings.TrimSpace(string(f.Data))
			}
		}
	}
	return errors
}

// testTexts returns the string literals of the tests of these packages.
func testTexts(t *testing.T) (texts []string) {
	t.Helper()
	eachFile(t, func(path string, file *ast.File, _ *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") || path == "refusals_test.go" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
	})
	return texts
}

// TestEveryRefusal wants an error in a golden file, or its words in a test, for
// each place that refuses a file. Operators of com.microsoft are left out: all
// that they refuse goes through Node.Unsupported, which this test checks, and
// which names the operator and the node.
func TestEveryRefusal(t *testing.T) {
	errors, texts := goldenErrors(t), testTexts(t)
	for _, r := range refusals(t) {
		if strings.HasPrefix(r.at, "valuefile.go") { // files of inputs, which tests of the root have
			continue
		}
		if strings.HasPrefix(r.at, "contrib/") {
			if r.call != "Unsupported" {
				t.Errorf("%s: %s(%q), want Unsupported, which names the operator and the node", r.at, r.call, r.format)
			}
			continue
		}
		pattern, fixed := r.pattern(), r.longest()
		found := len(fixed) > 8 && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, fixed) })
		for _, text := range errors {
			found = found || pattern.MatchString(text)
		}
		if !found {
			t.Errorf("%s: %s(%q): no test has this error: add a model to testdata/import/refusals.txtar", r.at, r.call, r.format)
		}
	}
}

// subject matches how an error names the part of the file that it is about.
var subject = regexp.MustCompile(`^onnx: (node|output|input|value|initializer|sparse initializer|tensor|sparse tensor|function|opset_import|the graph|graph)\b`)

// TestRefusalsNameTheirPlace wants in each golden error what it is about: the
// operator, its opset and the names of nodes, and what to do, of what is not
// supported; the node or value of everything else.
func TestRefusalsNameTheirPlace(t *testing.T) {
	item := regexp.MustCompile(`^(\S+( \(opset \d+\))?: )?.+ \((\d+ times: )?(".*"(, )?)+(\.\.\.)?\)$`)
	for name, text := range goldenErrors(t) {
		list, ok := strings.CutPrefix(text, "onnx: not supported: ")
		if !ok {
			if !subject.MatchString(text) {
				t.Errorf("%s: got %q, want the node or the value that it is about", name, text)
			}
			continue
		}
		list, what, _ := strings.Cut(list, `"). `)
		list += `")`
		if !strings.Contains(what, "WithOperators") || !strings.Contains(what, "WithOutputs") {
			t.Errorf("%s: got %q, which does not say what to do", name, text)
		}
		for _, known := range []string{"unknown rank", "known at load"} {
			if strings.Contains(list, known) && !strings.Contains(what, "inputs declare shapes") && !strings.Contains(what, "version_converter") {
				t.Errorf("%s: got %q, which does not say how ranks and sizes become known", name, text)
			}
		}
		for _, one := range strings.Split(list, "); ") {
			if !item.MatchString(strings.TrimSuffix(one, ")") + ")") {
				t.Errorf("%s: got %q, want OPERATOR (opset N): REASON (NODES)", name, one)
			}
		}
	}
}

// corrupt has the rule of the format that a file breaks for each error that
// calls it corrupt: what a valid file may have is not supported at worst.
var corrupt = map[string][]string{
	"the protocol buffer is damaged or cut off, or has no graph": {"got no graph: this is no ONNX model",
		"got %d of a graph's %d bytes, want all of them: the file ends early, as after a download that was cut off", "%s"},
	"a graph has outputs": {"the graph has no outputs"},
	"a node has outputs":  {"got no outputs, want one or more"},
	"names are defined once, before they are used, and are not empty": {"input %d has no name", "input %q: got a second one of that name",
		"output %q: got a second value of that name", "no input, initializer or node gives that", "the graph has a cycle: %s",
		"%s %q: got %s after one of %s of that name, want one"},
	"inputs and outputs have a type":                 {"got no type"},
	"a model imports the operator sets that it uses": {"the model imports no opset of ONNX's own domain, want one from %d to %d"},
	"attributes have one name each":                  {"attribute %q is given twice"},
	"only nodes of functions refer to attributes":    {"attribute %q refers to %q of a function, want a value outside of functions"},
	"functions are named once and do not call themselves, and have so many inputs and outputs": {"function %s: got a second one of that name",
		"function %s calls itself: %s", "function %s: got %d operands and %d outputs, want at most %d and %d", "function %s: got input %q twice"},
	"absent operands are read as optional ones": {"it is an absent operand", "it is an absent operand of the function around", "operand 1 is absent, want a value"},
	"branches and bodies have the inputs and outputs of their nodes": {"got one branch, want then_branch and else_branch", "got %d inputs, want none",
		"got %d outputs, want %d as the node has", "got no body, want one", "body: got %d inputs, want the iteration, the condition and %d values",
		"body: got %d outputs, want the condition, %d values, and what is stacked", "got %d outputs, want at most the body's %d without its condition",
		"num_scan_inputs: got %d, want 1 to the number of operands, %d", "body: got %d inputs, want one per operand, %d",
		"body: got %d outputs, want %d states or more", "got %d outputs, want at most the body's %d", "%s: got %d numbers, want %d",
		"scan_output_axes: got an axis outside of %s"},
	"tensors have as much data as their sizes say, in the field of their element type": {"raw_data at offset %d: got %d bytes, want %d for %s",
		"got %s, want %s for %s", "%s: got %d numbers, want %d for %s", "got strings outside of string_data", "got %s, want string_data",
		"string_data: got %d strings, want %d for %s", "attribute \"value\": got %s, want one element"},
	"external data have a place": {"location is missing", "%s: got %q, want a number of bytes"},
	"sparse tensors have a list of values and their indices": {"values: got %s, want one dimension", "indices: got %s, want i64",
		"indices: got %s, want [%d] or [%d,%d] for %d values in %d dimensions", "index %d: got %d, want 0 to %d"},
}

func TestCorruptFilesBreakARule(t *testing.T) {
	ruled := map[string]bool{}
	for _, formats := range corrupt {
		for _, f := range formats {
			ruled[f] = false
		}
	}
	for _, r := range refusals(t) {
		if r.call != "Corruptf" {
			continue
		}
		if _, ok := ruled[r.format]; !ok {
			t.Errorf("%s: Corruptf(%q): which rule of the format does such a file break? add it to the table", r.at, r.format)
		}
		ruled[r.format] = true
	}
	for format, used := range ruled {
		if !used {
			t.Errorf("no error has the format %q any more: remove it from the table", format)
		}
	}
}
