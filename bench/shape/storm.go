package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/shape"
)

const (
	inHand = 64  // shapes that a goroutine holds at a time
	common = 500 // shapes that all goroutines make again and again
	shards = 64  // of the map that knows who holds what
)

// ledger knows from outside which shapes are held, and that equal ones are
// one pointer.
type ledger [shards]struct {
	sync.Mutex
	held map[[3]int]*holding
}

type holding struct {
	shape   *shape.Shape
	holders int
}

func (l *ledger) take(sizes [3]int, s *shape.Shape) error {
	part := &l[(sizes[0]*31+sizes[1]*7+sizes[2])%shards]
	part.Lock()
	defer part.Unlock()
	h := part.held[sizes]
	if h == nil {
		h = &holding{shape: s}
		part.held[sizes] = h
	}
	h.holders++
	if h.shape != s {
		return fmt.Errorf("got two shapes %v at the same time", s)
	}
	return nil
}

func (l *ledger) drop(sizes [3]int) {
	part := &l[(sizes[0]*31+sizes[1]*7+sizes[2])%shards]
	part.Lock()
	defer part.Unlock()
	if h := part.held[sizes]; h.holders > 1 {
		h.holders--
	} else {
		delete(part.held, sizes)
	}
}

func storm(shapes, goroutines int, output results.Output) error {
	if shapes < 1 || goroutines < 1 {
		return fmt.Errorf("storm: got %d shapes and %d goroutines, want at least one of each", shapes, goroutines)
	}
	var l ledger
	for i := range l {
		l[i].held = map[[3]int]*holding{}
	}
	shape.Clear()
	before, entries := heap(), shape.Stats().Entries
	var said strings.Builder
	fmt.Fprintf(&said, "before: %6d entries, heap %.1f MiB\n", entries, mib(before))

	var peak atomic.Uint64
	stop := make(chan struct{})
	go watch(&peak, stop)
	start := time.Now()
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() { errs[g] = blow(&l, g, goroutines, shapes) })
	}
	all.Wait()
	took := time.Since(start)
	close(stop)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s := shape.Stats()
	fmt.Fprintf(&said, "storm:  %d different shapes by %d goroutines in %.1f s, %.2f million/s; at most %d entries of %.1f MiB, heap %.1f MiB\n",
		shapes, goroutines, took.Seconds(), float64(shapes)/took.Seconds()/1e6, s.PeakEntries, mib(uint64(s.PeakBytes)), mib(peak.Load()))
	for i := 0; i < 100 && shape.Stats().Entries > entries; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintf(&said, "after:  %6d entries when collections had passed\n", shape.Stats().Entries)
	left := shape.Clear()
	after := heap()
	fmt.Fprintf(&said, "clear:  %6d entries, heap %.1f MiB\n", left, mib(after))
	if left > entries || after > before+1<<20 {
		return fmt.Errorf("storm: got %d entries and %.1f MiB left, want what was there before", left, mib(after))
	}
	r := results.New("shape storm", nil, "shapes", "goroutines")
	r.Command = fmt.Sprintf("go run ./shape storm -shapes %d -goroutines %d", shapes, goroutines)
	r.Add([]string{strconv.Itoa(shapes), strconv.Itoa(goroutines)}, results.Once("s", took.Seconds()), results.Once("most entries", float64(s.PeakEntries)),
		results.Once("entries MiB", mib(uint64(s.PeakBytes))), results.Once("most heap MiB", mib(peak.Load())), results.Once("heap left MiB", mib(after)))
	return output.Write(os.Stdout, r, func(w io.Writer) error {
		_, err := io.WriteString(w, said.String())
		return err
	})
}

// blow makes every goroutines'th shape from g on, and in between those that
// the others make too.
func blow(l *ledger, g, goroutines, shapes int) error {
	var hand [inHand][3]int
	for i, n := g, 0; i < shapes; i += goroutines {
		for _, sizes := range [2][3]int{{1 + i%8, 1000 + i/8%2000, i / 16000}, {9, i * 7 % common, 1}} {
			s, err := shape.Of(sizes[:]...)
			if err == nil {
				err = l.take(sizes, s)
			}
			if err != nil {
				return err
			}
			if n >= inHand {
				l.drop(hand[n%inHand])
			}
			hand[n%inHand] = sizes
			n++
		}
	}
	return nil
}

// watch keeps the largest heap that it sees.
func watch(peak *atomic.Uint64, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
