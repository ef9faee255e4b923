package rules_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var nested = flag.Bool("nested", false, "test the modules inside this one, too, which need more to be downloaded and built")

// TestNestedModules tests the modules inside this one, into which "./..."
// does not descend: programs that import Tenure do not need their dependencies.
func TestNestedModules(t *testing.T) {
	if !*nested {
		t.Skip("builds what other libraries need: go test ./internal/rules -nested, as .ci/run does")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	for _, dir := range nestedModules(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("go", "test", "./...")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTables holds the tables of the project's pages to the files of results in
// bench. It reads both, so that a change of either lets it run again.
func TestTables(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	pages := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && d.Name()[0] == '.':
			return filepath.SkipDir
		case filepath.Ext(path) == ".md", filepath.Dir(path) == filepath.Join("bench", "results"), filepath.Dir(path) == filepath.Join("bench", "tables"):
			pages++
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || pages == 0 {
		t.Fatalf("got %d files, error %v, want some", pages, err)
	}
	cmd := exec.Command("go", "run", "./tables", "-check")
	cmd.Dir = "bench"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// nestedModules finds the modules. It reads their sources, which makes this
// test's cached result theirs too.
func nestedModules(t *testing.T) (dirs []string) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && d.Name()[0] == '.':
			return filepath.SkipDir
		case d.Name() == "go.mod" && path != "go.mod":
			dirs = append(dirs, filepath.Dir(path))
			return filepath.WalkDir(filepath.Dir(path), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					_, err = os.ReadFile(path)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Fatal("got no modules, want bench")
	}
	return dirs
}
