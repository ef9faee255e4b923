package shape_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unique"

	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/shape/internal/rival"
)

// The benchmarks compare the trie with rivals: Benchmark/case/contender.
// bench/shape runs them and prints the figures side by side.

// of interns sizes: it finds or creates the shape and, as every caller does,
// reads a field of it.
type of func(sizes []int) bool

// contenders are the interners that accept any rank; each start makes an empty
// one, except for the trie, of which the process has one.
var contenders = []struct {
	name  string
	start func() of
}{
	{"trie", func() of { return trie }},
	{"sharded", func() of { m := rival.NewSharded(shape.Make); return func(s []int) bool { return read(m.Of(s)) } }},
	{"unique", func() of { return func(s []int) bool { return rival.Unique(s).Value().Rank() >= 0 } }},
	{"map+RWMutex", func() of { m := rival.NewLocked(shape.Make, false); return func(s []int) bool { return read(m.Of(s)) } }},
	{"sync.Map", func() of { m := rival.NewSyncMap(shape.Make); return func(s []int) bool { return read(m.Of(s)) } }},
}

func trie(sizes []int) bool {
	s, err := shape.Of(sizes...)
	return err == nil && read(s)
}

func read(s *shape.Shape) bool { return s.NumElements() >= 0 }

// shuffled returns the shapes in another order, each in newly allocated memory.
func shuffled(all [][]int) [][]int {
	out := make([][]int, len(all))
	for i, j := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) {
		out[i] = append([]int(nil), all[j]...)
	}
	return out
}

// keep returns a function that keeps interned shapes reachable.
func keep(all [][]int) (held []*shape.Shape, handles []unique.Handle[rival.Packed]) {
	for _, sizes := range all {
		held = append(held, shape.MustOf(sizes...))
		handles = append(handles, rival.Unique(sizes))
	}
	return held, handles
}

// hits times lookups of existing shapes by all contenders.
func hits(b *testing.B, all [][]int) {
	all = shuffled(all)
	held, handles := keep(all)
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) { hit(b, all, c.start(), true) })
	}
	// The trie is as slow as this after one collection in eight, and before the
	// first.
	b.Run("trie, weak", func(b *testing.B) { hit(b, all, trie, false) })
	runtime.KeepAlive(held)
	runtime.KeepAlive(handles)
}

func hit(b *testing.B, all [][]int, f of, strongly bool) {
	for _, sizes := range all {
		f(sizes)
	}
	all = shuffled(all) // not in the order of their addresses
	defer shape.Settle(strongly)()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if !f(all[i]) {
			b.Fatal("got nothing")
		}
		if i++; i == len(all) {
			i = 0
		}
	}
}

// ofRank returns n shapes of a rank with shared prefixes.
func ofRank(rank, n int) [][]int {
	if rank == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for i := range n {
		sizes := make([]int, rank)
		for j := range sizes {
			sizes[j] = 1
		}
		sizes[rank-1] = 1 + i
		if rank > 1 {
			sizes[rank-1], sizes[rank-2] = 1+i%50, 1+i/50
		}
		all = append(all, sizes)
	}
	return all
}

func BenchmarkHitRank(b *testing.B) {
	for rank := range 9 {
		b.Run(fmt.Sprintf("rank %d", rank), func(b *testing.B) {
			all := ofRank(rank, 1000)
			hits(b, all)
			if f := arrayMap(shuffled(all)); f != nil {
				b.Run("map by array", func(b *testing.B) { hit(b, all, f, true) })
			}
		})
	}
}

// arrayMap is the fastest solution in plain Go for shapes of rank 2 or 3: a map
// by an array without a lock. Three words take much longer than two or four,
// because the hash function loads them across a preceding store.
func arrayMap(all [][]int) of {
	switch len(all[0]) {
	case 2:
		m := filled(all, func(s []int) [2]int { return [2]int(s) })
		return func(s []int) bool { return read(m[[2]int(s)]) }
	case 3:
		m := filled(all, func(s []int) [3]int { return [3]int(s) })
		return func(s []int) bool { return read(m[[3]int(s)]) }
	}
	return nil
}

func filled[K comparable](all [][]int, key func([]int) K) map[K]*shape.Shape {
	m := map[K]*shape.Shape{}
	for _, sizes := range all {
		m[key(sizes)] = shape.Make(sizes)
	}
	return m
}

func BenchmarkHitLive(b *testing.B) {
	m := models(b)
	b.Run("models, as they use them", func(b *testing.B) { hits(b, m.stream(4096)) })
	for _, n := range []int{10, 100, 1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("live %d", n), func(b *testing.B) { hits(b, m.many(n)) })
	}
}

// BenchmarkHitRank4 also measures a map by an array of four without a lock, and
// unique.Make of the same array.
func BenchmarkHitRank4(b *testing.B) {
	var base mix
	for _, sizes := range models(b).sizes {
		if len(sizes) == 4 {
			base.sizes = append(base.sizes, sizes)
		}
	}
	for _, n := range []int{10, 100, 1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("live %d", n), func(b *testing.B) {
			all := base.many(n)
			hits(b, all)
			all = shuffled(all)
			plain := filled(all, func(s []int) [4]int { return [4]int(s) })
			b.Run("map[[4]int]", func(b *testing.B) {
				hit(b, all, func(s []int) bool { return read(plain[[4]int(s)]) }, true)
			})
			b.Run("map[[4]int], not read", func(b *testing.B) {
				hit(b, all, func(s []int) bool { return plain[[4]int(s)] != nil }, true)
			})
			var handles []unique.Handle[[4]int]
			for _, sizes := range all {
				handles = append(handles, unique.Make([4]int(sizes)))
			}
			b.Run("unique [4]int", func(b *testing.B) {
				hit(b, all, func(s []int) bool { return unique.Make([4]int(s)).Value()[0] >= 0 }, true)
			})
			runtime.KeepAlive(handles)
		})
	}
}

// BenchmarkMiss creates new shapes. Rivals keep them; the trie and unique drop
// them.
func BenchmarkMiss(b *testing.B) {
	for rank := 1; rank <= 8; rank++ {
		b.Run(fmt.Sprintf("rank %d", rank), func(b *testing.B) {
			for _, c := range contenders {
				b.Run(c.name, func(b *testing.B) {
					f := c.start()
					b.ReportAllocs()
					for b.Loop() {
						f(fresh(rank))
					}
				})
			}
		})
	}
	b.Run("absent, not created", func(b *testing.B) {
		for range 1000 {
			runtime.KeepAlive(shape.MustOf(fresh(4)...))
		}
		b.Run("trie", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if shape.Lookup(1, 2, 3, 32749) != nil {
					b.Fatal("got a shape that nobody made")
				}
			}
		})
	})
}

var made atomic.Int64

// fresh returns sizes that no shape had before.
func fresh(rank int) []int {
	n := int(made.Add(1))
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[rank-1] = n
	if rank > 1 {
		sizes[rank-1], sizes[rank-2] = 1+n%64, n/64
	}
	return sizes
}

// BenchmarkMixed replays a program's stream of shapes, of which one in so many
// is new, in several goroutines. It reports the wall-clock time per lookup.
func BenchmarkMixed(b *testing.B) {
	stream := models(b).stream(4096)
	for _, test := range []struct {
		name   string
		all    [][]int
		newOne int // one shape in so many is new; 0 means none
	}{
		{"models", stream, 0},
		{"models, 1 of 64 new", stream, 64},
		{"one shape", stream[:1], 0},
	} {
		held, handles := keep(test.all)
		for _, goroutines := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("%s, goroutines %d", test.name, goroutines), func(b *testing.B) {
				for _, c := range contenders {
					f := c.start()
					b.Run(c.name, func(b *testing.B) {
						if test.newOne == 0 {
							defer shape.Settle(true)()
						}
						together(b, goroutines, test.all, test.newOne, f)
					})
				}
			})
		}
		runtime.KeepAlive(held)
		runtime.KeepAlive(handles)
	}
}

func together(b *testing.B, goroutines int, all [][]int, newOne int, f of) {
	for _, sizes := range all {
		f(sizes)
	}
	var group sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for g := range goroutines {
		group.Go(func() {
			at := g * len(all) / goroutines
			for i := range b.N / goroutines {
				if newOne > 0 && i%newOne == 0 {
					f(fresh(4))
					continue
				}
				if !f(all[at]) {
					b.Error("got nothing")
					return
				}
				if at++; at == len(all) {
					at = 0
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkBytes reports the memory for each shape, including the shape. Its
// times are meaningless.
func BenchmarkBytes(b *testing.B) {
	cleared := contenders[0] // each shape has been held weakly once
	cleared.name = "trie, cleared"
	short := contenders[3]
	short.name = "map+RWMutex, short keys"
	short.start = func() of {
		m := rival.NewLocked(shape.Make, true)
		return func(s []int) bool { return read(m.Of(s)) }
	}
	m := models(b)
	var base mix
	for _, sizes := range m.sizes {
		if len(sizes) == 4 {
			base.sizes = append(base.sizes, sizes)
		}
	}
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		for name, all := range map[string][][]int{"models": m.many(n), "rank 4": base.many(n)} {
			b.Run(fmt.Sprintf("%s, live %d", name, n), func(b *testing.B) {
				for _, c := range append(contenders, cleared, short) {
					b.Run(c.name, func(b *testing.B) {
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(bytesEach(c.name, c.start, all), "bytes/shape")
					})
				}
			})
		}
	}
}

// record is the size of the runtime's record for a weak pointer, outside of the
// heap.
const record = 32

func bytesEach(name string, start func() of, all [][]int) float64 {
	heap := func() uint64 {
		for range 4 { // sweeps and unique follow a collection; the next one frees the dropped values
			runtime.GC()
			time.Sleep(time.Duration(len(all)/50+1000) * time.Microsecond)
		}
		defer shape.Pause()() // otherwise the tables that a sweep replaces would count, too
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	held := make([]*shape.Shape, len(all))
	handles := make([]unique.Handle[rival.Packed], len(all))
	shape.Clear()
	before := heap()
	f := start()
	records := 0.0
	for i, sizes := range all {
		switch name {
		case "trie", "trie, cleared":
			held[i] = shape.MustOf(sizes...)
		case "unique":
			handles[i], records = rival.Unique(sizes), 1
		default:
			f(sizes)
		}
	}
	switch name {
	case "trie":
		records = min(1, float64(shape.TestAllMost+len(all)/32)/float64(len(all)))
	case "trie, cleared":
		shape.Clear()
		records = 1
	}
	bytes := float64(heap() - before)
	runtime.KeepAlive(f)
	runtime.KeepAlive(held)
	runtime.KeepAlive(handles)
	return bytes/float64(len(all)) + records*record
}
