package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// TestCommitted generates all files in memory and compares them with those that
// are there.
func TestCommitted(t *testing.T) {
	want, err := generate(elementwise.Functions(), elementwise.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range compare(t, os.DirFS(".."), want) {
		t.Errorf("%s: run go generate in internal/kernel/gen", fault)
	}
}

// TestEditsAreFound changes generated files in every possible way.
func TestEditsAreFound(t *testing.T) {
	whole, err := generate(elementwise.Functions(), elementwise.Binaries())
	if err != nil {
		t.Fatal(err)
	}
	const name = "x86/gemm_avx2_amd64.s"
	for _, c := range []struct {
		edit func(fstest.MapFS)
		want string
	}{
		{func(fstest.MapFS) {}, ""},
		{func(d fstest.MapFS) {
			d[name] = &fstest.MapFile{Data: bytes.Replace(whole[name], []byte("VADDPS"), []byte("VSUBPS"), 1)}
		}, name + ": line "},
		{func(d fstest.MapFS) { d[name] = &fstest.MapFile{Data: append(bytes.Clone(whole[name]), '\n')} }, name + ": line "},
		{func(d fstest.MapFS) { delete(d, name) }, name + ": is missing"},
		{func(d fstest.MapFS) { d["x86/old_avx2_amd64.s"] = &fstest.MapFile{} }, "x86/old_avx2_amd64.s: is not generated"},
		{func(d fstest.MapFS) { d["old.go"] = &fstest.MapFile{Data: []byte(header + "\npackage x86\n")} }, "old.go: is not generated"},
	} {
		dir := fstest.MapFS{"x86/written.go": &fstest.MapFile{Data: []byte("package x86\n")}}
		for name, text := range whole {
			dir[name] = &fstest.MapFile{Data: text}
		}
		c.edit(dir)
		got := compare(t, dir, whole)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("got faults %q, want %q", got, c.want)
		}
	}
}

// compare returns how the files of a folder differ from the generated ones: one
// fault for each file.
func compare(t *testing.T, dir fs.FS, want map[string][]byte) (faults []string) {
	t.Helper()
	for name, text := range want {
		got, err := fs.ReadFile(dir, name)
		switch {
		case err != nil:
			faults = append(faults, name+": is missing")
		case !bytes.Equal(got, text):
			faults = append(faults, name+": "+firstDifference(got, text))
		}
	}
	folders := map[string]bool{}
	for name := range want {
		folders[path.Dir(name)] = true
	}
	for folder := range folders {
		there, err := fs.Glob(dir, path.Join(folder, "*.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range there {
			text, err := fs.ReadFile(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := want[name]; !ok && (strings.HasSuffix(name, ".s") || bytes.HasPrefix(text, []byte(header))) {
				faults = append(faults, name+": is not generated")
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	at := 0
	for at < min(len(g), len(w)) && g[at] == w[at] {
		at++
	}
	line := func(lines []string) string {
		if at < len(lines) {
			return lines[at]
		}
		return "the end"
	}
	return fmt.Sprintf("line %d: got %q, want %q", at+1, line(g), line(w))
}
