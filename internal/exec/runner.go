package exec

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/op"
)

// Runner runs one executable, for one caller at a time, with tasks of its own.
type Runner struct {
	exe   *Executable
	tasks *tasks
	steps []boundStep // by number of the call

	// Operands and results outside the arena and the weights are pointed to
	// the caller's bytes before each run.
	inputs, outputs []pointed
	arena           []pointed
	slots           []*slots // of the loops
	scratch         []byte

	dynamic []dynamicValue // per value whose size depends on data, then a spare one per value that a loop carries
	buffers int            // how many of them have one
	turn    int            // of its slot, when it was attached last
	wrote   bool           // a task that writes into a parameter has begun

	// Watch, where it is not nil, is called after every call of the program, by
	// its number, with when it began and the time that it took, on the
	// goroutine of Run.
	Watch func(k int, start time.Time, took time.Duration)

	// Draws says which random numbers the next run draws. A run counts it up.
	Draws op.Draws
}

// boundStep is a call of the program in a runner.
type boundStep struct {
	task   *compute.Task // nil where there is nothing to run, or where it is bound when it runs
	call   *op.Call      // of a step that is bound when it runs: operands and results that have a place
	cond   []byte        // of a branch: the condition
	yields [2][][]byte   // of a branch, per region: the bytes of what has a place
	loop   *loopState    // of a loop
}

// pointed is an operand or result that lies in the arena, or in an input or an
// output of that number.
type pointed struct {
	data         *[]byte
	offset, size int64
	arg          int32
}

// NewRunner returns a runner for one concurrent run. The first one takes the
// tasks that the executable was compiled with, others are bound.
func (e *Executable) NewRunner() (*Runner, error) {
	if err := e.Pack(context.Background()); err != nil {
		return nil, err
	}
	ts, err := e.takeTasks()
	if err != nil {
		return nil, err
	}
	r := &Runner{exe: e, tasks: ts, steps: ts.steps, dynamic: make([]dynamicValue, len(e.dynamic)),
		arena: ts.arena[:0], inputs: ts.inputs[:0], outputs: ts.outputs[:0]}
	for n := range r.dynamic {
		r.dynamic[n].init(&r.buffers, e.dynamic[n].purpose)
	}
	e.packing.mu.Lock()
	defer e.packing.mu.Unlock()
	for _, in := range e.code {
		to, step := &r.steps[in.call], &e.steps[in.call]
		switch in.kind {
		case run:
			if err := r.bind(in.call); err != nil {
				return nil, err
			}
		case branch:
			r.pointRaw(&to.cond, *r.exe.ref(in.call, 0))
		case enter:
			to.loop = r.newLoopState(step.loop)
		case yieldResults:
			list := step.yields[in.target]
			to.yields[in.target] = make([][]byte, len(list))
			for i, y := range list {
				r.pointRaw(&to.yields[in.target][i], y.ref)
			}
		}
	}
	return r, nil
}

// bind points what call k runs to its bytes.
func (r *Runner) bind(k int) error {
	e, to := r.exe, &r.steps[k]
	if e.steps[k].dynamic {
		c := e.dynamicCall(r.tasks, k)
		to.call, c.Draws = c, &r.Draws
		for i := range c.In {
			r.pointRaw(&c.In[i].Data, *e.ref(k, i))
		}
		for i := range c.Out {
			r.point(&c.Out[i].Data, e.ref(k, len(c.In)+i))
		}
		return nil
	}
	t := r.tasks.list[k]
	c := t.Call
	for i := range c.In {
		var err error
		if c.In[i].Data, err = e.constant(k, i); err != nil {
			return err
		}
	}
	to.task, c.Draws = t, &r.Draws
	if e.steps[k].writes {
		t.Begun = &r.wrote // one whose Start fails has written nothing
	}
	for i := range c.In {
		r.point(&c.In[i].Data, e.ref(k, i))
	}
	for i := range c.Out {
		r.point(&c.Out[i].Data, e.ref(k, len(c.In)+i))
	}
	return nil
}

// point notes that bytes lie in the arena, an input or an output.
func (r *Runner) point(data *[]byte, at *ref) {
	p := pointed{data, at.offset, at.size, at.arg}
	switch at.space {
	case arenaSpace:
		r.arena = append(r.arena, p)
	case inputSpace:
		r.inputs = append(r.inputs, p)
	case outputSpace:
		r.outputs = append(r.outputs, p)
	case slotSpace:
		r.pointInSlot(at.arg, p)
	}
}

// pointRaw is point, and points to weights as they are too.
func (r *Runner) pointRaw(data *[]byte, at ref) {
	if at.space != weightSpace {
		r.point(data, &at)
	} else if whole, ok := r.exe.weights.Bytes(r.exe.weight(&at)); ok {
		*data = whole[at.offset : at.offset+at.size : at.offset+at.size]
	}
}

// Attach points the runner into an arena of ArenaBytes and scratch of
// ScratchBytes of the executable. Both stay the caller's and must outlive the
// runs.
func (r *Runner) Attach(arena, scratch []byte) {
	for _, a := range r.arena {
		*a.data = arena[a.offset : a.offset+a.size : a.offset+a.size]
	}
	r.scratch = scratch
}

// Run executes the program over the given bytes: one slice per parameter and
// one per result. The slice of a result that comes back in a donated
// parameter's bytes is ignored, and that of a result whose size depends on
// data: after a run without error the caller takes it with
// [Runner.TakeDynamic], and [Runner.End] releases those that were not taken. A
// closed done stops the run between steps and between tiles of a step. An error
// is a [PartError]. However Run ends, by an error or a panic too, no buffer is
// left but those results. Run allocates nothing unless it fails, or sizes
// depend on data.
func (r *Runner) Run(pool *compute.Pool, done <-chan struct{}, inputs, outputs [][]byte) error {
	for _, o := range r.inputs {
		*o.data = inputs[o.arg][o.offset : o.offset+o.size]
	}
	for _, o := range r.outputs {
		*o.data = outputs[o.arg][o.offset : o.offset+o.size]
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

// End ends a run that has returned or panicked: the results that were not taken
// are released. It reports whether the run may have written into a donated
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
			holds, err := r.one("the condition", *r.exe.ref(in.call, 0), r.steps[in.call].cond)
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
		case yieldResults:
			if err := r.yield(in.call, in.target); err != nil {
				return r.partError(in.call, err)
			}
		case freeLeft:
			r.drop(r.exe.steps[in.call].left[in.target])
		case free:
			r.drop(r.exe.steps[in.call].freed)
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

// step runs call k, and then Watch.
func (r *Runner) step(pool *compute.Pool, done <-chan struct{}, k int) error {
	if r.Watch == nil {
		return r.runCall(pool, done, k)
	}
	start := time.Now()
	err := r.runCall(pool, done, k)
	r.Watch(k, start, time.Since(start))
	return err
}

func (r *Runner) runCall(pool *compute.Pool, done <-chan struct{}, k int) error {
	if t := r.steps[k].task; t != nil {
		return pool.Run(done, t, r.scratch)
	}
	return r.runDynamic(pool, done, k)
}

func (r *Runner) partError(k int, err error) error {
	c := r.exe.steps[k].call
	return &PartError{Call: k, Op: c.Op.Name, Node: c.Node, Wrote: r.wrote, Err: err}
}

// loop runs an instruction of a loop and reports whether to go on at its
// target.
func (r *Runner) loop(done <-chan struct{}, in instr) (bool, error) {
	s := r.steps[in.call].loop
	switch in.kind {
	case enter:
		runs, err := r.enter(s)
		return !runs, err
	case again:
		return r.again(done, in.call)
	}
	return false, r.leave(s)
}
