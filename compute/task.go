package compute

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/tenure-go/tenure/op"
)

// Task is a call bound to its kernel: made once per step of a plan, run many
// times without allocating.
type Task struct {
	Call    *op.Call
	Tiles   int // independent parts, any order
	Scratch int // bytes per worker, a multiple of 64

	// Forms are the constant operands that the task reads packed: their
	// Call.In[i].Data are what the form's Pack made. Bind gives none.
	Forms map[int]Form

	// Start runs once per run, before the tiles: it reads operand values and
	// checks them, and may set Tiles. It may be nil. A run whose Start fails
	// has written nothing.
	Start func() error

	// Tile computes one part. Its scratch is Scratch bytes that no other
	// worker uses.
	Tile func(tile int, scratch []byte)

	// Finish runs once, after the last tile. It may be nil.
	Finish func() error
}

// A binder makes the task of one operator's call. It leaves Task.Call to Bind.
type binder func(c *op.Call) (*Task, error)

// binders maps operator names to binders; each family's file adds its own.
var binders = map[string]binder{}

func register(family map[string]binder) bool {
	for name, b := range family {
		if binders[name] != nil {
			panic("BUG: compute: operator " + name + " is bound twice")
		}
		binders[name] = b
	}
	return true
}

// Supported reports whether calls of the operator can be bound: it is built
// in and computes something, or it brings its own kernel.
func Supported(def *op.Def) bool { return binderOf(def) != nil }

func binderOf(def *op.Def) binder {
	switch {
	case def.Kernel != nil:
		return bindUser
	case op.Builtin().Lookup(def.Name) == def:
		return binders[def.Name]
	}
	return nil // somebody else's operator under one of our names
}

// Bind binds a call to the kernel for its operand and result types. Types are
// static; bytes may be absent until the task runs, except those of operands
// that decide geometry (pads, axes, steps), which c.Known must give: the bytes
// in c.In may not stand there yet.
func Bind(c *op.Call) (*Task, error) {
	return bindWith(c, func(bind binder) (*Task, error) { return bind(c) })
}

// bindWith finds the call's binder and makes the task with it.
func bindWith(c *op.Call, apply func(binder) (*Task, error)) (*Task, error) {
	if err := checkCall(c); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(c), err)
	}
	bind := binderOf(c.Def)
	if bind == nil {
		return nil, fmt.Errorf("%s: got an operator without a kernel: %w", nameOf(c), op.ErrUnsupported)
	}
	t, err := apply(bind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(c), err)
	}
	t.Call = c
	t.Scratch = (t.Scratch + 63) &^ 63
	if c.Def.Kernel == nil && c.Def.Bound == nil && givesNothing(c) {
		t.onlyStart()
	}
	return t, nil
}

// givesNothing reports whether no result has an element.
func givesNothing(c *op.Call) bool {
	for i := range c.Out {
		if wanted(c, i) && elements(&c.Out[i]) > 0 {
			return false
		}
	}
	return true
}

// onlyStart leaves of the task that it checks its operands: the sizes beside a zero may be such that a loop over them does not end.
func (t *Task) onlyStart() {
	t.Tiles, t.Scratch, t.Finish = 0, 0, nil
	if start := t.Start; start != nil {
		t.Start = func() error {
			err := start()
			t.Tiles = 0
			return err
		}
	}
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
			if a.Layout != nil && !a.Layout.IsContiguous() {
				return fmt.Errorf("got %s with layout %s, want a contiguous one: %w", a.Type, a.Layout, op.ErrUnsupported)
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
	if err := t.run(aligned(t.Scratch)); err != nil {
		return fmt.Errorf("%s: %w", nameOf(c), err)
	}
	return nil
}

// run runs the whole task on this goroutine. Errors do not name the call.
func (t *Task) run(scratch []byte) error {
	if t.Start != nil {
		if err := t.Start(); err != nil {
			return err
		}
	}
	for i := range t.Tiles {
		t.Tile(i, scratch)
	}
	if t.Finish != nil {
		return t.Finish()
	}
	return nil
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

func (t *Task) start() error {
	if t.Start == nil {
		return nil
	}
	if err := t.Start(); err != nil {
		return fmt.Errorf("%s: %w", nameOf(t.Call), err)
	}
	return nil
}

func (t *Task) finish() error {
	if t.Finish == nil {
		return nil
	}
	if err := t.Finish(); err != nil {
		return fmt.Errorf("%s: %w", nameOf(t.Call), err)
	}
	return nil
}

// nameOf returns how errors name a call: the operator, and its node if it has
// a name.
func nameOf(c *op.Call) string {
	if c.Node == "" {
		return c.Def.Name
	}
	return fmt.Sprintf("%s (node %q)", c.Def.Name, c.Node)
}

// NeedsValue reports whether calls of an operator are bound by the value of an
// operand, even if all types are static: they fail without it.
func NeedsValue(name string, arg int) bool {
	switch name {
	case "slice", "resize":
		return arg > 0
	case "pad", "stft":
		return arg == 1 || arg == 3
	case "dft", "col2im":
		return arg == 1 || arg == 2
	case "split":
		return arg == 1
	}
	return strings.HasPrefix(name, "reduce_") && arg == 1
}

// unknown is the error for an operand that decides geometry and whose value
// Bind cannot see.
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

// bindUser makes the task of an operator that brings its own kernel: one tile,
// and a panic in it is an error of the operator, not ours.
func bindUser(c *op.Call) (*Task, error) {
	scratchBytes := 0
	if c.Def.Scratch != nil {
		n, err := c.Def.Scratch(c.Sig)
		if err != nil {
			return nil, fmt.Errorf("scratch: %w", err)
		}
		if n < 0 {
			return nil, fmt.Errorf("scratch: got %d bytes, want zero or more", n)
		}
		scratchBytes = n
	}
	var result error
	return &Task{
		Tiles:   1,
		Scratch: scratchBytes,
		Tile: func(_ int, scratch []byte) {
			c.Scratch = scratch[:scratchBytes:scratchBytes]
			result = runUser(c)
			c.Scratch = nil
		},
		Finish: func() error { return result },
	}, nil
}

func runUser(c *op.Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kernel panicked: %v%s", p, panicPlace())
		}
	}()
	return c.Def.Kernel(c)
}

// panicPlace names the line that panicked, to a deferred function.
func panicPlace() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf(" (at %s:%d)", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
