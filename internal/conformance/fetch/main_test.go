package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/conformance"
)

func TestCheck(t *testing.T) {
	cases := []conformance.Case{{Archive: "a", Name: "x"}, {Archive: "a", Name: "xy"}, {Archive: "b", Name: "z"}}
	whole := map[string]string{
		"a": "x/model.onnx x/test_data_set_0/output_0.pb xy/model.onnx xy/test_data_set_0/input_0.pb xy/test_data_set_0/output_0.pb xy/test_data_set_1/output_0.pb",
		"b": "z/model.onnx z/test_data_set_0/output_0.pb",
	}
	if counts, err := check(archives(t, whole), cases); err != nil || counts["a"] != 2 || counts["b"] != 1 {
		t.Errorf("whole archives: got %v and %v, want 2 and 1 cases", counts, err)
	}
	for _, c := range []struct{ archive, files, want string }{
		{"b", "y/model.onnx", "b: case z: got no model.onnx"},
		{"b", "z/model.onnx", "b: case z: got no data set"},
		{"a", strings.Replace(whole["a"], "xy/test_data_set_1/output_0.pb", "xy/test_data_set_1/input_0.pb", 1), "a: case xy: got no output_0.pb in xy/test_data_set_1/"},
		{"a", strings.Replace(whole["a"], "x/test_data_set_0/output_0.pb ", "", 1), "a: case x: got no data set"},
	} {
		damaged := map[string]string{"a": whole["a"], "b": whole["b"]}
		damaged[c.archive] = c.files
		if _, err := check(archives(t, damaged), cases); err == nil || err.Error() != c.want {
			t.Errorf("archive %s of %s: got %v, want %s", c.archive, c.files, err, c.want)
		}
	}
	if _, err := check(t.TempDir(), cases); err == nil {
		t.Error("no archives: got no error, want one")
	}
}

// archives writes archives of empty files into a folder.
func archives(t *testing.T, list map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, files := range list {
		f, err := os.Create(filepath.Join(dir, name+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for _, file := range strings.Fields(files) {
			if _, err := z.Create(file); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
