package rules_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// fileRow is a row of the table in "Add an operator".
var fileRow = regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\|")

// oneHot matches the names by which the six files call the operator of that
// example.
var oneHot = regexp.MustCompile(`"one_hot"|"OneHot"|\bOneHot(\[T any\])?\(`)

// TestOperatorFiles compares the table of "Add an operator" in CONTRIBUTING.md
// with the sources: each file has the operator of the example, and no other
// source that is written by hand has it, except tests and its function in
// package eager, which it need not have.
func TestOperatorFiles(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "**Add an operator.**")
	section, _, closed := strings.Cut(section, "\n**")
	if !found || !closed {
		t.Fatal("CONTRIBUTING.md has no section about adding an operator")
	}
	listed := map[string]bool{}
	for _, m := range fileRow.FindAllStringSubmatch(section, -1) {
		listed[m[1]] = true
	}
	if len(listed) == 0 || len(listed) > 6 {
		t.Errorf("got %d files in the table of CONTRIBUTING.md, want up to six", len(listed))
	}
	for _, s := range sources(t) {
		if s.isTest || s.isGen || strings.HasPrefix(s.path, "eager/") {
			continue
		}
		data, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if has := oneHot.Match(data); has != listed[s.path] {
			t.Errorf("%s: has one_hot: %t, in the table of CONTRIBUTING.md: %t", s.path, has, listed[s.path])
		}
		delete(listed, s.path)
	}
	for path := range listed {
		t.Errorf("CONTRIBUTING.md names %s, which does not exist", path)
	}
}
