//go:build !race

package tokenizer_test

import "testing"

// TestAllocations pins what calls allocate once their words were seen. Under
// the race detector pools drop what they hold, at random.
func TestAllocations(t *testing.T) {
	texts := prose(3)
	for _, kind := range kinds {
		tok := load(t, kind)
		ids := make([]int64, 0, 10_000)
		append := func() {
			for _, text := range texts {
				var err error
				if ids, err = tok.AppendIDs(ids[:0], text); err != nil {
					t.Fatal(err)
				}
			}
		}
		append()
		if n := testing.AllocsPerRun(20, append); n != 0 {
			t.Errorf("%s: AppendIDs: got %v allocations for %d texts, want none", kind, n, len(texts))
		}
	}
}
