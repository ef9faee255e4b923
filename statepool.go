package tenure

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/tensor"
)

// WithStatePool makes the model one whose states a [StatePool] keeps, for many
// sequences that run together and have lengths of their own. Pairs are those of
// [WithStates]; a model has one of the two options.
//
// All states must be appended, with one length, along another axis than the
// first, which is that of sequences; the sizes of all other axes are known.
// Attention and GroupQueryAttention read the rows where they lie. For any other
// node they are gathered, and all sequences of a run have one length. The error
// of another model names the state or the node.
func WithStatePool(pairs ...StatePair) Option {
	return func(o *loadOptions) { o.states, o.pooled, o.pairs = true, true, append([]StatePair{}, pairs...) }
}

// StatePool keeps the states of many sequences in blocks of rows. The bytes of
// all blocks are taken when it is made; every state has a part of each block. A
// sequence has a list of blocks, and a run writes the new rows of its sequences
// into blocks that only they hold.
//
//	m, err := tenure.Load("decoder.onnx", tenure.WithStatePool())
//	s, err := m.NewSession()
//	pool, err := s.NewStatePool(256, 16)            // 256 blocks of 16 rows
//	a, err := pool.NewSequence()
//	out, err := pool.Run(ctx, []*tenure.StateSequence{a}, tenure.Inputs{"input_ids": prompt})
//	b, err := a.Fork()                              // shares all blocks of a
//	out, err = pool.Run(ctx, []*tenure.StateSequence{a, b}, tenure.Inputs{"input_ids": next})
//
// A pool and its sequences serve one call at a time; another one meanwhile is
// [ErrBusy]. Many pools may share a session. The caller closes a pool before
// the session; that closes its sequences.
type StatePool struct {
	session   *Session
	rows      int // of a block
	columns   int // of a table: blocks that a sequence may have
	most      int // blocks that it may grow to
	window    int // rows that a sequence keeps at least; -1 for all
	kept      []*kept
	group     stateGroup     // its places; the lengths are those of the sequences
	lengths   *tensor.Tensor // [batch], as of the last run
	table     *tensor.Tensor // [batch,columns]
	operands  []tensor.Operand
	ours      []bool // by output
	holders   []int  // of each block: how many sequences have it
	free      []int  // blocks without holders
	sequences map[*StateSequence]struct{}
	running   []*StateSequence // of the run under way
	moved     int64            // bytes that copies of shared blocks have taken
	busy      atomic.Bool
	closed    bool
}

// StatePoolOption configures a [StatePool].
type StatePoolOption func(*statePoolOptions)

type statePoolOptions struct {
	longest int // rows of a sequence; -1 for those of all blocks
	most    int // blocks to which the pool grows; -1 for none
	window  int // rows that a sequence keeps; -1 for all
}

// WithLongestSequence limits each sequence of a pool to so many rows, rounded
// up to whole blocks. Tables of blocks and the scratch of attention are sized
// for the longest sequence; without the option that is the whole pool, as large
// as it may grow.
func WithLongestSequence(rows int) StatePoolOption {
	return func(o *statePoolOptions) { o.longest = rows }
}

// NewStatePool makes a pool of so many blocks, each of which has room for so
// many rows of every state. It takes the bytes of all blocks now. The caller
// closes it.
func (s *Session) NewStatePool(blocks, rowsPerBlock int, opts ...StatePoolOption) (*StatePool, error) {
	if err := s.admit("state pool"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	m := s.model
	switch {
	case m.states == nil || !m.states.pooled:
		return nil, inputError{errors.New("state pool: the model was loaded without WithStatePool")}
	case blocks < 1 || rowsPerBlock < 1:
		return nil, inputError{fmt.Errorf("state pool: got %d blocks of %d rows, want 1 or more of each", blocks, rowsPerBlock)}
	}
	o := statePoolOptions{longest: -1, most: -1, window: -1}
	for i, f := range opts {
		if f == nil {
			return nil, nilOption("state pool", i)
		}
		f(&o)
	}
	if err := o.check(blocks, rowsPerBlock); err != nil {
		return nil, inputError{fmt.Errorf("state pool: %w", err)}
	}
	p := &StatePool{session: s, rows: rowsPerBlock, columns: o.columns(blocks, rowsPerBlock), most: o.most, window: o.window,
		operands: make([]tensor.Operand, len(m.inputs)), ours: make([]bool, len(m.outputs)), holders: make([]int, blocks), sequences: map[*StateSequence]struct{}{}}
	g := m.states.Groups[0]
	p.group = stateGroup{length: g.Length, sizes: g.Sizes, rows: g.Rows}
	p.ours[g.Rows] = true
	for i, state := range m.states.States {
		k := &kept{StateInfo: m.states.infos[i], input: state.Input, output: state.Output}
		p.kept, p.ours[k.output] = append(p.kept, k), true
	}
	for b := range blocks {
		p.free = append(p.free, blocks-1-b) // the first one is taken first
	}
	for _, k := range p.kept {
		if err := p.makePool(k, blocks, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("state pool: %w", err), p.release())
		}
	}
	return p, nil
}

// blocksOf is how many blocks so many rows take.
func (p *StatePool) blocksOf(rows int) int { return (rows + p.rows - 1) / p.rows }

// begin makes the pool the caller's alone until busy is false again.
func (p *StatePool) begin(what string) error {
	switch {
	case p == nil || p.session == nil:
		return fmt.Errorf("%s: got no state pool: %w", what, ErrClosed)
	case !p.busy.CompareAndSwap(false, true):
		return fmt.Errorf("%s: the state pool is %w: a pool and its sequences serve one call at a time", what, ErrBusy)
	case p.closed:
		p.busy.Store(false)
		return fmt.Errorf("%s: the state pool is %w", what, ErrClosed)
	}
	return nil
}

// Close releases all blocks, and closes the sequences. It does not close the
// session. A second call returns nil.
func (p *StatePool) Close() error {
	if p == nil || p.session == nil {
		return nil
	}
	if !p.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("close: the state pool is %w", ErrBusy)
	}
	defer p.busy.Store(false)
	p.closed = true
	for q := range p.sequences {
		q.end()
	}
	return p.release()
}

func (p *StatePool) release() error {
	list := []**tensor.Tensor{&p.lengths, &p.table, &p.group.sizesTensor, &p.group.rowsTensor}
	for _, k := range p.kept {
		list = append(list, &k.t)
	}
	var errs []error
	for _, t := range list {
		if *t != nil && (*t).Alive() {
			errs = append(errs, (*t).Release())
		}
		*t = nil
	}
	return errors.Join(errs...)
}

// StatePoolStats is what a [StatePool] has.
type StatePoolStats struct {
	Blocks    int   // all of them
	Free      int   // without holders
	Used      int   // with one holder or more
	Shared    int   // with two holders or more
	Sequences int   // that are not closed
	Rows      int   // of a block
	Bytes     int64 // of all blocks, for all states
	Copied    int64 // bytes that runs have copied out of shared blocks since the pool was made; growth is not counted
}

// Stats returns how the blocks are used. The error is [ErrBusy] during a run.
func (p *StatePool) Stats() (s StatePoolStats, err error) {
	if err := p.begin("stats"); err != nil {
		return s, err
	}
	defer p.busy.Store(false)
	s = StatePoolStats{Blocks: len(p.holders), Free: len(p.free), Used: len(p.holders) - len(p.free), Sequences: len(p.sequences), Rows: p.rows, Copied: p.moved}
	for _, n := range p.holders {
		if n > 1 {
			s.Shared++
		}
	}
	for _, k := range p.kept {
		s.Bytes += int64(k.t.NumBytes())
	}
	return s, nil
}

// StateSequence is the states of one sequence of runs, such as a conversation,
// in a [StatePool]. It holds blocks of the pool until it is closed.
type StateSequence struct {
	pool   *StatePool
	n      int   // rows
	blocks []int // in the order of rows; the last one may have room
	index  int   // in the run under way
	closed bool
}

// NewSequence makes a sequence without rows, which holds no block yet.
func (p *StatePool) NewSequence() (*StateSequence, error) {
	if err := p.begin("new sequence"); err != nil {
		return nil, err
	}
	defer p.busy.Store(false)
	return p.add(&StateSequence{pool: p}), nil
}

func (p *StatePool) add(q *StateSequence) *StateSequence {
	q.index = -1
	p.sequences[q] = struct{}{}
	return q
}

// begin makes the sequence's pool the caller's alone until busy is false again.
func (q *StateSequence) begin(what string) error {
	if q == nil || q.pool == nil {
		return fmt.Errorf("%s: got no sequence: %w", what, ErrClosed)
	}
	if err := q.pool.begin(what); err != nil {
		return err
	}
	if q.closed {
		q.pool.busy.Store(false)
		return fmt.Errorf("%s: the sequence is %w", what, ErrClosed)
	}
	return nil
}

// Len returns how many rows the sequence has; 0 after Close. It must not be
// called during a run of the pool.
func (q *StateSequence) Len() int {
	if q == nil {
		return 0
	}
	return q.n
}

// Fork returns a sequence with the same rows. It shares the blocks: nothing is
// copied. The first run that writes into a last block that is shared and has
// room copies that block, one of each state. A beam search that drops one beam
// for two of another forks it and closes the dropped one.
func (q *StateSequence) Fork() (*StateSequence, error) {
	if err := q.begin("fork"); err != nil {
		return nil, err
	}
	p := q.pool
	defer p.busy.Store(false)
	for _, b := range q.blocks {
		p.holders[b]++
	}
	return p.add(&StateSequence{pool: p, n: q.n, blocks: append([]int{}, q.blocks...)}), nil
}

// Truncate drops all rows but the first n, and the blocks that had no others.
func (q *StateSequence) Truncate(n int) error {
	if err := q.begin("truncate"); err != nil {
		return err
	}
	defer q.pool.busy.Store(false)
	if n < 0 || n > q.n {
		return inputError{fmt.Errorf("truncate: got %d rows, want 0 to %d", n, q.n)}
	}
	q.n = n
	q.trim()
	return nil
}

// Close gives up the blocks. A second call returns nil, and so does one after
// the pool was closed.
func (q *StateSequence) Close() error {
	if q == nil || q.pool == nil {
		return nil
	}
	if !q.pool.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("close: the state pool is %w", ErrBusy)
	}
	defer q.pool.busy.Store(false)
	q.end()
	return nil
}

func (q *StateSequence) end() {
	q.n, q.closed = 0, true
	q.trim()
	delete(q.pool.sequences, q)
}

// trim gives up the blocks behind the last row.
func (q *StateSequence) trim() {
	keep := q.pool.blocksOf(q.n)
	for _, b := range q.blocks[keep:] {
		q.pool.drop(b)
	}
	q.blocks = q.blocks[:keep]
}

// drop takes one holder off a block.
func (p *StatePool) drop(b int) {
	if p.holders[b]--; p.holders[b] == 0 {
		p.free = append(p.free, b)
	}
}

// take returns a block with one holder.
func (p *StatePool) take() int {
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.holders[b] = 1
	return b
}

// whole returns why the pool has no contents.
func (p *StatePool) whole() error {
	for _, k := range p.kept {
		if k.t == nil || !k.t.Alive() {
			return fmt.Errorf("the state pool has no contents of %s, because a run %w; Close it", k.Input, ErrPartlyWritten)
		}
	}
	return nil
}
