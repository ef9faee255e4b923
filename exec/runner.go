package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// instr is one instruction of the step loop.
type instr struct {
	kind   instrKind
	call   int // for run and branch
	target int // where branch goes on when the condition is false, and jump always
}

type instrKind uint8

const (
	run instrKind = iota
	branch
	jump
)

// emit appends the instructions of a block. Views that were placed as views
// need none.
func (e *Executable) emit(b *ir.Block, l *lowering) {
	for _, c := range b.Calls {
		k := l.index[c]
		switch {
		case len(c.Regions) == 2:
			at := len(e.code)
			e.code = append(e.code, instr{kind: branch, call: k})
			e.emit(c.Regions[0], l)
			end := len(e.code)
			e.code = append(e.code, instr{kind: jump})
			e.code[at].target = len(e.code)
			e.emit(c.Regions[1], l)
			e.code[end].target = len(e.code)
		case !l.isPlacedView(k, c):
			e.code = append(e.code, instr{kind: run, call: k})
		}
	}
}

// isPlacedView reports whether every result of call k is a view that lies
// where the operand's bytes are.
func (l *lowering) isPlacedView(k int, c *ir.Call) bool {
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		arg, kind, offset := l.bytesFor(k, c, r)
		if kind != op.View {
			return false
		}
		from, at := l.places[c.Args[arg].Value], l.places[v]
		if at.class != from.class || at.offset != from.offset+int64(offset) {
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
	if err := e.Pack(); err != nil {
		return nil, err
	}
	r := &Runner{exe: e, tasks: make([]*compute.Task, len(e.calls)), conds: make([][]byte, len(e.calls))}
	for _, in := range e.code {
		switch in.kind {
		case run:
			t, err := e.bind(in.call)
			if err != nil {
				return nil, err
			}
			r.tasks[in.call] = t
			r.collect(in.call, t.Call)
		case branch:
			ref := e.refs[in.call][0]
			if ref.space == plan.SpaceWeight {
				data, _ := e.weights.Bytes(ref.weight)
				r.conds[in.call] = data
				continue
			}
			r.point(&r.conds[in.call], ref)
		}
	}
	return r, nil
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

func (e *PartError) Error() string { return e.Step() + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *PartError) Unwrap() error { return e.Err }

// Run executes the program over the given bytes: one slice per parameter and
// one per result. The slice of a result that comes back in a donated
// parameter's bytes is ignored. A closed done stops the run between steps and
// between tiles of a step. An error is a [PartError]. Run allocates nothing
// unless it fails.
func (r *Runner) Run(pool *compute.Pool, done <-chan struct{}, inputs, outputs [][]byte) error {
	for _, o := range r.inputs {
		*o.data = inputs[o.ref.arg][o.ref.offset : o.ref.offset+o.ref.size]
	}
	for _, o := range r.outputs {
		*o.data = outputs[o.ref.arg][o.ref.offset : o.ref.offset+o.ref.size]
	}
	code, wrote := r.exe.code, false
	for pc := 0; pc < len(code); {
		in := code[pc]
		pc++
		switch in.kind {
		case run:
			wrote = wrote || r.exe.writes[in.call]
			if err := pool.Run(done, r.tasks[in.call], r.scratch); err != nil {
				c := r.exe.calls[in.call]
				return &PartError{Call: in.call, Op: c.Op.Name, Node: c.Node, Wrote: wrote, Err: err}
			}
		case branch:
			if r.conds[in.call][0] == 0 {
				pc = in.target
			}
		case jump:
			pc = in.target
		}
	}
	return nil
}
