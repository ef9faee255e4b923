package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// instr is one instruction of the step loop.
type instr struct {
	kind   instrKind
	call   int // for all but jump
	target int // where branch goes on when the condition is false, and jump always; a number for give, vacate and own
}

type instrKind uint8

const (
	run instrKind = iota
	branch
	jump
	give   // what region target of the call returns becomes the call's results
	vacate // the own buffers that region target of the call has left
	free   // the own buffers whose last use was the call
	own    // dynamic value target, a result of the program, gets bytes that nobody shares
	enter  // begin a loop; target is where its end is
	again  // end a round; target is where the next one begins
	leave  // end a loop
)

// emit appends the instructions of a block. Views that were placed as views
// need none.
func (e *Executable) emit(b *ir.Block, l *lowering) {
	for _, c := range b.Calls {
		k := l.index[c]
		switch {
		case c.Op.Loop:
			at := len(e.code)
			e.code = append(e.code, instr{kind: enter, call: k})
			e.emit(c.Regions[0], l)
			e.loops[k].idle = !e.asksIn(at + 1)
			e.code = append(e.code, instr{kind: again, call: k, target: at + 1})
			e.code[at].target = len(e.code)
			e.code = append(e.code, instr{kind: leave, call: k})
		case c.Op.Branch:
			at := len(e.code)
			e.code = append(e.code, instr{kind: branch, call: k})
			e.emit(c.Regions[0], l)
			e.emitGive(k, 0)
			end := len(e.code)
			e.code = append(e.code, instr{kind: jump})
			e.code[at].target = len(e.code)
			e.emit(c.Regions[1], l)
			e.emitGive(k, 1)
			e.code[end].target = len(e.code)
		case !l.isPlacedView(k, c):
			e.code = append(e.code, instr{kind: run, call: k})
		}
		if len(e.freed[k]) > 0 {
			e.code = append(e.code, instr{kind: free, call: k})
		}
	}
}

// asksIn reports whether one of the instructions from at on certainly asks
// whether the run is to stop, as tasks do.
func (e *Executable) asksIn(at int) bool {
	for _, in := range e.code[at:] {
		switch {
		case in.kind == run && !e.late[in.call]:
			return true
		case in.kind == branch || in.kind == enter:
			return false // what follows may be passed over
		}
	}
	return false
}

func (e *Executable) emitGive(k, region int) {
	if len(e.gives[k][region]) > 0 {
		e.code = append(e.code, instr{kind: give, call: k, target: region})
	}
	if len(e.left[k][region]) > 0 {
		e.code = append(e.code, instr{kind: vacate, call: k, target: region})
	}
}

// emitOwn makes the dynamic results of the program own their bytes: views and
// what loops and branches pass on may be in a buffer with others.
func (e *Executable) emitOwn(l *lowering) {
	for i, v := range l.program.Body.Results {
		if n := e.outDynamic[i]; n >= 0 {
			e.code = append(e.code, instr{kind: own, call: l.index[v.Def], target: n})
		}
	}
}

// isPlacedView reports whether every result of call k is a view that lies
// where the operand's bytes are.
func (l *lowering) isPlacedView(k int, c *ir.Call) bool {
	if l.isLate(k) {
		return false
	}
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		arg, kind, offset := l.bytesFor(k, c, r)
		if kind != op.View {
			return false
		}
		from, at := l.places[c.Args[arg].Value], l.places[v]
		if at.storage != from.storage || at.offset != from.offset+int64(offset) {
			return false
		}
	}
	return true
}

// Runner runs one executable, for one caller at a time, with tasks of its own.
type Runner struct {
	exe   *Executable
	tasks []*compute.Task // per call; nil where there is nothing to run
	conds [][]byte        // per call: the condition's byte of an `if`

	// Operands and results outside the arena and the weights are pointed to
	// the caller's bytes before each run.
	inputs, outputs []outer
	arena           []inArena
	scratch         []byte

	loops   []*looping    // per call that is one
	gives   [][2][][]byte // per call and region: the bytes of what has a place
	late    []*op.Call    // per call that is bound when it runs: operands and results that have a place
	dynamic []held        // per value whose size depends on data, then a spare one per value that a loop carries
	holds   int           // how many of them have a buffer
	wrote   bool          // a task that writes into a parameter has begun

	// Watch, where it is not nil, is told of every call after it ran, on the
	// goroutine of Run.
	Watch func(c *ir.Call, took time.Duration)
}

// outer is an operand or result that lies in an input or an output.
type outer struct {
	data *[]byte
	ref  ref
}

// inArena is an operand or result that lies in the arena.
type inArena struct {
	data *[]byte
	ref  ref
}

// NewRunner binds the executable's calls once more, for one concurrent run.
func (e *Executable) NewRunner() (*Runner, error) {
	if err := e.Pack(context.Background()); err != nil {
		return nil, err
	}
	r := &Runner{exe: e, tasks: make([]*compute.Task, len(e.calls)), conds: make([][]byte, len(e.calls)),
		loops: make([]*looping, len(e.calls)), gives: make([][2][][]byte, len(e.calls)), dynamic: make([]held, e.dynamic), late: make([]*op.Call, len(e.calls))}
	for n := range r.dynamic {
		r.dynamic[n].count(&r.holds, e.purposeOf(n))
	}
	for _, in := range e.code {
		switch in.kind {
		case run:
			if e.late[in.call] {
				c := e.lateCall(in.call)
				r.late[in.call] = c
				for i := range c.In {
					r.pointRaw(&c.In[i].Data, e.refs[in.call][i])
				}
				for i := range c.Out {
					r.point(&c.Out[i].Data, e.refs[in.call][len(c.In)+i])
				}
				continue
			}
			t, err := e.bind(in.call)
			if err != nil {
				return nil, err
			}
			for i := range t.Call.In {
				if t.Call.In[i].Data, err = e.constant(in.call, i); err != nil {
					return nil, err
				}
			}
			r.tasks[in.call] = t
			if e.writes[in.call] {
				r.noteWrites(t)
			}
			r.collect(in.call, t.Call)
		case branch:
			r.pointRaw(&r.conds[in.call], e.refs[in.call][0])
		case enter:
			r.loops[in.call] = r.newLooping(e.loops[in.call])
		case give:
			list := e.gives[in.call][in.target]
			r.gives[in.call][in.target] = make([][]byte, len(list))
			for i, g := range list {
				r.pointRaw(&r.gives[in.call][in.target][i], g.ref)
			}
		}
	}
	return r, nil
}

// noteWrites makes a task say when it begins to write. One whose Start fails
// has written nothing.
func (r *Runner) noteWrites(t *compute.Task) {
	start := t.Start
	t.Start = func() error {
		if start != nil {
			if err := start(); err != nil {
				return err
			}
		}
		r.wrote = true
		return nil
	}
}

// collect remembers where the operands and results of a task lie.
func (r *Runner) collect(k int, c *op.Call) {
	refs := r.exe.refs[k]
	for i := range c.In {
		r.point(&c.In[i].Data, refs[i])
	}
	for i := range c.Out {
		r.point(&c.Out[i].Data, refs[len(c.In)+i])
	}
}

func (r *Runner) point(data *[]byte, at ref) {
	switch at.space {
	case plan.SpaceArena:
		r.arena = append(r.arena, inArena{data, at})
	case plan.SpaceInput:
		r.inputs = append(r.inputs, outer{data, at})
	case plan.SpaceOutput:
		r.outputs = append(r.outputs, outer{data, at})
	}
}

// pointRaw points to what lies anywhere, weights as they are included.
func (r *Runner) pointRaw(data *[]byte, at ref) {
	if at.space != plan.SpaceWeight {
		r.point(data, at)
	} else if whole, ok := r.exe.weights.Bytes(at.weight); ok {
		*data = whole[at.offset : at.offset+at.size : at.offset+at.size]
	}
}

// Attach points the runner into an arena of Plan.ArenaBytes and scratch of
// Plan.ScratchBytes. Both stay the caller's and must outlive the runs.
func (r *Runner) Attach(arena, scratch []byte) {
	for _, a := range r.arena {
		*a.data = arena[a.ref.offset : a.ref.offset+a.ref.size : a.ref.offset+a.ref.size]
	}
	r.scratch = scratch
}

// PartError is the error of a run that had begun.
type PartError struct {
	Call  int    // number of the call, in preorder
	Op    string // the operator
	Node  string // where it comes from in the model file
	Wrote bool   // bytes of a donated input may have been written, by that call or before it
	Err   error
}

// Step names the step that failed.
func (e *PartError) Step() string {
	if e.Node == "" {
		return fmt.Sprintf("step %d (%s)", e.Call, e.Op)
	}
	return fmt.Sprintf("step %d, node %q (%s)", e.Call, e.Node, e.Op)
}

// Error names the step and what went wrong.
func (e *PartError) Error() string { return e.Step() + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *PartError) Unwrap() error { return e.Err }

// Run executes the program over the given bytes: one slice per parameter and
// one per result. The slice of a result that comes back in a donated
// parameter's bytes is ignored, and that of a result whose size depends on
// data: after a run without error the caller takes it with [Runner.TakeDynamic],
// and [Runner.End] gives up those that nobody took. A closed done stops the run
// between steps and between tiles of a step. An error is a [PartError]. However
// Run ends, by an error or a panic too, it holds no buffer but those results.
// Run allocates nothing unless it fails, or sizes depend on data.
func (r *Runner) Run(pool *compute.Pool, done <-chan struct{}, inputs, outputs [][]byte) error {
	for _, o := range r.inputs {
		*o.data = inputs[o.ref.arg][o.ref.offset : o.ref.offset+o.ref.size]
	}
	for _, o := range r.outputs {
		*o.data = outputs[o.ref.arg][o.ref.offset : o.ref.offset+o.ref.size]
	}
	r.wrote = false
	if len(r.dynamic) == 0 {
		return r.run(pool, done)
	}
	r.dropDynamic()
	succeeded := false
	defer func() { r.endRun(succeeded) }()
	err := r.run(pool, done)
	succeeded = err == nil
	return err
}

// End ends a run that has returned or panicked: the results that nobody took
// are given up. It reports whether the run may have written into a donated
// parameter.
func (r *Runner) End() (wrote bool) {
	r.dropDynamic()
	wrote = r.wrote
	r.wrote, r.Watch = false, nil
	return wrote
}

func (r *Runner) run(pool *compute.Pool, done <-chan struct{}) error {
	code := r.exe.code
	for pc := 0; pc < len(code); {
		in := code[pc]
		pc++
		switch in.kind {
		case run:
			if err := r.step(pool, done, in.call); err != nil {
				return r.partError(in.call, err)
			}
		case branch:
			holds, err := r.one("the condition", r.exe.refs[in.call][0], r.conds[in.call])
			if err != nil {
				return r.partError(in.call, err)
			}
			if holds[0] == 0 {
				pc = in.target
			}
		case enter, again, leave:
			taken, err := r.loop(done, in)
			if err != nil {
				return r.partError(in.call, err)
			}
			if taken {
				pc = in.target
			}
		case give:
			if err := r.give(in.call, in.target); err != nil {
				return r.partError(in.call, err)
			}
		case vacate:
			r.drop(r.exe.left[in.call][in.target])
		case free:
			r.drop(r.exe.freed[in.call])
		case own:
			if err := r.dynamic[in.target].own(); err != nil {
				return r.partError(in.call, err)
			}
		case jump:
			pc = in.target
		}
	}
	return nil
}

// step runs call k and tells who watches.
func (r *Runner) step(pool *compute.Pool, done <-chan struct{}, k int) error {
	if r.Watch == nil {
		return r.runCall(pool, done, k)
	}
	start := time.Now()
	err := r.runCall(pool, done, k)
	r.Watch(r.exe.calls[k], time.Since(start))
	return err
}

func (r *Runner) runCall(pool *compute.Pool, done <-chan struct{}, k int) error {
	if r.exe.late[k] {
		return r.runLate(pool, done, k)
	}
	return pool.Run(done, r.tasks[k], r.scratch)
}

func (r *Runner) partError(k int, err error) error {
	c := r.exe.calls[k]
	return &PartError{Call: k, Op: c.Op.Name, Node: c.Node, Wrote: r.wrote, Err: err}
}

// loop runs an instruction of a loop and reports whether to go on at its
// target.
func (r *Runner) loop(done <-chan struct{}, in instr) (bool, error) {
	s := r.loops[in.call]
	switch in.kind {
	case enter:
		runs, err := r.enter(s)
		return !runs, err
	case again:
		return r.again(done, in.call)
	}
	return false, r.leave(s)
}
