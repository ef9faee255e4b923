package main

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/shape"
)

func TestTable(t *testing.T) {
	in := `goos: linux
BenchmarkHit/rank_4/trie-2     1  10.0 ns/op  0 B/op  0 allocs/op
BenchmarkHit/rank_4/trie-2     1  30.0 ns/op  0 B/op  0 allocs/op
BenchmarkHit/rank_4/trie-2     1  11.0 ns/op  0 B/op  0 allocs/op
BenchmarkHit/rank_4/sync.Map-2 1  44.0 ns/op 48 B/op  1 allocs/op
BenchmarkHit/rank_5/trie-2     1  12.0 ns/op  0 B/op  0 allocs/op
BenchmarkBytes/models,_live_9/trie-2 1  112.4 bytes/shape
PASS
`
	want := `## Hit

| | trie | sync.Map |
|---|--:|--:|
| rank 4 | 10.0 ns | 44.0 ns, 4.4x, 1 allocs |
| rank 5 | 12.0 ns |  |

## Bytes

| | trie |
|---|--:|
| models, live 9 | 112 B |

`
	var out strings.Builder
	if err := printTable(strings.NewReader(in), &out, results.Output{}); err != nil || out.String() != want {
		t.Errorf("got error %v and\n%swant\n%s", err, out.String(), want)
	}
	for _, bad := range []string{"BenchmarkHit/trie-2 1 10.0 ns/op", "BenchmarkHit/a/b-2 1 ten ns/op"} {
		if err := printTable(strings.NewReader(bad), &out, results.Output{}); err == nil {
			t.Errorf("%q: got no error, want one", bad)
		}
	}
}

func TestStormInSmall(t *testing.T) {
	if err := storm(20_000, 4, results.Output{}); err != nil {
		t.Error(err)
	}
	if err := storm(0, 4, results.Output{}); err == nil {
		t.Error("got no error for no shapes, want one")
	}
}

// The ledger would notice a second shape, or there would be no point in it.
func TestLedger(t *testing.T) {
	var l ledger
	for i := range l {
		l[i].held = map[[3]int]*holding{}
	}
	a, b := new(shape.Shape), new(shape.Shape) // not interned: two pointers
	sizes := [3]int{1, 2, 3}
	if err := l.take(sizes, a); err != nil {
		t.Error(err)
	}
	if err := l.take(sizes, b); err == nil {
		t.Error("got no error for two shapes that are held, want one")
	}
	l.drop(sizes)
	l.drop(sizes)
	if err := l.take(sizes, b); err != nil {
		t.Error(err)
	}
}
