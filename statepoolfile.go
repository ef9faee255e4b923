package tenure

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// Save writes the rows of the sequence into a file in the format of package
// [github.com/tenure-go/tenure/tensor/safetensors], by the names of the
// states' inputs and in the shapes that they have in the model, for a batch of
// one. [StateSequence.Load] reads it in any pool for the same model, and so
// does [States.Load] where the states are appended.
func (q *StateSequence) Save(path string) error {
	if err := q.begin("save"); err != nil {
		return err
	}
	p := q.pool
	defer p.busy.Store(false)
	if err := p.whole(); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	var entries []safetensors.Entry
	defer func() {
		for _, e := range entries {
			releaseOurs(e.Tensor)
		}
	}()
	for i, k := range p.kept {
		to, err := p.shapeOfRows(i, q.n)
		if err != nil {
			return fmt.Errorf("save: state %s: %w", k.Input, err)
		}
		t, err := tensor.New(k.t.DType(), to)
		if err != nil {
			return fmt.Errorf("save: state %s: %w", k.Input, err)
		}
		entries = append(entries, safetensors.Entry{Name: k.Input, Tensor: t})
		if err := p.copyRows(k, t, q.blocks, false); err != nil {
			return fmt.Errorf("save: state %s: %w", k.Input, err)
		}
	}
	return safetensors.WriteFile(path, nil, entries...)
}

// Load makes the rows of the sequence those of a file that
// [StateSequence.Save] or [States.Save] wrote, for the same model and a batch
// of one. It takes blocks for them, and gives up those that the sequence has.
// Rows for which no blocks are free are [ErrLimit], unless the pool grows
// ([WithPoolGrowth]). After an error the sequence is as it was.
func (q *StateSequence) Load(path string) (err error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	list := map[string]*tensor.Tensor{}
	defer func() {
		for _, t := range list {
			releaseOurs(t)
		}
	}()
	for _, info := range file.Tensors() {
		if list[info.Name], err = file.Tensor(info.Name); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
	if err := q.begin("load"); err != nil {
		return err
	}
	p := q.pool
	defer p.busy.Store(false)
	if err := p.whole(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	n, err := p.rowsOf(list, file.Metadata())
	if err != nil {
		return fmt.Errorf("load: %s: %w", path, err)
	}
	return q.load(list, n)
}

// load replaces the rows.
func (q *StateSequence) load(list map[string]*tensor.Tensor, n int) error {
	p := q.pool
	own := 0 // blocks that come back
	for _, b := range q.blocks {
		if p.holders[b] == 1 {
			own++
		}
	}
	need := p.blocksOf(n)
	switch {
	case need > p.columns:
		return fmt.Errorf("load: got %d rows, want at most %d of a sequence: %w", n, p.columns*p.rows, ErrLimit)
	case need > len(p.free)+own:
		free, all := p.room(own)
		full := &poolFull{len(p.holders) - len(p.free) - own + need, fmt.Errorf("load: %d rows take %d blocks of %d rows, want at most the %d of %d that are free: %w", n, need, p.rows, free, all, ErrLimit)}
		if err := p.grow(full); err != nil {
			return err
		}
	}
	fresh := &StateSequence{pool: p}
	for range min(need, len(p.free)) {
		fresh.blocks = append(fresh.blocks, p.take())
	}
	if len(fresh.blocks) < need { // the old rows are written over
		q.n = 0
		q.trim()
		for len(fresh.blocks) < need {
			fresh.blocks = append(fresh.blocks, p.take())
		}
	}
	for _, k := range p.kept {
		if err := p.copyRows(k, list[k.Input], fresh.blocks, true); err != nil {
			fresh.trim()
			return fmt.Errorf("load: state %s: %w", k.Input, err)
		}
	}
	q.n = 0
	q.trim()
	q.n, q.blocks = n, fresh.blocks
	return nil
}

// rowsOf returns how many rows tensors have that are to be those of a sequence,
// or why they cannot be.
func (p *StatePool) rowsOf(list map[string]*tensor.Tensor, metadata map[string]string) (rows int, err error) {
	rows = -1
	for i, k := range p.kept {
		t := list[k.Input]
		if t == nil {
			return 0, fmt.Errorf("got no tensor %q, want one for each state: %w", k.Input, ErrCorrupt)
		}
		if t.DType() != k.t.DType() {
			return 0, inputError{fmt.Errorf("state %s: got %s, want %s: %w", k.Input, t.DType(), k.t.DType(), ErrDType)}
		}
		n := 0
		if t.Shape().Rank() > k.Axis {
			n = t.Shape().Size(k.Axis)
		}
		want, err := p.shapeOfRows(i, n)
		if err != nil {
			return 0, err
		}
		if !slices.Equal(t.Shape().Sizes(), want.Sizes()) {
			return 0, inputError{fmt.Errorf("state %s: got %s, want %s in all but axis %d: %w", k.Input, t.Shape(), want, k.Axis, ErrShape)}
		}
		if written, bad := strconv.Atoi(metadata[rowsKey(k)]); bad == nil { // the file has a whole buffer
			n = min(max(written, 0), n)
		}
		if rows >= 0 && n != rows {
			return 0, inputError{fmt.Errorf("state %s: got %d rows, want the %d of other states: %w", k.Input, n, rows, ErrShape)}
		}
		rows = n
	}
	if len(list) > len(p.kept) {
		return 0, inputError{fmt.Errorf("got %d tensors for %d states, want those of states alone", len(list), len(p.kept))}
	}
	return rows, nil
}

// shapeOfRows is the shape that n rows of one sequence have in the model.
func (p *StatePool) shapeOfRows(i, n int) (*shape.Shape, error) {
	sizes := make([]int, 0, 8)
	for axis, d := range p.session.model.states.Shapes[i].Dims() {
		size, _ := d.Size()
		switch axis {
		case 0:
			size = 1
		case p.kept[i].Axis:
			size = n
		}
		sizes = append(sizes, size)
	}
	return shape.Of(sizes...)
}

// copyRows copies rows of a sequence, as many as blocks have room for at most,
// between a tensor of its own and the blocks of a state.
func (p *StatePool) copyRows(k *kept, t *tensor.Tensor, blocks []int, in bool) error {
	from, to := k.t, t
	if in {
		from, to = t, k.t
	}
	dst, err := to.Lock()
	if err != nil {
		return err
	}
	defer dst.Release()
	src, err := from.Use()
	if err != nil {
		return err
	}
	defer src.Release()
	heads, row := k.shape.Size(1), k.shape.Size(3)*k.t.DType().Size()
	count := t.Shape().Size(k.Axis)
	for h := range heads {
		for i, b := range blocks {
			n := min(p.rows, count-i*p.rows)
			own, pooled := (h*count+i*p.rows)*row, (b*heads+h)*p.rows*row
			if in {
				own, pooled = pooled, own
			}
			copy(dst.Data[own:][:n*row], src.Data[pooled:])
		}
	}
	return nil
}
