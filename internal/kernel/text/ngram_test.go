package text_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/text"
)

func TestNGrams(t *testing.T) {
	r := kerneltest.NewRand(160)
	pool := [][]int64{{1}, {2}, {1, 2}, {2, 2}, {3, -1}, {1, 2, 1}, {2, 2, 2}}
	keys := map[string]int32{}
	for i, gram := range pool {
		var key []byte
		for _, item := range gram {
			key = text.NGramKey(key, item)
		}
		keys[string(key)] = int32(i)
	}
	for i := range 60 {
		g := text.NGrams{Least: 1 + i%2, Most: 2 + i/2%2, Skip: i % 4, Pool: keys}
		row := make([]int64, r.IntN(12))
		for k := range row {
			row[k] = int64(1 + r.IntN(2))
		}
		s := kerneltest.NewSpace(t)
		counts, narrow := kerneltest.InOut(s, "counts", make([]float32, len(pool))), kerneltest.InOut(s, "narrow", make([]float32, len(pool)))
		scratch := kerneltest.Out[byte](s, "scratch", 8*g.Most)
		text.CountNGrams(&g, counts, kerneltest.In(s, "row", row), scratch)
		text.CountNGrams(&g, narrow, kerneltest.In(s, "row of i32", kerneltest.Narrowed(row)), scratch)
		s.Check()
		for k, gram := range pool {
			want := 0
			if len(gram) >= g.Least && len(gram) <= g.Most {
				want = ref.CountNGrams(row, gram, g.Skip)
			}
			if counts[k] != float32(want) || narrow[k] != float32(want) {
				t.Fatalf("%v in %v, %+v: got %v and %v, want %d", gram, row, g, counts[k], narrow[k], want)
			}
		}
	}
}
