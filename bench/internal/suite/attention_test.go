package suite

import (
	"fmt"
	"strings"
	"testing"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// Every model of attention has the shapes that its name says.
func TestAttention(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Attention() {
		if seen[m.Name] {
			t.Errorf("got two models %s, want one", m.Name)
		}
		seen[m.Name] = true
		var heads, groups, size, keys int
		var kind string
		if _, err := fmt.Sscanf(strings.ReplaceAll(m.Name, "-", " "), "attention %dof%dx%d %d %s", &heads, &groups, &size, &keys, &kind); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		g, err := m.Build()
		if err != nil {
			t.Fatal(err)
		}
		queries := keys
		if kind == "step" {
			queries = 1
		}
		for i, want := range [][]int{{1, queries, heads * size}, {1, keys, groups * size}, {1, keys, groups * size}} {
			if in := g.Inputs()[i]; in.Elem != f.F32 || fmt.Sprint(in.Dims) != fmt.Sprint(want) {
				t.Errorf("%s: got input %+v, want f32%v", m.Name, in, want)
			}
		}
		if keys <= 128 {
			open(t, write(t, g))
		}
	}
	if len(seen) != 33 {
		t.Errorf("got %d models, want 33", len(seen))
	}
}
