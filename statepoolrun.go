package tenure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/tensor"
)

// Run runs the model for some sequences of the pool together: row i of the
// batch is sequence i. It takes the inputs that are no states, and returns the
// outputs that are none. Sequences may have any lengths; each gets as many rows
// as the inputs have tokens. Where the model reads the length of its past, or
// its rows by other nodes than attention, or a mask has the places of one past,
// all sequences must have one length ([ErrShape], with the node).
//
// A run for which no blocks are free is refused before anything is written
// ([ErrLimit], with the figures), unless the pool grows ([WithPoolGrowth]). A
// run that is refused or fails leaves all sequences as they were. Into and
// Watch are options as in [Session.Run]; so are its errors.
func (p *StatePool) Run(ctx context.Context, sequences []*StateSequence, in Inputs, opts ...RunOption) (Outputs, error) {
	if err := p.begin("run"); err != nil {
		return nil, err
	}
	defer p.busy.Store(false)
	defer p.leave()
	if err := p.enter(sequences); err != nil {
		return nil, err
	}
	for {
		out, err := p.runOnce(ctx, in, opts)
		var full *poolFull
		if !errors.As(err, &full) {
			return out, err
		}
		if err := p.grow(full); err != nil {
			return nil, err
		}
	}
}

// runOnce runs the model if blocks are free.
func (p *StatePool) runOnce(ctx context.Context, in Inputs, opts []RunOption) (Outputs, error) {
	r, err := p.session.begin("run")
	if err != nil {
		return nil, err
	}
	defer p.session.leave(r)
	if err := r.configure("run", opts); err != nil {
		return nil, err
	}
	if err := p.pass(r, in); err != nil {
		return nil, err
	}
	r.states = p
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	out := r.othersOf(p.ours)
	for _, k := range p.kept {
		if o := &r.outputs[k.output]; !o.lent {
			k.t = o.t
		}
	}
	p.group.keepRows(r)
	for _, q := range p.running {
		q.n += p.group.next
		q.slide()
	}
	return out, nil
}

// enter notes the sequences of a run.
func (p *StatePool) enter(sequences []*StateSequence) error {
	if len(sequences) == 0 {
		return inputError{fmt.Errorf("run: got no sequences, want one or more")}
	}
	for i, q := range sequences {
		switch {
		case q == nil || q.pool == nil || q.closed:
			return fmt.Errorf("run: sequence %d is %w", i, ErrClosed)
		case q.pool != p:
			return inputError{fmt.Errorf("run: sequence %d is of another pool", i)}
		case q.index >= 0:
			return inputError{fmt.Errorf("run: sequence %d is sequence %d too, want each once: Fork makes another of the same rows", i, q.index)}
		}
		q.index = i
		p.running = append(p.running, q)
	}
	return p.whole()
}

// leave ends a run: a sequence keeps no block behind its last row.
func (p *StatePool) leave() {
	for _, q := range p.running {
		q.index = -1
		q.trim()
	}
	clear(p.running)
	p.running = p.running[:0]
}

// pass passes the pools, lengths, tables and the caller's inputs to a run.
func (p *StatePool) pass(r *running, in Inputs) error {
	clear(p.operands)
	batch := len(p.running)
	if p.table == nil || p.table.Shape().Size(0) != batch {
		for _, t := range []**tensor.Tensor{&p.table, &p.lengths} {
			releaseOurs(*t)
			*t = nil
		}
		var err error
		if p.lengths, err = tensor.Zeros[int64](batch); err == nil {
			p.table, err = tensor.Zeros[int64](batch, p.columns)
		}
		if err != nil {
			releaseOurs(p.lengths)
			p.lengths = nil
			return fmt.Errorf("run: %w", err)
		}
	}
	w, err := tensor.Write[int64](p.lengths)
	if err != nil {
		return err
	}
	for i, q := range p.running {
		w.Data[i] = int64(q.n)
	}
	w.Release()
	states := p.session.model.states
	if states.Even != "" {
		for i, q := range p.running {
			if first := p.running[0].n; q.n != first {
				return fmt.Errorf("run: got %d rows of sequence 0 and %d of sequence %d, want as many of all, because %s: %w", first, q.n, i, states.Even, ErrShape)
			}
		}
	}
	if p.group.sizes >= 0 {
		p.group.n = 0
		for _, q := range p.running {
			p.group.n = max(p.group.n, q.n)
		}
		if err := p.group.setSizes(); err != nil {
			return err
		}
		p.operands[p.group.sizes] = p.group.sizesTensor
	}
	p.operands[p.group.length], p.operands[states.Table] = p.lengths, p.table
	for _, k := range p.kept {
		p.operands[k.input] = k.t.Reuse()
	}
	return r.passed(in, p.operands)
}

// admit takes the blocks for the rows of a run, whose plan is known, copies
// those that others hold too and into which it writes, and fills the table.
func (p *StatePool) admit(r *running) error {
	n, err := p.group.admit(r)
	if err != nil {
		return err
	}
	p.group.next = n
	for _, k := range p.kept {
		o := &r.outputs[k.output]
		if o.into != nil {
			return inputError{fmt.Errorf("run: Into(%q): the output is a state", k.Output)}
		}
		if r.exe.OutputInInput(k.output) != k.input {
			return fmt.Errorf("run: the rows of %s cannot be written in place: %s: %w", k.Input, p.session.model.whyNotTaken(r.exe, k.input), ErrUnsupported)
		}
		o.into, o.again = k.t, true
	}
	if err := p.checkRoom(n); err != nil {
		return err
	}
	table := r.inputs[p.session.model.states.Table] // which no other code has
	for i, q := range p.running {
		if n > 0 {
			p.makeRoom(r, q, n)
		}
		for column := range p.columns {
			b := -1
			if column < len(q.blocks) {
				b = q.blocks[column]
			}
			binary.NativeEndian.PutUint64(table[8*(i*p.columns+column):], uint64(b))
		}
	}
	return nil
}

// checkRoom refuses a run that adds n rows to each sequence where blocks are
// missing.
func (p *StatePool) checkRoom(n int) error {
	need, left := 0, map[int]int{} // holders of shared blocks into which the run writes
	for i, q := range p.running {
		if n == 0 {
			break
		}
		if p.blocksOf(q.n+n) > p.columns {
			return fmt.Errorf("run: got %d rows behind %d of sequence %d, want at most %d in all: %w", n, q.n, i, p.columns*p.rows, ErrLimit)
		}
		need += p.blocksOf(q.n+n) - len(q.blocks)
		b, shared := p.sharedLast(q)
		if !shared {
			continue
		}
		if _, known := left[b]; !known {
			left[b] = p.holders[b]
		}
		if left[b] > 1 { // the last holder writes into the block itself
			left[b]--
			need++
		}
	}
	if need > len(p.free) {
		free, all := p.room(0)
		return &poolFull{len(p.holders) - len(p.free) + need, fmt.Errorf("run: %d rows more of %d sequences take %d blocks of %d rows, want at most the %d of %d that are free: %w", n, len(p.running), need, p.rows, free, all, ErrLimit)}
	}
	return nil
}

// sharedLast returns the block with room behind a sequence's rows, if others
// hold it too.
func (p *StatePool) sharedLast(q *StateSequence) (block int, shared bool) {
	if q.n%p.rows == 0 {
		return 0, false
	}
	block = q.blocks[len(q.blocks)-1]
	return block, p.holders[block] > 1
}

// makeRoom makes the blocks into which a run writes n rows the sequence's own.
func (p *StatePool) makeRoom(r *running, q *StateSequence, n int) {
	if b, shared := p.sharedLast(q); shared {
		own := p.take()
		for _, k := range p.kept {
			data := r.inputs[k.input] // given up to the run, which has not begun
			size := len(data) / len(p.holders)
			p.moved += int64(copy(data[own*size:][:size], data[b*size:]))
		}
		p.drop(b)
		q.blocks[len(q.blocks)-1] = own
	}
	for len(q.blocks) < p.blocksOf(q.n+n) {
		q.blocks = append(q.blocks, p.take())
	}
}

// survive spares the pools: a run writes behind the rows of sequences alone.
func (p *StatePool) survive(r *running) bool {
	return r.spare(p.kept, func(*kept) bool { return true })
}
