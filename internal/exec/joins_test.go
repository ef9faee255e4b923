package exec_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// unprovedJoin is a program in whose plan one part is not joined: row widths of
// 144 and 36 in a result of width 180 make no grid with the rows of 3.
const unprovedJoin = `func @f(%x: f32[4,3,3,N]) -> (f32[3,6,?], f32[3,6,?]) {
  weight @ints_1_6_rest: i64[3]
  %a = tanh(%x)
  %b = concat(%a, %x) {axis = 1}
  %c = reshape(%b, @ints_1_6_rest)
  %d = concat(%c, %c, %c) {axis = 0}
  %e = abs(%d)
  %g = relu(%d)
  %h = concat(%d, %e, %e, %g) {axis = 2}
  %i = concat(%g, %h) {axis = 2}
  %j = copy(%i)
  return %d, %j
}`

// Where joins have no proof, or make more bytes live at one time, the others
// are made all the same.
func TestJoinsThatAreDropped(t *testing.T) {
	for _, test := range []struct {
		name, text string
		arena      int64    // bytes
		inPlace    int64    // bytes of parts and boxes
		dropped    []string // value, bytes and reason
	}{
		{"no proof", sized(unprovedJoin, "3"), 12992, 16416, []string{"a 432: no proof of its strides was found"}},
		{"more bytes", `func @f(%x: f32[3,4,1,1]) -> (f32[9,13,3,1]) {
  weight @ints_0_0_0_0_0_1_1_1: i64[8]
  %a = sigmoid(%x)
  %b = concat(%a, %a, %x) {axis = 1}
  %c = sigmoid(%b)
  %d = concat(%c, %c, %b, %c) {axis = 2}
  %e = concat(%d, %d) {axis = 3}
  %g = sigmoid(donate %e)
  %h, %i = split(%g) {axis = 2, num_outputs = 2}
  %j: f32[3,13,3,3] = pad(%i, @ints_0_0_0_0_0_1_1_1)
  %k = leaky_relu(donate %j) {alpha = 0.25}
  %l, %m, %n = split(%k) {axis = 3, num_outputs = 3}
  %o = leaky_relu(%m) {alpha = 0.25}
  %p = concat(%n, %m, %o) {axis = 0}
  return %p
}`, 1984, 3360, []string{"g 1152: more bytes would live at one time", "i 576: more bytes would live at one time"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := runWith(t, parse(t, test.text), 1, exec.Options{Threads: 2, LeastMemory: true, Effort: -1})
			inPlace, dropped := joinsOf(d)
			if d.ArenaBytes != test.arena || inPlace != test.inPlace || !slices.Equal(dropped, test.dropped) {
				t.Errorf("got an arena of %d bytes, %d bytes in place, %q apart, want %d, %d, %q", d.ArenaBytes, inPlace, dropped, test.arena, test.inPlace, test.dropped)
			}
		})
	}
}

// joinsOf returns the bytes that lie in place as parts and boxes, and what does
// not although the calls allow it.
func joinsOf(d *plan.Plan) (inPlace int64, dropped []string) {
	for _, x := range d.InPlace {
		if slices.Contains([]string{"concat", "split", "slice", "pad"}, d.Steps[x.Call].Op) {
			inPlace += x.Bytes
		}
	}
	for _, x := range d.Declined {
		if strings.Contains(x.Reason, "proof") || strings.Contains(x.Reason, "live") {
			dropped = append(dropped, fmt.Sprint(x.Value, " ", x.Bytes, ": ", x.Reason))
		}
	}
	return inPlace, dropped
}

// Plans for other sizes drop the joins that those for the first sizes do.
func TestInstancesDropTheSameJoins(t *testing.T) {
	weights := weightsFor(parse(t, sized(unprovedJoin, "3")))
	made := func(n string) *ir.Program {
		p := parse(t, sized(unprovedJoin, n))
		if err := ir.Infer(p, ir.Known(weights)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, err := exec.Compile(context.Background(), made("3"), weights, exec.Options{Threads: 2, LeastMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"3", "5", "16"} {
		e, err := first.Instance(context.Background(), ir.TypesOf(made(n)), weights)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := strconv.ParseInt(n, 10, 64)
		inPlace, dropped := joinsOf(planOf(t, e))
		if want := []string{fmt.Sprintf("a %d: no proof of its strides was found", 144*size)}; inPlace != 5472*size || !slices.Equal(dropped, want) {
			t.Errorf("size %s: got %d bytes in place, %q apart, want %d, %q", n, inPlace, dropped, 5472*size, want)
		}
	}
}

// A plan for other sizes is no instance where fewer bytes live if the parts
// that were dropped for the first sizes lie in place.
func TestInstancesThatNeedTheJoins(t *testing.T) {
	const text = `func @f(%x: f32[8,8], %y: f32[N,8]) -> (f32[8,32]) {
  weight @i64_0: i64[1]
  %a = sigmoid(%x)
  %t = neg(%y)
  %u = sigmoid(%t)
  %s = reduce_max(%u, @i64_0)
  %b = add(%x, %s)
  %c = mul(%x, %s)
  %d = sub(%x, %s)
  %e = concat(%a, %b, %c, %d) {axis = 1}
  %g = softmax(%e) {axis = 1}
  return %g
}`
	weights := weightsFor(parse(t, sized(text, "3")))
	made := func(n string) *ir.Program {
		p := parse(t, sized(text, n))
		if err := ir.Infer(p, ir.Known(weights)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, err := exec.Compile(context.Background(), made("1024"), weights, exec.Options{Threads: 2, LeastMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, dropped := joinsOf(planOf(t, first)); first.ArenaBytes != 65792 || !slices.Equal(dropped, []string{"a 256: more bytes would live at one time"}) {
		t.Errorf("got an arena of %d bytes, %q apart, want 65792 and a alone", first.ArenaBytes, dropped)
	}
	for n, fits := range map[string]bool{"1000": true, "1": false} {
		if _, err := first.Instance(context.Background(), ir.TypesOf(made(n)), weights); fits && err != nil || !fits && !errors.Is(err, exec.ErrStructure) {
			t.Errorf("size %s: got the error %v, want none: %t", n, err, fits)
		}
	}
}
