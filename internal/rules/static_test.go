package rules_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// purego calls libraries of C, for which a program needs the dynamic loader.
const purego = "github.com/ebitengine/purego"

// foreign are the packages that may import purego, tests included.
var foreign = []string{"cuda/internal/driver", "dlpack/capi"}

func TestWhoImportsPurego(t *testing.T) {
	importers := map[string]bool{}
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			if strings.Trim(spec.Path.Value, `"`) != purego {
				continue
			}
			if importers[s.pkg] = true; !slices.Contains(foreign, s.pkg) {
				t.Errorf("%s imports purego, want only %s to", s.path, strings.Join(foreign, " and "))
			}
		}
	}
	if len(importers) != len(foreign) {
		t.Errorf("got %v as importers of purego, want %v", importers, foreign)
	}
}

// dynamic are the programs that use one of the foreign packages.
var dynamic = []string{"dlpack", "onnxruntime", "tenure-cuda"}

// TestStaticPrograms builds the commands and examples without cgo, and a
// program that imports all other promised packages: those that do not use a
// foreign package name neither an interpreter nor a library.
func TestStaticPrograms(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds programs, and looks into ELF executables: not with -short, and on Linux only")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	dir, all := t.TempDir(), filepath.Join(t.TempDir(), "all.go")
	if err := os.WriteFile(all, allPromised(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, what := range [][]string{{all}, {"./cmd/...", "./examples/..."}} {
		build := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", dir + "/"}, what...)...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", what, err, out)
		}
	}
	programs, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range programs {
		found[p.Name()] = true
		needs := needsOf(t, filepath.Join(dir, p.Name()))
		if want := slices.Contains(dynamic, p.Name()); want != (len(needs) > 0) {
			t.Errorf("%s: got an executable that needs %q, want it to need some: %t", p.Name(), needs, want)
		}
	}
	for _, name := range append([]string{"all", "tenure", "tenurevet", "digits", "serve"}, dynamic...) {
		if !found[name] {
			t.Errorf("got no program %s among %d", name, len(programs))
		}
	}
}

// needsOf lists the interpreter and the libraries that an executable names.
func needsOf(t *testing.T, file string) []string {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			needs = append(needs, p.Type.String())
		}
	}
	return needs
}

// allPromised is a program that imports every promised package but the foreign
// ones.
func allPromised(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString("package main\n\nimport (\n")
	for _, pkg := range readPromised(t) {
		if slices.Contains(foreign, pkg) {
			continue
		}
		b.WriteString("\t_ \"" + strings.TrimSuffix(module+"/"+strings.TrimPrefix(pkg, "tenure"), "/") + "\"\n")
	}
	b.WriteString(")\n\nfunc main() {}\n")
	return b.Bytes()
}
