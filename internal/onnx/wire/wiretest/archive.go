package wiretest

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TextModels returns the files of all models that the archives of a folder
// have as text, in members NAME.model, in the order of their names.
func TextModels(t testing.TB, folder string) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got no archives in %s (%v)", folder, err)
	}
	var files [][]byte
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".model") {
				files = append(files, ModelText(t, string(f.Data)))
			}
		}
	}
	return files
}
