package pass

import (
	"slices"
	"testing"
)

// TestOrder holds the pipelines to the table of what comes before what.
func TestOrder(t *testing.T) {
	for _, b := range before {
		seen := false
		for _, pipeline := range [][]Pass{Load, Specialise} {
			first := slices.IndexFunc(pipeline, func(p Pass) bool { return p.Name == b.first })
			second := slices.IndexFunc(pipeline, func(p Pass) bool { return p.Name == b.second })
			if first < 0 || second < 0 {
				continue
			}
			seen = true
			if first > second {
				t.Errorf("%s runs after %s, want it before: %s", b.first, b.second, b.why)
			}
		}
		if !seen {
			t.Errorf("no pipeline has both %s and %s", b.first, b.second)
		}
	}
}
