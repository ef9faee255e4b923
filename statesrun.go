package tenure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// States are the states of one sequence of runs, such as a conversation: all
// values that the model's outputs hand to the next run's inputs. Its runs take
// the other inputs and return the other outputs.
//
//	m, err := tenure.Load("decoder.onnx", tenure.WithStates())
//	s, err := m.NewSession()
//	states, err := s.NewStates(2048)
//	out, err := states.Run(ctx, tenure.Inputs{"input_ids": prompt})
//	out, err = states.Run(ctx, tenure.Inputs{"input_ids": next})
//
// Appended and written states are buffers with room for the capacity. A run
// writes the rows that it adds, and copies none of those that are there. A plan
// in which a state cannot stay in its buffer is not refused: [States.Copied]
// names it.
//
// A States serves one call at a time; another one meanwhile is [ErrBusy]. Many
// may share a session. The caller closes it before the session.
type States struct {
	session  *Session
	capacity int
	opts     statesOptions
	kept     []*kept
	groups   []*stateGroup
	operands []tensor.Operand // by input, nil for those of the caller
	ours     []bool           // by output
	counted  []counted
	chooser  *tensor.Tensor   // whether there is a past, for models that are told; nil for others
	planned  *exec.Executable // of the last run
	busy     atomic.Bool
	closed   bool
}

// kept is a state with its tensor.
type kept struct {
	StateInfo
	input, output, group int
	shape                *shape.Shape // at the beginning
	t                    *tensor.Tensor
	other                *tensor.Tensor // that the next value is written into, where the old one is kept until then; nil before
}

// buffer reports whether the state has a capacity.
func (k *kept) buffer() bool { return k.Kind == StateAppended || k.Kind == StateWritten }

// stateGroup is the states of one length.
type stateGroup struct {
	length, sizes, rows int      // places of inputs and of an output; -1 for none
	masks               []string // calls, of whose masks that output has the columns
	n                   int      // rows that are there
	next                int      // rows after the run under way
	lengthTensor        *tensor.Tensor
	sizesTensor         *tensor.Tensor // of shape [n,0]
	rowsTensor          *tensor.Tensor // that of the output
}

// StatesOption configures a [States].
type StatesOption func(*statesOptions)

type statesOptions struct {
	most   int            // the largest capacity, 0 for the first one
	window int            // rows that are kept when the capacity is used up, 0 for none
	sizes  map[string]int // of dimensions of states

	rollback bool // the old values of states are kept until a run has succeeded
}

// WithGrowth makes a [States] double its capacity when it is used up, by one
// copy of the rows, up to most rows. Without it a run that adds more rows than
// there is room for is refused ([ErrLimit]).
func WithGrowth(most int) StatesOption { return func(o *statesOptions) { o.most = most } }

// WithWindow makes a [States] drop the oldest rows when its capacity is used
// up, and keep the last rows. So a run sees at least that many rows before its
// own, and copies them once in capacity-rows runs of one token. Rows that moved
// have other places: a model that computes positions from the length of its
// past counts on from the rows that are left. They stay dropped if the run then
// fails. Inputs that have a column for each row, such as masks, are passed with
// one for each of [States.Len] and of the run: the run gets those of rows that
// are dropped cut off.
func WithWindow(rows int) StatesOption { return func(o *statesOptions) { o.window = rows } }

// WithStateSize sets the size of an open dimension of states, by its name in
// [Model.Inputs]. Those of which no option says the size have size 1.
func WithStateSize(dimension string, n int) StatesOption {
	return func(o *statesOptions) {
		if o.sizes == nil {
			o.sizes = map[string]int{}
		}
		o.sizes[dimension] = n
	}
}

// NewStates makes the states of a new sequence of runs, with buffers for so
// many rows, which are taken now. All states are zeros, and no rows are there.
// The caller closes it.
func (s *Session) NewStates(capacity int, opts ...StatesOption) (*States, error) {
	if err := s.admit("states"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	m := s.model
	switch {
	case m.states == nil:
		return nil, fmt.Errorf("states: %w: %w", errNoStates, ErrInput)
	case m.states.pooled:
		return nil, inputError{errors.New("states: the model was loaded with WithStatePool: NewStatePool makes pools for it")}
	}
	st := &States{session: s, capacity: capacity, operands: make([]tensor.Operand, len(m.inputs)), ours: make([]bool, len(m.outputs))}
	for i, f := range opts {
		if f == nil {
			return nil, nilOption("states", i)
		}
		f(&st.opts)
	}
	if err := st.opts.check(capacity); err != nil {
		return nil, err
	}
	for _, g := range m.states.Groups {
		st.groups = append(st.groups, &stateGroup{length: g.Length, sizes: g.Sizes, rows: g.Rows, masks: g.Masks})
		st.ours[g.Rows] = true
	}
	for i, p := range m.states.States {
		st.kept = append(st.kept, &kept{StateInfo: m.states.infos[i], input: p.Input, output: p.Output, group: p.Group})
		st.ours[p.Output] = true
	}
	st.countAxes()
	if err := st.checkSizes(); err != nil {
		return nil, err
	}
	if err := st.make(); err != nil {
		return nil, errors.Join(fmt.Errorf("states: %w", err), st.release())
	}
	return st, nil
}

func (o *statesOptions) check(capacity int) error {
	switch {
	case capacity < 1:
		return inputError{fmt.Errorf("states: got the capacity %d, want 1 or more", capacity)}
	case o.most != 0 && o.most < capacity:
		return inputError{fmt.Errorf("states: got growth to %d rows, want at least the capacity %d", o.most, capacity)}
	case o.window < 0 || o.window >= capacity:
		return inputError{fmt.Errorf("states: got a window of %d rows, want fewer than the capacity %d", o.window, capacity)}
	}
	return nil
}

// checkSizes refuses sizes of dimensions that no state has.
func (st *States) checkSizes() error {
	var open []string
	for _, k := range st.kept {
		info := st.session.model.inputs[k.input]
		if info.Shape == nil {
			continue
		}
		for axis, d := range info.Shape.Dims() {
			if symbol, ok := d.Symbol(); ok && !(k.buffer() && axis == k.Axis) && !slices.Contains(open, symbol) {
				open = append(open, symbol)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.opts.sizes)) {
		if !slices.Contains(open, name) {
			return inputError{fmt.Errorf("states: got a size for dimension %q, want an open dimension of states that is not their capacity: %q", name, open)}
		}
	}
	return nil
}

// make makes the tensors of a sequence that has not begun.
func (st *States) make() error {
	for _, g := range st.groups {
		g.n = 0
		if g.length < 0 || g.lengthTensor != nil {
			continue
		}
		var err error
		if g.lengthTensor, err = tensor.Zeros[int64](1); err != nil {
			return err
		}
	}
	if err := st.makeChooser(); err != nil {
		return err
	}
	for _, k := range st.kept {
		var err error
		if k.shape, err = st.shapeOf(k, st.capacity); err != nil {
			return err
		}
		if k.t, err = tensor.New(st.session.model.inputs[k.input].DType, k.shape); err != nil {
			return err
		}
	}
	return nil
}

// makeChooser makes the tensor that chooses a region of the model's branch.
func (st *States) makeChooser() (err error) {
	m := st.session.model
	if m.states.Branch < 0 || st.chooser != nil {
		return nil
	}
	var ones []int
	if s := m.inputs[m.states.Branch].Shape; s != nil {
		ones = slices.Repeat([]int{1}, s.Rank())
	}
	st.chooser, err = tensor.Zeros[bool](ones...)
	return err
}

// choose chooses the region of the model's branch with a past if rows are
// there. The caller may choose too, but only so.
func (st *States) choose(in Inputs) error {
	info := st.session.model.inputs[st.session.model.states.Branch]
	choice := (st.Len() > 0) == st.session.model.states.Past
	if o := in[info.Name]; o != nil && o.Tensor() != nil {
		given, err := tensor.Read[bool](o.Tensor())
		if err != nil {
			return inputError{fmt.Errorf("run: input %s: %w", info, err)}
		}
		other := slices.ContainsFunc(given.Data, func(b bool) bool { return b != choice })
		given.Release()
		if other {
			return inputError{fmt.Errorf("run: input %q: got %v for states with %d rows, want %v, or no value", info.Name, !choice, st.Len(), choice)}
		}
	}
	w, err := tensor.Write[bool](st.chooser)
	if err != nil {
		return err
	}
	w.Data[0] = choice
	w.Release()
	st.operands[st.session.model.states.Branch] = st.chooser
	return nil
}

// shapeOf is the shape of a state at the beginning.
func (st *States) shapeOf(k *kept, capacity int) (*shape.Shape, error) {
	info := st.session.model.inputs[k.input]
	if info.Shape == nil {
		return nil, inputError{fmt.Errorf("input %s: got no rank in the model, want one", info)}
	}
	sizes := make([]int, info.Shape.Rank())
	for axis, d := range info.Shape.Dims() {
		n, sized := d.Size()
		symbol, named := d.Symbol()
		given, set := st.opts.sizes[symbol]
		switch {
		case k.buffer() && axis == k.Axis:
			if sized && n != capacity {
				return nil, inputError{fmt.Errorf("input %s: got the capacity %d, want the model's %d", info, capacity, n)}
			}
			sizes[axis] = capacity
		case sized:
			sizes[axis] = n
		case named && set:
			sizes[axis] = given
		case k.Kind != StateReplaced || st.session.model.isOfOthers(d):
			sizes[axis] = 1
		}
	}
	return shape.Of(sizes...)
}

// isOfOthers reports whether an input that is no state has the dimension.
func (m *Model) isOfOthers(d shape.Dim) bool {
	for i, info := range m.inputs {
		isState := slices.ContainsFunc(m.states.infos, func(s StateInfo) bool { return s.Input == m.inputs[i].Name })
		if !isState && info.Shape != nil && d != shape.Unknown && slices.Contains(info.Shape.Dims(), d) {
			return true
		}
	}
	return false
}

// Run runs the model with these states and the inputs that are none. It returns
// the outputs that are none, and the states are then those after the run. Into
// and Watch are options as in [Session.Run]; so are its errors.
//
// A run that is refused, that fails, or whose context ends leaves appended
// states as they were, and any other one into which it has not written yet.
// Where it has, the error is [ErrPartlyWritten] and names the states that are
// lost: the States runs again after [States.Set] with their contents, or after
// [States.Reset]. [WithRollback] keeps them as they were, too.
func (st *States) Run(ctx context.Context, in Inputs, opts ...RunOption) (Outputs, error) {
	if err := st.begin("run"); err != nil {
		return nil, err
	}
	defer st.busy.Store(false)
	var drops []dropped
	for {
		out, err := st.runWithout(ctx, in, opts, drops)
		var full *fullError
		if !errors.As(err, &full) {
			return out, err
		}
		d, err := st.makeRoom(full)
		if err != nil {
			return nil, err
		}
		if d.rows > 0 {
			drops = append(drops, d)
		}
	}
}

// runWithout is runOnce without the columns of rows that were dropped for the
// run.
func (st *States) runWithout(ctx context.Context, in Inputs, opts []RunOption, drops []dropped) (Outputs, error) {
	if len(drops) == 0 {
		return st.runOnce(ctx, in, opts)
	}
	in, cut, err := st.without(in, drops)
	var out Outputs
	if err == nil {
		out, err = st.runOnce(ctx, in, opts)
	}
	for _, t := range cut {
		releaseOurs(t)
	}
	return out, err
}

// fullError is the error of a run that adds more rows than there is room for.
type fullError struct {
	group *stateGroup
	rows  int       // that the run adds
	types []op.Type // of its inputs
}

func (e *fullError) Error() string {
	return fmt.Sprintf("got %d rows behind %d", e.rows, e.group.n)
}

// runOnce runs the model if there is room.
func (st *States) runOnce(ctx context.Context, in Inputs, opts []RunOption) (Outputs, error) {
	r, err := st.session.begin("run")
	if err != nil {
		return nil, err
	}
	defer st.session.leave(r)
	if err := r.configure("run", opts); err != nil {
		return nil, err
	}
	if err := st.pass(r, in); err != nil {
		return nil, err
	}
	r.states = st
	if err := r.run(ctx); err != nil {
		return nil, st.nameLost(st.whyFull(ctx, r, err))
	}
	out := r.othersOf(st.ours)
	st.take(r)
	return out, nil
}

// pass passes the states and the caller's inputs to a run.
func (st *States) pass(r *running, in Inputs) error {
	clear(st.operands)
	for _, g := range st.groups {
		if g.length >= 0 {
			w, err := tensor.Write[int64](g.lengthTensor)
			if err != nil {
				return err
			}
			w.Data[0] = int64(g.n)
			w.Release()
			st.operands[g.length] = g.lengthTensor
		}
		if g.sizes >= 0 {
			if err := g.setSizes(); err != nil {
				return err
			}
			st.operands[g.sizes] = g.sizesTensor
		}
	}
	if st.chooser != nil {
		if err := st.choose(in); err != nil {
			return err
		}
	}
	if err := st.whole(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for _, k := range st.kept {
		if st.operands[k.input] = k.t; st.givesUp(k) {
			st.operands[k.input] = k.t.Reuse()
		}
	}
	return r.passed(in, st.operands)
}

// setSizes makes the tensor whose size is how many rows there are.
func (g *stateGroup) setSizes() error {
	if g.sizesTensor != nil {
		if g.sizesTensor.Shape().Size(0) == g.n {
			return nil
		}
		releaseOurs(g.sizesTensor)
		g.sizesTensor = nil
	}
	to, err := shape.Of(g.n, 0)
	if err == nil {
		g.sizesTensor, err = tensor.New(dtype.U8, to)
	}
	return err
}

// keepRows takes the output that says how many rows a run added.
func (g *stateGroup) keepRows(r *running) {
	if o := &r.outputs[g.rows]; !o.lent {
		releaseOurs(g.rowsTensor)
		g.rowsTensor = o.t
	}
}

// passed adds the inputs that states have, which are not nil, to those of the
// caller, and passes all to the run.
func (r *running) passed(in Inputs, ours []tensor.Operand) error {
	all := make(Inputs, len(ours))
	for name, o := range in {
		all[name] = o
	}
	for i, o := range ours {
		name := r.session.model.inputs[i].Name
		if o == nil {
			continue
		}
		if _, ok := in[name]; ok && i != r.session.model.states.Branch {
			return inputError{fmt.Errorf("run: got a value for %s, which the states have", name)}
		}
		all[name] = o
	}
	return r.byName(all)
}

// othersOf returns the outputs that no state takes.
func (r *running) othersOf(ours []bool) Outputs {
	out := make(Outputs, len(r.outputs))
	for i := range r.outputs {
		if o := &r.outputs[i]; !o.lent && !ours[i] {
			out[r.session.model.outputs[i].Name] = o.t
		}
	}
	return out
}

// take takes the states out of a run that has ended well.
func (st *States) take(r *running) {
	st.planned = r.exe
	past := st.Len() > 0
	for _, g := range st.groups {
		g.n = g.next
		g.keepRows(r)
	}
	st.count(r)
	for _, k := range st.kept {
		o := &r.outputs[k.output]
		switch {
		case k.Kind == StateHeld && past:
			releaseOurs(o.t) // of no elements
		case k.Kind == StateHeld:
			releaseOurs(k.t)
			k.t = o.t
		case !st.givesUp(k):
			if !o.lent {
				releaseOurs(k.other)
			}
			k.t, k.other = o.t, k.t
		case !o.lent:
			k.t = o.t // the old one was given up
		}
	}
}

// releaseOurs releases a tensor that no other code knows.
func releaseOurs(t *tensor.Tensor) {
	if t != nil && t.Alive() {
		_ = t.Release()
	}
}
