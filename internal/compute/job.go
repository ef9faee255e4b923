package compute

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/op"
)

// job is a run in progress, in a slot that runs reuse.
type job struct {
	taken atomic.Bool // the slot belongs to a run
	// state counts the workers inside, plus open while tiles are left to
	// claim, plus waiting while the caller is parked on idle.
	state    atomic.Int64
	portions []portion    // one per worker
	place    atomic.Int64 // the caller's processor, or -1
	idle     chan struct{}

	task    *Task
	scratch []byte
	cancel  <-chan struct{}

	canceled atomic.Bool
	panicked atomic.Pointer[string]
}

// portion is the part of a job's tiles with which one worker begins. It
// continues with tiles that are left of other portions. Tiles with the same
// numbers mostly touch the same parts of tensors, from one task to the next
// and from run to run, so a worker finds them in its caches again.
type portion struct {
	next   atomic.Int64 // tile to claim
	end    int64
	inside atomic.Bool // whether its worker is running tiles of the job
	_      [44]byte    // workers claim without touching each other's cache lines
}

const (
	open    = 1 << 32
	waiting = 1 << 33
)

// join enters the job unless its tiles are all claimed.
func (j *job) join() bool {
	for {
		s := j.state.Load()
		if s&open == 0 {
			return false
		}
		if j.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// leave undoes join; the last worker out wakes a caller that waits.
func (j *job) leave() {
	if j.state.Add(-1) == waiting {
		j.idle <- struct{}{}
	}
}

// drain runs tiles until none is left, as worker id.
func (j *job) drain(id int) {
	defer j.catch()
	t := j.task
	scratch := j.scratch[id*t.Scratch : (id+1)*t.Scratch : (id+1)*t.Scratch]
	for {
		tile := j.claim(id)
		if tile < 0 {
			break
		}
		if ended.Closed(j.cancel) {
			j.canceled.Store(true)
			break
		}
		t.Tile(tile, scratch)
	}
	j.shut()
}

// divide divides the tiles among the workers.
func (j *job) divide(tiles int) {
	for i := range j.portions {
		p := &j.portions[i]
		p.next.Store(int64(i * tiles / len(j.portions)))
		p.end = int64((i + 1) * tiles / len(j.portions))
	}
}

// claim returns the next tile for worker id, or -1.
func (j *job) claim(id int) int {
	for i := range j.portions {
		p := &j.portions[(id+i)%len(j.portions)]
		if p.next.Load() >= p.end {
			continue
		}
		if tile := p.next.Add(1) - 1; tile < p.end {
			return int(tile)
		}
	}
	return -1
}

// shut leaves no tile to claim.
func (j *job) shut() {
	for i := range j.portions {
		p := &j.portions[i]
		p.next.Store(p.end)
	}
	j.state.And(^open)
}

// catch keeps the panic of a kernel for the caller of Run.
func (j *job) catch() {
	if r := recover(); r != nil {
		text := bugIn(j.task, r)
		j.panicked.CompareAndSwap(nil, &text)
		j.shut()
	}
}

// where names the task's call in the message of a panic.
func where(t *Task) string { return op.Where(t.Call.Def.Name, t.Call.Node) }

func bugIn(t *Task, r any) string {
	return fmt.Sprintf("BUG: compute: %s: %v\n%s", where(t), r, debug.Stack())
}
