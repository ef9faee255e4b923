package shape

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// shadow records outside of the trie which shapes are in use.
type shadow struct {
	mu   sync.Mutex
	held map[[3]int]*holding
}

type holding struct {
	shape   *Shape
	holders int
}

// take records that a goroutine uses the shape, and reports whether all
// goroutines that use a shape with these sizes use the same one.
func (w *shadow) take(sizes [3]int, s *Shape) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[sizes]
	if h == nil {
		h = &holding{shape: s}
		w.held[sizes] = h
	}
	h.holders++
	return h.shape == s
}

func (w *shadow) drop(sizes [3]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.held[sizes]; h.holders > 1 {
		h.holders--
	} else {
		delete(w.held, sizes)
	}
}

// Goroutines intern, keep and drop the same few shapes and many of their own,
// while others collect, sweep and clear. Two live equal shapes are never
// different pointers.
func TestStorm(t *testing.T) {
	in := crowded()
	w := &shadow{held: map[[3]int]*holding{}}
	rounds := 60_000
	if testing.Short() {
		rounds = 15_000
	}
	stop := make(chan struct{})
	var collectors, workers sync.WaitGroup
	for _, f := range []func(){in.sweep, runtime.GC, func() { in.clear() }} {
		collectors.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
					runtime.Gosched() // nothing preempts this loop in WebAssembly
				}
			}
		})
	}
	for g := range 8 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(g)))
			var mine [32][3]int
			for i := range rounds {
				sizes := [3]int{r.IntN(3), r.IntN(40), r.IntN(40)} // shared by all
				if i%2 == 0 {
					sizes = [3]int{g, 100 + i, 1}
				}
				s := of(t, in, sizes[:]...)
				if [3]int(s.Sizes()) != sizes {
					t.Errorf("%v: got %v", sizes, s)
					return
				}
				if !w.take(sizes, s) {
					t.Errorf("%v: got a second shape while another is held", sizes)
					return
				}
				if slot := i % len(mine); i >= len(mine) {
					w.drop(mine[slot])
				}
				mine[i%len(mine)] = sizes
			}
			for _, sizes := range mine {
				w.drop(sizes)
			}
		})
	}
	workers.Wait()
	close(stop)
	collectors.Wait()
	if n := in.clear(); n != 0 || len(w.held) != 0 || in.bytes.Load() != 0 {
		t.Errorf("after the storm: got %d entries, %d bytes and %d held, want none", n, in.bytes.Load(), len(w.held))
	}
}
