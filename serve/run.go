package serve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// times are how long the parts of a request took.
type times struct{ queue, input, infer, output time.Duration }

// share is a part of what several requests hold together: the memory of their
// run is free when the last of them has been answered.
type share struct {
	left   atomic.Int32
	claims []*claim
}

func (s *share) release() {
	if s.left.Add(-1) > 0 {
		return
	}
	for _, c := range s.claims {
		c.release()
	}
}

// release ends the job: its tensors, and what was promised for them.
func (j *job) release() {
	j.releaseInputs()
	for _, t := range j.outputs {
		if t != nil {
			_ = t.Release() // no other code has it
		}
	}
	j.outputs = nil
	if j.share != nil {
		j.share.release()
	} else {
		j.claim.release()
	}
}

func (j *job) releaseInputs() {
	for _, t := range j.inputs {
		if t != nil {
			_ = t.Release()
		}
	}
	j.inputs = nil
}

// newTensor makes a tensor whose elements the caller writes.
func newTensor(d dtype.DType, dims []int) (*tensor.Tensor, error) {
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, err
	}
	return tensor.Make(memory.Process(memory.IO), d, s)
}

// run runs jobs together, or, where the memory of that is not free, in parts.
func (m *model) run(jobs []*job) {
	now := time.Now()
	for _, j := range jobs {
		j.times.queue = now.Sub(j.arrived)
	}
	m.runParts(jobs)
	for _, j := range jobs {
		close(j.done)
	}
}

func (m *model) runParts(jobs []*job) {
	if len(jobs) == 1 {
		m.runAlone(jobs[0])
		return
	}
	ctx, cancel := allDone(jobs)
	defer cancel()
	shapes, rows := make([][]int, len(m.inputs)), 0
	var io int64
	for _, j := range jobs {
		rows += j.rows
		io += j.plan.io
	}
	for i := range shapes {
		shapes[i] = append([]int{rows}, jobs[0].shapes[i][1:]...)
	}
	p, err := m.planFor(ctx, shapes)
	if err == nil {
		// The outputs of the run are promised to the jobs, as far as theirs go.
		c := &claim{account: m.account, bytes: m.inputBytes(shapes) + max(0, p.io-io), arena: p.arena, weights: p.weights}
		if m.server.memory.try(c) {
			m.runBatch(ctx, jobs, shapes, p, c)
			return
		}
	}
	// Each of the jobs was admitted by itself: in the end they run alone.
	m.runParts(jobs[:len(jobs)/2])
	m.runParts(jobs[len(jobs)/2:])
}

// inputBytes is what inputs of these shapes take.
func (m *model) inputBytes(shapes [][]int) (sum int64) {
	for i, dims := range shapes {
		n := m.inputs[i].DType.Size()
		for _, d := range dims {
			n *= d
		}
		sum += int64(n) + page
	}
	return sum
}

// allDone returns a context that ends when those of all jobs have ended.
func allDone(jobs []*job) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	left := int32(len(jobs))
	stops := make([]func() bool, len(jobs))
	for i, j := range jobs {
		stops[i] = context.AfterFunc(j.ctx, func() {
			if atomic.AddInt32(&left, -1) == 0 {
				cancel(context.Cause(j.ctx))
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// runAlone runs one job on its own tensors.
func (m *model) runAlone(j *job) {
	start := time.Now()
	j.outputs, j.err = m.compute(j.ctx, j.inputs, j.plan, j.claim)
	j.times.infer = time.Since(start)
	j.releaseInputs()
	if j.err == nil {
		m.stats.ran(max(1, j.rows), j.times)
	}
}

// compute runs the model.
func (m *model) compute(ctx context.Context, in []*tensor.Tensor, p *planned, c *claim) ([]*tensor.Tensor, error) {
	operands := make([]tensor.Operand, len(in))
	for i, x := range in {
		operands[i] = x
	}
	out := make([]*tensor.Tensor, len(m.outputs))
	_, err := guarded(func() (struct{}, error) { return struct{}{}, m.session.RunInto(ctx, operands, out) })
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return nil, err
	}
	if p.unpromised {
		c.grow(max(0, bytesOf(in)+bytesOf(out)-p.io))
	}
	m.weigh(p)
	return out, nil
}

// bytesOf is what tensors take.
func bytesOf(list []*tensor.Tensor) (sum int64) {
	for _, t := range list {
		sum += int64(t.NumBytes()) + page
	}
	return sum
}

// weigh states the weights after the first run of a plan, which packs them.
func (m *model) weigh(p *planned) {
	m.mu.Lock()
	first := !p.weighed
	p.weighed = true
	m.mu.Unlock()
	if first {
		m.server.memory.weigh(m.account, m.m.WeightMemory().Private)
	}
}

// runBatch runs jobs as one: their rows are gathered in tensors of the run, and
// their outputs are views of its results.
func (m *model) runBatch(ctx context.Context, jobs []*job, shapes [][]int, p *planned, c *claim) {
	held := &share{claims: []*claim{c}}
	for _, j := range jobs {
		held.claims = append(held.claims, j.claim)
		j.share = held
	}
	held.left.Store(int32(len(jobs)))
	start := time.Now()
	in, err := m.gather(jobs, shapes)
	gathered := time.Now()
	var out []*tensor.Tensor
	if err == nil {
		out, err = m.compute(ctx, in, p, c)
	}
	ran := time.Now()
	for _, x := range in {
		_ = x.Release()
	}
	if err == nil {
		err = m.scatter(jobs, out, shapes[0][0])
	}
	for _, t := range out {
		_ = t.Release() // the views hold its bytes
	}
	if err != nil && ctx.Err() == nil {
		// What one request has brought must not fail the others.
		m.server.config.Log.Warn("a batch failed, its requests run alone", "model", m.name, "requests", len(jobs), "error", err)
		for _, j := range jobs {
			for _, t := range j.outputs {
				_ = t.Release()
			}
			m.runAlone(j)
		}
		return
	}
	t := times{input: gathered.Sub(start), infer: ran.Sub(gathered), output: time.Since(ran)}
	for _, j := range jobs {
		j.releaseInputs()
		j.err = err
		t.queue = j.times.queue
		j.times = t
	}
	if err == nil {
		m.stats.ran(shapes[0][0], t)
	}
}

// gather copies the rows of the jobs into tensors of the batch.
func (m *model) gather(jobs []*job, shapes [][]int) (in []*tensor.Tensor, err error) {
	for i, dims := range shapes {
		x, err := newTensor(m.inputs[i].DType, dims)
		if err != nil {
			return in, err
		}
		in = append(in, x)
		to, err := x.Lock()
		if err != nil {
			return in, err
		}
		at := 0
		for _, j := range jobs {
			from, err := j.inputs[i].Use()
			if err != nil {
				to.Release()
				return in, err
			}
			at += copy(to.Data[at:], from.Data)
			from.Release()
		}
		to.Release()
	}
	return in, nil
}

// scatter gives each job a view of its rows.
func (m *model) scatter(jobs []*job, out []*tensor.Tensor, rows int) error {
	for i, t := range out {
		if s := t.Shape(); s.Rank() == 0 || s.Size(0) != rows {
			return fmt.Errorf("output %q: got %s for a batch of %d rows, want as many rows: the requests of this model cannot be run together (max_batch_size)", m.outputs[i].Name, s, rows)
		}
	}
	at := 0
	for _, j := range jobs {
		for i, t := range out {
			view, err := t.Slice(tensor.Range{Start: at, Stop: at + j.rows})
			if err != nil {
				return fmt.Errorf("output %q: %w", m.outputs[i].Name, err)
			}
			j.outputs = append(j.outputs, view)
		}
		at += j.rows
	}
	return nil
}
