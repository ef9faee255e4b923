package rival_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/shape/internal/rival"
)

// All rivals are correct: equal sizes are one pointer, different ones are not,
// in all goroutines.
func TestRivalsIntern(t *testing.T) {
	create := func(sizes []int) *shape.Shape { return shape.MustOf(slices.Clone(sizes)...) }
	for name, of := range map[string]func([]int) any{
		"sharded": func() func([]int) any { m := rival.NewSharded(create); return func(s []int) any { return m.Of(s) } }(),
		"unique":  func(s []int) any { return rival.Unique(s) },
		"map": func() func([]int) any {
			m := rival.NewLocked(create, false)
			return func(s []int) any { return m.Of(s) }
		}(),
		"map, short": func() func([]int) any {
			m := rival.NewLocked(create, true)
			return func(s []int) any { return m.Of(s) }
		}(),
		"sync.Map": func() func([]int) any { m := rival.NewSyncMap(create); return func(s []int) any { return m.Of(s) } }(),
	} {
		var mu sync.Mutex
		first := map[string]any{}
		owner := map[any]string{}
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(5, uint64(g)))
				for range 4000 {
					sizes := make([]int, r.IntN(9))
					for i := range sizes {
						sizes[i] = r.IntN(4)
					}
					got, text := of(sizes), shape.MustOf(sizes...).String()
					mu.Lock()
					if want, ok := first[text]; ok && want != got {
						t.Errorf("%s: %s: got two pointers", name, text)
					}
					if other, ok := owner[got]; ok && other != text {
						t.Errorf("%s: got one pointer for %s and %s", name, text, other)
					}
					first[text], owner[got] = got, text
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
}
