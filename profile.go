package tenure

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/plan"
)

// Profile collects the time of the steps of runs, the bytes that they read and
// write, and the memory that is live meanwhile. Runs with the option
// [WithProfile] add to it; other runs do no extra work.
//
//	var p tenure.Profile
//	out, err := s.Run(ctx, in, tenure.WithProfile(&p))
//	err = p.Report(os.Stdout)   // by operator and by node
//	err = p.WriteTrace(file)    // for ui.perfetto.dev
//
// The zero Profile is empty, and so is a nil one, to which runs add nothing.
// Its methods may be called from any goroutine, also while runs add to it;
// several runs at a time may have the same one. It keeps every step of every
// run, and the plans of the runs, until Reset.
type Profile struct {
	mu    sync.Mutex
	first time.Time // when the first run began
	runs  []*profiledRun
	lanes []bool // runs that are under way, by lane
}

// profiledRun is one run in a profile.
type profiledRun struct {
	of     *Profile
	number int
	lane   int // no other run of the profile has it at the same time
	plan   *plan.Plan
	live   []int64 // bytes of the arena that are live, by number of the step
	start  time.Time
	took   time.Duration // 0: it is under way
	steps  []ProfiledStep
}

// ProfiledStep is a step of a plan that has run once. A step in a loop is one
// for every iteration.
type ProfiledStep struct {
	Run     int           // number of the run in the profile, from 0
	Step    int           // index into Plan.Steps
	Op      string        // the operator
	Node    string        // the node of the model's file, "" for a step that comes from none
	Start   time.Duration // since the profile's first run began
	Took    time.Duration
	Read    int64 // bytes of the operands, whole; of packed weights those that are packed
	Written int64 // bytes of the results
	Live    int64 // bytes of values during the step: in the arena, as planned, and in buffers whose sizes depend on data
	Dynamic int64 // of Live, those in buffers whose sizes depend on data
}

// begin adds a run.
func (p *Profile) begin(m *Model, exe *exec.Executable) (*profiledRun, error) {
	d, err := m.planOf(exe)
	if err != nil {
		return nil, err
	}
	r := &profiledRun{of: p, plan: d, live: liveInSteps(d), steps: make([]ProfiledStep, 0, len(d.Steps))}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.number = len(p.runs)
	p.runs = append(p.runs, r)
	if r.lane = slices.Index(p.lanes, false); r.lane < 0 {
		r.lane = len(p.lanes)
		p.lanes = append(p.lanes, false)
	}
	p.lanes[r.lane] = true
	r.start = time.Now()
	if r.number == 0 {
		p.first = r.start
	}
	return r, nil
}

// liveInSteps returns the most bytes of the arena that are live in each step.
func liveInSteps(d *plan.Plan) []int64 {
	live := make([]int64, len(d.Steps))
	levels := d.LiveBytes()
	at := 0
	now := int64(0)
	for k := range live {
		for at < len(levels) && levels[at].At <= plan.Time(2*k) {
			now = levels[at].Bytes
			at++
		}
		live[k] = now
		for at < len(levels) && levels[at].At <= plan.Time(2*k+1) {
			now = levels[at].Bytes
			at++
			live[k] = max(live[k], now)
		}
	}
	return live
}

// add adds a step that has just run.
func (r *profiledRun) add(runner *exec.Runner, k int, start time.Time, took time.Duration) {
	step := &r.plan.Steps[k]
	s := ProfiledStep{Run: r.number, Step: k, Op: step.Op, Node: step.Node, Took: took, Dynamic: runner.DynamicBytes()}
	s.Read, s.Written = runner.Moved(k)
	s.Live = r.live[k] + s.Dynamic
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	s.Start = start.Sub(r.of.first)
	r.steps = append(r.steps, s)
}

// end ends the run, however it has gone.
func (r *profiledRun) end() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.took = max(time.Since(r.start), 1)
	if slices.Contains(r.of.runs, r) { // not forgotten by Reset
		r.of.lanes[r.lane] = false
	}
}

// Reset forgets all runs, also those under way.
func (p *Profile) Reset() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs, p.lanes = nil, nil
}

// Steps returns the steps that have run, run by run, each in the order in which
// it ran them.
func (p *Profile) Steps() []ProfiledStep {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []ProfiledStep
	for _, r := range p.runs {
		list = append(list, r.steps...)
	}
	return list
}

// Time returns the number of runs that have ended and how long they took: with
// the time between their steps, and that of waiting for an arena.
func (p *Profile) Time() (runs int, took time.Duration) {
	if p == nil {
		return 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if r.took > 0 {
			runs++
			took += r.took
		}
	}
	return runs, took
}

// ProfileSum sums steps.
type ProfileSum struct {
	Op      string
	Node    string // "" in sums by operator
	Count   int    // of steps
	Took    time.Duration
	Share   float64 // of the time of all steps, 0 to 1
	Read    int64
	Written int64
	Live    int64 // the most during one of the steps
}

// ByOperator returns sums by operator, the longest first.
func (p *Profile) ByOperator() []ProfileSum {
	return p.sums(func(s *ProfiledStep) (op, node string) { return s.Op, "" })
}

// ByNode returns sums by operator and node of the model's file, the longest
// first. A node can be several steps, and steps that come from no node are
// summed by operator.
func (p *Profile) ByNode() []ProfileSum {
	return p.sums(func(s *ProfiledStep) (op, node string) { return s.Op, s.Node })
}

func (p *Profile) sums(key func(*ProfiledStep) (op, node string)) []ProfileSum {
	var list []ProfileSum
	index := map[[2]string]int{}
	var all time.Duration
	steps := p.Steps()
	for i := range steps {
		s := &steps[i]
		op, node := key(s)
		at, ok := index[[2]string{op, node}]
		if !ok {
			at = len(list)
			index[[2]string{op, node}] = at
			list = append(list, ProfileSum{Op: op, Node: node})
		}
		sum := &list[at]
		sum.Count++
		sum.Took += s.Took
		sum.Read += s.Read
		sum.Written += s.Written
		sum.Live = max(sum.Live, s.Live)
		all += s.Took
	}
	for i := range list {
		if all > 0 {
			list[i].Share = float64(list[i].Took) / float64(all)
		}
	}
	slices.SortStableFunc(list, func(a, b ProfileSum) int { return cmp.Compare(b.Took, a.Took) })
	return list
}
