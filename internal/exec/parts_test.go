package exec_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// Operands of concat are computed where they are parts of its result, unless
// something keeps them from it.
func TestPartsInPlace(t *testing.T) {
	for _, test := range []struct {
		name, text string
		arena      int64    // bytes
		parts      int      // in place
		copied     []string // reasons
	}{
		{"two producers", `func @f(%x: f32[1,256], %y: f32[1,256]) -> (f32[1,512]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 1}
  %d = softmax(donate %c) {axis = 1}
  %e = softmax(donate %d) {axis = 1}
  return %e
}`, 0, 2, nil},
		{"three logs into an output", `func @f(%x: f32[1,256], %y: f32[1,256], %z: f32[1,256]) -> (f32[3,256]) {
  %a = log(%x)
  %b = log(%y)
  %c = log(%z)
  %d = concat(%a, %b, %c) {axis = 0}
  return %d
}`, 0, 3, nil},
		{"chains in place, and a nested concat", `func @f(%x: f32[256], %y: f32[256]) -> (f32[1024]) {
  %a = neg(%x)
  %b = relu(donate %a)
  %c = neg(%y)
  %d = concat(%b, %c) {axis = 0}
  %e = neg(%x)
  %f = neg(%y)
  %g = concat(%e, %d, %f) {axis = 0}
  return %g
}`, 0, 5, nil},
		{"a part that is read after the concat", `func @f(%x: f32[256], %y: f32[256]) -> (f32[512], f32[256]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 0}
  %d = neg(%a)
  return %c, %d
}`, 0, 2, nil},
		{"parts of several results that grow", `func @f(%x: f32[256], %y: f32[256], %z: f32[256]) -> (f32[768]) {
  %a = neg(%x)
  %b = neg(%y)
  %c = concat(%a, %b) {axis = 0}
  %d = softmax(%c) {axis = 0}
  %h, %t = split(%d) {axis = 0, num_outputs = 2}
  %e = add(%h, %z)
  %g = concat(%a, %b, %e) {axis = 0}
  return %g
}`, 2 << 10, 5, nil},
		{"half of a value and what is made of the other half", `func @f(%x: f32[512]) -> (f32[512]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %u = softmax(%t) {axis = 0}
  %c = concat(%h, %u) {axis = 0}
  return %c
}`, 1 << 10, 1, []string{"its bytes are needed"}},
		{"half of a value and what is made of the other half in place", `func @f(%x: f32[512]) -> (f32[512]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %u = softmax(donate %t) {axis = 0}
  %c = concat(%h, %u) {axis = 0}
  return %c
}`, 0, 2, nil},
		{"inputs and weights", `func @f(%x: f32[256]) -> (f32[768]) {
  weight @w: f32[256]
  %a = neg(%x)
  %c = concat(%x, @w, %a) {axis = 0}
  return %c
}`, 0, 1, []string{"an input's that is not donated", "a weight's"}},
		{"a value that is overwritten before the other result reads it", `func @f(%x: f32[256], %y: f32[256]) -> (f32[512], f32[256]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 0}
  %d = neg(donate %c)
  %e = add(%a, %b)
  return %d, %e
}`, 2 << 10, 0, []string{"needed", "needed"}},
		{"the same value twice", `func @f(%x: f32[256]) -> (f32[512]) {
  %a = neg(%x)
  %c = concat(%a, %a) {axis = 0}
  return %c
}`, 0, 1, []string{"another part"}},
		{"two outputs", `func @f(%x: f32[256], %y: f32[256]) -> (f32[512], f32[256]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 0}
  return %c, %a
}`, 0, 1, []string{"an output needs"}},
		{"a range that is replaced", `func @f(%x: f32[1024], %y: f32[256]) -> (f32[1024]) {
  weight @i64_0: i64[1]
  weight @i64_256: i64[1]
  weight @i64_512: i64[1]
  weight @last: i64[1]
  %a = neg(%x)
  %h: f32[256] = slice(%a, @i64_0, @i64_256)
  %t: f32[512] = slice(%a, @i64_512, @last)
  %n = neg(%y)
  %c = concat(%h, %n, %t) {axis = 0}
  return %c
}`, 0, 3, nil},
		{"a range of a donated input that is replaced", `func @f(donate %x: f32[1024], %y: f32[256]) -> (f32[1024]) {
  weight @i64_0: i64[1]
  weight @i64_256: i64[1]
  weight @i64_512: i64[1]
  weight @last: i64[1]
  %h: f32[256] = slice(%x, @i64_0, @i64_256)
  %t: f32[512] = slice(%x, @i64_512, @last)
  %n = neg(%y)
  %c = concat(%h, %n, %t) {axis = 0}
  return %c
}`, 0, 3, nil},
		{"a donated input in a larger result", `func @f(donate %x: f32[256], %y: f32[256]) -> (f32[512]) {
  %n = neg(%y)
  %c = concat(%x, %n) {axis = 0}
  return %c
}`, 0, 1, []string{"more than the input's"}},
		{"a donated input that is an output too", `func @f(donate %x: f32[512]) -> (f32[512], f32[1,512]) {
  %v = flatten(%x) {axis = 0}
  %h, %t = split(%x) {axis = 0, num_outputs = 2}
  %c = concat(%h, %t) {axis = 0}
  return %c, %v
}`, 0, 0, []string{"an output needs", "an output needs"}},
		{"in a loop", `func @f(%x: f32[256]) -> (f32[256]) {
  weight @three: i64[]
  %r = loop(@three, _, %x) (%i: i64[], %again: bool[], %s: f32[256]) {
    %a = neg(%s)
    %h, %t = split(%a) {axis = 0, num_outputs = 2}
    %u = softmax(%h) {axis = 0}
    %v = softmax(%t) {axis = 0}
    %c = concat(%u, %v) {axis = 0}
    %d = softmax(%c) {axis = 0}
    return %again, %d
  }
  return %r
}`, 2176, 2, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := runBoth(t, parse(t, test.text), 1)
			parts, copied := 0, []string{}
			for _, x := range d.InPlace {
				if x.Kind == plan.AliasPart {
					parts++
				}
			}
			for _, x := range d.Declined {
				if x.Op == "concat" {
					copied = append(copied, x.Reason)
				}
			}
			if d.ArenaBytes != test.arena || parts != test.parts || !slices.EqualFunc(copied, test.copied, strings.Contains) {
				t.Errorf("got an arena of %d bytes, %d parts in place, copies %q, want %d, %d, %q", d.ArenaBytes, parts, copied, test.arena, test.parts, test.copied)
			}
		})
	}
}

// A result may have as many parts as the checker follows. Empty operands are
// none.
func TestManyParts(t *testing.T) {
	for _, test := range []struct{ full, empty, parts int }{{check.MaxParts, 20, check.MaxParts}, {check.MaxParts + 1, 0, 0}} {
		var text strings.Builder
		text.WriteString("func @f(%x: f32[2], %z: f32[0]) -> (f32[" + strconv.Itoa(2*test.full) + "]) {\n  %e = neg(%z)\n")
		var args []string
		for i := range test.full {
			fmt.Fprintf(&text, "  %%a%d = neg(%%x)\n", i)
			args = append(args, fmt.Sprintf("%%a%d", i))
		}
		args = append(args, slices.Repeat([]string{"%e"}, test.empty)...)
		fmt.Fprintf(&text, "  %%c = concat(%s) {axis = 0}\n  return %%c\n}", strings.Join(args, ", "))
		d, parts := runBoth(t, parse(t, text.String()), 1), 0
		for _, x := range d.InPlace {
			if x.Kind == plan.AliasPart {
				parts++
			}
		}
		if parts != test.parts {
			t.Errorf("%d operands and %d empty ones: got %d parts in place, want %d", test.full, test.empty, parts, test.parts)
		}
	}
}

// A call is said to move the operands that it copies, and no others.
func TestMovedParts(t *testing.T) {
	p := parse(t, `func @f(%x: f32[256]) -> (f32[512]) {
  %a = neg(%x)
  %c = concat(%x, %a) {axis = 0}
  return %c
}`)
	_, runner, pool := start(t, p, ir.WeightMap{})
	seen := 0
	runner.Watch = func(k int, _ time.Time, _ time.Duration) {
		if read, written := runner.Moved(k); k == 1 {
			if seen++; read != 1<<10 || written != 1<<10 {
				t.Errorf("got %d bytes read and %d written, want the 1024 of the input", read, written)
			}
		}
	}
	if err := runner.Run(pool, nil, [][]byte{make([]byte, 1<<10)}, [][]byte{make([]byte, 2<<10)}); err != nil || seen != 1 {
		t.Errorf("got %v, and %d calls of concat", err, seen)
	}
}
