package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/serve/sampling"
)

// generator runs the sequences of a decoder together: each joins and leaves
// between two runs. One goroutine does all runs.
type generator struct {
	decoder
	model *model
	files *textFiles

	vocabulary int // numbers of tokens that the model has

	most   int     // sequences of a run
	part   int     // tokens of a prompt that a run reads
	states *ledger // the bytes of states, which are promised to sequences as a whole
	held   *claim  // of the server's memory: all states, and the largest runs

	scratch []sampling.Scratch  // of as many draws at a time
	weighed map[[2]int]*planned // by sequences and tokens of a run, which may pack weights

	mu       sync.Mutex
	arrivals []*sequence
	counts   tokenCounts
	closed   bool
	wake     chan struct{} // of size 1: there are arrivals, or it is closed
	loop     sync.WaitGroup
}

// tokenCounts are what a generator has done since it was loaded.
type tokenCounts struct {
	prompt, completion int64 // tokens
	runs               int64
	running            int // sequences
}

const (
	standardSequences = 16
	standardLength    = 1024
	blockRows         = 16 // tokens of a block of a pool
	mostLogits        = 32 << 20
)

// asText loads the model as one that generates text, if it is one. For others
// it leaves m.m without a model, and returns nil; the error is for those whose
// configuration asks for what they are not.
func (m *model) asText(file string, t textSettings) (*generator, error) {
	if t.generate != nil && !*t.generate {
		return nil, nil
	}
	d, err := tenure.Describe(file)
	if err != nil {
		return nil, err
	}
	f, err := readTextFiles(file)
	if err != nil {
		return nil, m.notText(err, t)
	}
	if f == nil || !slices.ContainsFunc(d.Inputs, func(i tenure.Info) bool { return i.Name == "input_ids" }) {
		return nil, m.notText(errNoText, t)
	}
	pooled := true
	if err := m.loadWith(file, tenure.WithStatePool()); err != nil {
		pooled = false
		if other := m.loadWith(file, tenure.WithStates()); other != nil {
			if m.embed, err = newEmbedder(d, f, t); err == nil {
				return nil, nil
			}
			return nil, m.notText(errors.Join(other, err), t)
		}
		m.server.config.Log.Info("sequences run one at a time", "model", m.name, "reason", err)
	}
	n, err := newDecoder(m.m)
	if err != nil {
		err = errors.Join(err, m.m.Close())
		m.m = nil
		return nil, m.notText(err, t)
	}
	if f.refused != nil {
		m.server.config.Log.Warn("the model answers no chats", "model", m.name, "reason", f.refused)
	}
	g := &generator{decoder: *n, model: m, files: f, wake: make(chan struct{}, 1), weighed: map[[2]int]*planned{},
		scratch: make([]sampling.Scratch, m.server.config.Threads)}
	g.most = or(t.sequences, standardSequences)
	g.length = or(t.length, or(f.length, standardLength))
	if f.length > 0 && t.length > f.length {
		return nil, fmt.Errorf("parameters: max_length: got %d, want at most the %d positions of the model: %w", t.length, f.length, ErrConfig)
	}
	if m.config.instances() > 1 {
		return nil, fmt.Errorf("instance_group: got %d runs at a time, want 1 for a model that generates text: %w", m.config.instances(), ErrConfig)
	}
	if pooled {
		g.rows = blockRows
	}
	g.part = or(t.part, min(max(mostLogits/(4*f.tok.Size()+1), 32), 512))
	return g, nil
}

// notText notes why a model is served without text. That is an error only where
// its configuration asks for text, and worth a warning where its files do.
func (m *model) notText(why error, t textSettings) error {
	if t.generate != nil && *t.generate {
		return fmt.Errorf("parameters: generate: %w", why)
	}
	if !errors.Is(why, errNoText) {
		m.server.config.Log.Warn("the model is served without text", "model", m.name, "reason", why)
	}
	return nil
}

// errNoText is the reason of a model that has nothing to do with text.
var errNoText = errors.New("got no tokenizer.json beside a model with an input input_ids")

// loadWith loads the model with states.
func (m *model) loadWith(file string, states tenure.Option) (err error) {
	m.m, err = guarded(func() (*tenure.Model, error) {
		return tenure.Load(file, append(slices.Clone(m.server.config.Options), states)...)
	})
	return err
}

// start makes the states, promises the memory of the largest runs, and begins
// to run sequences. The session of the model is there.
func (g *generator) start(ctx context.Context, memory int64) (err error) {
	m := g.model
	g.session = m.session
	// Without a setting, a part that does not depend on what else is loaded: a
	// model that is loaded again has the same length.
	budget := min(or(memory, m.server.memory.budget/4), g.bytes(g.length, 0)*int64(g.most))
	token, fixed := g.sizes()
	if token > 0 {
		g.length = min(g.length, int((budget-fixed)/token))
	}
	if g.rows > 0 {
		g.blocks = int(budget / (token * int64(g.rows)))
		g.length = min(g.length, g.blocks*g.rows)
		budget = int64(g.blocks) * token * int64(g.rows)
	}
	if g.length < 2 || g.bytes(g.length, 0) > budget {
		return fmt.Errorf("states of a sequence of %d tokens take %s, want at most %s: %w", 2, plan.FormatBytes(g.bytes(2, 0)), plan.FormatBytes(budget), ErrBusy)
	}
	g.states = newLedger(budget)
	if err := g.promise(ctx); err != nil {
		return err
	}
	if g.rows > 0 {
		if g.pool, err = g.session.NewStatePool(g.blocks, g.rows, tenure.WithLongestSequence(g.length)); err != nil {
			return err
		}
	}
	if g.vocabulary, err = g.probe(ctx, min(g.files.tok.Size(), 64)); err != nil {
		return fmt.Errorf("the first runs: %w", err)
	}
	m.server.config.Log.Info("generates text", "model", m.name, "sequences", g.group.String(), "length", g.length, "states", g.states.budget)
	g.loop.Go(g.run)
	return nil
}

// promise reserves the memory of all states, and of the runs that take the
// most: those of a part of a prompt, and of as many sequences as run together.
func (g *generator) promise(ctx context.Context) error {
	m := g.model
	c := &claim{account: m.account, bytes: g.states.budget, lasting: true, from: m.reserve}
	var io int64
	for _, size := range [][2]int{{1, min(g.part, g.length)}, {g.most, 1}} {
		shapes := g.shapes(size[0], size[1], g.length-size[1])
		d, err := guarded(func() (*plan.Plan, error) { return m.m.Plan(ctx, shapes, m.options...) })
		if err != nil {
			if g.rows == 0 || size[0] > 1 {
				continue // such runs are not made, or are refused for the same reason
			}
			return err
		}
		p := m.figures(d)
		// States are inputs and outputs; those of a pool are written in place.
		states := g.states.budget * 2
		if g.rows == 0 {
			states = g.bytes(g.length, 0)
		}
		io = max(io, p.io-states)
		c.arena, c.weights = max(c.arena, p.arena), max(c.weights, p.weights)
	}
	c.bytes += max(io, 0)
	wait, cancel := context.WithTimeoutCause(ctx, m.server.config.Patience, fmt.Errorf("no memory was free for the states of the model, %s: %w", plan.FormatBytes(c.bytes), ErrBusy))
	defer cancel()
	g.held = c
	return m.server.memory.acquire(wait, c)
}

// close ends the generator, which has no users any more.
func (g *generator) close() (err error) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.poke()
	g.loop.Wait()
	if g.pool != nil {
		err = g.pool.Close()
	}
	g.held.release()
	return err
}

// poke makes the loop look for what is new.
func (g *generator) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// add lets a sequence join.
func (g *generator) add(q *sequence) {
	g.mu.Lock()
	g.arrivals = append(g.arrivals, q)
	g.mu.Unlock()
	g.poke()
}

// take returns the sequences that have come; where wait is set, it waits for
// some. There are none once the generator is closed.
func (g *generator) take(wait bool) (list []*sequence, open bool) {
	for {
		g.mu.Lock()
		list, g.arrivals = g.arrivals, nil
		open = !g.closed
		g.mu.Unlock()
		if len(list) > 0 || !wait || !open {
			return list, open
		}
		<-g.wake
	}
}

// count changes the counts.
func (g *generator) count(f func(c *tokenCounts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.counts)
}

// now returns the counts.
func (g *generator) now() tokenCounts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts
}

// run is the loop: a part of one prompt, and then a token of every sequence
// that has read its own. So a long prompt delays the others by one part for
// each of their tokens, and prompts take turns.
func (g *generator) run() {
	var reading, writing []*sequence
	for {
		fresh, open := g.take(len(reading)+len(writing) == 0)
		if !open && len(fresh)+len(reading)+len(writing) == 0 {
			return
		}
		reading = append(reading, fresh...)
		g.count(func(c *tokenCounts) { c.running = len(reading) + len(writing) })
		reading, writing = g.present(reading), g.present(writing)
		if len(reading) > 0 {
			q := reading[0]
			reading = reading[1:]
			if !g.read(q) {
				reading = append(reading, q)
			} else {
				writing = append(writing, q.all()...)
			}
		}
		g.step(g.present(writing))
		writing = g.present(writing)
		g.count(func(c *tokenCounts) { c.running = len(reading) + len(writing) })
	}
}

// present ends sequences whose clients have gone, and leaves out all that have
// ended.
func (g *generator) present(list []*sequence) []*sequence {
	kept := list[:0]
	for _, q := range list {
		if q.ctx.Err() != nil {
			q.end("", context.Cause(q.ctx))
		}
		if !q.ended {
			kept = append(kept, q)
		}
	}
	return kept
}

// together runs the model with as many tokens of each of some sequences. The
// run stops when all their clients have gone.
func (g *generator) together(list []*sequence, tokens [][]int64) ([][]float32, error) {
	jobs := make([]*job, len(list))
	caches := make([]cache, len(list))
	for i, q := range list {
		jobs[i], caches[i] = &job{ctx: q.ctx}, q.cache
	}
	ctx, cancel := allDone(jobs)
	defer cancel()
	start := time.Now()
	logits, err := g.decoder.run(ctx, caches, tokens)
	if err != nil {
		return nil, err
	}
	g.model.stats.ran(len(list), times{infer: time.Since(start)})
	g.count(func(c *tokenCounts) { c.runs++ })
	size := [2]int{len(list), len(tokens[0])}
	if g.weighed[size] == nil {
		g.weighed[size] = &planned{}
	}
	g.model.weigh(g.weighed[size])
	return logits, nil
}
