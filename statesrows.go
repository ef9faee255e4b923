package tenure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// begin makes the states the caller's alone until busy is false again.
func (st *States) begin(what string) error {
	switch {
	case st == nil || st.session == nil:
		return fmt.Errorf("%s: got no states: %w", what, ErrClosed)
	case !st.busy.CompareAndSwap(false, true):
		return fmt.Errorf("%s: the states are %w: use one States for each goroutine", what, ErrBusy)
	case st.closed:
		st.busy.Store(false)
		return fmt.Errorf("%s: the states are %w", what, ErrClosed)
	}
	return nil
}

// Close releases the states. It does not close the session. A second call
// returns nil.
func (st *States) Close() error {
	if st == nil || st.session == nil {
		return nil
	}
	if !st.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("close: the states are %w", ErrBusy)
	}
	defer st.busy.Store(false)
	st.closed, st.planned = true, nil
	return st.release()
}

// release releases all tensors.
func (st *States) release() error {
	var errs []error
	drop := func(t **tensor.Tensor) {
		if *t != nil && (*t).Alive() {
			errs = append(errs, (*t).Release())
		}
		*t = nil
	}
	for _, k := range st.kept {
		drop(&k.t)
		drop(&k.other)
	}
	drop(&st.chooser)
	for _, g := range st.groups {
		drop(&g.lengthTensor)
		drop(&g.sizesTensor)
		drop(&g.rowsTensor)
	}
	return errors.Join(errs...)
}

// Len returns how many rows appended and written states have; 0 without any.
// Where they have several lengths it is the longest.
func (st *States) Len() int {
	n := 0
	if st != nil {
		for _, g := range st.groups {
			n = max(n, g.n)
		}
	}
	return n
}

// Cap returns how many rows there is room for.
func (st *States) Cap() int {
	if st == nil {
		return 0
	}
	return st.capacity
}

// Bytes returns the size of all states, in bytes: of buffers, that of their
// capacity. Second buffers ([WithRollback]) count.
func (st *States) Bytes() (n int64) {
	if st == nil {
		return 0
	}
	for _, k := range st.kept {
		for _, t := range []*tensor.Tensor{k.t, k.other} {
			if t != nil {
				n += int64(t.NumBytes())
			}
		}
	}
	return n
}

// CopiedState is a state that the last run did not keep in its bytes.
type CopiedState struct {
	Input  string
	Bytes  int64 // of the state
	Reason string
}

// Copied lists the states that the last run did not keep in their bytes: for
// each, the run wrote the whole of a new value. It is empty where every state
// is written in place.
func (st *States) Copied() ([]CopiedState, error) {
	if err := st.begin("copied"); err != nil {
		return nil, err
	}
	defer st.busy.Store(false)
	var list []CopiedState
	if st.planned == nil {
		return nil, nil
	}
	for _, k := range st.kept {
		if k.Kind == StateHeld || st.planned.OutputInInput(k.output) == k.input {
			continue
		}
		why := k.Why
		if !st.givesUp(k) {
			why = "its old value is kept until the run has succeeded"
		}
		if why == "" {
			why = st.session.model.whyNotTaken(st.planned, k.input)
		}
		list = append(list, CopiedState{Input: k.Input, Bytes: int64(k.t.NumBytes()), Reason: why})
	}
	return list, nil
}

// Truncate drops all rows but the first n, as speculative decoding does with
// those of tokens that were not accepted. Groups of states that are shorter
// stay. A state that is no buffer has no rows that could be dropped: with one,
// only Truncate(Len()) is possible, and the error of others is
// [ErrUnsupported].
func (st *States) Truncate(n int) error {
	if err := st.begin("truncate"); err != nil {
		return err
	}
	defer st.busy.Store(false)
	if n < 0 || n > st.Len() {
		return inputError{fmt.Errorf("truncate: got %d rows, want 0 to %d", n, st.Len())}
	}
	if n == st.Len() {
		return nil
	}
	for _, k := range st.kept {
		if !k.buffer() && k.Kind != StateHeld {
			return fmt.Errorf("truncate: state %s is no buffer: its value after %d rows is not known any more: %w", k.Input, n, ErrUnsupported)
		}
	}
	for _, g := range st.groups {
		g.n = min(g.n, n)
	}
	return nil
}

// Reset makes the states those of a sequence that has not begun.
func (st *States) Reset() error {
	if err := st.begin("reset"); err != nil {
		return err
	}
	defer st.busy.Store(false)
	return st.begun()
}

// begun makes the states those of a sequence that has not begun, in the bytes
// that buffers have.
func (st *States) begun() error {
	for _, g := range st.groups {
		g.n = 0
	}
	for _, k := range st.kept {
		if k.buffer() && k.t.Alive() {
			if err := k.clear(); err != nil {
				return err
			}
			continue
		}
		releaseOurs(k.t)
		t, err := tensor.New(st.session.model.inputs[k.input].DType, k.shape)
		if err != nil {
			return err
		}
		k.t = t
	}
	return nil
}

// clear makes the rows of a buffer zeros which the model may read before it
// has written them.
func (k *kept) clear() error {
	if k.Kind != StateWritten {
		return nil
	}
	b, err := k.t.Lock()
	if err == nil {
		clear(b.Data)
		b.Release()
	}
	return err
}

// Fork returns states of the same contents, with buffers of their own, of which
// the rows that are there are copied. The caller closes it.
func (st *States) Fork() (*States, error) {
	if err := st.begin("fork"); err != nil {
		return nil, err
	}
	defer st.busy.Store(false)
	if err := st.whole(); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	f := &States{session: st.session, capacity: st.capacity, opts: st.opts, operands: make([]tensor.Operand, len(st.operands)), ours: slices.Clone(st.ours)}
	for _, g := range st.groups {
		f.groups = append(f.groups, &stateGroup{length: g.length, sizes: g.sizes, rows: g.rows, masks: g.masks})
	}
	for _, k := range st.kept {
		f.kept = append(f.kept, &kept{StateInfo: k.StateInfo, input: k.input, output: k.output, group: k.group})
	}
	for _, c := range st.counted {
		f.counted = append(f.counted, counted{c.input, c.axis, slices.Clone(c.groups)})
	}
	err := f.make()
	for i, k := range st.kept {
		if err == nil {
			err = f.copyState(f.kept[i], k, st.groups)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fork: %w", err), f.release())
	}
	for i, g := range st.groups {
		f.groups[i].n = g.n
	}
	return f, nil
}

// copyState makes to the copy of a state.
func (st *States) copyState(to, from *kept, groups []*stateGroup) error {
	if from.buffer() {
		return copyRows(to.t, 0, from.t, 0, from.used(groups), from.Axis)
	}
	t, err := from.t.Copy(memory.IO)
	if err == nil {
		releaseOurs(to.t)
		to.t = t
	}
	return err
}

// used is how many rows of a buffer have contents: of one that is written where
// the caller says, all.
func (k *kept) used(groups []*stateGroup) int {
	if k.Kind == StateWritten {
		return k.t.Shape().Size(k.Axis)
	}
	return groups[k.group].n
}

// full returns the group without room for the rows of a run, nil for none: one
// that can get no room, if there is one, before anything is dropped.
func (st *States) full(exe *exec.Executable, types []op.Type) (full *fullError) {
	for _, g := range st.groups {
		n, ok := g.adds(exe)
		if !ok || g.n+n <= st.capacity {
			continue
		}
		if full = (&fullError{g, n, slices.Clone(types)}); !st.canMakeRoom(full) {
			break
		}
	}
	return full
}

// makeRoom makes room for the rows of a run, or says why there is none. It
// returns the rows that it dropped.
func (st *States) makeRoom(full *fullError) (dropped, error) {
	g := full.group
	need := g.n + full.rows
	switch {
	case !st.canMakeRoom(full):
	case need <= st.opts.most:
		if err := st.grow(st.doubled(need), full.types); err != nil {
			return dropped{}, fmt.Errorf("run: states: %w", err)
		}
		return dropped{}, nil
	default:
		keep := min(st.opts.window, g.n)
		d := dropped{group: slices.Index(st.groups, g), rows: g.n - keep, columns: need}
		return d, st.slide(g, keep)
	}
	return dropped{}, fmt.Errorf("run: states: %w, want at most %d in all, the capacity: %w", full, max(st.capacity, st.opts.most), ErrLimit)
}

// doubled is the capacity to which states grow for so many rows.
func (st *States) doubled(rows int) int { return min(st.opts.most, max(rows, 2*st.capacity)) }

// canMakeRoom reports whether states may grow for the rows of a run, or drop
// others.
func (st *States) canMakeRoom(full *fullError) bool {
	g := full.group
	return g.n+full.rows <= st.opts.most || st.opts.window > 0 && g.length >= 0 && min(st.opts.window, g.n)+full.rows <= st.capacity
}

// grow makes buffers of another capacity, by one copy of their rows, for a run
// with inputs of the types; nil for no run.
func (st *States) grow(capacity int, types []op.Type) error {
	shapes, err := st.grown(capacity, types)
	fresh := make([]*tensor.Tensor, len(st.kept))
	for i, k := range st.kept {
		if shapes[i] == nil || err != nil || !k.t.Alive() {
			continue
		}
		if fresh[i], err = tensor.New(k.t.DType(), shapes[i]); err == nil {
			err = copyRows(fresh[i], 0, k.t, 0, k.used(st.groups), k.Axis)
		}
	}
	if err != nil {
		for _, t := range fresh {
			releaseOurs(t)
		}
		return fmt.Errorf("growing from %d to %d rows: %w", st.capacity, capacity, err)
	}
	for i, k := range st.kept {
		if fresh[i] != nil {
			releaseOurs(k.t)
			k.t = fresh[i]
		}
		if shapes[i] != nil {
			k.shape = shapes[i]
		}
	}
	st.capacity = capacity
	return nil
}

// grown returns the shapes of buffers of another capacity, nil for other
// states, if the session takes them.
func (st *States) grown(capacity int, types []op.Type) (shapes []*shape.Shape, err error) {
	shapes = make([]*shape.Shape, len(st.kept))
	for i, k := range st.kept {
		if !k.buffer() {
			continue
		}
		if shapes[i], err = st.shapeOf(k, capacity); err != nil {
			return shapes, err
		}
		if types != nil {
			types[k.input].Shape = shapes[i]
		}
	}
	p := st.session.opts.promise
	if p == nil {
		return shapes, nil
	}
	if types != nil {
		err = p.sizes.admit(types)
	}
	for i, k := range st.kept {
		if types == nil && shapes[i] != nil && err == nil {
			err = p.sizes.admitInput(k.input, op.Type{DType: k.t.DType(), Shape: shapes[i]}, nil)
		}
	}
	if err != nil {
		return shapes, inputError{err}
	}
	return shapes, nil
}

// copyRows copies n rows along an axis from one tensor to another, or further
// to the front of the same one.
func copyRows(dst *tensor.Tensor, to int, src *tensor.Tensor, from, n, axis int) error {
	d, err := dst.Lock()
	if err != nil {
		return err
	}
	defer d.Release()
	data := d.Data
	if src != dst {
		s, err := src.Use()
		if err != nil {
			return err
		}
		defer s.Release()
		data = s.Data
	}
	outer := 1
	for i := range axis {
		outer *= src.Shape().Size(i)
	}
	if outer == 0 || len(d.Data) == 0 || len(data) == 0 {
		return nil
	}
	dstStep, srcStep := len(d.Data)/outer, len(data)/outer
	row := srcStep / src.Shape().Size(axis)
	for i := range outer {
		copy(d.Data[i*dstStep+to*row:][:n*row], data[i*srcStep+from*row:])
	}
	return nil
}

// whyFull returns a fullError for a run that has no plan because it adds more
// rows than there is room for, and err for any other: it looks for a plan with
// more room.
func (st *States) whyFull(ctx context.Context, r *running, err error) error {
	if !r.unplanned || ctx.Err() != nil {
		return err
	}
	const tries = 4
	for i := 1; i <= tries && st.capacity < math.MaxInt>>(2*i); i++ {
		capacity := st.capacity << (2 * i)
		types := slices.Clone(r.types)
		for _, k := range st.kept {
			if !k.buffer() {
				continue
			}
			var bad error
			if types[k.input].Shape, bad = st.shapeOf(k, capacity); bad != nil {
				return err
			}
		}
		exe, bad := st.session.executable(ctx, target{types: types, donated: make([]bool, len(types)), value: r.input})
		if bad != nil {
			continue
		}
		if full := st.full(exe, r.types); full != nil {
			return full
		}
		break
	}
	return err
}
