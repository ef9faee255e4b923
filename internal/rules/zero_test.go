package rules_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// zeroPackages are those whose every function and method must bear every value.
var zeroPackages = []string{"tenure", "tensor", "eager", "shape", "memory", "dtype", "dlpack", "tensor/npy", "tensor/safetensors", "share"}

// zeroPanics may panic, and say so.
var zeroPanics = map[string]string{
	"*tensor.Tensor live.EndExport":       "ends the export of another: the caller has one",
	"*tensor.Tensor live.Show":            "calls what it is given: the caller has an export",
	"*tensor.Tensor live.Format":          "package fmt brings the state",
	"tensor.Tensor nil.Format":            "package fmt brings the state",
	"tensor.Tensor zero.Format":           "package fmt brings the state",
	"eager.OperationStats nil.MovedBytes": "a method of an embedded field",
	"dtype.DType zero.PackedAt":           "for each element, like an index",
	"dtype.DType zero.PackedPut":          "for each element, like an index",
	"memory.Handle zero.Attach":           "the caller has a use",
	"memory.Handle zero.EndExport":        "the caller has an export",
	"memory.Handle zero.EndUse":           "the caller has a use",
	"memory.Handle zero.Move":             "the caller has the lock",
	"memory.Handle zero.TryExport":        "wants a live handle, without a branch",
	"memory.Handle zero.Turns":            "the caller has the lock",
	"memory.Handle zero.Unlock":           "the caller has the lock",
	"memory.Handle zero.UnlockExport":     "the caller has an export",
	"shape.MustOf":                        "named Must: for sizes that the program knows",
}

// Operations that use tensor.Taken index its operands like a slice, so its
// methods are left out, like those of tensor.Operation.
//
// TestZeroValues calls everything that the packages export with nil, zero and
// wrong values. It must return, with an error or a zero result: nothing panics,
// and nothing hangs.
func TestZeroValues(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	harness, err := os.ReadFile("internal/rules/testdata/zero/harness.go")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(dir, "harness.go"), filepath.Join(dir, "list.go")}
	for i, text := range []string{string(harness), zeroList(t)} {
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "zero")
	if out, err := exec.Command(goTool, append([]string{"build", "-o", program}, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	model, err := filepath.Abs("testdata/alias.onnx")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(program, model)
	run.Dir, run.Env = dir, append(os.Environ(), "XDG_RUNTIME_DIR="+dir) // files that it writes by mistake go with the folder
	out, err := run.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "END\n") {
		t.Fatalf("the program ended early: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "FAULT ") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// zeroList writes the part of the program that names functions and types.
func zeroList(t *testing.T) string {
	var calls, types []string
	for _, s := range sources(t) {
		if s.isTest || !slices.Contains(zeroPackages, s.pkg) || !builtHere(s) {
			continue
		}
		name := s.file.Name.Name
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					calls = append(calls, name+"."+d.Name.Name+instance(d.Type.TypeParams))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && d.Tok == token.TYPE && ts.Name.IsExported() && !isConstraint(ts) {
						types = append(types, name+"."+ts.Name.Name+instance(ts.TypeParams))
					}
				}
			}
		}
	}
	if len(calls) < 200 || len(types) < 30 {
		t.Fatalf("found %d functions and %d types, want more", len(calls), len(types))
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"reflect\"\n\t\"strings\"\n\n")
	for _, pkg := range zeroPackages {
		fmt.Fprintf(&b, "\t%q\n", strings.TrimSuffix(module+"/"+strings.TrimPrefix(pkg, "tenure"), "/"))
	}
	b.WriteString(")\n\nfunc calls() []call {\n\treturn []call{\n")
	for _, c := range calls {
		fmt.Fprintf(&b, "\t\t{%q, %s},\n", c, c)
	}
	b.WriteString("\t}\n}\n\nfunc types() []named {\n\treturn []named{\n")
	for _, n := range types {
		fmt.Fprintf(&b, "\t\t{%q, reflect.TypeFor[%s]()},\n", n, n)
	}
	b.WriteString("\t}\n}\n\nfunc skipped(name string) bool {\n\tswitch name {\n")
	for name := range zeroPanics {
		fmt.Fprintf(&b, "\tcase %q:\n\t\treturn true\n", name)
	}
	b.WriteString("\t}\n\treturn strings.HasPrefix(name, \"tensor.Taken\") || strings.HasPrefix(name, \"tensor.Operation\")\n}\n")
	return b.String()
}

func instance(params *ast.FieldList) string {
	n := params.NumFields()
	if n == 0 {
		return ""
	}
	return "[" + strings.TrimSuffix(strings.Repeat("float32, ", n), ", ") + "]"
}

// isConstraint reports whether a type can only constrain others.
func isConstraint(ts *ast.TypeSpec) bool {
	i, ok := ts.Type.(*ast.InterfaceType)
	if !ok {
		return false
	}
	for _, f := range i.Methods.List {
		if len(f.Names) == 0 {
			return true
		}
	}
	return false
}

// builtHere reports whether a file is part of a build for this machine.
func builtHere(s source) bool {
	built, err := build.Default.MatchFile(filepath.Dir(s.path), filepath.Base(s.path))
	return built && err == nil
}
