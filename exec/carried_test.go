package exec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/check"
	"github.com/tenure-go/tenure/shape"
)

// passedOn are programs that pass values without a size on, in all ways: as
// views at an offset, from one holder to several, around a loop, out of
// branches, more than once. %m and %v of their heads are such values.
var passedOn = map[string]string{
	"a carried view at an offset": `func @f(%x: f32[4,6]) -> (i64[?]) {
		HEAD
		%r = loop(@i64_2, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = slice(%a, @one, @last, @axis)
			return %c2, %b
		}
		return %r
	}`,
	"a loop of no rounds whose state is an output too": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r = loop(@i64_0, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = neg(%a)
			return %c2, %b
		}
		return %v, %r
	}`,
	"a stack of views of what is carried": `func @f(%x: f32[4,6]) -> (i64[?,?,1]) {
		HEAD
		%r, %s = loop(@i64_3, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = neg(%a)
			%d = unsqueeze(%a, @one)
			return %c2, %b, %d
		}
		return %s
	}`,
	"carried as it is, unwanted": `func @f(%x: f32[4,6]) -> (i64[?]) {
		HEAD
		_, %r = loop(@i64_3, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = add(%a, %b)
			return %c2, %a, %d
		}
		return %r
	}`,
	"carried values change places": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%w = neg(%v)
		%r, %s = loop(@i64_3, _, %v, %w) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			return %c2, %b, %a
		}
		return %r, %s
	}`,
	"one value carried twice, stacked, and read after": `func @f(%x: f32[4,6]) -> (i64[?], i64[?], i64[?,?], i64[?]) {
		HEAD
		%r, %s, %k = loop(@i64_2, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = add(%a, %b)
			return %c2, %d, %d, %d
		}
		%u = neg(%v)
		return %r, %s, %k, %u
	}`,
	"what stands outside is carried on": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%w = neg(%v)
		%r = loop(@i64_3, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%d = add(%w, %a)
			return %c2, %w
		}
		%u = abs(%w)
		return %r, %u
	}`,
	"a branch gives a view of what stands outside": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r = if(%c) {
			%a = slice(%v, @one, @last, @axis)
			return %a
		} {
			%b = neg(%v)
			return %b
		}
		return %r, %v
	}`,
	"a branch gives what stands outside, twice": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?], i64[?]) {
		HEAD
		%r, %s = if(%c) {
			%a = neg(%v)
			return %v, %v
		} {
			%b = abs(%v)
			return %b, %b
		}
		return %r, %s, %v
	}`,
	"a branch whose result nobody wants": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?]) {
		HEAD
		_, %s = if(%c) {
			%a = neg(%v)
			%b = abs(%v)
			return %a, %b
		} {
			%d = neg(%v)
			%e = neg(%d)
			return %d, %e
		}
		return %s
	}`,
	"a branch in a loop in a branch": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?,?], i64[?]) {
		HEAD
		%r, %s = if(%c) {
			%a = slice(%v, @one, @last, @axis)
			%q, %k = loop(@i64_3, _, %a) (%i: i64[], %c1: bool[], %p: i64[?]) {
				%c2 = copy(%c1)
				%odd = cast(%i) {to = bool}
				%d, %e = if(%odd) {
					%g = neg(%p)
					return %g, %a
				} {
					%h = slice(%p, @one, @last, @axis)
					return %h, %v
				}
				%o = abs(%e)
				%oo = slice(%o, @zero, @one, @axis)
				return %c2, %d, %oo
			}
			return %q, %k
		} {
			%b = unsqueeze(%v, @zero)
			return %v, %b
		}
		return %r, %s, %v
	}`,
	"loops in a loop": `func @f(%x: f32[4,6]) -> (i64[?], i64[?,?,?]) {
		HEAD
		%r, %s = loop(@i64_2, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%q, %k = loop(@i64_2, _, %a) (%j: i64[], %d: bool[], %b: i64[?]) {
				%d2 = copy(%d)
				%g = add(%b, %a)
				%h = slice(%b, @one, @last, @axis)
				return %d2, %g, %v
			}
			return %c2, %q, %k
		}
		return %r, %s
	}`,
	"a bounded value goes out of a branch, a loop and a stack": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[2,?], i64[2,?], i64[?,2,?], i64[2,?]) {
		HEAD
		%r = if(%c) {
			return %n
		} {
			%b = non_zero(%x)
			return %b
		}
		%s, %k = loop(@i64_2, _, %n) (%i: i64[], %c1: bool[], %p: i64[2,?]) {
			%c2 = copy(%c1)
			%d = non_zero(%x)
			return %c2, %d, %p
		}
		return %r, %s, %k, %n
	}`,
	"parts of a split": `func @f(%x: f32[4,6]) -> (i64[1,?], i64[1,?], i64[1,?]) {
		HEAD
		%a, %b = split(%m) {axis = 0, num_outputs = 2}
		%d = neg(%a)
		%e = add(%d, %b)
		return %a, %b, %e
	}`,
	"carried without a size from bytes in which another value is carried": `func @f(%x: f32[4,6], %y: f32[3]) -> (f32[?], f32[3]) {
		HEAD
		%w = cast(%v) {to = f32}
		%r, %s = loop(@i64_3, _, %w, %y) (%i: i64[], %c: bool[], %a: f32[?], %b: f32[3]) {
			%c2 = copy(%c)
			%d = neg(donate %b)
			%e = exp(%d)
			return %c2, %d, %e
		}
		return %r, %s
	}`,
	"a stack of no rounds has the sizes that are declared": `func @f(%x: f32[4,6]) -> (i64[?,?,?], i64[?,?], i64[?]) {
		HEAD
		%s, %k = loop(@i64_0, _) (%i: i64[], %c: bool[]) {
			%c2 = copy(%c)
			return %c2, %m, %v
		} {parts = [2, 5, 3, 1, -1]}
		%z = shape(%s)
		%zz = concat(%z, @one) {axis = 0}
		return %s, %k, %zz
	}`,
	"a size in the last of many loops": `func @f(%x: f32[3]) -> (f32[3]) {
		weight @i64_1: i64[]
		weight @three: i64[1]
		weight @flat: i64[1]
		%r = loop(@i64_1, _, %x) (%i: i64[], %c: bool[], %a: f32[3]) {
			%c2 = copy(%c)
			%r1 = loop(@i64_1, _, %a) (%i1: i64[], %d: bool[], %a1: f32[3]) {
				%d2 = copy(%d)
				%r2 = loop(@i64_1, _, %a1) (%i2: i64[], %e: bool[], %a2: f32[3]) {
					%e2 = copy(%e)
					%r3 = loop(@i64_1, _, %a2) (%i3: i64[], %g: bool[], %a3: f32[?]) {
						%g2 = copy(%g)
						%n3 = neg(%a3)
						%b3 = reshape(%n3, @three)
						return %g2, %b3
					}
					%b2 = neg(%r3)
					return %e2, %b2
				}
				%b1 = neg(%r2)
				return %d2, %b1
			}
			%b = neg(%r1)
			return %c2, %b
		}
		return %r
	}`,
}

const heads = `weight @"i64_-1": i64[1]
		weight @zero: i64[1]
		weight @one: i64[1]
		weight @last: i64[1]
		weight @axis: i64[1]
		weight @i64_0: i64[]
		weight @i64_2: i64[]
		weight @i64_3: i64[]
		%n = non_zero(%x)
		%m = neg(%n)
		%v = reshape(%m, @"i64_-1")`

func TestPassedOn(t *testing.T) {
	for name, text := range passedOn {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				runBoth(t, parse(t, strings.Replace(text, "HEAD", heads, 1)), seed)
			}
		})
	}
}

// What a plan says of values without a size is proved in loops too.
func TestPassedOnIsProved(t *testing.T) {
	const text = `func @f(%x: f32[4,6]) -> (i64[?], f32[3]) {
		HEAD
		%o = neg(%v)
		%r, %s = loop(@i64_2, _, %v, @w) (%i: i64[], %c: bool[], %a: i64[?], %b: f32[?]) {
			%c2 = copy(%c)
			%d = add(%a, %o)
			%e = neg(%d)
			%g = neg(%b)
			%h: f32[3] = reshape(%g, @three)
			return %c2, %e, %h
		}
		%u = neg(%s)
		return %r, %u
	}`
	head := strings.Replace(heads, "%n =", "weight @w: f32[3]\nweight @three: i64[1]\n%n =", 1)
	for _, c := range []struct {
		name string
		want check.Rule // "" for a plan that holds
		harm func(d *plan.Plan, at func(string) *plan.Value)
	}{
		{"as made", "", func(*plan.Plan, func(string) *plan.Value) {}},
		{"what stands outside is freed in a round", check.Read, func(d *plan.Plan, at func(string) *plan.Value) {
			at("o").End -= 2 // its reader in the round has ended; the next round reads it again
		}},
		{"what is carried is freed in a round", check.Read, func(d *plan.Plan, at func(string) *plan.Value) { at("a").End -= 2 }},
		{"what a round carries on is freed before the round ends", check.Branch, func(d *plan.Plan, at func(string) *plan.Value) {
			at("e").End = at("e").Start + 1
		}},
		{"a result over what a round computes", check.Branch, func(d *plan.Plan, at func(string) *plan.Value) {
			at("s").Offset = at("c2").Offset
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, strings.Replace(text, "HEAD", head, 1))
			weights := weightsFor(p)
			weights["w"] = make([]byte, 12)
			exe, err := exec.Compile(context.Background(), p, weights, exec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := *exe.Plan
			d.Values = slices.Clone(d.Values)
			c.harm(&d, func(name string) *plan.Value {
				return &d.Values[slices.IndexFunc(d.Values, func(v plan.Value) bool { return v.Name == name })]
			})
			var fault *check.Violation
			err = check.Check(p, &d, weights)
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &fault) || fault.Rule != c.want) {
				t.Fatalf("got %v, want a violation of rule %q", err, c.want)
			}
		})
	}
}

// endings runs a program that passes values on in every way, until it is
// stopped in one of several ways, and looks at what is left then.
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
	exe, err := exec.Compile(context.Background(), p, weights, exec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot := new(exec.Slot)
	pool := compute.NewPool(1)
	t.Cleanup(func() {
		pool.Close()
		if err := slot.Release(); err != nil {
			t.Error(err)
		}
	})
	runner, err := slot.Runner(exe)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]byte, 4*24)
	for i := range 24 {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(1))
	}
	e := &endings{exe: exe, runner: runner, pool: pool, inputs: [][]byte{{1}, x}}
	e.run(t, nil) // whatever is made once
	e.before = memory.Stats()
	return e
}

// run runs, takes the results and gives them up.
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

func (e *endings) holdsNothing(t *testing.T, when string) {
	t.Helper()
	now := memory.Stats()
	if now.Total.Buffers != e.before.Total.Buffers || now.Total.Current != e.before.Total.Current || exec.Leftover() != 0 {
		t.Fatalf("%s: got %d buffers of %d bytes and %d holds left over, want %d of %d and none", when,
			now.Total.Buffers, now.Total.Current, exec.Leftover(), e.before.Total.Buffers, e.before.Total.Current)
	}
}

// A run that an allocation ends, whichever it is, holds nothing.
func TestNothingIsHeldAfterAnAllocationFails(t *testing.T) {
	e := newEndings(t)
	failed := 0
	for limit := e.before.Total.Current; ; limit += 8 {
		old := memory.SetLimit(limit)
		err := e.run(t, nil)
		memory.SetLimit(old)
		e.holdsNothing(t, fmt.Sprintf("limit %d", limit))
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
// function panics there, holds nothing, and the next one works.
func TestNothingIsHeldAfterAStop(t *testing.T) {
	e := newEndings(t)
	steps := 0
	e.runner.Watch = func(*ir.Call, time.Duration) { steps++ }
	if err := e.run(t, nil); err != nil {
		t.Fatal(err)
	}
	for at := range steps {
		done, n := make(chan struct{}), 0
		e.runner.Watch = func(*ir.Call, time.Duration) {
			if n++; n == at+1 {
				close(done)
			}
		}
		if err := e.run(t, done); err != nil && !errors.Is(err, compute.ErrStopped) {
			t.Fatalf("stopped after step %d: got %v, want ErrStopped", at, err)
		}
		e.holdsNothing(t, fmt.Sprintf("stopped after step %d", at))

		n = 0
		e.runner.Watch = func(*ir.Call, time.Duration) {
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
		e.holdsNothing(t, fmt.Sprintf("panic in step %d", at))
	}
	e.runner.Watch = nil
	if err := e.run(t, nil); err != nil {
		t.Fatal(err)
	}
	e.holdsNothing(t, "after all")
}

// Results that nobody takes are given up, at the latest by the next run or
// with the slot.
func TestResultsThatNobodyTakes(t *testing.T) {
	e := newEndings(t)
	outputs := make([][]byte, len(e.exe.Program.Body.Results))
	for range 3 {
		if err := e.runner.Run(e.pool, nil, e.inputs, outputs); err != nil {
			t.Fatal(err)
		}
	}
	e.runner.End()
	e.holdsNothing(t, "dropped")
	if err := e.runner.Run(e.pool, nil, e.inputs, outputs); err != nil {
		t.Fatal(err) // and the slot is released
	}
}

// A program may not say a size that the regions of its calls do not give.
func TestSizesThatRegionsDoNotGive(t *testing.T) {
	for name, text := range map[string]string{
		"branch": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[3]) {
			HEAD
			%r: i64[3] = if(%c) {
				return %v
			} {
				%b = neg(%v)
				return %b
			}
			return %r
		}`,
		"stack": `func @f(%x: f32[4,6]) -> (i64[2,3]) {
			HEAD
			%r: i64[2,3] = loop(@i64_2, _) (%i: i64[], %c: bool[]) {
				%b = neg(%v)
				%c2 = copy(%c)
				return %c2, %b
			}
			return %r
		}`,
		"carried": `func @f(%x: f32[4,6], %y: i64[3]) -> (i64[3]) {
			HEAD
			%r: i64[3] = loop(@i64_2, _, %y) (%i: i64[], %c: bool[], %a: i64[3]) {
				%b = neg(%v)
				%c2 = copy(%c)
				return %c2, %b
			}
			return %r
		}`,
		"operand": `func @f(%x: f32[4,6]) -> (i64[3]) {
			HEAD
			%r: i64[3] = loop(@i64_2, _, %v) (%i: i64[], %c: bool[], %a: i64[3]) {
				%b = neg(%a)
				%c2 = copy(%c)
				return %c2, %b
			}
			return %r
		}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := parse(t, strings.Replace(text, "HEAD", heads, 1))
			weights := weightsFor(p)
			if err := ir.VerifyKnown(p, ir.Known(weights)); err != nil {
				t.Fatal(err)
			}
			if _, err := exec.Compile(context.Background(), p, weights, exec.Options{}); !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), "depends on data") {
				t.Fatalf("got %v, want ErrUnsupported that says why", err)
			}
		})
	}
}

// What has to be one element and turns out not to be is an error.
func TestConditionsWithoutOneElement(t *testing.T) {
	for name, c := range map[string]struct{ text, op string }{
		"if": {`func @f(%x: f32[4]) -> (f32[4]) {
			HEAD
			%r = if(%e) {
				%a = neg(%x)
				return %a
			} {
				%b = abs(%x)
				return %b
			}
			return %r
		}`, "if"},
		"condition of a loop": {`func @f(%x: f32[4]) -> (f32[4]) {
			HEAD
			%r = loop(_, %e, %x) (%i: i64[], %c: bool[], %a: f32[4]) {
				%b = neg(%a)
				%c2 = not(%c)
				return %c2, %b
			}
			return %r
		}`, "loop"},
		"limit of a loop": {`func @f(%x: f32[4]) -> (f32[4]) {
			HEAD
			%r = loop(%v, _, %x) (%i: i64[], %c: bool[], %a: f32[4]) {
				%b = neg(%a)
				%c2 = copy(%c)
				return %c2, %b
			}
			return %r
		}`, "loop"},
		"condition that a round gives": {`func @f(%x: f32[4]) -> (f32[4]) {
			HEAD
			%r = loop(_, _, %x) (%i: i64[], %c: bool[], %a: f32[4]) {
				%b = neg(%a)
				%c2 = cast(%v) {to = bool}
				return %c2, %b
			}
			return %r
		}`, "loop"},
	} {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			p := parse(t, strings.Replace(c.text, "HEAD", heads+"\n%e = cast(%v) {to = bool}", 1))
			weights := weightsFor(p)
			if err := ir.Infer(p, ir.Known(weights)); err != nil {
				t.Fatal(err)
			}
			exe, err := exec.Compile(context.Background(), p, weights, exec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var slot exec.Slot
			defer slot.Release()
			runner, err := slot.Runner(exe)
			if err != nil {
				t.Fatal(err)
			}
			pool := compute.NewPool(1)
			defer pool.Close()
			for _, ones := range []int{0, 2} {
				x := make([]byte, 16)
				for i := range ones {
					binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(1))
				}
				var part *exec.PartError
				err := runner.Run(pool, nil, [][]byte{x}, [][]byte{make([]byte, 16)})
				if !errors.As(err, &part) || part.Op != c.op || !errors.Is(err, shape.ErrShape) {
					t.Fatalf("%d elements: got %v, want ErrShape of %s", ones, err, c.op)
				}
			}
		})
	}
}

// A loop that never runs a task stops too.
func TestIdleLoopStops(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, strings.Replace(`func @f(%x: f32[4]) -> (i64[?]) {
		HEAD
		%r = loop(_, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%b = reshape(%a, @"i64_-1")
			return %c, %b
		}
		return %r
	}`, "HEAD", heads, 1))
	weights := weightsFor(p)
	exe, err := exec.Compile(context.Background(), p, weights, exec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var slot exec.Slot
	defer slot.Release()
	runner, err := slot.Runner(exe)
	if err != nil {
		t.Fatal(err)
	}
	pool := compute.NewPool(1)
	defer pool.Close()
	done := make(chan struct{})
	runner.Watch = func(c *ir.Call, _ time.Duration) {
		if c.Results[0].Name == "b" {
			select {
			case <-done:
			default:
				close(done)
			}
		}
	}
	x := make([]byte, 16)
	binary.LittleEndian.PutUint32(x, math.Float32bits(1)) // a buffer, so that the round has but a view
	if err := runner.Run(pool, done, [][]byte{x}, [][]byte{nil}); !errors.Is(err, compute.ErrStopped) {
		t.Fatalf("got %v, want ErrStopped", err)
	}
}
