package eager

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// runner is one call under way. Runners are kept for later calls, so that a
// small call in place allocates its result's header and nothing else.
type runner struct {
	call   call
	from   memory.Source   // where fresh results come from; nil for the process's memory
	ctx    context.Context // that stops it; nil for none
	counts bool            // the statistics are requested
	taken  tensor.Taken

	list   []tensor.Operand       // the operands that are tensors
	claims []int                  // by operand: its place in list, -1 for a constant or an absent one
	given  []tensor.CopySemantics // by operand
	strict bool                   // one is donated
	args   []op.Type              // by operand
	data   [][]byte               // by operand: its elements in row-major order
	flat   *shape.Layout          // set where the one operand is worked on as it lies: its layout

	contiguous []*tensor.Tensor // by operand: its row-major copy, if one had to be made
	writer     *bound           // the user's task that writes into an operand, nil for none
	working    bool             // a call with a function of the user's has not returned
	places     []place          // by result
	results    []*tensor.Tensor
	stats      Stats // of this call
}

// place says where a result lies: over operand arg, over the copy that was made
// of it, or, if arg is -1, in fresh bytes.
type place struct {
	arg  int
	copy bool
}

var runners = sync.Pool{New: func() any { return new(runner) }}

func threads() int { return runtime.GOMAXPROCS(0) }

// perform runs the call for the scope, which may be nil, and returns its
// results in a slice that the next call overwrites: done is called with it.
func perform(s *Scope, c call, done func(results []*tensor.Tensor)) error {
	r := runners.Get().(*runner)
	r.call = c
	if s != nil {
		r.from, r.ctx, r.counts = s.from, s.ctx, true
	}
	err := r.run()
	if err == nil {
		done(r.results)
	}
	if s != nil && err == nil {
		s.count(r.call.op.def.Name, &r.stats)
	}
	r.forget()
	runners.Put(r)
	return err
}

// one is perform for a call with one result.
func one(s *Scope, c call) (*tensor.Tensor, error) {
	r := runners.Get().(*runner)
	r.call = c
	if s != nil {
		r.from, r.ctx, r.counts = s.from, s.ctx, true
	}
	var t *tensor.Tensor
	err := r.run()
	if err == nil {
		t = r.results[0]
	}
	if s != nil && err == nil {
		s.count(r.call.op.def.Name, &r.stats)
	}
	r.forget()
	runners.Put(r)
	return t, err
}

// two is perform for a call with two results.
func two(s *Scope, c call) (x, y *tensor.Tensor, err error) {
	err = perform(s, c, func(results []*tensor.Tensor) { x, y = results[0], results[1] })
	return x, y, err
}

// many is perform for a call with several results.
func many(s *Scope, c call) (ts []*tensor.Tensor, err error) {
	err = perform(s, c, func(results []*tensor.Tensor) { ts = slices.Clone(results) })
	return ts, err
}

// runBound runs the bound task until the context ends.
func (r *runner) runBound(b *bound) error {
	var done <-chan struct{}
	if r.ctx != nil {
		done = r.ctx.Done()
	}
	err := b.run(done)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, compute.ErrStopped):
		return fmt.Errorf("%s: %w: %w", r.call.op.def.Name, err, ended.Error(r.ctx))
	}
	return fmt.Errorf("%s: %w", r.call.op.def.Name, err)
}

func (r *runner) forget() {
	r.taken.Clear()
	r.call, r.from, r.ctx, r.counts, r.flat, r.stats = call{}, nil, nil, false, nil, Stats{}
	clear(r.list)
	clear(r.data)
	clear(r.contiguous)
	clear(r.results)
}

func (r *runner) run() error {
	if r.call.err != nil {
		return r.call.err
	}
	if err := r.begin(); err != nil {
		return err
	}
	var err error
	if r.call.op.user {
		err = r.workForUser() // apart, for a deferred call costs a small operation a tenth
	} else {
		err = r.work()
	}
	if err != nil {
		r.taken.Rollback() // nothing, if the call has ended as partly written
	}
	r.dropGathered()
	return err
}

var errPanicked = errors.New("panicked")

// abandon ends a call that panics, or whose goroutine ends, in a function of
// the user's: it returns the operands that the call holds, and ends the tensors
// that it wrote into. The runner is not used again. It does nothing for a call
// that has returned.
func (r *runner) abandon() {
	if !r.working {
		return
	}
	if r.writer != nil && r.writer.started {
		_ = r.taken.Fail("computing", errPanicked) // the panic goes on
	}
	r.taken.Rollback()
	r.dropResults()
	r.dropGathered()
}

// workForUser is work for an operation in which a function of the user's runs.
func (r *runner) workForUser() error {
	r.working = true
	defer r.abandon()
	err := r.work()
	r.working, r.writer = false, nil
	return err
}

func (r *runner) work() error {
	if err := r.prepare(); err != nil {
		return err
	}
	s, err := find(r)
	if err != nil {
		return err
	}
	if s.view >= 0 {
		return r.show(s)
	}
	if err := r.settle(s); err != nil {
		return err
	}
	return r.compute(s)
}

// begin takes the operands.
func (r *runner) begin() error {
	c := &r.call
	r.list, r.claims, r.given, r.strict = r.list[:0], r.claims[:0], r.given[:0], false
	for i := range c.n {
		at, sem := -1, tensor.Borrow
		if o := c.operand(i); o != nil {
			at, sem = len(r.list), o.Semantics()
			r.list = append(r.list, o)
			r.strict = r.strict || sem == tensor.DonateInput
		} else if i < c.op.def.MinArgs && !c.isConstant(i) {
			return fmt.Errorf("%s: operand %d: got %w", c.op.def.Name, i, tensor.ErrNoTensor)
		}
		r.claims, r.given = append(r.claims, at), append(r.given, sem)
	}
	if err := r.taken.Begin(c.op.name, r.list...); err != nil {
		if len(r.list) != c.n && len(r.list) > 1 {
			return fmt.Errorf("%w (operands that are absent or numbers do not count)", err)
		}
		return err
	}
	return nil
}

// prepare finds types and row-major bytes of all operands.
func (r *runner) prepare() error {
	c := &r.call
	r.args, r.data = r.args[:0], r.data[:0]
	r.contiguous, r.places, r.results = r.contiguous[:0], r.places[:0], r.results[:0]
	for i, at := range r.claims {
		r.contiguous = append(r.contiguous, nil)
		if at < 0 {
			k := c.constantAt(i)
			if k == nil {
				r.args, r.data = append(r.args, op.Type{}), append(r.data, nil)
				continue
			}
			r.args, r.data = append(r.args, k.t), append(r.data, k.data)
			continue
		}
		t := r.taken.Tensor(at)
		dt, l := t.DType(), t.Layout()
		data, _ := r.taken.Bytes(at)
		r.args, r.data = append(r.args, op.Type{DType: dt, Shape: l.Shape()}), append(r.data, data)
		if l.IsContiguous() && isAligned(data, dt) {
			continue
		}
		if err := r.makeContiguous(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) constantAt(i int) *constant {
	for k := range c.consts {
		if c.consts[k].at == i {
			return &c.consts[k]
		}
	}
	return nil
}

func (c *call) isConstant(i int) bool { return c.constantAt(i) != nil }

// show makes the result of an operation that only relabels bytes.
func (r *runner) show(s *signature) error {
	i := s.view
	if err := r.checkDonations(s, i); err != nil {
		return err
	}
	var err error
	if copied := r.contiguous[i]; copied != nil {
		var k tensor.Taken
		if err := k.Begin(relabelling, copied.Donate()); err != nil {
			return err
		}
		if err = r.showAll(s, &k, 0); err == nil {
			k.Commit()
		}
		k.Rollback()
	} else {
		err = r.showAll(s, &r.taken, r.claims[i])
	}
	if err != nil {
		return err
	}
	r.stats.Calls, r.stats.Views = 1, len(s.results)
	r.taken.Commit()
	return nil
}

// showAll makes the results over the bytes of a claimed tensor, whose hold
// moves to the last of them, if it is given up.
func (r *runner) showAll(s *signature, k *tensor.Taken, claim int) error {
	for n, t := range s.results {
		offset := s.aliasOf(s.view, n).offset
		show := k.Share
		if n == len(s.results)-1 {
			show = k.View // ends with the Taken if that fails, so it comes when nothing else can
		}
		v, err := show(claim, offset, t.DType, s.layouts[n])
		if err != nil {
			for _, made := range r.results {
				_ = made.Release()
			}
			return err
		}
		r.results = append(r.results, v)
	}
	return nil
}

var relabelling = tensor.NewOperation("copy")

// compute runs the operation. What was settled has a place for every result.
func (r *runner) compute(s *signature) error {
	b, err := s.take(r)
	if err != nil {
		r.dropResults()
		return err
	}
	for i := range r.data {
		b.call.In[i].Data = r.data[i]
	}
	inPlace := false
	for k, p := range r.places {
		b.call.Out[k].Type = s.results[k] // the task of a result whose type depends on data sets it
		switch {
		case s.results[k].IsZero():
		case p.arg >= 0:
			b.call.Out[k].Data = r.data[p.arg]
			inPlace = inPlace || !p.copy
		default:
			b.call.Out[k].Data, _ = r.results[k].UnsafeBytes()
		}
	}
	if r.counts {
		r.countMoved(&b.call)
	}
	if inPlace && r.call.op.user {
		r.writer = b
	}
	err = r.runBound(b)
	started := b.started
	if err == nil && s.bounded {
		err = r.cut(s, &b.call)
	}
	s.put(b)
	if err != nil {
		r.dropResults()
		if inPlace && started {
			return r.taken.Fail("computing", err)
		}
		return err
	}
	r.taken.Commit()
	r.stats.Calls = 1
	return nil
}

// cut shrinks results to the sizes that the kernel found.
func (r *runner) cut(s *signature, c *op.Call) error {
	for k, largest := range s.results {
		t := c.Out[k].Type
		if t == largest {
			continue
		}
		cut, err := tensor.MakeOnHost(r.from, t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("%s: result %d: %w", c.Def.Name, k, err)
		}
		data, _ := cut.UnsafeBytes()
		copy(data, c.Out[k].Data)
		_ = r.results[k].Release()
		r.results[k] = cut
		r.stats.FreshBytes += int64(cut.NumBytes())
	}
	return nil
}

// countMoved counts the bytes that a call reads and writes.
func (r *runner) countMoved(c *op.Call) {
	for i := range c.In {
		r.stats.ReadBytes += int64(len(c.In[i].Data))
	}
	for i := range c.Out {
		r.stats.WrittenBytes += int64(len(c.Out[i].Data))
	}
}

// dropResults releases fresh results. Those in an operand's bytes end with the
// call.
func (r *runner) dropResults() {
	for k, t := range r.results {
		if t != nil && r.places[k].arg < 0 {
			_ = t.Release()
		}
	}
}
