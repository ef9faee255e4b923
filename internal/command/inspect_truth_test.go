package command

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestInspectSaysWhatRuns compares the first line of inspect with what run
// does, with every file of the optional data: after "yes" the model runs on the
// inputs beside it, after "no" it is refused for the reason of that line.
func TestInspectSaysWhatRuns(t *testing.T) {
	for _, folder := range []string{"models", "repro/models"} {
		t.Run(folder, func(t *testing.T) {
			dir := modeltest.SharedDir(t, folder)
			files, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
			if err != nil || len(files) == 0 {
				t.Fatalf("got no models in %s (%v)", dir, err)
			}
			for _, path := range files {
				if testing.Short() && strings.Contains(path, "light_") {
					continue // networks of full size
				}
				if !checkFirstLine(t, path) {
					t.Errorf("%s does not run", path)
				}
			}
		})
	}
	t.Run("conformance", func(t *testing.T) {
		archives, err := filepath.Glob(filepath.Join(modeltest.SharedDir(t, "conformance"), "*.zip"))
		if err != nil || len(archives) == 0 {
			t.Fatalf("got no archives (%v)", err)
		}
		runs, refused := 0, 0
		for _, archive := range archives {
			for i, path := range unpack(t, archive) {
				if testing.Short() && i%20 != 0 {
					continue
				}
				if checkFirstLine(t, path) {
					runs++
				} else {
					refused++
				}
			}
		}
		t.Logf("%d run, %d are refused", runs, refused)
	})
}

// unpack writes the files of an archive of cases into a folder and returns the
// paths of their models.
func unpack(t *testing.T, archive string) []string {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatalf("got no models in %s (%v)", archive, err)
	}
	return models
}

// checkFirstLine compares the first line of inspect with a run of the model on
// its first set of inputs, and reports whether the line says that it runs.
func checkFirstLine(t *testing.T, path string) bool {
	t.Helper()
	memorytest.Check(t)
	told, _, code := tool(t, "inspect", path)
	first, _, _ := strings.Cut(told, "\n")
	word, rest, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(first, "runs ")), ":")
	if !strings.HasPrefix(first, "runs ") || word != "yes" && word != "no" || (word == "yes") != (code == 0) {
		t.Errorf("%s: inspect begins with %q and ends with %d", path, first, code)
	}
	args := []string{"run", path}
	if set := filepath.Join(filepath.Dir(path), "test_data_set_0"); exists(set) {
		args = append(args, "--inputs-from", set)
	}
	_, fault, code := tool(t, args...)
	switch {
	case word == "yes" && code != 0:
		t.Errorf("%s: inspect says that it runs, but: %s", path, fault)
	case word == "no" && code == 0:
		t.Errorf("%s: it runs, but inspect says: %s", path, first)
	case word == "no" && !sameReason(rest, fault):
		t.Errorf("%s: inspect says %q, but run: %s", path, first, fault)
	}
	return word == "yes"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sameReason reports whether an error of run has the reason of inspect, which
// names the first of several things that are not supported.
func sameReason(reason, fault string) bool {
	_, single, several := strings.Cut(reason, ": first ")
	if !several {
		single = reason
	}
	return strings.Contains(fault, strings.TrimSpace(single))
}

// tool runs the command and returns what it writes, and its exit code.
func tool(t *testing.T, args ...string) (out, fault string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = static.execute(t.Context(), args, &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}
