package exec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A program may not declare a size that the regions of its calls do not return.
func TestSizesThatRegionsDoNotReturn(t *testing.T) {
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

// A value that must have one element and has another number is an error.
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
		"condition that a round returns": {`func @f(%x: f32[4]) -> (f32[4]) {
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
			_, runner, pool := start(t, p, weights)
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
func TestLoopWithoutTasksStops(t *testing.T) {
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
	e, runner, pool := start(t, p, weights)
	done := make(chan struct{})
	runner.Watch = func(k int, _ time.Time, _ time.Duration) {
		if c := e.Call(k); c.Results[0].Name == "b" {
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
