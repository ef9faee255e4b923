package randomprogram_test

import (
	"bytes"
	"errors"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
)

// randomRun is one run of a random program, with the inputs of a round.
type randomRun struct {
	*randomProgram
	exe    *exec.Executable
	runner *exec.Runner
	round  int

	rubbish byte
	given   [][]byte
	outputs [][]byte
	types   []op.Type        // of the outputs
	buffers []*memory.Buffer // of outputs whose size depends on data
}

// attach sets the run's arena and scratch, filled with rubbish, inputs and
// outputs.
func (r *randomRun) attach(rubbish byte) {
	r.rubbish, r.given, r.outputs, r.types = rubbish, nil, nil, nil
	r.runner.Attach(words(int(r.exe.ArenaBytes), rubbish), words(int(r.exe.ScratchBytes), rubbish))
	for _, data := range r.inputs[r.round] {
		in := words(len(data), 0)
		copy(in, data)
		r.given = append(r.given, in)
	}
	for i, v := range r.exe.Program.Body.Results {
		r.types = append(r.types, v.Type)
		switch in := r.exe.OutputInInput(i); {
		case !v.Type.IsStatic():
			r.outputs = append(r.outputs, nil)
		case in >= 0:
			r.outputs = append(r.outputs, r.given[in][:sizeOf(v.Type)])
		default:
			r.outputs = append(r.outputs, words(sizeOf(v.Type), rubbish))
		}
	}
}

// run runs and takes the outputs whose size depended on data, until release.
func (r *randomRun) run(pool *compute.Pool, done <-chan struct{}) error {
	if err := r.runner.Run(pool, done, r.given, r.outputs); err != nil {
		return err
	}
	for i, v := range r.exe.Program.Body.Results {
		if v.Type.IsStatic() {
			continue
		}
		buf, t := r.runner.TakeDynamic(i)
		r.types[i], r.outputs[i] = t, nil
		if buf != nil {
			r.buffers = append(r.buffers, buf)
			r.outputs[i] = buf.Bytes()[:sizeOf(t)]
		}
	}
	return nil
}

func (r *randomRun) release(t *rapid.T) {
	for _, buf := range r.buffers {
		if buf.Holders() != 1 {
			t.Fatalf("got %d holders of an output's buffer, want 1\n%s", buf.Holders(), r.exe.Program)
		}
		if err := buf.Release(); err != nil {
			t.Fatal(err)
		}
	}
	r.buffers = nil
}

// countMoved compares the bytes that each call moves and does not compute with
// those that the plan says, whenever it runs.
func (r *randomRun) countMoved(t *rapid.T, seen map[string]int) {
	steps := modeltest.Must(r.exe.Plan()).Steps
	r.runner.Watch = func(k int, _ time.Time, _ time.Duration) {
		c := r.exe.Call(k)
		if !c.Op.Moves() || len(c.Regions) > 0 || !c.Sig(nil).IsStatic() {
			return
		}
		if _, written := r.runner.Moved(k); written != steps[k].Moved || steps[k].Call != k {
			t.Fatalf("round %d: %s: got %d bytes moved, want %d as the plan says\n%s", r.round, c, written, steps[k].Moved, r.exe.Program)
		}
		seen["bytes moved as planned"] += int(steps[k].Moved)
	}
}

// compare runs and compares with the interpreter.
func (r *randomRun) compare(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	want, refused := r.interpret(r.inputs[r.round])
	err := r.run(pool, nil)
	defer r.release(t)
	if refused != nil {
		// The call that sizes did not fit may have been dead.
		seen["refused"]++
		return
	}
	if err != nil {
		t.Fatalf("run: %v\n%s\nwas\n%s", err, r.exe.Program, r.program)
	}
	for i, v := range r.program.Body.Results {
		got := r.types[i]
		if got != want[i].Type && (got.DType != want[i].DType || got.Shape.NumElements() > 0 || got.Shape.Rank() != want[i].Shape.Rank()) {
			t.Fatalf("round %d, output %d, %s: got %s, want %s\n%s\nwas\n%s", r.round, i, v, got, want[i].Type, r.exe.Program, r.program)
		}
		if at := r.bounds[v].differs(want[i], r.outputs[i]); at != "" {
			t.Fatalf("round %d, output %d, %s %s (%+v): %s\n%s\nwas\n%s", r.round, i, v, v.Type, r.bounds[v], at, r.exe.Program, r.program)
		}
		if !v.Type.IsStatic() {
			seen["dynamic output"]++
			if len(r.outputs[i]) == 0 {
				seen["zero elements"]++
			}
			for _, other := range r.program.Body.Results[:i] {
				if other == v {
					seen["same output twice"]++
				}
			}
		}
	}
	for i, data := range r.inputs[r.round] {
		if !r.exe.TakesInput(i) && !bytes.Equal(data, r.given[i]) {
			t.Fatalf("round %d: input %d was written\n%s", r.round, i, r.exe.Program)
		}
	}
	r.apart(t)
}

// apart checks that no two outputs share a byte, nor an output with an input
// that it does not come back in, or with a weight.
func (r *randomRun) apart(t *rapid.T) {
	overlap := func(a, b []byte) bool {
		if len(a) == 0 || len(b) == 0 {
			return false
		}
		x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
		return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
	}
	for i, out := range r.outputs {
		for j, other := range r.outputs[:i] {
			if overlap(out, other) {
				t.Fatalf("outputs %d and %d share bytes\n%s", j, i, r.exe.Program)
			}
		}
		for j, in := range r.given {
			if overlap(out, in) && r.exe.OutputInInput(i) != j {
				t.Fatalf("output %d lies in input %d\n%s", i, j, r.exe.Program)
			}
		}
		for name, w := range r.weights {
			if overlap(out, w) {
				t.Fatalf("output %d lies in weight %q\n%s", i, name, r.exe.Program)
			}
		}
	}
}

// spoil runs until the run is stopped, panics in the caller's function, or
// gets no more memory, and checks the objects that are live then.
func (r *randomRun) spoil(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	before := memory.Stats().Total
	at, calls := rapid.IntRange(1, 20).Draw(t, "spoilt at"), 0
	done := make(chan struct{})
	var err error
	switch how := rapid.IntRange(0, 2).Draw(t, "spoilt"); how {
	case 0:
		old := memory.SetLimit(before.Current + int64(rapid.IntRange(1, 500).Draw(t, "limit")))
		err = r.run(pool, nil)
		memory.SetLimit(old)
		if errors.Is(err, memory.ErrLimit) {
			seen["no memory"]++
		}
	default:
		r.runner.Watch = func(int, time.Time, time.Duration) {
			if calls++; calls == at {
				if how == 1 {
					panic("spoilt")
				}
				close(done)
			}
		}
		func() {
			defer func() {
				if got := recover(); got == "spoilt" {
					seen["panicked"]++
				} else if got != nil {
					panic(got)
				}
			}()
			if err = r.run(pool, done); errors.Is(err, compute.ErrStopped) {
				seen["stopped"]++
			}
		}()
		r.runner.Watch = nil
	}
	r.release(t)
	if now := memory.Stats().Total; now.Current != before.Current || now.Buffers != before.Buffers || exec.Leftover() != 0 {
		t.Fatalf("spoilt (%v): got %d bytes in %d buffers held and %d holds left over, want %d in %d and none\n%s", err,
			now.Current, now.Buffers, exec.Leftover(), before.Current, before.Buffers, r.exe.Program)
	}
}
