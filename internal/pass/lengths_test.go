package pass_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestLengths draws programs with open dimensions and meets each at eight
// sets of sizes, in random order. A set that a structure admits must have the
// program that the passes make for it, with the same constants and reports,
// and the interpreter must compute the same from it as from the program that
// was drawn.
//
//	go test ./internal/pass -run TestLengths -rapid.checks 100000 -rapid.seed 7
func TestLengths(t *testing.T) {
	seen := map[string]int{}
	checkLengths(t, 1000, nil, func(t *rapid.T, fault string) { t.Fatal(fault) }, seen)
	t.Logf("seen: %v", seen)
	for _, what := range []string{"instances", "compared", "refused by a structure", "kept by guards"} {
		if seen[what] == 0 {
			t.Errorf("got no case of %q, want some", what)
		}
	}
	if seen["pinned"] > 0 {
		t.Errorf("got %d programs for their sizes alone, want none", seen["pinned"])
	}
}

// TestGuardsAreNeeded leaves out one kind of guard after the other: then some
// drawn program must be wrong.
func TestGuardsAreNeeded(t *testing.T) {
	for _, kind := range drawnKinds {
		t.Run(kind, func(t *testing.T) {
			faults := 0
			checkLengths(t, 10000, []string{kind}, func(rt *rapid.T, fault string) { faults++ }, map[string]int{}, &faults)
			if faults == 0 {
				t.Errorf("got no fault without the guards of kind %q, want some", kind)
			}
		})
	}
}

// checkLengths draws programs until one of the counts, if there is one, is
// not 0.
func checkLengths(t *testing.T, programs int, ignore []string, fail func(*rapid.T, string), seen map[string]int, until ...*int) {
	checkDrawn(t, programs, func(t *rapid.T) {
		if len(until) > 0 && *until[0] > 0 {
			return
		}
		d := randomprogram.DrawOpen(t)
		l := load(t, d)
		for range 8 {
			types := d.Sizes(t)
			if fault := l.meet(types, ignore, seen); fault != "" {
				fail(t, fmt.Sprintf("%v: %s\n%s", types, fault, d.Program))
				return
			}
		}
	})
}

// checkDrawn is rapid.Check with a number of programs and a seed that flags may
// change.
func checkDrawn(t *testing.T, programs int, check func(t *rapid.T)) {
	for name, value := range map[string]int{"checks": programs, "seed": 1} {
		if f := flag.Lookup("rapid." + name); f.Value.String() == f.DefValue {
			if err := flag.Set(f.Name, strconv.Itoa(value)); err != nil {
				t.Fatal(err)
			}
			defer flag.Set(f.Name, f.DefValue)
		}
	}
	rapid.Check(t, check)
}

// loaded is a drawn program after the load passes, with the structures of the
// sizes that it has met.
type loaded struct {
	drawn      *randomprogram.Open
	program    *ir.Program
	constants  *weights.Overlay
	allowance  int64 // bytes that are left for folding; 0 stands for those of a model
	structures []*pass.Structure
}

func load(t *rapid.T, d *randomprogram.Open) *loaded {
	l := &loaded{drawn: d, program: d.Program.Clone(), constants: &weights.Overlay{Base: d.Weights}}
	if err := ir.Infer(l.program, ir.Known(l.constants)); err != nil {
		t.Skip(err)
	}
	l.allowance = rapid.SampledFrom([]int64{0, 0, 0, 100, 300, 1000}).Draw(t, "allowance")
	ctx := &pass.Context{Program: l.program, Constants: l.constants, MaxFold: 1 << 10}
	l.allow(ctx)
	if err := pass.Run(ctx, pass.Load, nil); err != nil {
		t.Skip(err)
	}
	return l
}

func (l *loaded) allow(c *pass.Context) { allow(c, l.allowance) }

// allow leaves so many bytes for folding, those of a model for 0.
func allow(c *pass.Context, bytes int64) {
	if bytes > 0 {
		c.Allow(bytes)
	}
}

// specialise runs the passes for one set of sizes, with the values that the
// interpreter is given.
func (l *loaded) specialise(types []op.Type) (*pass.Context, error) {
	return specialise(l.program, l.constants, types, l.value(types), l.allowance)
}

// value returns the values of inputs of these types.
func (l *loaded) value(types []op.Type) func(int) []byte {
	var inputs []op.Arg
	return func(i int) []byte {
		if inputs == nil {
			inputs = l.drawn.Inputs(types, 0)
		}
		return inputs[i].Data
	}
}

// meet compares the instances of structures for a set of sizes with the
// results of the passes, and returns the fault.
func (l *loaded) meet(types []op.Type, ignore []string, seen map[string]int) (fault string) {
	if len(ignore) > 0 {
		defer func() {
			if broken := recover(); broken != nil {
				fault = fmt.Sprint(broken)
			}
		}()
	}
	fresh, err := l.specialise(types)
	found := false
	for _, s := range l.structures {
		table := &weights.Overlay{Base: s.Constants()}
		values := s.Types(types, l.value(types), table)
		if values == nil {
			seen["refused by a structure"]++
			continue
		}
		found = true
		seen["instances"]++
		if err != nil {
			return fmt.Sprintf("got an instance, want the error %v", err)
		}
		p := s.Program().With(values)
		if fault := differs(p, table, fresh); fault != "" {
			return fault
		}
		if fault := l.interpret(p, table, types, seen); fault != "" {
			return fault
		}
	}
	if err != nil || found {
		return ""
	}
	s, reason := fresh.Structure()
	if s == nil {
		seen["pinned"]++
		seen[reason]++
		if strings.Contains(reason, "repeat") {
			return reason
		}
		return ""
	}
	if len(l.structures) > 0 {
		seen["kept by guards"]++
	}
	s.Ignore(ignore)
	l.structures = append(l.structures, s)
	return ""
}

// differs compares an instance with the passes' program for the same sizes.
func differs(p *ir.Program, table ir.Weights, fresh *pass.Context) string {
	if got, want := p.String(), fresh.Program.String(); got != want {
		return fmt.Sprintf("got the instance\n%s\nwant\n%s", got, want)
	}
	if err := ir.VerifyKnown(p, ir.Known(table)); err != nil {
		return fmt.Sprintf("the instance: %v\n%s", err, p)
	}
	for i, w := range fresh.Program.Weights {
		want, _ := fresh.Constants.Bytes(w)
		if got, ok := table.Bytes(p.Weights[i]); !ok || !bytes.Equal(got, want) {
			return fmt.Sprintf("weight %s: got % x, want % x\n%s", w, got, want, p)
		}
	}
	return ""
}

// interpret runs the instance and the program that was drawn.
func (l *loaded) interpret(p *ir.Program, table ir.Weights, types []op.Type, seen map[string]int) string {
	inputs, elements := l.drawn.Inputs(types, 0), 0
	for _, t := range types {
		elements += t.Shape.NumElements()
	}
	if elements > 1<<16 {
		return ""
	}
	const most = 1 << 20
	want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: l.drawn.Weights, MaxBytes: most}).Run(l.drawn.Program, inputs...)
	if err != nil {
		seen["refused by the interpreter"]++
		return "" // a call whose sizes do not fit may have been dead
	}
	got, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table, MaxBytes: most}).Run(p, inputs...)
	if errors.Is(err, shape.ErrShape) && l.loops() {
		seen["a loop of no rounds"]++ // as below, and they do not fit another value
		return ""
	}
	if err != nil {
		return fmt.Sprintf("interpreter: %v\n%s", err, p)
	}
	seen["compared"]++
	for i := range want {
		if got[i].Type != want[i].Type && l.loops() {
			seen["a loop of no rounds"]++ // its parts have the sizes that are known: more than in the program that was drawn
			return ""
		}
		if got[i].Type != want[i].Type {
			return fmt.Sprintf("result %d: got %s, want %s\n%s", i, got[i].Type, want[i].Type, p)
		}
		if at := apart(got[i].Data, want[i].Data); at != "" {
			return fmt.Sprintf("result %d, %s: %s\n%s", i, want[i].Type, at, p)
		}
	}
	return ""
}

func (l *loaded) loops() (found bool) {
	l.program.Walk(func(_ *ir.Block, c *ir.Call) { found = found || c.Op.Loop })
	return found
}

// apart compares numbers that fused kernels may have rounded in another way.
func apart(got, want []byte) string {
	largest := 0.0
	for i := 0; i < len(want); i += 4 {
		if x := math.Abs(float32At(want[i:])); x <= math.MaxFloat32 {
			largest = max(largest, x)
		}
	}
	for i := 0; i < len(want); i += 4 {
		x, y := float32At(got[i:]), float32At(want[i:])
		if x != y && !(math.Abs(x-y) <= 1e-2*largest+1e-3) && !math.IsNaN(y) && !math.IsInf(y, 0) {
			return fmt.Sprintf("element %d: got %v, want %v", i/4, x, y)
		}
	}
	return ""
}

func float32At(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
