package tenure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestOtherCorners counts the corners that are planned beside the upper one.
func TestOtherCorners(t *testing.T) {
	one, several := span{hi: 0}, span{hi: 3}
	boxOf := func(fixed, open int) (box []span) {
		for range fixed {
			box = append(box, one)
		}
		for range open {
			box = append(box, several)
		}
		return box
	}
	for _, c := range []struct{ fixed, open, want int }{{0, 0, 0}, {3, 0, 0}, {0, 1, 1}, {0, 3, 7}, {50, 2, 3}, {0, 6, 63}, {1, 7, 8}, {0, 40, 41}, {100, 2, 0}} {
		box := boxOf(c.fixed, c.open)
		seen := map[uint64]bool{}
		for _, which := range otherCorners(box) {
			seen[which] = true
			for i, s := range box {
				if which>>i&1 != 0 && s.lo == s.hi {
					t.Errorf("%d fixed, %d open: got the corner %b, which lowers a fixed dimension", c.fixed, c.open, which)
				}
			}
		}
		if len(seen) != c.want || seen[0] {
			t.Errorf("%d fixed, %d open: got %d other corners, want %d", c.fixed, c.open, len(seen), c.want)
		}
	}
}

// TestBoxesOfManyDimensions has a dimension for each of 40 inputs, as models
// with a cache for each layer may have.
func TestBoxesOfManyDimensions(t *testing.T) {
	memorytest.Check(t)
	params, calls, results := []string{"%x: f32[n,m]"}, "%y = exp(%x)\n", []string{"%y"}
	opts := []SessionOption{WithUpTo("n", 90), WithUpTo("m", 90)}
	for i := range 40 {
		params = append(params, fmt.Sprintf("%%x%d: f32[k%d]", i, i))
		calls += fmt.Sprintf("%%y%d = exp(%%x%d)\n", i, i)
		results = append(results, fmt.Sprintf("%%y%d", i))
		opts = append(opts, WithSizes(fmt.Sprintf("k%d", i), 3))
	}
	m := loadText(t, fmt.Sprintf("func @f(%s) {\n%sreturn %s\n}", strings.Join(params, ", "), calls, strings.Join(results, ", ")))
	defer m.Close()
	r, err := m.PlanUpTo(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sizes != 91*91 || r.ByExpressions < 90*90-100 {
		t.Errorf("got %+v, want most of %d sizes proved by expressions", *r, 91*91)
	}
}

// TestMoreSizesThanAreCounted has bounds whose product is beyond 64 bits.
func TestMoreSizesThanAreCounted(t *testing.T) {
	memorytest.Check(t)
	m := loadText(t, "func @f(%x: f32[n], %y: f32[m]) {\n%a = exp(%x)\n%b = exp(%y)\nreturn %a, %b\n}")
	defer m.Close()
	r, err := m.PlanUpTo(t.Context(), WithUpTo("n", math.MaxInt32), WithUpTo("m", math.MaxInt32/2))
	if err != nil {
		t.Fatal(err)
	}
	if want := (math.MaxInt32 + 1) * (math.MaxInt32/2 + 1); r.Sizes != want || r.IO.Bytes < 12<<30 {
		t.Errorf("got %+v, want %d sizes", *r, want)
	}
	if _, err := m.PlanUpTo(t.Context(), WithUpTo("n", 1<<40), WithUpTo("m", 1<<40)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

// TestSearchOfScratchEnds ends the context before the scratch of a box is
// searched: no call is bound, and the promise is not made.
func TestSearchOfScratchEnds(t *testing.T) {
	memorytest.Check(t)
	m := loadText(t, "func @f(%x: f32[n,m]) {\n%y = exp(%x)\nreturn %y\n}")
	defer m.Close()
	made, o, err := promiseOf(t, m, WithUpTo("n", 20), WithUpTo("m", 20), inBoxes(2))
	if err != nil {
		t.Fatal(err)
	}
	o.promise = made
	b := &boxes{model: m, promise: made, options: o, reasons: map[string]int{}}
	box := []span{{lo: 2, hi: 19, step: 1}, {lo: 2, hi: 19, step: 1}}
	last, err := b.plan(t.Context(), b.upper(box), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, ended := range []bool{false, true} {
		if ended {
			cancel()
		}
		boxes := made.figures.Boxes
		why, _, err := b.over(ctx, box, last)
		if why != "" || errors.Is(err, context.Canceled) != ended || (err != nil) != ended || (made.figures.Boxes > boxes) == ended {
			t.Errorf("ended %v: got %q, %v", ended, why, err)
		}
	}
}
