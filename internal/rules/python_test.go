package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pythonImport matches an import of a module of the client, at any place of a
// file: of modules by name, from a module, or of the package.
var pythonImport = regexp.MustCompile(`(?m)^[ \t]*(?:from \. import (\([^)]*\)|[^(\n#]*)|from (?:\.|tenure\.)(\w+) import|(?:import|from) (tenure)\b)`)

// pythonImports returns the modules that the text of one imports.
func pythonImports(text string) []string {
	_, text, _ = strings.Cut(strings.TrimPrefix(text, `"""`), `"""`) // the text at the beginning may show imports
	var modules []string
	for _, m := range pythonImport.FindAllStringSubmatch(text, -1) {
		modules = append(modules, strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune("(), \n\t", r) })...)
		if m[2] != "" {
			modules = append(modules, m[2])
		}
		if m[3] != "" {
			modules = append(modules, "__init__")
		}
	}
	return modules
}

// TestPythonImportRule holds the modules of the Python client to the rule of
// ARCHITECTURE.md.
func TestPythonImportRule(t *testing.T) {
	l := readLattice(t, "python-imports")
	files, err := filepath.Glob("python/tenure/*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("python/tenure: got %d modules, %v, want some", len(files), err)
	}
	present := map[string]bool{}
	for _, path := range files {
		module := strings.TrimSuffix(filepath.Base(path), ".py")
		present[module] = true
		if _, named := l.below[module]; !named {
			t.Errorf("%s is not named in the import rule of ARCHITECTURE.md", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range pythonImports(string(text)) {
			if !l.reach(module)[imported] {
				t.Errorf("%s imports %s, which the import rule of ARCHITECTURE.md does not allow", path, imported)
			}
		}
	}
	for module := range l.below {
		if !present[module] {
			t.Errorf("the import rule of ARCHITECTURE.md names %s, which is no module of python/tenure", module)
		}
		if l.reach(module)[module] {
			t.Errorf("the rule lets %s import itself", module)
		}
	}
}

// TestPythonImportsAreFound reads an import of each form.
func TestPythonImportsAreFound(t *testing.T) {
	got := pythonImports(`"""Text.

    import tenure
"""

from __future__ import annotations

import os
from . import a, b
from . import (
    c,
    d,
)
from .e import E
from tenure.f import F
if TYPE_CHECKING:
    from .g import G

def f():
    import tenure
    from . import h  # inside a function
`)
	if want := "a b c d e f g __init__ h"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}
