package compute

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/ended"
)

// ErrStopped is the error of a run that was stopped between tiles. A
// caller that has the context adds the cause.
var ErrStopped = errors.New("stopped")

const (
	// maxJobs bounds the runs that share the workers of one pool; further
	// runs are done by their callers alone.
	maxJobs = 8

	// spinTime is how long an idle worker looks for work before it parks:
	// waking a parked one costs a hundred microseconds, a few tiles, and it
	// may come back on its caller's processor.
	spinTime = 200 * time.Microsecond

	// A worker whose processor the system assigns to another process, so that
	// its caller waits in vain, is charged restFactor times the wait. Once the
	// charge is for more than maxWaits of waiting, it takes no tile until that
	// time has passed: the caller loses at most 1/restFactor of its time.
	restFactor = 20
	maxWaits   = 5 * time.Millisecond
	longRest   = time.Second // the most that it rests at a time
)

// Pool is a fixed set of workers that run the tiles of tasks. The goroutine
// that calls Run takes part as one more worker and can finish a task alone, so
// busy or descheduled workers delay a run by the tile that they are in at
// most, and rest after that. A worker on its caller's processor, where it
// would only delay the caller, moves to another one, or takes no tile.
type Pool struct {
	jobs     [maxJobs]job
	workers  []worker
	spinning atomic.Int32
	closed   atomic.Bool
	done     sync.WaitGroup
	start    time.Time
	place    func() int  // the processor of the calling thread, or -1
	leave    func() bool // moves the calling thread to another processor, if there is one
}

type worker struct {
	owes   atomic.Int64 // the time of the pool until which it owes its callers
	parked atomic.Bool
	wake   chan int // capacity 1; the goroutine that clears parked sends the processor of a caller, or -1
}

// NewPool starts a pool that runs tasks on the given number of threads, the
// caller of Run included: it has threads-1 goroutines of its own. threads < 1
// counts as 1.
func NewPool(threads int) *Pool { return newPool(threads, cpu.Place, cpu.Leave) }

func newPool(threads int, place func() int, leave func() bool) *Pool {
	p := &Pool{workers: make([]worker, max(threads, 1)-1), start: time.Now(), place: place, leave: leave}
	for i := range p.jobs {
		p.jobs[i].idle = make(chan struct{}, 1)
		p.jobs[i].portions = make([]portion, p.Threads())
	}
	p.done.Add(len(p.workers))
	for i := range p.workers {
		p.workers[i].wake = make(chan int, 1)
		go p.work(i)
	}
	return p
}

// Threads returns the number of workers, callers of Run counted as one.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Close ends the workers and waits for them. No run may be in progress, and
// none may follow.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	for i := range p.workers {
		p.workers[i].unpark(-1)
	}
	p.done.Wait()
}

// Run runs the task: Start, all tiles, Finish. scratch holds Threads()
// parts of t.Scratch bytes. When done closes, the run stops before its next
// tile and returns [ErrStopped]; results are then partly written. Runs may be
// called from several goroutines at once.
func (p *Pool) Run(done <-chan struct{}, t *Task, scratch []byte) error {
	if need := t.Scratch * p.Threads(); len(scratch) < need {
		panic(fmt.Sprintf("BUG: compute: %s: got %d bytes of scratch, want %d", where(t), len(scratch), need))
	}
	if ended.Closed(done) {
		return ErrStopped
	}
	if err := t.Start(); err != nil {
		return err
	}
	var ok bool
	if j := p.take(t); j != nil {
		ok = p.share(j, done, t, scratch)
	} else {
		ok = runAlone(done, t, scratch)
	}
	if !ok {
		return ErrStopped
	}
	return t.Finish()
}

func runAlone(done <-chan struct{}, t *Task, scratch []byte) bool {
	defer func() {
		if r := recover(); r != nil {
			panic(bugIn(t, r))
		}
	}()
	for i := range t.Tiles {
		if ended.Closed(done) {
			return false
		}
		t.Tile(i, scratch[:t.Scratch:t.Scratch])
	}
	return true
}

// take returns a free slot, nil when the work cannot be shared or sharing it is
// no use.
func (p *Pool) take(t *Task) *job {
	if t.Tiles < 2 || t.inOrder || len(p.workers) == 0 {
		return nil
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; !j.taken.Load() && j.taken.CompareAndSwap(false, true) {
			return j
		}
	}
	return nil
}

// share runs the tiles on the caller and whichever workers are free. It
// reports whether all were run.
func (p *Pool) share(j *job, done <-chan struct{}, t *Task, scratch []byte) bool {
	j.task, j.scratch, j.cancel = t, scratch, done
	j.canceled.Store(false)
	j.panicked.Store(nil)
	j.divide(t.Tiles)
	place := p.place()
	j.place.Store(int64(place))
	j.state.Store(open)
	p.rouse(t.Tiles-1, place)
	start := time.Now()
	j.drain(0)
	p.await(j, time.Since(start))
	canceled, panicked := j.canceled.Load(), j.panicked.Load()
	j.task, j.scratch, j.cancel = nil, nil, nil
	j.taken.Store(false)
	if panicked != nil {
		panic(*panicked)
	}
	return !canceled
}

// rouse wakes parked workers until n have been called on, those that spin and
// find the job themselves included. place is the caller's processor.
func (p *Pool) rouse(n, place int) {
	n -= int(p.spinning.Load())
	for i := range p.workers {
		if n <= 0 {
			return
		}
		if w := &p.workers[i]; w.parked.Load() && !p.rests(w) && w.unpark(place) {
			n--
		}
	}
}

func (w *worker) unpark(place int) bool {
	if !w.parked.CompareAndSwap(true, false) {
		return false
	}
	w.wake <- place
	return true
}

// rests reports whether a worker is to take no tile.
func (p *Pool) rests(w *worker) bool {
	owes := w.owes.Load()
	return owes != 0 && owes-int64(time.Since(p.start)) > int64(restFactor*maxWaits)
}

// charge notes that a worker made its caller wait in vain.
func (p *Pool) charge(w *worker, inVain time.Duration) {
	now := int64(time.Since(p.start))
	owes := max(w.owes.Load(), now) + int64(restFactor*min(inVain, longRest))
	w.owes.Store(min(owes, now+int64(restFactor*maxWaits+longRest)))
}

// await returns when no worker is inside any more. If that takes longer than
// the caller worked for, it waited in vain.
func (p *Pool) await(j *job, worked time.Duration) {
	if j.state.Load() == 0 {
		return
	}
	start := time.Now()
	if runtime.GOMAXPROCS(0) > 1 {
		for time.Since(start) < spinTime {
			for range 64 {
				if j.state.Load() == 0 {
					return
				}
			}
		}
	}
	slow := -1
	for i := range p.workers {
		if j.portions[i+1].inside.Load() {
			slow = i
		}
	}
	for {
		s := j.state.Load()
		if s == 0 {
			break
		}
		if j.state.CompareAndSwap(s, s|waiting) {
			<-j.idle
			j.state.Store(0)
			break
		}
	}
	if inVain := time.Since(start) - worked; inVain > 0 && slow >= 0 {
		p.charge(&p.workers[slow], inVain)
	}
}

// work is the life of one worker.
func (p *Pool) work(i int) {
	defer p.done.Done()
	for !p.closed.Load() {
		if !p.help(i) && !p.spin(&p.workers[i]) {
			p.park(&p.workers[i])
		}
	}
}

// help takes part in one job, if any has tiles left. On the processor of the
// job's caller it moves instead.
func (p *Pool) help(i int) bool {
	w := &p.workers[i]
	if p.rests(w) {
		return false
	}
	for k := range p.jobs {
		j := &p.jobs[(i+k)%maxJobs] // workers start at different jobs
		if !j.join() {
			continue
		}
		if p.crowds(int(j.place.Load())) {
			j.leave()
			return p.move(w)
		}
		at := &j.portions[i+1].inside
		at.Store(true)
		j.drain(i + 1)
		at.Store(false)
		j.leave()
		return true
	}
	return false
}

// crowds reports whether the calling thread runs on the given processor.
func (p *Pool) crowds(place int) bool { return place >= 0 && p.place() == place }

// move takes a worker from its processor. If it cannot go it is to rest.
func (p *Pool) move(w *worker) bool {
	if p.leave() {
		return true
	}
	p.charge(w, 2*maxWaits)
	return false
}

// hasWork reports whether a worker that looks again would find something.
func (p *Pool) hasWork() bool {
	for k := range p.jobs {
		if p.jobs[k].state.Load()&open != 0 {
			return true
		}
	}
	return p.closed.Load()
}

// spin waits for work for a short time.
func (p *Pool) spin(w *worker) bool {
	if runtime.GOMAXPROCS(0) == 1 {
		return false
	}
	p.spinning.Add(1)
	defer p.spinning.Add(-1)
	for start := time.Now(); time.Since(start) < spinTime; {
		if p.rests(w) {
			return false
		}
		for range 16 {
			if p.hasWork() {
				return true
			}
		}
		runtime.Gosched() // others that want this processor come first
	}
	return false
}

// park waits to be woken. A worker that rests leaves the work that is there to
// others.
func (p *Pool) park(w *worker) {
	w.parked.Store(true)
	if (p.closed.Load() || !p.rests(w) && p.hasWork()) && w.parked.CompareAndSwap(true, false) {
		return
	}
	if p.crowds(<-w.wake) {
		p.move(w)
	}
}
