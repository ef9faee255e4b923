package compute

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// Task is a call bound to its kernel: made once per step of a plan, run many
// times without allocating. [Task.Refill] makes it one of other sizes.
type Task struct {
	Call    *op.Call
	Kernel  Kernel
	Tiles   int // independent parts, any order
	Scratch int // bytes per worker, a multiple of 64

	// Forms are the constant operands that the task reads packed: their
	// Call.In[i].Data must be the bytes that the form's Pack wrote. Bind makes
	// none.
	Forms map[int]Form

	// Begun, where it is not nil, is set when Start has succeeded: from then
	// on the run writes.
	Begun *bool

	slabs    *slabs          // nil before a call had gaps
	inSlabs  bool            // slabs run the kernel, which does not take the strides of the call
	variant  *kernel.Variant // the instruction set of its functions
	starter  starter         // the kernel, nil if it has nothing to do before the tiles
	finisher finisher        // the kernel, nil if it has nothing to do after them
	empty    bool            // no result has an element
	narrow   []narrowed      // operands in whose first bytes a result may lie
	inOrder  bool            // a result does, in this run
}

// narrowed is an operand and a result that is smaller.
type narrowed struct{ arg, result int }

// Kernel is the code that a task runs: the functions of an operator on some
// element types, and in its fields the facts of one call that they need.
// Attributes, constants and the choice of functions are set when the call is
// bound and stay; the fields that depend on sizes are set by Refill, which Bind
// calls, too.
//
// A kernel may have two more methods: Start(*Task) error runs once per run,
// before the tiles, to read operand values and check them, and may set
// Task.Tiles; a run whose Start fails has written nothing. Finish(*Task) error
// runs once, after the last tile.
type Kernel interface {
	// Refill sets the fields that depend on the sizes of t.Call, t.Tiles and
	// t.Scratch; the last two are zero before. It reuses the slices that it
	// filled before.
	Refill(t *Task) error

	// Tile computes one part. Its scratch is t.Scratch bytes that no other
	// worker uses.
	Tile(t *Task, tile int, scratch []byte)
}

type starter interface{ Start(t *Task) error }

type finisher interface{ Finish(t *Task) error }

// ErrRebind is the error of a Refill for sizes that need another kernel, or
// constants packed in another form: the call is to be bound again.
var ErrRebind = errors.New("the call is to be bound again for these sizes")

// A binder makes the kernel of one operator's call. It reads the operator, the
// attributes and which operands and results there are, of what element types.
// static; bytes may be absent until the task runs, except those of operands
// that decide geometry (pads, axes, steps), which c.Known must return: the
// bytes in c.In may not stand there yet.
func Bind(c *op.Call) (*Task, error) {
	return bindFor(machine.Best(), c, Constants{})
}

// bindFor binds a call as [BindConstants] does, to the loops of any variant
// that the machine runs.
func bindFor(v *kernel.Variant, c *op.Call, constants Constants) (*Task, error) {
	if err := checkCall(c); err != nil {
		return nil, err
	}
	bind := binderOf(c.Def)
	if bind == nil {
		return nil, fmt.Errorf("got an operator without a kernel: %w", op.ErrUnsupported)
	}
	var k Kernel
	var err error
	if pack := packers[c.Def]; pack != nil && constants.Is != nil {
		k, err = pack(v, c, constants)
	} else {
		k, err = bind(c)
	}
	if err != nil {
		return nil, err
	}
	t := newTask(v, c, k)
	if err := t.size(); err != nil {
		return nil, err
	}
	return t, nil
}

// newTask makes a task that has no sizes yet. A task inside of another takes
// the other's variant when that is refilled: v is nil until then.
func newTask(v *kernel.Variant, c *op.Call, k Kernel) *Task {
	t := &Task{Call: c, Kernel: k, variant: v}
	t.setEnds(k)
	return t
}

// setEnds sets what is to be done before the tiles and after them.
func (t *Task) setEnds(k Kernel) {
	t.starter, _ = k.(starter)
	t.finisher, _ = k.(finisher)
}

// Refill makes the task one of other shapes, after the caller has set them in
// t.Call: Args and Results of its signature, Type and Layout of In and Out, and
// what Known returns. Element types, attributes, the operands that are there
// and the results that are wanted must be those of before. The task is then the
// one that Bind would make, but for Forms, which stay; Tiles and Scratch may
// have changed. Most kernels allocate nothing after they have met as many axes.
//
// The error is ErrRebind where the sizes need another kernel or form. After an
// error the task cannot run before another Refill has succeeded.
func (t *Task) Refill() error {
	err := checkCall(t.Call)
	if err == nil {
		err = t.size()
	}
	return err
}

// size sets what depends on the sizes of a checked call.
func (t *Task) size() error {
	c := t.Call
	t.Tiles, t.Scratch, t.empty = 0, 0, false
	if err := t.findGaps(); err != nil {
		return err
	}
	var err error
	if t.inSlabs {
		err = t.slabs.Refill(t)
	} else {
		err = t.Kernel.Refill(t)
	}
	if err != nil {
		return err
	}
	t.Scratch = (t.Scratch + 63) &^ 63
	t.findNarrow()
	if c.Def.Kernel == nil && c.Def.Bound == nil && writesNothing(c) {
		// The sizes beside a zero may be such that a loop over them does not
		// end: only Start is run.
		t.Tiles, t.Scratch, t.empty = 0, 0, true
	}
	return nil
}

// findGaps decides what runs, by how operands and results lie.
func (t *Task) findGaps() error {
	gaps, walks := anyGaps(t.Call), false
	if gaps {
		if t.slabs == nil {
			t.slabs = &slabs{}
		}
		var ok bool
		if walks, ok = t.slabs.check(t.Call); !ok {
			return badLayouts(t.Call)
		}
	}
	if in := gaps && !(walks && takesStrides(t.Kernel)); in != t.inSlabs {
		if t.inSlabs = in; in {
			t.setEnds(t.slabs)
		} else {
			t.setEnds(t.Kernel)
		}
	}
	return nil
}

// badLayouts is the error for layouts that the kernels of a call do not take.
func badLayouts(c *op.Call) error {
	for _, side := range [2][]op.Arg{c.In, c.Out} {
		for i := range side {
			if a := &side[i]; hasGaps(a) {
				return fmt.Errorf("got %s with layout %s, want one that the kernel takes: %w", a.Type, a.Layout, op.ErrUnsupported)
			}
		}
	}
	return nil
}

// findNarrow finds the results that may lie in the first bytes of an operand.
func (t *Task) findNarrow() {
	t.narrow, t.inOrder = t.narrow[:0], false
	for _, r := range t.Call.Def.Alias.Rules() {
		if r.Kind == op.Narrow && r.Result < len(t.Call.Out) && t.Call.AliasAlone(r.Arg, r.Result) == op.Narrow {
			t.narrow = append(t.narrow, narrowed{r.Arg, r.Result})
		}
	}
}

// InOrder reports whether the tiles of the run that has started have to be
// computed in their order: a result lies in the first bytes of an operand with
// larger elements, of which each tile overwrites some that others before it
// read.
func (t *Task) InOrder() bool { return t.inOrder }

// overlaid reports whether a result lies in an operand with larger elements.
func (t *Task) overlaid() bool {
	for _, n := range t.narrow {
		in, out := t.Call.In[n.arg].Data, t.Call.Out[n.result].Data
		if len(in) > 0 && len(out) > 0 && unsafe.SliceData(in) == unsafe.SliceData(out) {
			return true
		}
	}
	return false
}

// writesNothing reports whether no result has an element.
func writesNothing(c *op.Call) bool {
	for i := range c.Out {
		if wanted(c, i) && elements(&c.Out[i]) > 0 {
			return false
		}
	}
	return true
}

func checkCall(c *op.Call) error {
	for _, side := range [2][]op.Arg{c.In, c.Out} {
		for i := range side {
			a := &side[i]
			if a.IsZero() {
				continue
			}
			if !a.IsStatic() {
				return fmt.Errorf("got %s, want a static shape", a.Type)
			}
		}
	}
	return nil
}

// Eval binds a call whose operands' bytes are all there and runs it on the
// caller's goroutine, with scratch of its own.
func Eval(c *op.Call) error {
	sig := *c.Sig
	sig.Known = func(arg int) ([]byte, bool) {
		if !has(c, arg) {
			return nil, false
		}
		return c.In[arg].Data, true
	}
	whole := *c
	whole.Sig = &sig
	t, err := Bind(&whole)
	if err != nil {
		return err
	}
	return t.run(aligned(t.Scratch))
}

// run runs the whole task on this goroutine.
func (t *Task) run(scratch []byte) error {
	if err := t.Start(); err != nil {
		return err
	}
	for i := range t.Tiles {
		t.Tile(i, scratch)
	}
	return t.Finish()
}

// aligned returns n bytes that start at a multiple of 64.
func aligned(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+63)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}

// Start prepares a run, before its tiles: it reads and checks operand values,
// and may set Tiles.
func (t *Task) Start() error {
	if t.starter != nil {
		if err := t.starter.Start(t); err != nil {
			return err
		}
		if t.empty {
			t.Tiles = 0
		}
	}
	if len(t.narrow) > 0 {
		t.inOrder = t.overlaid()
	}
	if t.Begun != nil {
		*t.Begun = true
	}
	return nil
}

// Finish ends a run, after its last tile.
func (t *Task) Finish() error {
	if t.finisher == nil || t.empty {
		return nil
	}
	return t.finisher.Finish(t)
}

// Tile computes one part of a run. Its scratch is Scratch bytes that no other
// worker uses.
func (t *Task) Tile(tile int, scratch []byte) {
	if t.inSlabs {
		t.slabs.Tile(t, tile, scratch)
		return
	}
	t.Kernel.Tile(t, tile, scratch)
}

// valuesNeeded has, by operator, the operands without whose values calls are
// not bound.
func unknown(c *op.Call, arg int) error {
	return fmt.Errorf("operand %d: got %s of unknown value, want a value that is known before the run: %w",
		arg, c.In[arg].Type, op.ErrUnsupported)
}

// unsupported is the error for a combination of types without a kernel.
func unsupported(c *op.Call) error {
	var b strings.Builder
	for i := range c.In {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.In[i].Type.String())
	}
	return fmt.Errorf("got operands (%s), want types that have a kernel: %w", b.String(), op.ErrUnsupported)
}
