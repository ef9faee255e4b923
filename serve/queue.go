package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/tensor"
)

// job is a request whose inputs are there, and that waits for its run.
type job struct {
	ctx      context.Context
	inputs   []*tensor.Tensor // in the model's order
	shapes   [][]int          // of the inputs
	rows     int              // of the first dimension; 0: it runs alone
	key      string           // of requests that may run with it
	priority uint64           // 1 is the most urgent
	arrived  time.Time
	plan     *planned
	claim    *claim

	taken bool // by a run; it belongs to the queue's lock
	done  chan struct{}

	// These are set when done is closed.
	outputs []*tensor.Tensor // in the model's order
	share   *share           // of what the run's memory was promised from
	times   times
	err     error
}

// policy says which jobs run together and when.
type policy struct {
	most      int // rows of a batch; 0: every job runs alone
	preferred []int
	delay     time.Duration // that the first job of a batch waits for others
	size      int           // jobs that may wait
}

// due returns how many of the jobs at the front are to run now, as one batch.
// If it is none, it returns how long until then, unless others come. closing
// means that none will come.
func (p *policy) due(now time.Time, waiting []*job, closing bool) (n int, wait time.Duration) {
	if len(waiting) == 0 {
		return 0, -1
	}
	first := waiting[0]
	if p.most == 0 || first.rows == 0 || first.rows > p.most {
		return 1, 0
	}
	rows, preferred := 0, 0
	for n < len(waiting) && waiting[n].key == first.key && waiting[n].rows > 0 && rows+waiting[n].rows <= p.most {
		rows += waiting[n].rows
		if n++; slices.Contains(p.preferred, rows) {
			preferred = n
		}
	}
	wait = p.delay - now.Sub(first.arrived)
	switch {
	case preferred == n, wait <= 0, closing:
		return n, 0
	case rows == p.most || n < len(waiting): // it cannot grow
		if preferred > 0 {
			return preferred, 0
		}
		return n, 0
	case preferred > 0 && rows > slices.Max(p.preferred):
		return preferred, 0
	}
	return 0, wait
}

// queue is the jobs of a model that wait, the most urgent first, and of equal
// ones the first first.
type queue struct {
	policy

	mu      sync.Mutex
	changed sync.Cond
	waiting []*job
	pending int // requests that are admitted and not taken by a run: those that read their bodies, too
	closed  bool
}

func newQueue(p policy) *queue {
	q := &queue{policy: p}
	q.changed.L = &q.mu
	return q
}

// enter counts a request, before anything is read or promised for it. leave,
// or its run, ends that.
func (q *queue) enter() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if q.pending >= q.size {
		return fmt.Errorf("got %d requests that wait, want fewer than %d: exceeds maximum queue size: %w", q.pending, q.size, ErrBusy)
	}
	q.pending++
	return nil
}

// leave ends what enter began, for a request that no run has taken.
func (q *queue) leave() {
	q.mu.Lock()
	q.pending--
	q.mu.Unlock()
}

// put adds the job of a request that has entered.
func (q *queue) put(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].priority > j.priority {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, j)
	q.changed.Broadcast()
}

// remove takes a job out that no run has taken, and reports whether it did.
func (q *queue) remove(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.taken {
		return false
	}
	i := slices.Index(q.waiting, j)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.pending--
	q.changed.Broadcast() // another one is the first
	return true
}

// take waits for jobs that are to run now. It returns none when the queue is
// closed and empty.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		n, wait := q.due(time.Now(), q.waiting, q.closed)
		if n > 0 {
			batch := slices.Clone(q.waiting[:n])
			q.waiting = slices.Delete(q.waiting, 0, n)
			for _, j := range batch {
				j.taken = true
			}
			q.pending -= n
			if len(q.waiting) > 0 {
				q.changed.Broadcast() // for the next run
			}
			return batch
		}
		if q.closed {
			return nil
		}
		if wait < 0 {
			q.changed.Wait()
			continue
		}
		timer := time.AfterFunc(wait, q.changed.Broadcast)
		q.changed.Wait()
		timer.Stop()
	}
}

// close lets take return once no job waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

// length returns how many requests are admitted and wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}
