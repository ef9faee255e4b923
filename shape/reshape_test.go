package shape_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/shape"
)

// TestLayoutReshape compares reshaped layouts with their elements' offsets, and
// refused ones with every pair of neighbours that would need two strides.
func TestLayoutReshape(t *testing.T) {
	reshaped, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []int {
			return rapid.SliceOfN(rapid.SampledFrom([]int{1, 2, 2, 3, 4, 6}), 1, 4).Draw(t, name)
		}
		sizes := draw("sizes")
		n := 1
		for _, x := range sizes {
			n *= x
		}
		var to []int
		for rest := n; ; {
			var divisors []int
			for x := 1; x <= rest; x++ {
				if rest%x == 0 {
					divisors = append(divisors, x)
				}
			}
			x := rapid.SampledFrom(divisors).Draw(t, "size")
			to, rest = append(to, x), rest/x
			if len(to) == 5 || rest == 1 && rapid.Bool().Draw(t, "enough") {
				to = append(to, rest)
				break
			}
		}
		strides, step := make([]int, len(sizes)), 1
		for d := len(sizes) - 1; d >= 0; d-- {
			step *= rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "gap")
			strides[d] = step
			step *= sizes[d]
		}
		l, err := shape.Strided(shape.MustOf(sizes...), strides...)
		if err != nil {
			t.Fatal(err)
		}
		want := offsets(sizes, strides)
		r, ok := l.Reshape(shape.MustOf(to...))
		if ok != affine(want, to) {
			t.Fatalf("%s as %v: got %t, want %t", l, to, ok, !ok)
		}
		if !ok {
			refused++
			return
		}
		reshaped++
		got := offsets(to, r.Strides())
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s as %v: got %s, element %d at %d, want it at %d", l, to, r, i, got[i], want[i])
			}
		}
	})
	if (reshaped == 0 || refused == 0) && !testing.Short() {
		t.Errorf("got %d layouts reshaped and %d refused, want some of each", reshaped, refused)
	}
}

// affine reports whether a stride per axis leads to every offset.
func affine(offsets []int, sizes []int) bool {
	step := len(offsets)
	strides := make([]int, len(sizes))
	for d, n := range sizes {
		if step /= n; n > 1 {
			strides[d] = offsets[step]
		}
	}
	for i, at := range offsets {
		rest, sum := i, 0
		for d := len(sizes) - 1; d >= 0; d-- {
			sum += rest % sizes[d] * strides[d]
			rest /= sizes[d]
		}
		if sum != at {
			return false
		}
	}
	return true
}

// TestLayoutReshapeRefuses covers what is no reshape.
func TestLayoutReshapeRefuses(t *testing.T) {
	var none *shape.Layout
	if _, ok := none.Reshape(shape.MustOf(1)); ok {
		t.Error("got a layout of none")
	}
	l := shape.RowMajor(shape.MustOf(2, 3))
	if _, ok := l.Reshape(shape.MustOf(7)); ok {
		t.Error("got a layout of another number of elements")
	}
	if r, ok := l.Reshape(shape.MustOf(3, 2)); !ok || r != shape.RowMajor(shape.MustOf(3, 2)) {
		t.Errorf("got %v, want the row-major layout", r)
	}
}
