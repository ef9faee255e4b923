// Package python_test runs the tests of the Python client, so that `go test
// ./...` means them too.
package python_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/python/pythontest"
)

// groups is in how many processes the tests run beside one another: most of
// their time they wait for other processes.
const groups = 3

// TestClient runs pytest.
func TestClient(t *testing.T) {
	python := pythontest.Interpreter(t, "numpy", "pytest")
	files, err := filepath.Glob(filepath.Join("tests", "test_*.py"))
	if err != nil || len(files) < groups {
		t.Fatalf("got %d files of tests, %v, want at least %d", len(files), err, groups)
	}
	for first := range groups {
		var group []string
		for i := first; i < len(files); i += groups {
			group = append(group, files[i])
		}
		t.Run(filepath.Base(group[0])+" and others", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, python, append([]string{"-X", "faulthandler", "-m", "pytest", "-p", "no:cacheprovider", "-rs"}, group...)...)
			cmd.Env = pythontest.Env("..")
			out, err := cmd.CombinedOutput()
			t.Logf("%s %s\n%s", python, strings.Join(group, " "), out)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(out, []byte(" passed")) {
				t.Error("got no test that passed, want some")
			}
		})
	}
}

// TestTypes runs mypy where there is one.
func TestTypes(t *testing.T) {
	python := pythontest.Interpreter(t, "numpy")
	if err := exec.Command(python, "-c", "import mypy").Run(); err != nil {
		t.Skipf("the client's types are not checked: %s has no mypy (pip install mypy)", python)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(python, "-m", "mypy", "--cache-dir", filepath.Join(cache, "tenure", "mypy"), "--config-file", "pyproject.toml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBudget applies the limits of the Go files to the client's files.
func TestBudget(t *testing.T) {
	for _, dir := range []string{"tenure", "tests"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.py"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %d files, %v, want some", dir, len(files), err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > 1000 {
				t.Errorf("%s: got %d lines, want at most 1000", name, n)
			}
			if dir == "tenure" && !strings.HasPrefix(string(text), `"""`) {
				t.Errorf("%s: got no text at its beginning that says what it is for", name)
			}
		}
	}
}
