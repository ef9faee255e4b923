package tenure

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// rowsOfState returns the contents of a state in a tensor of its own, of a
// buffer the rows that may have contents.
func (st *States) rowsOfState(k *kept) (*tensor.Tensor, error) {
	if !k.buffer() {
		return k.t.Copy(memory.IO)
	}
	n := k.used(st.groups)
	sizes := slices.Clone(k.t.Shape().Sizes())
	sizes[k.Axis] = n
	to, err := shape.Of(sizes...)
	if err != nil {
		return nil, err
	}
	t, err := tensor.New(k.t.DType(), to)
	if err == nil {
		err = copyRows(t, 0, k.t, 0, n, k.Axis)
	}
	return t, err
}

// Save writes the states into a file in the format of package
// [github.com/tenure-go/tenure/tensor/safetensors], by the names of their
// inputs: of an appended state the rows that are there, of others all.
func (st *States) Save(path string) (err error) {
	if err := st.begin("save"); err != nil {
		return err
	}
	defer st.busy.Store(false)
	if err := st.whole(); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	metadata := map[string]string{}
	var entries []safetensors.Entry
	defer func() {
		for _, e := range entries {
			releaseOurs(e.Tensor)
		}
	}()
	for _, k := range st.kept {
		if k.Kind == StateWritten {
			metadata[rowsKey(k)] = strconv.Itoa(st.groups[k.group].n)
		}
		t, err := st.rowsOfState(k)
		if t != nil {
			entries = append(entries, safetensors.Entry{Name: k.Input, Tensor: t})
		}
		if err != nil {
			return fmt.Errorf("save: state %s: %w", k.Input, err)
		}
	}
	return safetensors.WriteFile(path, metadata, entries...)
}

// rowsKey names the entry of a file that says how many rows runs have written
// into a state.
func rowsKey(k *kept) string { return "tenure.rows:" + k.Input }

// Load makes the states those of a file that [States.Save] wrote, for the same
// model, as [States.Set] does with all of them.
func (st *States) Load(path string) (err error) {
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
	if err := st.begin("load"); err != nil {
		return err
	}
	defer st.busy.Store(false)
	for _, k := range st.kept {
		if list[k.Input] == nil {
			return fmt.Errorf("load: %s has no tensor %q, want one for each state: %w", path, k.Input, ErrCorrupt)
		}
	}
	if err := st.set(list); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	for _, k := range st.kept {
		if n, bad := strconv.Atoi(file.Metadata()[rowsKey(k)]); bad == nil && k.Kind == StateWritten {
			st.groups[k.group].n = min(max(n, 0), st.capacity)
		}
	}
	return nil
}

// Set makes the contents of tensors, by the names of inputs, those of states:
// the rows of a buffer, or the whole of another state. The tensors stay the
// caller's. Of buffers of one length all are set at once, with as many rows;
// states that are not named stay as they are. More rows than there is room for
// are [ErrLimit]; with [WithGrowth] the capacity grows for them. After an error
// no state has other contents.
func (st *States) Set(values map[string]*tensor.Tensor) error {
	if err := st.begin("set"); err != nil {
		return err
	}
	defer st.busy.Store(false)
	return st.set(values)
}

func (st *States) set(values map[string]*tensor.Tensor) error {
	lengths, err := st.lengthsOf(values)
	if err == nil {
		err = st.growFor(slices.Max(append(lengths, 0)))
	}
	if err != nil {
		return err
	}
	fresh := make([]*tensor.Tensor, len(st.kept))
	for i, k := range st.kept {
		if t := values[k.Input]; t != nil && err == nil {
			if fresh[i], err = st.stateOf(k, t); err != nil {
				err = fmt.Errorf("set: state %s: %w", k.Input, err)
			}
		}
	}
	for i, k := range st.kept {
		switch {
		case fresh[i] == nil:
		case err != nil:
			releaseOurs(fresh[i])
		default:
			releaseOurs(k.t)
			k.t = fresh[i]
		}
	}
	for i, g := range st.groups {
		if n := lengths[i]; n >= 0 && err == nil {
			g.n = n
		}
	}
	return err
}

// growFor makes room for rows that are to be set, of which there are at most as
// many as states may grow to.
func (st *States) growFor(rows int) error {
	if rows <= st.capacity {
		return nil
	}
	if err := st.grow(st.doubled(rows), nil); err != nil {
		return fmt.Errorf("set: %w", err)
	}
	return nil
}

// stateOf returns the tensor of a state with the contents of t.
func (st *States) stateOf(k *kept, t *tensor.Tensor) (*tensor.Tensor, error) {
	if !k.buffer() {
		return t.Copy(memory.IO)
	}
	buffer, err := tensor.New(t.DType(), k.shape)
	if err == nil {
		err = copyRows(buffer, 0, t, 0, t.Shape().Size(k.Axis), k.Axis)
	}
	return buffer, err
}

// lengthsOf returns the rows of each group in tensors that are to be states, -1
// for a group of which there is none, or why they cannot be.
func (st *States) lengthsOf(values map[string]*tensor.Tensor) ([]int, error) {
	lengths, found := make([]int, len(st.groups)), 0
	for i := range lengths {
		lengths[i] = -1
	}
	for _, k := range st.kept {
		t := values[k.Input]
		if t == nil {
			continue
		}
		found++
		if err := st.fits(k, t); err != nil {
			return nil, inputError{fmt.Errorf("set: state %s: %w", k.Input, err)}
		}
		if k.buffer() {
			lengths[k.group] = t.Shape().Size(k.Axis)
		}
	}
	if found < len(values) {
		return nil, inputError{fmt.Errorf("set: got %d tensors of which %d are states, want names of states alone", len(values), found)}
	}
	for _, k := range st.kept {
		if !k.buffer() || lengths[k.group] < 0 {
			continue
		}
		if t := values[k.Input]; t == nil || t.Shape().Size(k.Axis) != lengths[k.group] {
			return nil, inputError{fmt.Errorf("set: state %s: got other rows than the %d of a state of the same length: %w", k.Input, lengths[k.group], ErrShape)}
		}
	}
	return lengths, nil
}

// fits reports why a tensor cannot be the contents of a state.
func (st *States) fits(k *kept, t *tensor.Tensor) error {
	if want := st.session.model.inputs[k.input].DType; t.DType() != want {
		return fmt.Errorf("got %s, want %s: %w", t.DType(), want, ErrDType)
	}
	if k.Kind == StateReplaced || k.Kind == StateHeld {
		return nil
	}
	sizes := slices.Clone(t.Shape().Sizes())
	if k.buffer() && len(sizes) == k.shape.Rank() {
		if n, most := sizes[k.Axis], max(st.capacity, st.opts.most); n > most {
			return fmt.Errorf("got %d rows, want at most %d, the capacity: %w", n, most, ErrLimit)
		}
		sizes[k.Axis] = st.capacity
	}
	if !slices.Equal(sizes, k.shape.Sizes()) {
		return fmt.Errorf("got %s, want %s, of buffers in all but axis %d: %w", t.Shape(), k.shape, k.Axis, ErrShape)
	}
	return nil
}
