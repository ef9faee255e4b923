package shape

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
)

// Equal shapes are one pointer in all goroutines, also while the collector
// removes shapes between uses.
func TestInterningUnderGC(t *testing.T) {
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for g := range 8 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 2000 {
				dims := []Dim{N(r.IntN(4)), Sym(fmt.Sprint("s", r.IntN(3))), N(r.IntN(3))}
				a, err := FromDims(dims...)
				b, err2 := FromDims(dims...)
				if err != nil || err2 != nil || a != b {
					t.Errorf("%v: got %p and %p, errors %v and %v, want one shape", dims, a, b, err, err2)
					return
				}
				x, y := MustOf(r.IntN(3), 2), MustOf(2, r.IntN(3))
				if (x == y) != (x.String() == y.String()) {
					t.Errorf("got %s at %p and %s at %p", x, x, y, y)
					return
				}
				if l := RowMajor(x); l != RowMajor(x) || l.Shape() != x {
					t.Errorf("%s: got two layouts, or one of another shape", x)
					return
				}
				if r.IntN(64) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
}

// Goroutines that intern the same new shapes at the same time get the same
// pointers.
func TestInterningRace(t *testing.T) {
	const goroutines, count = 8, 300
	var got [goroutines][count]*Shape
	var start, done sync.WaitGroup
	start.Add(1)
	for g := range goroutines {
		done.Go(func() {
			start.Wait()
			for i := range count {
				got[g][i] = MustOf(77, i, 3)
			}
		})
	}
	start.Done()
	done.Wait()
	for g := 1; g < goroutines; g++ {
		if got[g] != got[0] {
			t.Fatalf("goroutine %d got other pointers than goroutine 0", g)
		}
	}
}

// Shapes that differ are different pointers.
func TestInterningKeepsShapesApart(t *testing.T) {
	// Symbols whose bytes look like the parts of a key.
	two, err := FromDims(Sym("a"), Sym("b"))
	one, err2 := FromDims(Sym("a\x02b"))
	if err != nil || err2 != nil || one == two {
		t.Errorf("%s and %s: got one shape, errors %v and %v", one, two, err, err2)
	}
	dim := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]int{0, 1, 2, 12, 127, 128, 1 << 19}), N),
		rapid.Map(rapid.SampledFrom([]string{"a", "b", "ab", "", "\x01", "1", "?", "a,b"}), Sym),
	)
	dims := rapid.SliceOfN(dim, 0, 3)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := dims.Draw(rt, "a"), dims.Draw(rt, "b")
		same := len(a) == len(b)
		for i := 0; same && i < len(a); i++ {
			same = a[i] == b[i]
		}
		x, err := FromDims(a...)
		y, err2 := FromDims(b...)
		if err != nil || err2 != nil {
			rt.Fatal(err, err2)
		}
		if (x == y) != same {
			rt.Fatalf("%v and %v: got %p and %p", a, b, x, y)
		}
		for i, d := range a {
			if x.Dim(i) != d {
				rt.Fatalf("%v: got %v at %d", a, x.Dim(i), i)
			}
		}
	})
}

// An unreachable shape is removed from the table with its layouts; one that is
// reachable stays.
func TestUnreachableShapesLeave(t *testing.T) {
	held := MustOf(9, 9, 9, 9)
	layout, err := Strided(held, 1, 9, 81, 729)
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		for i := range 5000 {
			if _, err := Strided(MustOf(i, 8, 8), 1, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	const most = 1000 // that other tests may use
	for end := time.Now().Add(time.Minute); Stats().Entries >= most && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond) // sweeps run on a goroutine of their own
	}
	if n := Stats().Entries; n >= most {
		t.Errorf("got %d shapes and layouts after collections, want those of the test gone", n)
	}
	if l, err := Strided(held, 1, 9, 81, 729); err != nil || MustOf(9, 9, 9, 9) != held || l != layout {
		t.Errorf("got another shape or layout while the first is held")
	}
	runtime.KeepAlive(layout)
}

// A shape in use stays the one pointer even if a successor of a collected shape
// took its key.
func TestSuccessorOfACollectedShape(t *testing.T) {
	for range 50 {
		MustOf(5, 4, 3, 2, 1) // unreachable at once
		runtime.GC()
		s := MustOf(5, 4, 3, 2, 1)
		runtime.GC() // the cleanup of the first may run now
		if MustOf(5, 4, 3, 2, 1) != s {
			t.Fatal("got another shape while one is held")
		}
		runtime.KeepAlive(s)
	}
}

func TestInterningHitsDoNotAllocate(t *testing.T) {
	batch := Sym("batch")
	a, b := MustOf(1, 3, 224, 224), MustOf(3, 1, 1)
	wide := MustOf(1, 2, 3, 4, 5, 6, 7, 8)
	sym, err := FromDims(batch, N(3), Unknown)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := Strided(a, 1, 2, 0, -4)
	if err != nil {
		t.Fatal(err)
	}
	row := RowMajor(a)
	tests := map[string]func() bool{
		"Of":        func() bool { s, _ := Of(1, 3, 224, 224); return s == a },
		"Of rank 8": func() bool { s, _ := Of(1, 2, 3, 4, 5, 6, 7, 8); return s == wide },
		"Scalar":    func() bool { return Scalar().Rank() == 0 },
		"FromDims":  func() bool { s, _ := FromDims(batch, N(3), Unknown); return s == sym },
		"Broadcast": func() bool { s, _ := Broadcast(a, b); return s == a },
		"RowMajor":  func() bool { return RowMajor(a) == row },
		"Strided":   func() bool { l, _ := Strided(a, 1, 2, 0, -4); return l == layout },
		"Bytes":     func() bool { n, _ := Bytes(dtype.F32, a); return n == 4*3*224*224 },
	}
	for name, f := range tests {
		if n := testing.AllocsPerRun(100, func() {
			if !f() {
				t.Errorf("%s: got another value", name)
			}
		}); n != 0 {
			t.Errorf("%s: got %v allocations, want none", name, n)
		}
	}
	runtime.KeepAlive(wide)
}

// Wherever the table starts in memory, no two stripes share a cache line.
func TestStripesAreApart(t *testing.T) {
	var tr trie[Shape]
	if pad := unsafe.Sizeof(tr.making[0]) - unsafe.Sizeof(tr.making[0].Mutex); pad < 64-1 {
		t.Errorf("got %d bytes between stripes, want a cache line", pad)
	}
}

func TestLongSymbols(t *testing.T) {
	long := strings.Repeat("past + new ", 100)
	a, err := FromDims(Sym(long), N(1))
	b, err2 := FromDims(Sym(long), N(1))
	if err != nil || err2 != nil || a != b {
		t.Errorf("got %p and %p, errors %v and %v, want one shape", a, b, err, err2)
	}
}
