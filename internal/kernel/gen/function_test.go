package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// TestEditedFormula changes a constant of a formula and generates nothing.
func TestEditedFormula(t *testing.T) {
	functions := elementwise.Functions()
	at := slices.IndexFunc(functions, func(f *elementwise.Function) bool { return f.Name == "softsign" })
	edited := *functions[at]
	edited.Formula = func(b *elementwise.Builder, x elementwise.Value, _ []elementwise.Value) elementwise.Value {
		return b.Div(x, b.Add(b.Const(2), b.Abs(x)))
	}
	functions[at] = &edited
	want, err := generate(functions, elementwise.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, fault := range compare(t, os.DirFS(".."), want) {
		name, _, _ := strings.Cut(fault, ":")
		files = append(files, name)
	}
	if !slices.Equal(files, []string{"elementwise/functions_gen.go", "x86/rows_avx2_amd64.s", "x86/rows_avx512_amd64.s"}) {
		t.Errorf("got faults in %q, want them in the Go code and in the assembly of rows", files)
	}
}

// TestEditedBinaryFormula is TestEditedFormula for a function of two operands,
// whose loops are in Go only.
func TestEditedBinaryFormula(t *testing.T) {
	binaries := elementwise.Binaries()
	at := slices.IndexFunc(binaries, func(f *elementwise.Binary) bool { return f.Name == "prelu" })
	edited := *binaries[at]
	edited.Formula = func(b *elementwise.Builder, x, y elementwise.Value) elementwise.Value {
		return b.Select(b.Less(x, b.Const(1)), b.Mul(x, y), x)
	}
	binaries[at] = &edited
	want, err := generate(elementwise.Functions(), binaries)
	if err != nil {
		t.Fatal(err)
	}
	faults := compare(t, os.DirFS(".."), want)
	if len(faults) != 1 || !strings.HasPrefix(faults[0], "elementwise/binary_gen.go: ") {
		t.Errorf("got faults %q, want one in the loops of two operands", faults)
	}
}

// TestFunctionsWithoutVectorForm finds loops in Go only.
func TestFunctionsWithoutVectorForm(t *testing.T) {
	sine := &elementwise.Function{Name: "damped_sine", Formula: func(b *elementwise.Builder, x elementwise.Value, _ []elementwise.Value) elementwise.Value {
		return b.Mul(b.Sin(x), b.Exp(b.Neg(b.Abs(x))))
	}}
	files, err := generate(append(elementwise.Functions(), sine), elementwise.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		found := strings.Contains(string(text), "DampedSine") || strings.Contains(string(text), "dampedSine")
		if want := strings.HasSuffix(name, "functions_gen.go"); found != want {
			t.Errorf("%s: got the function %v, want %v", name, found, want)
		}
	}
}

// TestMadeUpFunction adds functions as one is added to the module, one of one
// operand and two of two: a row and a reference for each. The generator writes
// their kernels, and the suite tests them; of each there is another with a
// wrong formula, which fails.
func TestMadeUpFunction(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernels anew")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, kernel := t.TempDir(), filepath.Join(root, "internal/kernel")
	replaced := map[string]string{
		filepath.Join(root, "internal/elementwise/made_up.go"): filepath.Join(root, "internal/kernel/gen/testdata/row.txt"),
		filepath.Join(kernel, "ref/made_up.go"):                filepath.Join(root, "internal/kernel/gen/testdata/reference.txt"),
	}
	overlay := filepath.Join(dir, "overlay.json")
	run := func(args ...string) (string, error) {
		text, err := json.Marshal(map[string]any{"Replace": replaced})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, text, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", append([]string{args[0], "-overlay", overlay}, args[1:]...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out := filepath.Join(dir, "out")
	for _, folder := range []string{"x86", "elementwise"} {
		if err := os.MkdirAll(filepath.Join(out, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := run("run", "./internal/kernel/gen", "-out", out); err != nil {
		t.Fatalf("go run: %v\n%s", err, text)
	}
	files, err := filepath.Glob(filepath.Join(out, "*", "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got the files %q, error %v", files, err)
	}
	for _, file := range append(files, filepath.Join(out, "functions_gen.go")) {
		name, err := filepath.Rel(out, file)
		if err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(kernel, name)] = file
	}
	text, err := run("test", "-count=1", "-v", "-run", "Test(Unary|Binary)/.*/.*_made_up$", "./internal/kernel/elementwise")
	for _, name := range []string{"TestUnary/%s/%s_made_up", "TestBinary/%s/%s_pair_made_up", "TestBinary/%s/%s_damped_made_up"} {
		passed := regexp.MustCompile(fmt.Sprintf("--- PASS: "+name, `(\w+)`, "right")).FindAllString(text, -1)
		failed := regexp.MustCompile(fmt.Sprintf("--- FAIL: "+name, `(\w+)`, "wrong")).FindAllString(text, -1)
		if err == nil || len(passed) == 0 || len(failed) != len(passed) || strings.Contains(text, "--- FAIL: "+fmt.Sprintf(name, "portable", "right")) {
			t.Errorf("%s: got %d variants in which the right function passes, %d in which the wrong one fails, error %v, want all of them:\n%s", name, len(passed), len(failed), err, text)
		}
	}
}
