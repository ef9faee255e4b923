package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/plan"
)

// model is a loaded version of a model.
type model struct {
	name    string
	version int
	config  *ModelConfig
	server  *Server

	m               *tenure.Model
	session         *tenure.Session
	options         []tenure.SessionOption
	inputs, outputs []tenure.Info
	text            bool // an input is text, whose width is known when it is read
	account         *account
	queue           *queue
	stats           *statistics
	runs            sync.WaitGroup // the goroutines that run jobs
	gen             *generator     // of a model that generates text
	embed           *embedder      // of one that makes vectors of it
	loaded          time.Time
	loading         loading  // how it is loaded again
	reserve         *reserve // of its load; nil later, and without eviction
	pinned          bool     // it is never evicted
	evicted         atomic.Bool

	mu      sync.Mutex
	plans   map[string]*planned
	planner chan struct{} // one plan is made at a time

	// These belong to the server's lock.
	users   int
	retired bool
	used    uint64        // when it was used last, by the server's count
	idle    chan struct{} // closed when it is retired and without users
}

// planned is what the plan of a run says.
type planned struct {
	io, arena, weights int64
	unpromised         bool // some outputs have sizes that depend on data
	weighed            bool // the model's weights were weighed after a run
}

// page is what a tensor may take beyond its own bytes.
const page = 4096

// mostPlans is how many plans a model's figures are kept of.
const mostPlans = 1024

// loadModel loads a version, makes its first runs, and starts to take jobs.
func (s *Server) loadModel(ctx context.Context, name string, l loading) (_ *model, err error) {
	file, c := l.file, l.config
	d, err := tenure.Describe(file)
	if err != nil {
		return nil, err
	}
	m := &model{name: name, version: l.version, config: &c, server: s, loading: l, stats: l.stats, plans: map[string]*planned{}, planner: make(chan struct{}, 1), idle: make(chan struct{}), loaded: time.Now()}
	m.account = &account{instances: int64(c.instances()), trim: func() {}}
	if m.stats == nil {
		m.stats = &statistics{}
	}
	m.loading.stats = m.stats
	settings, err := c.text()
	if err != nil {
		return nil, err
	}
	m.pinned = settings.pinned
	// Weights are there twice for a moment: as they were read, and packed.
	if err := m.open(ctx, 2*d.WeightBytes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
		m.loading.further = max(m.loading.further, s.memory.end(m.reserve))
		m.reserve = nil
	}()
	if m.gen, err = m.asText(file, settings); err != nil {
		return nil, err
	}
	if m.m == nil {
		if m.m, err = tenure.Load(file, s.config.Options...); err != nil {
			return nil, err
		}
	}
	if err := m.setTensors(); err != nil {
		return nil, err
	}
	if err := m.config.complete(name, m.m, s.config); err != nil {
		return nil, err
	}
	n := m.config.instances()
	m.options = []tenure.SessionOption{tenure.WithMaxConcurrent(n), tenure.WithThreads(max(1, s.config.Threads/n))}
	if m.session, err = m.m.NewSession(m.options...); err != nil {
		return nil, err
	}
	m.account.trim = func() { m.session.Trim() }
	m.queue = newQueue(m.config.policy(s.config))
	for range n {
		m.runs.Go(func() {
			for jobs := m.queue.take(); jobs != nil; jobs = m.queue.take() {
				m.run(jobs)
			}
		})
	}
	if m.gen != nil {
		err = m.gen.start(ctx, settings.memory)
	} else {
		err = m.warm(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	s.memory.weigh(m.account, m.m.WeightMemory().Private)
	return m, nil
}

// setTensors notes the inputs and outputs of the loaded model.
func (m *model) setTensors() error {
	m.inputs, m.outputs = m.m.Inputs(), m.m.Outputs()
	for _, i := range append(m.m.Inputs(), m.outputs...) {
		if typeName(i) == "" {
			return fmt.Errorf("%s has a type that the protocol does not have: %w", i, tenure.ErrUnsupported)
		}
	}
	for _, i := range m.inputs {
		m.text = m.text || i.Text
	}
	return nil
}

// open promises the weights of the model. Where models are evicted, it waits
// until they are free, and what else the load is known to take.
func (m *model) open(ctx context.Context, weights int64) (err error) {
	s := m.server
	if !s.config.Evict {
		if s.memory.open(m.account, weights) {
			return nil
		}
		f := s.memory.figures()
		return fmt.Errorf("loading the weights takes %s, want at most the %s that are free of %s: %w", plan.FormatBytes(weights), plan.FormatBytes(f.budget-f.used), plan.FormatBytes(f.budget), ErrBusy)
	}
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Patience, fmt.Errorf("loading the weights takes %s, which were not free for %v: %w", plan.FormatBytes(weights), s.config.Patience, ErrBusy))
	defer cancel()
	m.reserve, err = s.memory.openWhenFree(wait, m.account, weights, m.loading.further)
	var never *neverFits
	if errors.As(err, &never) {
		return fmt.Errorf("loading the weights takes %s, want at most the %s that the server may use: %w", plan.FormatBytes(never.need), plan.FormatBytes(never.budget), ErrBusy)
	}
	return err
}

// policy is how the model's requests are run together.
func (c *ModelConfig) policy(s Config) policy {
	p := policy{size: s.MaxQueue}
	if b := c.DynamicBatching; b != nil {
		p.most, p.preferred, p.delay = c.MaxBatchSize, b.PreferredBatchSize, time.Duration(b.MaxQueueDelay)*time.Microsecond
		if q := b.DefaultQueuePolicy; q != nil && q.MaxQueueSize > 0 {
			p.size = q.MaxQueueSize
		}
	}
	return p
}

// close ends a model that nobody uses, or that was not loaded completely.
func (m *model) close() error {
	if m.queue != nil {
		m.queue.close()
		m.runs.Wait()
	}
	err := errors.Join(m.gen.close(), m.session.Close())
	if m.m != nil {
		err = errors.Join(err, m.m.Close())
	}
	m.server.memory.close(m.account)
	return err
}

// warm makes the runs that the configuration names; without any, one of the
// declared sizes, where all are known but that of the batch.
func (m *model) warm(ctx context.Context) error {
	if len(m.config.ModelWarmup) == 0 {
		shapes := make([][]int, len(m.inputs))
		for i, info := range m.inputs {
			shapes[i] = dims(info)
			for axis, n := range shapes[i] {
				if n >= 0 {
					continue
				}
				if axis > 0 || !batches(m.m) {
					return nil
				}
				shapes[i][axis] = 1
			}
		}
		err := m.warmShapes(ctx, shapes)
		if errors.Is(err, tenure.ErrUnsupported) || errors.Is(err, tenure.ErrInput) || errors.Is(err, tenure.ErrShape) {
			return nil // sizes that are not for runs: a request says better ones
		}
		return err
	}
	for _, w := range m.config.ModelWarmup {
		shapes := make([][]int, len(m.inputs))
		for i, info := range m.inputs {
			in, ok := w.Inputs[info.Name]
			if !ok {
				return fmt.Errorf("%s: got no input %q: %w", w.Name, info.Name, ErrConfig)
			}
			shapes[i] = in.Dims
			if m.config.MaxBatchSize > 0 {
				shapes[i] = append([]int{max(1, w.BatchSize)}, in.Dims...)
			}
		}
		if err := m.warmShapes(ctx, shapes); err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	return nil
}

// warmShapes makes a run of zeros.
func (m *model) warmShapes(ctx context.Context, shapes [][]int) (err error) {
	j := &job{ctx: ctx, shapes: shapes, done: make(chan struct{})}
	for i := range shapes {
		if m.inputs[i].Text {
			j.shapes[i] = append(shapes[i][:len(shapes[i]):len(shapes[i])], leastWidth)
		}
	}
	defer j.release()
	if j.plan, err = m.planFor(ctx, j.shapes); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, m.server.config.Patience)
	defer cancel()
	if j.claim, err = m.claim(wait, j.plan); err != nil {
		return err
	}
	for i, dims := range j.shapes {
		x, err := newTensor(m.inputs[i].DType, dims)
		if err != nil {
			return err
		}
		j.inputs = append(j.inputs, x)
		b, err := x.Lock()
		if err != nil {
			return err
		}
		clear(b.Data)
		b.Release()
	}
	m.runAlone(j)
	return j.err
}

// key names a set of shapes.
func key(shapes [][]int) string {
	var b strings.Builder
	for _, s := range shapes {
		for _, d := range s {
			b.WriteString(strconv.Itoa(d))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	return b.String()
}

// planFor returns the figures of runs with inputs of these shapes.
func (m *model) planFor(ctx context.Context, shapes [][]int) (*planned, error) {
	k := key(shapes)
	find := func() *planned {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.plans[k]
	}
	if p := find(); p != nil {
		return p, nil
	}
	select {
	case m.planner <- struct{}{}:
		defer func() { <-m.planner }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p := find(); p != nil {
		return p, nil
	}
	named := tenure.Shapes{}
	for i, s := range shapes {
		named[m.inputs[i].Name] = s
	}
	d, err := guarded(func() (*plan.Plan, error) { return m.m.Plan(ctx, named, m.options...) })
	if err != nil {
		return nil, err
	}
	p := m.figures(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.plans) >= mostPlans {
		clear(m.plans)
	}
	m.plans[k] = p
	return p, nil
}

func (m *model) figures(d *plan.Plan) *planned {
	return &planned{
		io:         d.IOBytes + int64(page*(len(m.inputs)+len(m.outputs))),
		arena:      d.ArenaBytes + d.ScratchBytes,
		weights:    d.WeightBytes,
		unpromised: len(d.Unpromised) > 0,
	}
}

// claim waits until the memory of a run is promised.
func (m *model) claim(ctx context.Context, p *planned) (*claim, error) {
	c := &claim{account: m.account, bytes: p.io, arena: p.arena, weights: p.weights, from: m.reserve}
	return c, m.server.memory.acquire(ctx, c)
}

// guarded calls f, and makes an error of a panic, which is a fault of Tenure
// that one request has found.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model failed: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// ModelState describes a version of a model, as the repository's index does.
type ModelState struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`  // READY, LOADING, UNLOADING, UNAVAILABLE
	Reason  string `json:"reason,omitempty"` // why it is UNAVAILABLE; "evicted" for one that is READY, and is loaded when a request comes
}

// elementType is the type of the tensors of an input in requests.
func elementType(i tenure.Info) dtype.DType {
	if i.Text {
		return dtype.String
	}
	return i.DType
}
