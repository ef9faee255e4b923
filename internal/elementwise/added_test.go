package elementwise_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var added = flag.Bool("added", false, "add a function to a copy of the module, generate what follows from its row, and test it, which builds most packages")

// A function that is added as CONTRIBUTING.md describes: its row and its
// reference, and the parts of it that the tests of each package read.
const (
	addedRow = `
	{
		Name: "squash", ONNX: "Squash", Since: 20, Doc: "computes alpha * x / (1 + |x|) of each element of x",
		Types: Floats, Params: []Param{{Name: "alpha", Default: 0.5, Min: 0.1, Max: 3}},
		Formula: func(b *Builder, x Value, p []Value) Value { return b.Mul(p[0], b.Div(x, b.Add(b.Const(1), b.Abs(x)))) },
		MaxError: Bound{Ulps: 4}, Chained: true,
	},`
	addedReference = `
	"squash": func(x, a, _ float64) float64 { return a * (x / (1 + math.Abs(x))) },`
	addedPairRow = `
	{
		Name: "square_difference", ONNX: "SquareDifference", Since: 20, Doc: "squares the differences of x and y, with broadcasting",
		Types: Signed, MaxError: Bound{Ulps: 3}, Chained: true,
		Formula: func(b *Builder, x, y Value) Value { return b.Mul(b.Sub(x, y), b.Sub(x, y)) },
	},`
	addedPairReference = `
	"square_difference": func(x, y float64) float64 { return (x - y) * (x - y) },`
	addedPairInference = "square_difference f16[2,n] f16[n] -> f16[2,n]\nsquare_difference u8[3] u8[3] -> ! operand 0\n"
	addedInference     = "squash f16[2,n] alpha=2 -> f16[2,n]\nsquash f32[3] -> f32[3] ; same(0)\nsquash i32[3] -> ! operand 0\n"
	addedImport        = `A model with a node of a function.
-- squash.model --
opset 20
input x f32[2,n]
y = Squash(x) {alpha = 0.25}
output y f32[2,n]
-- squash.ir --
func @test(%x: f32[2,n]) -> (f32[2,n]) {
  %y: f32[2,n] = squash(%x) {alpha = 0.25} "Squash#0"
  return %y
}
-- squash_old.model --
opset 19
input x f32[2]
y = Squash(x)
output y f32[2]
-- squash_old.error --
onnx: not supported: Squash (opset 19): the operator exists from opset 20 on ("Squash#0"). onnx.version_converter converts many models to another opset. A program can bring operators (WithOperators), and choose outputs that need none of these nodes (WithOutputs)
`
)

// TestAddedFunction adds a function to a copy of the module in two places, runs
// the generators, and runs the tests of everything that follows from its row. A
// formula that is not the function then fails.
func TestAddedFunction(t *testing.T) {
	if !*added {
		t.Skip("builds most packages of a copy of the module: go test ./internal/elementwise -added, as .ci/run does")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	const schemas = "internal/ortdiff/testdata/attributes.txt" // of an ONNX Runtime that has the operator
	tree := copyModule(t)
	tree.insert(t, "internal/elementwise/activation.go", "var activations = []*Function{", addedRow)
	tree.insert(t, "internal/kernel/ref/elementwise.go", "var withParameters = map[string]func(x, a, b float64) float64{", addedReference)
	tree.insert(t, "internal/elementwise/binary.go", "var binaries = []*Binary{", addedPairRow)
	tree.insert(t, "internal/kernel/ref/elementwise.go", "var ofTwo = map[string]func(x, y float64) float64{", addedPairReference)
	tree.write(t, "op/testdata/infer/squash.txt", addedInference)
	tree.write(t, "op/testdata/infer/square_difference.txt", addedPairInference)
	tree.write(t, "internal/onnx/testdata/import/squash.txtar", addedImport)
	tree.write(t, schemas, tree.read(t, schemas)+"SquareDifference 2\nSquash 1 alpha\n")

	tree.pass(t, "generate", "./internal/kernel/gen", "./eager", "./internal/conformance")
	tree.has(t, "docs/operators.md", "| `squash` |")
	tree.has(t, "docs/onnx-support.md", "| Squash | 20-28 | `squash` |")
	tree.has(t, "eager/operations_gen.go", "\nfunc Squash(")
	tree.has(t, "docs/operators.md", "| `square_difference` |")
	tree.has(t, "docs/onnx-support.md", "| SquareDifference | 20-28 | `square_difference` |")
	tree.has(t, "eager/operations_gen.go", "\nfunc SquareDifference(")

	out := tree.pass(t, "test", "-v", "-run", strings.Join([]string{
		"TestFunctions", "TestExpressions", "TestInferTypes/squash", "TestBuiltinOperators/squash", "TestRefilledTasks/squash", "TestImportGolden/squash",
		"TestUnary/squash", "TestUnary/.*/squash", "TestBinar.*", "TestInferTypes/square_difference", "TestBuiltinOperators/square_difference",
		"TestRefilledTasks/square_difference", "TestEvery", "TestGenerated", "TestCommitted",
	}, "|"), "./internal/elementwise", "./op/...", "./internal/onnx", "./internal/compute", "./internal/kernel/elementwise", "./internal/kernel/gen",
		"./internal/ortdiff", "./eager")
	for _, test := range []string{
		"TestFunctions", "TestExpressions", "TestInferTypes/squash", "TestImportGolden/squash", "TestUnary/squash/f32", "TestUnary/squash/bf16",
		"TestEveryChainFunctionHasAKernel", "TestEverythingIsDrawn", "TestCommitted", "TestGenerated", "TestUnary/portable/squash", "TestBuiltinOperators/squash", "TestRefilledTasks/squash",
		"TestBinaries", "TestBinaryFormulas", "TestBinary/portable/square_difference", "TestBinary/square_difference/f32", "TestBinary/square_difference/bf16",
		"TestBinary/square_difference/i8", "TestInferTypes/square_difference", "TestBuiltinOperators/square_difference", "TestRefilledTasks/square_difference",
	} {
		if !strings.Contains(out, "--- PASS: "+test+" ") {
			t.Errorf("%s did not pass:\n%s", test, out)
		}
	}

	tree.replace(t, "internal/elementwise/activation.go", "b.Mul(p[0], b.Div(x, b.Add(b.Const(1)", "b.Mul(p[0], b.Div(x, b.Add(b.Const(1.5)")
	tree.replace(t, "internal/elementwise/binary.go", "b.Mul(b.Sub(x, y), b.Sub(x, y))", "b.Mul(b.Sub(x, y), b.Add(x, y))")
	tree.pass(t, "generate", "./internal/kernel/gen")
	for _, c := range []struct{ pkg, test, fails string }{
		{"./internal/compute", "TestUnary/squash", "TestUnary/squash/f32"},
		{"./internal/kernel/elementwise", "TestUnary/.*/squash", "TestUnary/portable/squash"},
		{"./internal/compute", "TestBinary/square_difference", "TestBinary/square_difference/f32"},
		{"./internal/kernel/elementwise", "TestBinary/.*/square_difference", "TestBinary/portable/square_difference"},
		{"./internal/kernel/elementwise", "TestBinaryFormulas", "TestBinaryFormulas"},
	} {
		if out, err := tree.run("test", "-run", c.test, c.pkg); err == nil || !strings.Contains(out, "--- FAIL: "+c.fails+" ") {
			t.Errorf("%s with another formula: got error %v, want that it fails:\n%s", c.fails, err, out)
		}
	}
}

// module is a copy of the module in a folder.
type module string

// copyModule copies the module without the modules inside it.
func copyModule(t *testing.T) module {
	t.Helper()
	root, tree := filepath.Join("..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if rel != "." && (err == nil || d.Name()[0] == '.') {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(tree, rel), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tree, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return module(tree)
}

// run runs the go command in the copy.
func (m module) run(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = string(m)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m module) pass(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.run(args...)
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (m module) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(string(m), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (m module) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(m), filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace replaces a text that stands once in a file.
func (m module) replace(t *testing.T, name, old, text string) {
	t.Helper()
	before, after, ok := strings.Cut(m.read(t, name), old)
	if !ok || strings.Contains(after, old) {
		t.Fatalf("%s: got no %q or several, want one", name, old)
	}
	m.write(t, name, before+text+after)
}

// insert inserts text behind another.
func (m module) insert(t *testing.T, name, behind, text string) {
	t.Helper()
	m.replace(t, name, behind, behind+text)
}

func (m module) has(t *testing.T, name, text string) {
	t.Helper()
	if !strings.Contains(m.read(t, name), text) {
		t.Errorf("%s does not have %q", name, text)
	}
}
