package exec_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// endings runs a program that passes values on in every way, until it is
// stopped in one of several ways, and then checks the remaining buffers.
type endings struct {
	exe    *exec.Executable
	runner *exec.Runner
	pool   *compute.Pool
	inputs [][]byte
	before memory.Figures
}

func newEndings(t *testing.T) *endings {
	t.Helper()
	memorytest.Check(t)
	p := parse(t, strings.Replace(passedOn["a branch in a loop in a branch"], "HEAD", heads, 1))
	weights := weightsFor(p)
	if err := ir.Infer(p, ir.Known(weights)); err != nil {
		t.Fatal(err)
	}
	exe, runner, pool := start(t, p, weights)
	x := make([]byte, 4*24)
	for i := range 24 {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(1))
	}
	e := &endings{exe: exe, runner: runner, pool: pool, inputs: [][]byte{{1}, x}}
	e.run(t, nil) // makes everything that is made once
	e.before = memory.Stats()
	return e
}

// run runs, takes the results and releases them.
func (e *endings) run(t *testing.T, done <-chan struct{}) error {
	t.Helper()
	err := e.runner.Run(e.pool, done, e.inputs, make([][]byte, len(e.exe.Program.Body.Results)))
	if err != nil {
		return err
	}
	for i := range e.exe.Program.Body.Results {
		if buf, _ := e.runner.TakeDynamic(i); buf != nil {
			if err := buf.Release(); err != nil {
				t.Error(err)
			}
		}
	}
	return nil
}

func (e *endings) leavesNothing(t *testing.T, when string) {
	t.Helper()
	now := memory.Stats()
	if now.Total.Buffers != e.before.Total.Buffers || now.Total.Current != e.before.Total.Current || exec.Leftover() != 0 {
		t.Fatalf("%s: got %d buffers of %d bytes and %d left over, want %d of %d and none", when,
			now.Total.Buffers, now.Total.Current, exec.Leftover(), e.before.Total.Buffers, e.before.Total.Current)
	}
}

// A run that an allocation ends, whichever it is, leaves nothing.
func TestNothingIsLeftAfterAnAllocationFails(t *testing.T) {
	e := newEndings(t)
	failed := 0
	for limit := e.before.Total.Current; ; limit += 8 {
		old := memory.SetLimit(limit)
		err := e.run(t, nil)
		memory.SetLimit(old)
		e.leavesNothing(t, fmt.Sprintf("limit %d", limit))
		if err == nil {
			break
		}
		if !errors.Is(err, memory.ErrLimit) {
			t.Fatalf("limit %d: got %v, want ErrLimit", limit, err)
		}
		failed++
	}
	if failed < 10 {
		t.Fatalf("got %d runs that failed, want some at every allocation", failed)
	}
}

// A run that is stopped after any of its steps, or in which the caller's
// function panics there, leaves nothing, and the next one works.
func TestNothingIsLeftAfterAStop(t *testing.T) {
	e := newEndings(t)
	steps := 0
	e.runner.Watch = func(int, time.Time, time.Duration) { steps++ }
	if err := e.run(t, nil); err != nil {
		t.Fatal(err)
	}
	for at := range steps {
		done, n := make(chan struct{}), 0
		e.runner.Watch = func(int, time.Time, time.Duration) {
			if n++; n == at+1 {
				close(done)
			}
		}
		if err := e.run(t, done); err != nil && !errors.Is(err, compute.ErrStopped) {
			t.Fatalf("stopped after step %d: got %v, want ErrStopped", at, err)
		}
		e.leavesNothing(t, fmt.Sprintf("stopped after step %d", at))

		n = 0
		e.runner.Watch = func(int, time.Time, time.Duration) {
			if n++; n == at+1 {
				panic("of the caller")
			}
		}
		func() {
			defer func() {
				if got := recover(); got != "of the caller" {
					t.Fatalf("panic in step %d: got %v, want the caller's", at, got)
				}
			}()
			e.run(t, nil)
		}()
		e.leavesNothing(t, fmt.Sprintf("panic in step %d", at))
	}
	e.runner.Watch = nil
	if err := e.run(t, nil); err != nil {
		t.Fatal(err)
	}
	e.leavesNothing(t, "after all")
}

// Results that are not taken are released, at the latest by the next run or
// with the slot.
func TestResultsThatAreNotTaken(t *testing.T) {
	e := newEndings(t)
	outputs := make([][]byte, len(e.exe.Program.Body.Results))
	for range 3 {
		if err := e.runner.Run(e.pool, nil, e.inputs, outputs); err != nil {
			t.Fatal(err)
		}
	}
	e.runner.End()
	e.leavesNothing(t, "dropped")
	if err := e.runner.Run(e.pool, nil, e.inputs, outputs); err != nil {
		t.Fatal(err) // and the slot is released
	}
}
