package randomprogram_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/modeltest"
)

var (
	guards        = flag.Bool("guards", false, "run TestAnyLength without one kind of guard after the other, which builds the module with changed files")
	guardPrograms = flag.String("guardprograms", "20000", "the programs that are drawn for each kind, until one is at fault")
)

// weakened are the changes to files of the module in the build in which guards
// can be left out: a structure leaves out the kinds that a variable of the
// environment names, and few bytes are left for folding, so that the allowance
// counts.
var weakened = []struct{ file, old, with string }{
	{"internal/pass/structure.go", "return s.ignored != nil && s.ignored(kind)", `return slices.Contains(strings.Split(os.Getenv("TENURE_WITHOUT"), ","), kind)`},
	{"internal/pass/structure.go", "\"errors\"\n", "\"errors\"\n\t\"os\"\n\t\"strings\"\n"},
	{"internal/pass/budget.go", "= 16 << 20", "= 1 << 10"},
}

// without are the kinds that are left out with one, because they tell the same
// sizes apart.
var without = map[string][]string{
	"same type":   {"alias", "blocks"},
	"along a row": {"same type", "alias", "blocks"},
}

// rare are the kinds without which a fault was not drawn in some thousand
// programs. TestEachGuardAlone and TestEachGuardAloneWithValues of package pass
// have a program for each of them.
var rare = []string{"allowance", "donations", "per channel", "possible types", "ranges", "same size", "spelled out"}

// TestGuardsAreNeeded leaves out one kind of guard after the other: then
// TestAnyLength must fail, and with all of them it must pass.
func TestGuardsAreNeeded(t *testing.T) {
	if !*guards {
		t.Skip("builds the module with changed files: go test ./internal/randomprogram -run TestGuardsAreNeeded -guards, as .ci/full does")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	kinds := kindsOfGuards(t)
	t.Logf("kinds: %v", kinds)
	test := weakenedTest(t)
	run := func(programs string, without ...string) (string, error) {
		c := exec.Command(test, "-test.run=TestAnyLength$", "-rapid.checks="+programs, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ns", "-test.timeout=2h")
		c.Env = append(os.Environ(), "TENURE_WITHOUT="+strings.Join(without, ","))
		c.Dir = filepath.Join(modeltest.Root(), "internal", "randomprogram")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run(*guardPrograms); err != nil {
		t.Fatalf("with all guards: %v\n%s", err, tail(out))
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if slices.Contains(rare, kind) {
				t.Skip("a fault is rarely drawn: a written program of package pass has one")
			}
			out, err := run(*guardPrograms, append(without[kind], kind)...)
			if err == nil || !strings.Contains(out, "[rapid] failed after") && !strings.Contains(out, "[rapid] panic after") && !strings.Contains(out, "panic: ") {
				t.Errorf("got %v without the guards of kind %q, want a fault\n%s", err, kind, tail(out))
			}
		})
	}
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// kindsOfGuards returns the kinds of guards that the sources of package pass
// name.
func kindsOfGuards(t *testing.T) (kinds []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(modeltest.Root(), "internal", "pass", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := modeltest.Must(os.ReadFile(file))
		for _, m := range regexp.MustCompile(`\bignores\("([^"]+)"\)`).FindAllSubmatch(text, -1) {
			kinds = append(kinds, string(m[1]))
		}
		if m := regexp.MustCompile(`questionNames = \[questions\]string\{(.*)\}`).FindSubmatch(text); m != nil {
			for _, name := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(m[1], -1) {
				kinds = append(kinds, string(name[1]))
			}
		}
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(kinds) < 16 {
		t.Fatalf("got the kinds %v, want 16 or more", kinds)
	}
	return kinds
}

// weakenedTest builds this package's test with changed files, and checks of
// invariants: every instance is compared with the passes' program.
func weakenedTest(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for i, w := range weakened {
		file := filepath.Join(modeltest.Root(), filepath.FromSlash(w.file))
		from := file
		if replace[file] != "" {
			from = replace[file]
		}
		text := string(modeltest.Must(os.ReadFile(from)))
		if strings.Count(text, w.old) != 1 {
			t.Fatalf("%s: got %q %d times, want once (change %d)", w.file, w.old, strings.Count(text, w.old), i)
		}
		to := filepath.Join(dir, strings.ReplaceAll(w.file, "/", "_"))
		if err := os.WriteFile(to, []byte(strings.Replace(text, w.old, w.with, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[file] = to
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, modeltest.Must(json.Marshal(map[string]any{"Replace": replace})), 0o600); err != nil {
		t.Fatal(err)
	}
	test := filepath.Join(dir, "any.test")
	build := exec.Command("go", "test", "-c", "-tags", "invariants", "-overlay", overlay, "-o", test, "./internal/randomprogram")
	build.Dir = modeltest.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return test
}
