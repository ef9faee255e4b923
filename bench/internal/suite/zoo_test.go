package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestZoo(t *testing.T) {
	dir := t.TempDir()
	zoo := Zoo(dir)
	names := map[string]bool{}
	for _, m := range slices.Concat(Models(nil), zoo) {
		if names[m.Name] || strings.Contains(m.Name, ",") {
			t.Errorf("got name %q, want one that no other model has, without commas", m.Name)
		}
		names[m.Name] = true
	}
	if len(zoo) < 40 {
		t.Fatalf("got %d models, want at least 40", len(zoo))
	}
	if !zoo[0].Missing() || (Model{Name: "mlp"}).Missing() {
		t.Error("got a model of an empty folder, or missed one that needs none")
	}
	if err := os.MkdirAll(zoo[0].Folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(zoo[0].Folder, "inputs.json"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if zoo[0].Missing() || !zoo[1].Missing() {
		t.Error("got the wrong models that are missing, want all but the first")
	}
}

// A model that is made of another one stands after it, so that all are made in
// the order of the table.
func TestZooOrder(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 3 {
			t.Fatalf("got %q, want a name, a maker and arguments", line)
		}
		if slices.Contains([]string{"qdq", "dynamic", "int4", "f16"}, words[1]) && !seen[words[2]] {
			t.Errorf("%s: got origin %s, want one that stands above", words[0], words[2])
		}
		seen[words[0]] = true
	}
}
