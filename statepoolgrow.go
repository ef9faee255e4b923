package tenure

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// WithPoolGrowth makes a pool whose free blocks are used up double its blocks,
// by one copy of the bytes that it has, up to most blocks. Without it, and for
// more blocks, such a run is refused ([ErrLimit]). Tables of blocks and the
// scratch of attention are sized for most blocks, or for
// [WithLongestSequence].
func WithPoolGrowth(most int) StatePoolOption {
	return func(o *statePoolOptions) { o.most = most }
}

// WithSequenceWindow makes each sequence of a pool keep its last rows, at least
// so many: when a run has succeeded, a sequence gives up the blocks at its
// front in front of those rows. No row is copied, and a run sees at least that
// many rows before its own, or all. [StateSequence.Len] counts the rows that
// are left, and so do the inputs of a run, such as masks. A model that computes
// positions from the length of its past counts on from the rows that are left.
func WithSequenceWindow(rows int) StatePoolOption {
	return func(o *statePoolOptions) { o.window = rows }
}

// poolFull is the error of a run or a file that needs more blocks than there
// are.
type poolFull struct {
	blocks int // that the pool needs, of which some are in use
	err    error
}

func (e *poolFull) Error() string { return e.err.Error() }

// Unwrap returns the error of a pool that does not grow.
func (e *poolFull) Unwrap() error { return e.err }

// grow makes the pool larger for blocks that are missing. The error is the
// pool's own where it may not have so many.
func (p *StatePool) grow(full *poolFull) error {
	if full.blocks > p.most {
		return full.err
	}
	had, blocks := len(p.holders), p.most
	if had <= p.most/2 {
		blocks = max(full.blocks, 2*had)
	}
	fresh := make([]*kept, 0, len(p.kept))
	var err error
	for _, k := range p.kept {
		next := &kept{input: k.input}
		if err = p.makePool(next, blocks, p.session.opts.promise); err == nil {
			fresh = append(fresh, next)
			err = copyRows(next.t, 0, k.t, 0, had, 0)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		for _, next := range fresh {
			releaseOurs(next.t)
		}
		return fmt.Errorf("state pool: growing from %d to %d blocks: %w", had, blocks, err)
	}
	for i, k := range p.kept {
		releaseOurs(k.t)
		k.t, k.shape = fresh[i].t, fresh[i].shape
	}
	p.holders = append(p.holders, make([]int, blocks-had)...)
	added := make([]int, 0, blocks)
	for b := blocks - 1; b >= had; b-- { // the first one is taken first, but behind those that were free
		added = append(added, b)
	}
	p.free = append(added, p.free...)
	return nil
}

// makePool makes the tensor of a state. A session that has promised no memory
// for so many blocks refuses them, if it is given.
func (p *StatePool) makePool(k *kept, blocks int, promised *promise) (err error) {
	info := p.session.model.inputs[k.input]
	if k.shape, err = shape.Of(blocks, info.Shape.Size(1), p.rows, info.Shape.Size(3)); err != nil {
		return err
	}
	if promised != nil {
		if err := promised.sizes.admitInput(k.input, op.Type{DType: info.DType, Shape: k.shape}, nil); err != nil {
			return inputError{err}
		}
	}
	k.t, err = tensor.New(info.DType, k.shape)
	return err
}

// room is how many blocks a run may take that has so many of its own, and how
// many there may be.
func (p *StatePool) room(own int) (free, all int) {
	all = max(p.most, len(p.holders))
	return len(p.free) + own + all - len(p.holders), all
}

// check refuses options that no pool of so many blocks has.
func (o *statePoolOptions) check(blocks, rows int) error {
	switch {
	case o.longest == 0 || o.longest < -1:
		return fmt.Errorf("got %d rows for the longest sequence, want 1 or more", o.longest)
	case o.most != -1 && o.most < blocks:
		return fmt.Errorf("got growth to %d blocks, want at least the %d that it begins with", o.most, blocks)
	case o.window == 0 || o.window < -1:
		return fmt.Errorf("got a window of %d rows, want 1 or more", o.window)
	}
	if columns := o.columns(blocks, rows); o.window > math.MaxInt-rows || columns <= math.MaxInt/rows && o.window+rows > columns*rows {
		return fmt.Errorf("got a window of %d rows, want at most %d: a sequence has up to %d blocks of %d rows, one of them for the rows of a run", o.window, (columns-1)*rows, columns, rows)
	}
	return nil
}

// columns is how many blocks a sequence may have.
func (o *statePoolOptions) columns(blocks, rows int) int {
	most := max(o.most, blocks)
	if o.longest > 0 {
		most = min(most, (o.longest-1)/rows+1)
	}
	return most
}

// slide gives up the blocks in front of the rows that a window keeps.
func (q *StateSequence) slide() {
	p := q.pool
	if p.window < 0 || q.n <= p.window {
		return
	}
	n := (q.n - p.window) / p.rows
	for _, b := range q.blocks[:n] {
		p.drop(b)
	}
	q.blocks = slices.Delete(q.blocks, 0, n)
	q.n -= n * p.rows
}
