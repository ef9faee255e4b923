package shape_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// offsets returns the element offset of every index tuple, in row-major order.
func offsets(sizes, strides []int) []int {
	all := []int{0}
	for i, n := range sizes {
		var next []int
		for _, base := range all {
			for j := range n {
				next = append(next, base+j*strides[i])
			}
		}
		all = next
	}
	return all
}

// Span, IsContiguous and Overlaps agree with the list of all offsets.
func TestLayoutAgainstAllOffsets(t *testing.T) {
	proved := 0
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(rt, "sizes")
		s := shape.MustOf(sizes...)
		strides := slices.Clone(s.Strides())
		for i := range strides {
			if rapid.Bool().Draw(rt, "change") {
				strides[i] = rapid.IntRange(-12, 12).Draw(rt, "stride")
			}
		}
		l, err := shape.Strided(s, strides...)
		if err != nil {
			rt.Fatal(err)
		}
		all := offsets(sizes, strides)
		lo, hi := 0, -1
		if len(all) > 0 {
			lo, hi = slices.Min(all), slices.Max(all)
		}
		if a, b := l.Span(); a != lo || b != hi {
			rt.Fatalf("%s: got span %d to %d, want %d to %d", l, a, b, lo, hi)
		}
		neighbours := true
		for i, o := range all {
			neighbours = neighbours && o == i
		}
		if l.IsContiguous() != neighbours {
			rt.Fatalf("%s: got contiguous %t, want %t", l, l.IsContiguous(), neighbours)
		}
		unique := slices.Compact(slices.Sorted(slices.Values(all)))
		if overlap := len(unique) < len(all); overlap && !l.Overlaps() {
			rt.Fatalf("%s: got no overlap, want one in %v", l, all)
		}
		if !l.Overlaps() {
			proved++
		}
		if l.Shape() != s || !slices.Equal(l.Strides(), strides) {
			rt.Fatalf("got %s %v, want %s %v", l.Shape(), l.Strides(), s, strides)
		}
	})
	if proved == 0 {
		t.Error("got no layout without overlap, want some: false would never be a proof")
	}
}

// Overlaps is exact for the layouts of views.
func TestViewsDoNotOverlap(t *testing.T) {
	s := shape.MustOf(2, 3, 4)
	for _, strides := range [][]int{{12, 4, 1}, {4, 8, 1}, {1, 2, 6}, {-12, -4, -1}, {24, 8, 2}, {100, -20, 3}} {
		l, err := shape.Strided(s, strides...)
		if err != nil || l.Overlaps() {
			t.Errorf("%s %v: got overlaps or error %v, want none", s, strides, err)
		}
	}
	for _, strides := range [][]int{{0, 4, 1}, {12, 1, 1}, {3, 4, 1}} {
		l, err := shape.Strided(s, strides...)
		if err != nil || !l.Overlaps() {
			t.Errorf("%s %v: got no overlap or error %v, want one", s, strides, err)
		}
	}
}

// Strides by which no element is reached are ignored.
func TestStridesOfSizeOne(t *testing.T) {
	l, err := shape.Strided(shape.MustOf(1, 3), math.MinInt, 1)
	if err != nil || !l.IsContiguous() || l.Overlaps() {
		t.Errorf("got %v, error %v, want a contiguous layout", l, err)
	}
	if lo, hi := l.Span(); lo != 0 || hi != 2 {
		t.Errorf("got span %d to %d, want 0 to 2", lo, hi)
	}
	empty, err := shape.Strided(shape.MustOf(0, 3), 7, 9)
	if lo, hi := empty.Span(); err != nil || lo != 0 || hi != -1 || !empty.IsContiguous() {
		t.Errorf("got %v, span %d to %d, error %v, want an empty contiguous layout", empty, lo, hi, err)
	}
}

func TestLayoutString(t *testing.T) {
	s := shape.MustOf(2, 3)
	if got := shape.RowMajor(s).String(); got != "[2,3]" {
		t.Errorf("got %q, want [2,3]", got)
	}
	l, err := shape.Strided(s, 1, -2)
	if err != nil || l.String() != "[2,3] strides [1 -2]" {
		t.Errorf("got %v, error %v, want [2,3] strides [1 -2]", l, err)
	}
}

// Layouts that differ in a flag are different, and removing the flag returns
// the first.
func TestFlags(t *testing.T) {
	s := shape.MustOf(3, 5)
	row := shape.RowMajor(s)
	padded, err := row.WithFlags(shape.Padded)
	if err != nil || padded == row || padded.Flags() != shape.Padded || padded.Shape() != s || padded.String() != "[3,5] padded" {
		t.Errorf("got %v, flags %d, error %v, want another layout of %s", padded, padded.Flags(), err, s)
	}
	again, err := row.WithFlags(shape.Padded)
	back, err2 := padded.WithFlags(0)
	if err != nil || err2 != nil || again != padded || back != row {
		t.Errorf("got %v and %v, errors %v and %v, want the layouts of before", again, back, err, err2)
	}
	if l, err := row.WithFlags(0x80); !errors.Is(err, shape.ErrShape) {
		t.Errorf("got %v, error %v, want ErrShape", l, err)
	}
	strided, err := shape.Strided(s, 7, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		l    *shape.Layout
		dt   dtype.DType
		want int
	}{
		{row, dtype.F32, 60}, {padded, dtype.F32, 60}, {row, dtype.I4, 8}, {padded, dtype.I4, 15},
		{strided, dtype.F32, 4 * 19}, // from -4 to 14
	} {
		if n, err := test.l.ByteSpan(test.dt); err != nil || n != test.want {
			t.Errorf("%v of %s: got %d bytes, error %v, want %d", test.l, test.dt, n, err, test.want)
		}
	}
}

// Lookup finds existing shapes, creates none, and accepts no invalid sizes.
func TestLookup(t *testing.T) {
	s := shape.MustOf(6, 1, 4242)
	if shape.Lookup(6, 1, 4242) != s || shape.Lookup(6, 1, 4243) != nil || shape.Lookup(6, -1) != nil || shape.Lookup(math.MaxInt, 2) != nil {
		t.Error("got another answer than the shape that is there, or one for what is not")
	}
	open, err := shape.FromDims(shape.Unknown)
	if err != nil || shape.Lookup(-1) != nil {
		t.Errorf("got a static shape for what stands for %v, error %v", open, err)
	}
	before := shape.Stats()
	held := shape.MustOf(6, 2, 4243)
	if after := shape.Stats(); after.Entries != before.Entries+1 || after.Bytes <= before.Bytes || after.PeakEntries < after.Entries || after.PeakBytes < after.Bytes {
		t.Errorf("got %+v, then %+v, want one entry more", before, after)
	}
	if shape.Clear() < 1 || shape.Lookup(6, 2, 4243) != held || shape.Lookup(6, 1, 4242) != s {
		t.Error("got other shapes after Clear, want those in use")
	}
}

// At the bound, new shapes fail with ErrLimit, and existing ones are found.
func TestSetLimit(t *testing.T) {
	s := shape.MustOf(31, 31)
	shape.SetLimit(1)
	defer shape.SetLimit(0)
	held := []*shape.Shape{s}
	for i := range 2 {
		if x, err := shape.Of(32, i); err == nil {
			held = append(held, x)
		}
	}
	if _, err := shape.Of(33, 33); !errors.Is(err, shape.ErrLimit) || shape.Stats().Limit != 1 {
		t.Errorf("got error %v with %d shapes held, want ErrLimit", err, len(held))
	}
	if x, err := shape.Of(31, 31); x != s || err != nil {
		t.Errorf("got %v, error %v, want the shape that is there", x, err)
	}
	runtime.KeepAlive(held)
}
