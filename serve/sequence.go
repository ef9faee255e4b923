package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tokenizer"
)

// sequence is a text that is generated. It belongs to the loop of its generator
// once it was added.
type sequence struct {
	g       *generator
	ctx     context.Context // of its request
	index   int             // among those of the request
	prompt  []int64
	cache   cache
	read    int         // tokens of the prompt that were read
	forks   []*sequence // that go on from the same prompt
	states  *share      // of what the memory of its states was promised from
	room    int         // tokens that the promise is for
	sampler *sampling.Sampler
	logs    int   // how many likeliest tokens are told with each; -1: not even its own probability
	left    int   // tokens that may still be drawn
	next    int64 // drawn, and not read yet
	onward  bool  // tokens that end a text do not
	stream  *tokenizer.Stream
	stop    stopWords
	out     *outbox
	ended   bool
}

// event is what has become of a sequence: a token, or its end, or both.
type event struct {
	index  int
	text   string
	token  int64
	log    *sampling.LogProb
	top    []sampling.LogProb
	finish string // "", "stop" or "length"
	err    error
}

// outbox collects the events of a request. It never makes the loop wait.
type outbox struct {
	mu     sync.Mutex
	events []event
	ready  chan struct{} // of size 1
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

func (o *outbox) put(e event) {
	o.mu.Lock()
	o.events = append(o.events, e)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take waits for events. They come to an end for every sequence.
func (o *outbox) take() []event {
	for {
		<-o.ready
		o.mu.Lock()
		list := o.events
		o.events = nil
		o.mu.Unlock()
		if len(list) > 0 {
			return list
		}
	}
}

// all returns the sequence and those that go on from its prompt.
func (q *sequence) all() []*sequence {
	return append([]*sequence{q}, q.forks...)
}

// end takes a sequence out, and gives up its states. One that has not read its
// prompt takes those with it that wait for it.
func (q *sequence) end(finish string, err error) {
	q.finish(event{finish: finish, err: err})
	for _, f := range q.forks {
		if f.cache == nil {
			f.finish(event{finish: finish, err: err})
		}
	}
}

// finish ends the sequence with an event.
func (q *sequence) finish(e event) {
	if q.ended {
		return
	}
	q.ended = true
	if q.cache != nil {
		if err := q.cache.Close(); err != nil {
			q.g.model.server.config.Log.Error("closing the states of a sequence", "model", q.g.model.name, "error", err)
		}
	}
	q.states.release()
	e.index = q.index
	q.out.put(e)
}

// read runs the model with a part of a prompt. It reports whether that was the
// last one, or failed: then the first token is drawn.
func (g *generator) read(q *sequence) (done bool) {
	if q.cache == nil {
		var err error
		if q.cache, err = g.open(q.room); err != nil {
			q.end("", err)
			return true
		}
	}
	n := min(g.part, len(q.prompt)-q.read)
	logits, err := g.together([]*sequence{q}, [][]int64{q.prompt[q.read:][:n]})
	if err != nil {
		q.end("", cause(q.ctx, err))
		return true
	}
	q.read += n
	g.count(func(c *tokenCounts) { c.prompt += int64(n) })
	if q.read < len(q.prompt) {
		return false
	}
	for _, f := range q.forks {
		if f.cache, err = fork(q.cache); err != nil {
			f.end("", err)
		}
	}
	list := slices.DeleteFunc(q.all(), func(f *sequence) bool { return f.ended })
	g.drawMany(list, slices.Repeat(logits[:1], len(list)))
	return true
}

// cause is why a run failed: what ended the context, if that did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// drawMany draws the next token of sequences, each by its own logits. Large
// vocabularies take long, so several are drawn at a time.
func (g *generator) drawMany(list []*sequence, logits [][]float32) {
	events := make([]event, len(list))
	workers := min(len(g.scratch), len(list))
	if len(list)*g.vocabulary < fewLogits {
		workers = 1
	}
	draw := func(k int) {
		for i := k; i < len(list); i += workers {
			events[i] = list[i].draw(&g.scratch[k], logits[i])
		}
	}
	var others sync.WaitGroup
	for k := 1; k < workers; k++ {
		others.Go(func() { draw(k) })
	}
	draw(0)
	others.Wait()
	g.count(func(c *tokenCounts) { c.completion += int64(len(list)) })
	for i, q := range list {
		q.tell(events[i])
	}
}

// fewLogits are drawn from in less time than it takes to begin a goroutine.
const fewLogits = 1 << 15

// draw draws the next token.
func (q *sequence) draw(lists *sampling.Scratch, logits []float32) event {
	e := event{index: q.index, token: q.sampler.DrawIn(lists, logits)}
	if q.logs >= 0 {
		own, top := sampling.LogProbs(logits, e.token, q.logs)
		e.log, e.top = &own, top
	}
	return e
}

// tell passes a token on as text, and ends the text where it is the last one.
func (q *sequence) tell(e event) {
	q.next = e.token
	q.left--
	piece := ""
	if q.g.files.ends[e.token] && !q.onward {
		e.finish, piece = "stop", q.stream.Flush()
		e.log, e.top = nil, nil // it is no part of the text
	} else {
		piece = q.stream.Push(e.token)
		if q.left == 0 {
			e.finish = "length"
			piece += q.stream.Flush()
		}
	}
	var stopped bool
	if e.text, stopped = q.stop.push(piece); stopped {
		e.finish = "stop"
	} else if e.finish != "" {
		e.text += q.stop.flush()
	}
	if e.finish != "" {
		q.finish(e)
		return
	}
	q.out.put(e)
}

// step adds a token to every sequence, in as few runs as there may be.
func (g *generator) step(list []*sequence) {
	for _, batch := range g.batches(list) {
		g.stepBatch(batch)
	}
}

// batches puts sequences together that may share a run.
func (g *generator) batches(list []*sequence) (all [][]*sequence) {
	open := map[int]int{} // batches with room, by the length of their sequences
	for _, q := range list {
		length := 0
		if g.group == even {
			length = q.cache.Len()
		}
		i, ok := open[length]
		if !ok || len(all[i]) == g.most || g.group == alone {
			i = len(all)
			all = append(all, nil)
			open[length] = i
		}
		all[i] = append(all[i], q)
	}
	return all
}

// stepBatch runs the model with the last token of each sequence. Where the run
// fails, what one sequence has brought must not end the others: they run alone.
func (g *generator) stepBatch(batch []*sequence) {
	tokens := make([][]int64, len(batch))
	for i, q := range batch {
		tokens[i] = []int64{q.next}
	}
	logits, err := g.together(batch, tokens)
	switch {
	case err == nil:
		g.drawMany(batch, logits)
	case len(batch) == 1:
		batch[0].end("", cause(batch[0].ctx, err))
	default:
		g.model.server.config.Log.Warn("a run of several sequences failed, they run alone", "model", g.model.name, "sequences", len(batch), "error", err)
		for _, q := range batch {
			g.stepBatch([]*sequence{q})
		}
	}
}

// admit promises the memory of its states to a sequence and those that go on
// from its prompt.
func (g *generator) admit(ctx context.Context, q *sequence) error {
	if err := g.model.queue.enter(); err != nil {
		return err
	}
	defer g.model.queue.leave()
	c := &claim{bytes: g.bytes(q.room, 0)}
	for _, f := range q.forks {
		c.bytes += g.bytes(f.room, len(q.prompt))
	}
	if err := g.states.acquire(ctx, c); err != nil {
		return err
	}
	held := &share{claims: []*claim{c}}
	held.left.Store(int32(1 + len(q.forks)))
	for _, s := range q.all() {
		s.states = held
	}
	return nil
}
