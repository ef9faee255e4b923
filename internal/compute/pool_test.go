package compute

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/op"
)

// counting returns a task whose tile i adds 1 to hits[i].
func counting(tiles int) (*Task, []atomic.Int32) {
	hits := make([]atomic.Int32, tiles)
	call := &op.Call{Sig: &op.Sig{Def: &op.Def{Name: "counting"}}}
	return taskOf(call, tiles, &funcs{tile: func(i int, _ []byte) { hits[i].Add(1) }}), hits
}

func TestPoolRunsEveryTileOnce(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 5} {
		p := NewPool(threads)
		for _, tiles := range []int{0, 1, 2, 3, 64} {
			task, hits := counting(tiles)
			for round := range 50 {
				if err := p.Run(nil, task, nil); err != nil {
					t.Fatal(err)
				}
				for i := range hits {
					if got := hits[i].Load(); got != int32(round+1) {
						t.Fatalf("%d threads, %d tiles, round %d: tile %d ran %d times", threads, tiles, round, i, got)
					}
				}
			}
		}
		p.Close()
		p.Close()
	}
}

func TestPoolCloses(t *testing.T) {
	for i := range 300 {
		p := NewPool(3)
		time.Sleep(spinTime + time.Duration(i%20-10)*time.Microsecond) // about when workers park
		p.Close()
	}
}

func TestPoolScratchIsPerWorker(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	task, _ := counting(200)
	task.Scratch = 64
	funcsOf(task).tile = func(i int, scratch []byte) {
		if len(scratch) != 64 || cap(scratch) != 64 {
			t.Errorf("tile %d: got %d bytes of scratch (cap %d), want 64", i, len(scratch), cap(scratch))
		}
		for k := range scratch { // the race detector sees two workers in one part
			scratch[k] = byte(i)
		}
		for k := range scratch {
			if scratch[k] != byte(i) {
				t.Errorf("tile %d: another worker wrote into the scratch", i)
				return
			}
		}
	}
	scratch := make([]byte, 4*64)
	for range 20 {
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPoolConcurrentRuns(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var wg sync.WaitGroup
	for range 2 * maxJobs {
		wg.Go(func() {
			task, hits := counting(17)
			for range 100 {
				if err := p.Run(nil, task, nil); err != nil {
					t.Error(err)
				}
			}
			for i := range hits {
				if got := hits[i].Load(); got != 100 {
					t.Errorf("tile %d ran %d times, want 100", i, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestPoolStopsBetweenTiles(t *testing.T) {
	for _, threads := range []int{1, 3} {
		p := NewPool(threads)
		task, _ := counting(1000)
		done := make(chan struct{})
		var ran atomic.Int32
		funcsOf(task).tile = func(int, []byte) {
			switch n := ran.Add(1); {
			case n == 5:
				close(done)
			case n > 5:
				<-done // however long the fifth takes to close it
			}
		}
		err := p.Run(done, task, nil)
		if !errors.Is(err, ErrStopped) {
			t.Fatalf("got %v, want ErrStopped", err)
		}
		if n := int(ran.Load()); n < 5 || n >= 5+threads {
			t.Errorf("%d threads: %d tiles ran, want 5 and at most one more per other worker", threads, n)
		}
		funcsOf(task).start = func() error { t.Error("Start of a run that was stopped before it began"); return nil }
		if err := p.Run(done, task, nil); !errors.Is(err, ErrStopped) {
			t.Fatalf("got %v, want ErrStopped", err)
		}
		p.Close()
	}
}

func TestPoolStartAndFinish(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	boom := errors.New("boom")
	task, hits := counting(4)
	task.Call.Node = "n1"
	funcsOf(task).start = func() error { return boom }
	err := p.Run(nil, task, nil)
	if err != boom {
		t.Fatalf("got %v, want boom alone: callers name the call", err)
	}
	if hits[0].Load() != 0 {
		t.Error("a tile ran although Start failed")
	}
	funcsOf(task).start, funcsOf(task).finish = nil, func() error {
		for i := range hits {
			if hits[i].Load() != 1 {
				t.Errorf("Finish before tile %d", i)
			}
		}
		return boom
	}
	if err := p.Run(nil, task, nil); !errors.Is(err, boom) {
		t.Fatalf("got %v, want boom", err)
	}
}

func TestPoolPanicOfOurKernel(t *testing.T) {
	for _, threads := range []int{1, 4} {
		p := NewPool(threads)
		task, _ := counting(100)
		funcsOf(task).tile = func(i int, _ []byte) {
			if i == 42 {
				panic("index out of range")
			}
		}
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "BUG: ") || !strings.Contains(s, "counting") {
					t.Errorf("%d threads: got panic %q, want BUG: with the operator", threads, s)
				}
			}()
			p.Run(nil, task, nil)
			t.Errorf("%d threads: no panic", threads)
		}()
		good, hits := counting(10)
		if err := p.Run(nil, good, nil); err != nil || hits[9].Load() != 1 {
			t.Errorf("%d threads: the pool is of no use after a panic: %v", threads, err)
		}
		p.Close()
	}
}

func TestPoolRunAllocatesNothing(t *testing.T) {
	for _, threads := range []int{1, 3} {
		p := NewPool(threads)
		task, _ := counting(32)
		task.Scratch = 64
		scratch := make([]byte, 3*64)
		done := make(chan struct{})
		if n := fewestAllocs(200, func() { p.Run(done, task, scratch) }); n != 0 {
			t.Errorf("%d threads: got %v allocations per run, want 0", threads, n)
		}
		p.Close()
	}
}

func TestUserKernel(t *testing.T) {
	boom := errors.New("boom")
	mode := ""
	def := &op.Def{
		Name:    "acme.fill",
		Scratch: func(*op.Sig) (int, error) { return 100, nil },
		Kernel: func(c *op.Call) error {
			if len(c.Scratch) != 100 {
				t.Errorf("got %d bytes of scratch, want 100", len(c.Scratch))
			}
			switch mode {
			case "error":
				return boom
			case "panic":
				var empty []byte
				_ = empty[len(c.Scratch)]
			}
			return nil
		},
	}
	c := &op.Call{Sig: &op.Sig{Def: def}, Node: "n7"}
	if _, err := Bind(&op.Call{Sig: &op.Sig{Def: &op.Def{Name: "relu"}}}); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("another operator named relu: got %v, want ErrUnsupported", err)
	}
	if !Supported(def) || Supported(&op.Def{Name: "acme.none"}) || Supported(&op.Def{Name: "relu"}) {
		t.Error("Supported: want true with a kernel, false without")
	}
	if err := Eval(c); err != nil {
		t.Error(err)
	}
	mode = "error"
	if err := Eval(c); err != boom {
		t.Errorf("got %v, want boom alone: callers name the call", err)
	}
	mode = "panic"
	p := NewPool(2)
	defer p.Close()
	task, err := Bind(c)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Run(nil, task, make([]byte, 2*task.Scratch))
	if err == nil || !strings.Contains(err.Error(), "index out of range") || !strings.Contains(err.Error(), "at pool_test.go:") {
		t.Errorf("got %v, want the panic with its place", err)
	}
	mode = ""
	if err := p.Run(nil, task, make([]byte, 2*task.Scratch)); err != nil {
		t.Errorf("run after a panic: %v", err)
	}
}

// TestPoolCrowdedWorkersRest puts the workers on their caller's processor,
// where they leave everything to it, and then on another one.
func TestPoolCrowdedWorkersRest(t *testing.T) {
	var asked, apart atomic.Int64
	p := newPool(3, func() int {
		if asked.Add(1) > 1 { // the caller asks first, before a worker can join
			return 7 + int(apart.Load())
		}
		return 7
	}, func() bool { return false })
	scratch := make([]byte, 3*64)
	task, hits := counting(40)
	task.Scratch = 64
	var byWorkers atomic.Int32
	funcsOf(task).tile = func(i int, part []byte) {
		hits[i].Add(1)
		if &part[0] != &scratch[0] {
			byWorkers.Add(1)
		}
		time.Sleep(10 * time.Microsecond)
	}
	run := func() {
		asked.Store(0)
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatal(err)
		}
	}
	for range 15 {
		run()
	}
	if n := byWorkers.Load(); n != 0 {
		t.Errorf("on one processor: got %d tiles run by workers, want 0", n)
	}
	apart.Store(1)
	for start := time.Now(); byWorkers.Load() == 0 && time.Since(start) < 10*time.Second; {
		run()
	}
	if byWorkers.Load() == 0 {
		t.Error("on two processors: no worker helped in 10 s")
	}
	for i := range hits {
		if hits[i].Load() != hits[0].Load() {
			t.Fatalf("tile %d ran %d times, tile 0 %d times", i, hits[i].Load(), hits[0].Load())
		}
	}
	apart.Store(0)
	for range 5 {
		run()
	}
	p.Close() // ends workers that rest
}

// TestPoolCrowdedWorkersMove puts a worker on its caller's processor, which it
// can leave.
func TestPoolCrowdedWorkersMove(t *testing.T) {
	var moved atomic.Int64
	var asked atomic.Bool
	p := newPool(2, func() int {
		if !asked.Swap(true) { // the caller asks first
			return 7
		}
		return 7 + int(moved.Load())
	}, func() bool { moved.Add(1); return true })
	defer p.Close()
	scratch := make([]byte, 2*64)
	task, _ := counting(40)
	task.Scratch = 64
	var byWorker atomic.Int32
	funcsOf(task).tile = func(_ int, part []byte) {
		if &part[0] != &scratch[0] {
			byWorker.Add(1)
			if moved.Load() == 0 {
				t.Error("a tile was run by a worker on its caller's processor")
			}
		}
		time.Sleep(10 * time.Microsecond)
	}
	for start := time.Now(); byWorker.Load() == 0 && time.Since(start) < 10*time.Second; {
		asked.Store(false)
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatal(err)
		}
	}
	if byWorker.Load() == 0 || moved.Load() != 1 {
		t.Errorf("got %d tiles run by a worker that moved %d times, want some and once", byWorker.Load(), moved.Load())
	}
	if p.rests(&p.workers[0]) {
		t.Error("got a worker that rests, want one that helps: it had moved")
	}
}

// TestPoolWokenWorkersMove wakes a worker for a job that is over when it comes.
func TestPoolWokenWorkersMove(t *testing.T) {
	moved := make(chan bool, 8)
	p := newPool(2, func() int { return 7 }, func() bool { moved <- true; return true })
	defer p.Close()
	w := &p.workers[0]
	wake := func(place int) {
		for start := time.Now(); !w.unpark(place); time.Sleep(time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				t.Fatal("got a worker that looks for work after 10 s, want one that is parked")
			}
		}
	}
	for _, place := range []int{-1, 6} {
		wake(place)
	}
	wake(7) // it has parked again, so it stayed where it was
	select {
	case <-moved:
	case <-time.After(10 * time.Second):
		t.Fatal("got a worker that stays on the processor of the caller that woke it")
	}
	if len(moved) > 0 {
		t.Error("got a worker that moved although the caller was elsewhere")
	}
}

// TestPoolLateWorkersRest has a worker stay in a tile for long after its
// caller has none left.
func TestPoolLateWorkersRest(t *testing.T) {
	p := newPool(2, func() int { return -1 }, nil)
	defer p.Close()
	w, j := &p.workers[0], &p.jobs[0]
	scratch := make([]byte, 2*64)
	task, _ := counting(40)
	task.Scratch = 64
	var slow, byWorker atomic.Int32
	var began atomic.Int64
	funcsOf(task).tile = func(_ int, part []byte) {
		if &part[0] == &scratch[0] {
			time.Sleep(10 * time.Microsecond) // lets the worker come
			return
		}
		byWorker.Add(1)
		if slow.CompareAndSwap(0, 1) {
			for j.state.Load()&waiting == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20*time.Millisecond + 2*time.Duration(time.Now().UnixNano()-began.Load()))
		}
	}
	run := func() (tiles int32, rests bool) {
		byWorker.Store(0)
		began.Store(time.Now().UnixNano())
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatal(err)
		}
		return byWorker.Load(), p.rests(w)
	}
	for start := time.Now(); slow.Load() == 0 && time.Since(start) < 10*time.Second; {
		run()
	}
	if slow.Load() == 0 || w.owes.Load() == 0 {
		t.Fatalf("got a worker that was slow %d times and owes until %d, want once and a time", slow.Load(), w.owes.Load())
	}
	for range 3 {
		if tiles, rests := run(); rests && tiles != 0 {
			t.Errorf("got %d tiles run by a worker that rests, want 0", tiles)
		}
	}
	for start := time.Now(); byWorker.Load() == 0 && time.Since(start) < 10*time.Second; {
		run()
	}
	if byWorker.Load() == 0 {
		t.Error("no worker helped in 10 s after its rest")
	}
}

// TestPoolCharge has a worker make its caller wait, for longer and longer.
func TestPoolCharge(t *testing.T) {
	p := newPool(1, nil, nil)
	var w worker
	if p.rests(&w) {
		t.Error("got a worker that rests, want one that owes nothing to help")
	}
	p.charge(&w, maxWaits)
	if p.rests(&w) {
		t.Errorf("got a worker that rests after %v in vain, want one that helps", maxWaits)
	}
	before := w.owes.Load()
	p.charge(&w, time.Millisecond)
	if got := time.Duration(w.owes.Load() - before); got < restFactor*time.Millisecond {
		t.Errorf("got %v more of debts for a millisecond, want %v", got, restFactor*time.Millisecond)
	}
	for range 3 {
		p.charge(&w, time.Hour)
		if most := time.Since(p.start) + restFactor*maxWaits + longRest; time.Duration(w.owes.Load()) > most || !p.rests(&w) {
			t.Errorf("got debts until %v and a rest: %t, want %v at most and true", time.Duration(w.owes.Load()), p.rests(&w), most)
		}
	}
}

// TestJobClaim lets workers claim tiles: first those of their own portion in
// order, then what others have left.
func TestJobClaim(t *testing.T) {
	for _, tiles := range []int{0, 1, 2, 3, 10, 64} {
		j := job{portions: make([]portion, 3)}
		j.divide(tiles)
		claimed := make([]int, tiles)
		for _, worker := range []int{1, 2} {
			for want := worker * tiles / 3; want < (worker+1)*tiles/3; want++ {
				tile := j.claim(worker)
				if tile != want {
					t.Fatalf("%d tiles: worker %d got tile %d, want %d, the next of its own", tiles, worker, tile, want)
				}
				claimed[tile]++
			}
		}
		for tile := j.claim(2); tile >= 0; tile = j.claim(2) {
			claimed[tile]++
		}
		for i, n := range claimed {
			if n != 1 {
				t.Errorf("%d tiles: tile %d was claimed %d times, want once", tiles, i, n)
			}
		}
	}
}
