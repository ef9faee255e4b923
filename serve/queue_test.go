package serve

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// due, written out: which of the jobs at the front run now. It tries every
// number of them, and keeps to what the documentation of the configuration
// says.
func dueReference(p policy, now time.Time, waiting []*job, closing bool) int {
	if len(waiting) == 0 {
		return 0
	}
	alone := func(j *job) bool { return p.most == 0 || j.rows == 0 || j.rows > p.most }
	if alone(waiting[0]) {
		return 1
	}
	rowsOf := func(n int) (rows int) {
		for _, j := range waiting[:n] {
			rows += j.rows
		}
		return rows
	}
	together := func(n int) bool { // whether the first n can run as one
		for _, j := range waiting[:n] {
			if alone(j) || j.key != waiting[0].key {
				return false
			}
		}
		return rowsOf(n) <= p.most
	}
	most := 0
	for n := 1; n <= len(waiting) && together(n); n++ {
		most = n
	}
	preferred := 0
	for n := 1; n <= most; n++ {
		if slices.Contains(p.preferred, rowsOf(n)) {
			preferred = n
		}
	}
	old := now.Sub(waiting[0].arrived) >= p.delay
	grows := most == len(waiting) && rowsOf(most) < p.most
	beyond := preferred > 0 && rowsOf(most) > slices.Max(p.preferred)
	switch {
	case preferred == most, old, closing:
		return most
	case (!grows || beyond) && preferred > 0:
		return preferred
	case !grows:
		return most
	}
	return 0
}

// TestDue compares the decision with the reference on drawn queues.
func TestDue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	start := time.Now()
	for i := range 50_000 {
		p := policy{most: r.IntN(9), delay: time.Duration(r.IntN(3)) * time.Millisecond}
		for range r.IntN(3) {
			p.preferred = append(p.preferred, 1+r.IntN(max(1, p.most)))
		}
		var waiting []*job
		for range r.IntN(6) {
			waiting = append(waiting, &job{rows: r.IntN(5), key: string(rune('a' + r.IntN(8)/7)), arrived: start})
		}
		now, closing := start.Add(time.Duration(r.IntN(4))*time.Millisecond), r.IntN(10) == 0
		got, wait := p.due(now, waiting, closing)
		if want := dueReference(p, now, waiting, closing); got != want {
			t.Fatalf("case %d: %+v, %d jobs: got %d, want %d", i, p, len(waiting), got, want)
		}
		if got == 0 && len(waiting) > 0 && (wait <= 0 || wait > p.delay) {
			t.Fatalf("case %d: got a wait of %v, want up to %v", i, wait, p.delay)
		}
	}
}

// TestQueueDelay wants a batch when its first job has waited long enough, at
// that moment, and at once when it is full.
func TestQueueDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(policy{most: 4, delay: 10 * time.Millisecond, size: 100})
		var wg sync.WaitGroup
		begin := time.Now()
		type taken struct {
			jobs int
			at   time.Duration
		}
		var got []taken
		wg.Go(func() {
			for jobs := q.take(); jobs != nil; jobs = q.take() {
				got = append(got, taken{len(jobs), time.Since(begin)})
			}
		})
		add := func(rows int) *job {
			if err := q.enter(); err != nil {
				t.Fatal(err)
			}
			j := &job{rows: rows, key: "k", arrived: time.Now(), ctx: context.Background(), done: make(chan struct{})}
			q.put(j)
			return j
		}
		add(1)
		time.Sleep(4 * time.Millisecond)
		add(1)
		synctest.Wait()
		time.Sleep(7 * time.Millisecond) // at 10 ms both run
		add(2)
		add(2) // at 11 ms: full
		synctest.Wait()
		first := add(1)
		time.Sleep(5 * time.Millisecond)
		add(1)
		if !q.remove(first) { // the second one is the oldest then: at 26 ms
			t.Error("a job that waits was not removed")
		}
		time.Sleep(time.Second)
		add(1)
		q.close()
		wg.Wait()
		want := []taken{{2, 10 * time.Millisecond}, {2, 11 * time.Millisecond}, {1, 26 * time.Millisecond}, {1, 1016 * time.Millisecond}}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if n := q.length(); n != 0 {
			t.Errorf("got %d requests that wait at the end, want none", n)
		}
	})
}

// TestPriorities wants the most urgent first, and the first of equal ones.
func TestPriorities(t *testing.T) {
	q := newQueue(policy{size: 10})
	for i, priority := range []uint64{2, 1, 3, 1, 2} {
		if err := q.enter(); err != nil {
			t.Fatal(err)
		}
		q.put(&job{rows: i, priority: priority})
	}
	var got []int
	for range 5 {
		got = append(got, q.take()[0].rows)
	}
	if want := []int{1, 3, 0, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("got the order %v, want %v", got, want)
	}
}

// TestQueueSize wants requests refused that find as many before them as may
// wait, until one of these leaves.
func TestQueueSize(t *testing.T) {
	q := newQueue(policy{size: 2})
	for i, want := range []bool{true, true, false} {
		if err := q.enter(); (err == nil) != want {
			t.Errorf("request %d: got %v", i, err)
		}
	}
	q.leave()
	if err := q.enter(); err != nil {
		t.Error(err)
	}
	q.close()
	if err := q.enter(); err == nil {
		t.Error("a closed queue: got no error")
	}
}
