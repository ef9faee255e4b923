package shape

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
	"weak"

	"pgregory.net/rapid"
)

// of is Of for an interner of the test.
func of(t testing.TB, in *interner, sizes ...int) *Shape {
	t.Helper()
	s, err := in.static(sizes, true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unlocked returns the result of a search without a lock, or nil.
func unlocked(in *interner, sizes []int) *Shape {
	return in.shapes.find(sizes).search(in.shapes.keys.of(sizes), isStatic(sizes))
}

// colliding returns an interner in which all keys, child classes and stripes
// are equal.
func colliding() *interner {
	in := newInterner()
	in.shapes.keys, in.layouts.keys = keys{}, keys{} // no key is exact either
	in.shapes.spread, in.layouts.spread = 1, 1
	in.shapes.setNodeLimit(64)
	in.layouts.setNodeLimit(64)
	return in
}

// collidingUnlessExact returns an interner in which all keys are equal but the
// exact ones.
func collidingUnlessExact() *interner {
	in := crowded()
	in.shapes.keys.scales = [maxLevels + 1]uint64{}
	return in
}

// crowded returns an interner whose nodes are split at few values.
func crowded() *interner {
	in := newInterner()
	in.shapes.setNodeLimit(64)
	in.layouts.setNodeLimit(64)
	return in
}

// many returns sizes of all ranks up to most with long common prefixes.
func many(r *rand.Rand, n, most int) [][]int {
	seen := map[string]bool{}
	var all [][]int
	for len(all) < n {
		sizes := make([]int, r.IntN(most+1))
		for i := range sizes {
			sizes[i] = r.IntN(3)
		}
		if len(sizes) > 0 {
			sizes[len(sizes)-1] = r.IntN(1 << 20)
		}
		if text := packed(sizes); !seen[text] {
			seen[text] = true
			all = append(all, sizes)
		}
	}
	return all
}

func packed(sizes []int) string {
	var b []byte
	for _, n := range sizes {
		b = strconv.AppendInt(append(b, 'x'), int64(n), 10)
	}
	return string(b)
}

// The trie finds each of many shapes, held strongly or weakly, with and without
// collisions.
func TestTrieAgainstMap(t *testing.T) {
	for name, test := range map[string]struct {
		in   *interner
		n    int
		most int
	}{
		"hashes":       {newInterner(), 40_000, 6},
		"crowded":      {crowded(), 40_000, 6},
		"long":         {crowded(), 6_000, 40},
		"no hashes":    {colliding(), 1_200, 3},
		"no hashes, 4": {colliding(), 1_200, 40},
		"exact":        {collidingUnlessExact(), 2_000, 9},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in
			if testing.Short() {
				test.n /= 2
			}
			all := many(rand.New(rand.NewPCG(1, 2)), test.n, test.most)
			want := map[string]*Shape{}
			owner := map[*Shape]string{}
			check := func(when string) {
				for text, s := range want {
					sizes := slices.Clone(s.sizes)
					got, err := in.static(sizes, false)
					if got != s || err != nil || packed(got.sizes) != text || unlocked(in, sizes) != s {
						t.Fatalf("%s: %s: got %v and without a lock %v, want the one of before", when, text, got, unlocked(in, sizes))
					}
				}
				if n := int(in.entries.Load()); n != len(want) {
					t.Fatalf("%s: got %d entries, want %d", when, n, len(want))
				}
			}
			for i, sizes := range all {
				s := of(t, in, sizes...)
				if other, ok := owner[s]; ok {
					t.Fatalf("%v: got the shape of %s", sizes, other)
				}
				want[packed(sizes)], owner[s] = s, packed(sizes)
				if i == len(all)/2 {
					check("half")
					in.clear()
				}
			}
			check("grown")
			in.shapes.sweep(promote)
			check("held")
			in.shapes.sweep(weaken)
			check("weak")
			runtime.GC()
			for range testEvery + 2 {
				in.shapes.sweep(routine)
				check("swept")
			}
			if name == "crowded" && in.shapes.roots[6].depth.Load() == 0 {
				t.Error("rank 6: got one crowded node, want children")
			}
			runtime.KeepAlive(owner)
		})
	}
}

// loneBytes returns the memory of the path to the only shape of an interner:
// the shape, a table for it, and the nodes above it, each with one child. The
// number of nodes depends on the classes of the words, which are random.
func loneBytes(t *testing.T, in *interner, s *Shape) int64 {
	t.Helper()
	n := &in.shapes.roots[len(s.sizes)]
	sum := s.bytes() + newStrong([]leaf[Shape]{{key: in.shapes.keys.of(s.sizes), value: s}}, n.depth.Load() == 0).bytes()
	for {
		children := n.children.Load()
		if n.level > 0 {
			sum += int(unsafe.Sizeof(*n))
		}
		if n.level > 0 || len(children.list) > 0 {
			sum += children.bytes()
		}
		if len(children.list) == 0 {
			return int64(sum)
		}
		if len(children.list) > 1 || n.strong.Load() != nil || n.weak.Load() != nil {
			t.Errorf("level %d: got %d children, %d and %d values, want one child alone", n.level, len(children.list), n.strong.Load().len(), n.weak.Load().len())
		}
		n = children.list[0].node
	}
}

// Unreachable shapes leave nothing behind: no entries, paths or bytes.
func TestPathsLeave(t *testing.T) {
	in := crowded()
	kept := of(t, in, 2, 2, 2, 77)
	for _, sizes := range many(rand.New(rand.NewPCG(3, 4)), 20_000, 6) {
		s := of(t, in, sizes...)
		if len(sizes) > 1 {
			if _, err := in.layout(s, sizes, Padded, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	peak := in.bytes.Load()
	if n := in.clear(); n != 1 {
		t.Errorf("got %d entries, want the one that is held", n)
	}
	if got, want := in.bytes.Load(), loneBytes(t, in, kept); got != want || in.peakBytes.Load() < peak || in.peakEntries.Load() < 5000 {
		t.Errorf("got %d bytes left, want %d; peaks of %d bytes and %d entries", got, want, in.peakBytes.Load(), in.peakEntries.Load())
	}
	if unlocked(in, []int{2, 2, 2, 77}) != kept {
		t.Error("got another shape for the one that is held")
	}
	kept = nil
	in.clear()
	for rank := range in.shapes.roots {
		if !in.shapes.roots[rank].isEmpty() || !in.layouts.roots[rank].isEmpty() {
			t.Errorf("rank %d: got something left", rank)
		}
	}
	if n, b := in.entries.Load(), in.bytes.Load(); n != 0 || b != 0 {
		t.Errorf("got %d entries and %d bytes left", n, b)
	}
}

// Sweeps that follow collections, as they run in a process, remove dropped
// shapes up to the slack. Shapes in use are held strongly then, also while
// others die.
func TestSweepsFollowTheDead(t *testing.T) {
	in := crowded()
	until := func(done func() bool) {
		for n := 0; n < 50*testEvery && !done(); n++ {
			runtime.GC()
			in.sweep()
		}
	}
	var live []*Shape
	for i := range 3000 {
		live = append(live, of(t, in, 5, i, 2))
	}
	for i := range 30_000 {
		of(t, in, i%9, i, 3)
	}
	// The sample is an estimate; twice the slack allows for its error.
	most := len(live) + 2*len(live)/slack
	if until(func() bool { return int(in.entries.Load()) <= most }); int(in.entries.Load()) > most {
		t.Errorf("got %d entries, want not many more than the %d in use", in.entries.Load(), len(live))
	}
	hot := func() (weak, held int) {
		in.shapes.walk(func(n *node[Shape]) { weak, held = weak+n.weak.Load().len(), held+n.strong.Load().len() })
		return weak, held
	}
	if until(func() bool { weak, held := hot(); return weak <= held/4 }); t.Failed() {
		t.FailNow()
	}
	if weak, held := hot(); weak > held/4 {
		t.Errorf("got %d held weakly and %d strongly, want nearly all strongly", weak, held)
	}
	for round := range 2 * testEvery {
		for i := range 3000 {
			of(t, in, 6, i, 3+round)
		}
		runtime.GC()
		in.sweep()
		if _, held := hot(); round > 4 && held < len(live)*3/4 {
			t.Errorf("storm, round %d: got %d held strongly, want nearly all of the %d in use", round, held, len(live))
		}
	}
	for _, s := range live {
		if unlocked(in, slices.Clone(s.sizes)) != s {
			t.Fatalf("%v: got another shape", s)
		}
	}
	live = nil
	if until(func() bool { return in.entries.Load() == 0 }); in.entries.Load() != 0 {
		t.Errorf("got %d entries, want none: they are few", in.entries.Load())
	}
}

// walk calls f for every node.
func (t *trie[T]) walk(f func(*node[T])) {
	var visit func(*node[T])
	visit = func(n *node[T]) {
		f(n)
		for _, k := range n.children.Load().list {
			visit(k.node)
		}
	}
	for rank := range t.roots {
		visit(&t.roots[rank])
	}
}

// A new shape that many goroutines request at the same time is created once.
func TestOneCreation(t *testing.T) {
	in := newInterner()
	const goroutines, count = 8, 3000
	var created [count]atomic.Int32
	var got [goroutines][count]*Shape
	var start, done sync.WaitGroup
	start.Add(1)
	for g := range goroutines {
		done.Go(func() {
			start.Wait()
			for i := range count {
				sizes := []int{3, i % 7, i}
				s, err := in.shapes.intern(sizes,
					func(s *Shape) bool { return slices.Equal(s.sizes, sizes) },
					func() *Shape { created[i].Add(1); return makeStatic(sizes, 3*(i%7)*i) })
				if err != nil {
					t.Error(err)
				}
				got[g][i] = s
			}
		})
	}
	start.Done()
	done.Wait()
	for i := range count {
		if n := created[i].Load(); n != 1 {
			t.Errorf("shape %d: got %d creations, want 1", i, n)
		}
		for g := range goroutines {
			if got[g][i] != got[0][i] {
				t.Errorf("shape %d: got different pointers", i)
			}
		}
	}
}

// A shape that was removed and created again is never compared with its
// predecessor: a pointer to the predecessor would have kept it.
func TestRecreation(t *testing.T) {
	in := newInterner()
	for i := range 20 {
		old := weak.Make(of(t, in, 8, i, 8))
		in.clear()
		if old.Value() != nil || unlocked(in, []int{8, i, 8}) != nil {
			t.Fatal("got a shape that nothing reaches, want it gone")
		}
		s := of(t, in, 8, i, 8)
		// Only the layout keeps its shape reachable.
		l, err := in.layout(s, []int{1, 8, 8 * i}, 0, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		s = nil
		in.clear()
		if of(t, in, 8, i, 8) != l.Shape() {
			t.Fatal("got another shape than that of a layout in use")
		}
		runtime.KeepAlive(l)
	}
}

func TestLimit(t *testing.T) {
	in := newInterner()
	in.limit.Store(100)
	var held []*Shape
	for i := range 60 {
		held = append(held, of(t, in, i, 1))
	}
	for i := range 5000 {
		of(t, in, i, 2) // unreachable at once, so each makes room for the next
	}
	for i := range 40 {
		held = append(held, of(t, in, i, 3))
	}
	for range 3 {
		if s, err := in.static([]int{9, 9, 9}, true); !errors.Is(err, ErrLimit) {
			t.Fatalf("got %v, error %v, want ErrLimit", s, err)
		}
	}
	if _, err := in.layout(held[0], []int{5, 5}, 0, 0, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("layout: got error %v, want ErrLimit", err)
	}
	for i, s := range held {
		if unlocked(in, slices.Clone(s.sizes)) != s {
			t.Fatalf("shape %d: got another one, want none evicted that is held", i)
		}
	}
	if n := in.peakEntries.Load(); n != 100 {
		t.Errorf("got a peak of %d entries, want 100", n)
	}
	held[0] = nil
	of(t, in, 9, 9, 9)
	runtime.KeepAlive(held)
}

// Stats' bytes agree with the heap, within a tenth.
func TestBytesAreHonest(t *testing.T) {
	in := newInterner()
	heap := func() int {
		in.clear()
		runtime.GC() // frees the tables that clear replaced
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	keep := make([]*Shape, 20_000)
	for i := range keep {
		keep[i] = of(t, in, 1+i%3, i%500, 64, i)
	}
	with, bytes := heap(), int(in.bytes.Load())
	clear(keep)
	const record = 32 // of a weak pointer, which the runtime allocates elsewhere
	got, want := bytes/len(keep)-record, (with-heap())/len(keep)
	if got < want*9/10 || got > want*11/10 {
		t.Errorf("got %d bytes for each shape by our account, %d by the heap's", got, want)
	}
	runtime.KeepAlive(keep)
}

// Layouts of one shape that differ in a flag or a stride are different.
func TestLayoutsKeptApart(t *testing.T) {
	for name, in := range map[string]*interner{"hashes": newInterner(), "no hashes": colliding()} {
		a, b := of(t, in, 4, 6), of(t, in, 6, 4)
		seen := map[*Layout]int{}
		for round := range 2 {
			for _, s := range []*Shape{a, b} {
				for stride := range 40 {
					for _, f := range []Flags{0, Padded} {
						l, err := in.layout(s, []int{stride, 1}, f, 0, 9)
						if err != nil {
							t.Fatal(err)
						}
						if l.Shape() != s || l.Strides()[0] != stride || l.Flags() != f {
							t.Fatalf("%s: got %v, want %v with stride %d and flags %d", name, l, s, stride, f)
						}
						seen[l] += round
					}
				}
			}
		}
		if len(seen) != 160 {
			t.Errorf("%s: got %d layouts, want 160", name, len(seen))
		}
		for l, n := range seen {
			if n != 1 {
				t.Errorf("%s: %v: found %d times again, want once", name, l, n)
			}
		}
	}
}

// An exact key can be decoded into its words, so no two paths of a length share
// one. Paths that do not fit have a hash.
func TestExactKeys(t *testing.T) {
	var k keys
	k.open()
	inverse := func(odd uint64) uint64 {
		x := odd
		for range 6 { // each step doubles the number of correct bits
			x *= 2 - odd*x
		}
		return x
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, maxPacked).Draw(rt, "words")
		width := 63 / max(n, 1)
		words := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 1<<width-1), rapid.IntRange(1<<width-2, 1<<width-1)), n, n).Draw(rt, "path")
		key, ok := k.exact(words)
		if !ok || key&1 == 0 || key != k.of(words) {
			rt.Fatalf("%v: got key %x, exact %v, and %x, want an odd one that is exact", words, key, ok, k.of(words))
		}
		packed := key * inverse(k.spread)
		packed ^= packed >> 32 &^ 1
		packed *= inverse(k.scale)
		for i, w := range words {
			if got := packed >> 1 >> ((n - 1 - i) * width) & (1<<width - 1); got != uint64(w) {
				rt.Fatalf("%v: got word %d from the key, want %d", words, got, w)
			}
		}
		side, all := k.pack(words)
		short, shortAll := side, all
		switch n {
		case 0:
			return
		case 2:
			short, shortAll = pack2((*[2]int)(words))
		case 3:
			short, shortAll = pack3((*[3]int)(words))
		case 4:
			short, shortAll = pack4((*[4]int)(words))
		}
		if side != short || all != shortAll {
			rt.Fatalf("%v: got them packed as %#x and %#x, want both alike", words, side, short)
		}
		i := rapid.IntRange(0, n-1).Draw(rt, "large")
		for _, w := range []int{1 << width, 1<<63 - 1, -1, -1 << 63} {
			large := slices.Clone(words)
			large[i] = w
			if n == 1 && w > 0 { // all non-negative words fit
				continue
			}
			if key, ok := k.exact(large); ok || k.of(large)&1 != 0 || k.of(large) == 0 {
				rt.Fatalf("%v: got key %x, exact %v, and %x, want an even one", large, key, ok, k.of(large))
			}
		}
	})
	if long := make([]int, maxPacked+1); k.of(long)&1 != 0 {
		t.Errorf("%v: got key %x, want an even one", long, k.of(long))
	}
}

// Tables agree with a map for any keys.
func TestTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(1, 5), rapid.Uint64Range(1, 1<<64-1)), 0, 60).Draw(rt, "keys")
		var leaves []leaf[int]
		want := map[uint64][]*int{}
		for i, k := range keys {
			v := new(int)
			*v = i
			leaves = append(leaves, leaf[int]{key: k, value: v})
			want[k] = append(want[k], v)
		}
		held, weak := newStrong(leaves[:len(leaves)/2], len(leaves)%2 == 0), newWeak(leaves[:len(leaves)/2], 0)
		for _, l := range leaves[len(leaves)/2:] {
			if weak == nil || weak.isFull() {
				weak = weak.grown()
				weak.add(l)
			} else {
				weak.add(l)
			}
			if held == nil || held.isFull() {
				held = newStrong(append(held.leaves(nil), l), len(leaves)%2 == 0)
			} else {
				held.add(l)
			}
		}
		for _, k := range append(keys, 7, 1<<63) {
			var fromHeld, fromWeak []*int
			for v, i := held.at(k, 0); v != nil; v, i = held.at(k, i) {
				fromHeld = append(fromHeld, v)
			}
			for v, i := weak.at(k, 0); v != nil; v, i = weak.at(k, i) {
				fromWeak = append(fromWeak, v)
			}
			if one := held.find(k); one == nil && len(fromHeld) == 1 || one != nil && !slices.Contains(fromHeld, one) {
				rt.Fatalf("key %d: found %v, want one of %v", k, one, fromHeld)
			}
			if !sameSet(fromHeld, want[k]) || !sameSet(fromWeak, want[k]) {
				rt.Fatalf("key %d: got %d values held and %d weak, want %d", k, len(fromHeld), len(fromWeak), len(want[k]))
			}
		}
		if held.len() != len(keys) || weak.len() != len(keys) {
			rt.Fatalf("got %d held and %d weak, want %d", held.len(), weak.len(), len(keys))
		}
		runtime.KeepAlive(leaves)
	})
}

func sameSet(a, b []*int) bool {
	less := func(x, y *int) int { return *x - *y }
	return slices.Equal(slices.SortedFunc(slices.Values(a), less), slices.SortedFunc(slices.Values(b), less))
}
