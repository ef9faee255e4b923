package kernel_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGeneratedFilesAreFresh compares the hash of the sources that a generated file names with the one that the generator left in it, and
// holds every source of the generator to be one of some file's.
func TestGeneratedFilesAreFresh(t *testing.T) {
	assembly, err := filepath.Glob("*_amd64.s")
	if err != nil || len(assembly) == 0 {
		t.Fatalf("*_amd64.s: got %v, %v", assembly, err)
	}
	used := map[string]bool{"gen/main.go": true}
	for _, file := range assembly {
		for _, name := range []string{file, strings.TrimSuffix(file, ".s") + ".go"} {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, line, ok := strings.Cut(string(text), "\n// Sources: ")
			line, _, _ = strings.Cut(line, "\n")
			words := strings.Fields(line)
			if !ok || len(words) < 3 || words[len(words)-2] != "sha256" {
				t.Fatalf("%s: got %q, want its sources and their hash", name, line)
			}
			hash := sha256.New()
			for _, source := range words[:len(words)-2] {
				text, err := os.ReadFile(filepath.Join("gen", source))
				if err != nil {
					t.Fatal(err)
				}
				hash.Write(text)
				used["gen/"+source] = true
			}
			if want := fmt.Sprintf("%x", hash.Sum(nil)); words[len(words)-1] != want {
				t.Errorf("%s is not what gen writes: run go generate in internal/kernel", name)
			}
		}
	}
	sources, err := filepath.Glob("gen/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range slices.DeleteFunc(sources, func(s string) bool { return used[filepath.ToSlash(s)] }) {
		t.Errorf("%s is of no part of what is generated", source)
	}
}
