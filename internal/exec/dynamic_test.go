package exec_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
)

// dynamicPrograms have values whose size depends on data: with a bound and
// without, in views and in place, through branches, as outputs, twice.
var dynamicPrograms = map[string]struct {
	text       string
	unpromised []string // values
}{
	"bounded": {`func @f(%x: f32[3,8]) -> (i64[1]) {
		%n = non_zero(%x)
		%s = shape(%n) {start = 1}
		return %s
	}`, nil},
	"output": {`func @f(%x: f32[3,8]) -> (i64[2,?]) {
		%n = non_zero(%x)
		return %n
	}`, []string{"n"}},
	"of dynamic": {`func @f(%x: f32[3,8]) -> (i64[?,2]) {
		%n = non_zero(%x)
		%t = transpose(%n) {perm = [1, 0]}
		%m = neg(%t)
		%k = abs(%m)
		return %k
	}`, []string{"t", "m", "k"}},
	"from values": {`func @f(%x: f32[9]) -> (f32[?], i64[]) {
		weight @i64_0: i64[]
		weight @i64_1: i64[]
		%p = abs(%x)
		%o = reduce_sum(%p, _) {keepdims = 0}
		%n = cast(%o) {to = i64}
		%r = range(@i64_0, %n, @i64_1)
		%c = cast(%r) {to = f32}
		%d = neg(%c)
		%e = exp(%d)
		%s = size(%e)
		return %e, %s
	}`, []string{"r", "c", "d", "e"}},
	"view": {`func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		weight @"i64_-1": i64[1]
		%n = non_zero(%x)
		%t = neg(%n)
		%v = reshape(%t, @"i64_-1")
		%w = abs(%t)
		%u = reshape(%w, @"i64_-1")
		return %v, %u
	}`, []string{"t", "v", "w", "u"}},
	"view that is read after": {`func @f(%x: f32[4,6]) -> (i64[2,?], i64[?], i64[2,?]) {
		weight @"i64_-1": i64[1]
		%n = non_zero(%x)
		%t = neg(%n)
		%v = reshape(%t, @"i64_-1")
		%w = abs(%t)
		%y = neg(%v)
		%u = neg(%w)
		%z = add(%w, %w)
		return %u, %y, %z
	}`, []string{"t", "v", "w", "y", "u", "z"}},
	"same output twice": {`func @f(%x: f32[4,6]) -> (i64[?], i64[2,?]) {
		weight @"i64_-1": i64[1]
		%n = non_zero(%x)
		%t = neg(%n)
		%v = reshape(%t, @"i64_-1")
		return %v, %t
	}`, []string{"t", "v"}},
	"static of dynamic": {`func @f(%x: f32[4,6]) -> (i64[2,1]) {
		weight @i64_1: i64[1]
		%n = non_zero(%x)
		%s = reduce_sum(%n, @i64_1) {keepdims = 1}
		return %s
	}`, nil},
	"branch": {`func @f(%c: bool[], %x: f32[4,6]) -> (i64[?,?]) {
		weight @i64_1: i64[1]
		%n = non_zero(%x)
		%m = neg(%n)
		%r = if(%c) {
			%a = abs(%m)
			return %a
		} {
			%z = shape(%x)
			%b = unsqueeze(%z, @i64_1)
			return %b
		}
		%q = neg(%r)
		return %q
	}`, []string{"m", "r", "a", "q"}},
	"last use in a branch": {`func @f(%c: bool[], %x: f32[4,6]) -> (i64[1]) {
		%n = non_zero(%x)
		%m = neg(%n)
		%k = abs(%m)
		%r = if(%c) {
			%a = shape(%k) {start = 1}
			%e = neg(%a)
			return %e
		} {
			%b = shape(%x) {start = 1}
			%g = abs(%b)
			return %g
		}
		return %r
	}`, []string{"m", "k"}},
}

func wantUnpromised(t *testing.T, p *plan.Plan, want []string) {
	t.Helper()
	var got []string
	for _, u := range p.Unpromised {
		got = append(got, u.Value)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("unpromised: got %q, want %q", got, want)
	}
}

func TestDynamic(t *testing.T) {
	for name, c := range dynamicPrograms {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				d := runBoth(t, parse(t, c.text), seed)
				wantUnpromised(t, d, c.unpromised)
				for _, v := range d.Values {
					if own := v.Space == plan.SpaceOwn; own && !slices.Contains(c.unpromised, v.Name) {
						t.Fatalf("%s: got a buffer of its own, want it among the unpromised", v.Name)
					}
				}
			}
		})
	}
}

// The regions of a branch compute their results in the bytes of the larger one,
// and the checker knows where.
func TestBranchPlanIsProved(t *testing.T) {
	const text = `func @f(%x: f32[64], %c: bool[]) -> (f32[1], f32[?]) {
		%w = if(%c) {
			%h, %i = split(%x) {axis = 0}
			%a = neg(%h)
			return %a
		} {
			%b = exp(%x)
			return %b
		}
		%v = abs(%w)
		%m = reduce_sum(%v)
		%o = neg(%v)
		return %m, %o
	}`
	for _, c := range []struct {
		name string
		want string // "" for a plan that holds
		harm func(d *plan.Plan)
	}{
		{"as made", "", func(*plan.Plan) {}},
		{"less than the larger region gives", "bytes", func(d *plan.Plan) { entry(d, "w").Size = 128 }},
		{"less than a step can make of it", "bytes", func(d *plan.Plan) { entry(d, "v").Size = 128 }},
		{"less than the output can take", "bytes", func(d *plan.Plan) { entry(d, "o").Size = 128 }},
		{"an output that is not promised", "bytes", func(d *plan.Plan) {
			entry(d, "o").Size = 0
			d.Unpromised = append(d.Unpromised, plan.Unpromised{Value: "o"})
		}},
		{"the small one elsewhere", "nothing", func(d *plan.Plan) { entry(d, "a").Offset, entry(d, "a").Start = 64, 0 }},
		{"the large one elsewhere", "", func(d *plan.Plan) { entry(d, "b").Offset = entry(d, "w").Offset }},
		{"a value in the output before it has a size", "another place", func(d *plan.Plan) {
			v := entry(d, "v")
			v.Space, v.Arg, v.Offset, d.Peak = plan.SpaceOutput, 1, 0, plan.Peak{}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, text)
			if err := ir.Infer(p, nil); err != nil {
				t.Fatal(err)
			}
			exe, _, _ := start(t, p, ir.WeightMap{})
			d := planOf(t, exe)
			w, a, b := entry(d, "w"), entry(d, "a"), entry(d, "b")
			if d.ArenaBytes != 512 || len(d.Unpromised) != 0 || w.Size != 256 || a.Offset != w.Offset || b.Offset != w.Offset {
				t.Errorf("got an arena of %d bytes, %d unpromised, %+v, %+v, %+v, want 512 bytes, with what the regions give where the result is",
					d.ArenaBytes, len(d.Unpromised), w, a, b)
			}
			wantFault(t, exe, ir.WeightMap{}, c.want, c.harm)
		})
	}
}

// The plan's statements about values without a size are proved like the others.
func TestDynamicPlanIsProved(t *testing.T) {
	const text = `func @f(%x: f32[4,6]) -> (i64[?,?]) {
		%n = non_zero(%x)
		%m = neg(%n)
		%k = abs(%m)
		%y = add(%k, %m)
		return %y
	}`
	for _, c := range []struct {
		name string
		want string // "" for a plan that holds
		harm func(d *plan.Plan)
	}{
		{"as made", "", func(*plan.Plan) {}},
		{"freed before its last reader ends", "freed at", func(d *plan.Plan) { entry(d, "m").End -= 2 }},
		{"freed later", "the life", func(d *plan.Plan) { entry(d, "m").End++ }},
		{"not listed as unpromised", "unpromised", func(d *plan.Plan) { d.Unpromised = d.Unpromised[1:] }},
		{"listed twice", "unpromised", func(d *plan.Plan) { d.Unpromised = append(d.Unpromised, d.Unpromised[0]) }},
		{"a bounded value with a buffer of its own", "unpromised", func(d *plan.Plan) {
			v := entry(d, "n")
			v.Space, v.Offset, v.Size, d.Peak = plan.SpaceOwn, 0, 0, plan.Peak{}
		}},
		{"a bounded value with less than its bound", "bytes", func(d *plan.Plan) { entry(d, "n").Size -= 8 }},
		{"an unbounded value in the arena", "bound", func(d *plan.Plan) {
			entry(d, "m").Space = plan.SpaceArena
			d.Unpromised = d.Unpromised[1:]
		}},
		{"an input in a buffer of its own", "bytes", func(d *plan.Plan) { entry(d, "x").Space = plan.SpaceOwn }},
		{"two values in an output without a size", "another place", func(d *plan.Plan) {
			entry(d, "k").Space = plan.SpaceOutput
			entry(d, "k").End = d.LastTime()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, text)
			exe, _, _ := start(t, p, ir.WeightMap{})
			wantFault(t, exe, ir.WeightMap{}, c.want, c.harm)
		})
	}
}

// The error of a run names the step, the node and the operator once.
func TestRunErrorNamesTheCallOnce(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, `func @f(%x: f32[2], %i: i64[1]) -> (f32[1]) {
		%y = gather(%x, %i) {axis = 0} "g0"
		return %y
	}`)
	_, runner, pool := start(t, p, ir.WeightMap{})
	err := runner.Run(pool, nil, [][]byte{make([]byte, 8), {5, 0, 0, 0, 0, 0, 0, 0}}, [][]byte{make([]byte, 4)})
	if want := `step 0, node "g0" (gather): `; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "gather") != 1 {
		t.Errorf("got %v, want an error that begins with %s and names the operator once", err, want)
	}
}

// A run that fails keeps none of the buffers that it made.
func TestDynamicFails(t *testing.T) {
	memorytest.Check(t)
	p := parse(t, `func @f(%x: f32[2], %s: i64[1]) -> (f32[?], i64[?]) {
		weight @i64_0: i64[]
		weight @i64_1: i64[]
		%o = reduce_sum(%x, _) {keepdims = 0}
		%n = cast(%o) {to = i64}
		%r = range(@i64_0, %n, @i64_1)
		%m = neg(%r)
		%c = cast(%m) {to = f32}
		%y = reshape(%m, %s)
		return %c, %y
	}`)
	weights := ir.WeightMap{"i64_0": make([]byte, 8), "i64_1": {1, 0, 0, 0, 0, 0, 0, 0}}
	_, runner, pool := start(t, p, weights)
	x := make([]byte, 8)
	binary.LittleEndian.PutUint32(x, math.Float32bits(5))
	var part *exec.PartError
	err := runner.Run(pool, nil, [][]byte{x, {4, 0, 0, 0, 0, 0, 0, 0}}, make([][]byte, 2))
	if !errors.As(err, &part) || part.Op != "reshape" || part.Wrote {
		t.Fatalf("got %v, want a fault of reshape that wrote nothing", err)
	}
	binary.LittleEndian.PutUint32(x, math.Float32bits(1e18))
	if err := runner.Run(pool, nil, [][]byte{x, make([]byte, 8)}, make([][]byte, 2)); !errors.As(err, &part) || part.Op != "range" {
		t.Fatalf("got %v, want a fault of range", err)
	}
}
