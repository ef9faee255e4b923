package shape_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var dims = rapid.OneOf(
	rapid.Map(rapid.IntRange(0, 5), shape.N),
	rapid.Map(rapid.SampledFrom([]string{"batch", "seq", "past + new", `"`, "1", "?", "a,b]", "ü", "\xff", "_x9"}), shape.Sym),
	rapid.Just(shape.Unknown),
)

func anyShape(rt *rapid.T, label string) *shape.Shape {
	s, err := shape.FromDims(rapid.SliceOfN(dims, 0, 5).Draw(rt, label)...)
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

func TestParseReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := anyShape(rt, "dims")
		back, err := shape.Parse(s.String())
		if err != nil || back != s {
			rt.Fatalf("%s: got %v, error %v", s, back, err)
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                         "[]",
		" [ ] ":                      "[]",
		"[1,3,224,224]":              "[1,3,224,224]",
		"[ 1 , batch,\t? ]":          "[1,batch,?]",
		`["past + new","batch","?"]`: `["past + new",batch,"?"]`,
		`["a,b" ,2]`:                 `["a,b",2]`,
		"[007]":                      "[7]",
	} {
		s, err := shape.Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: got %v, error %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{
		"", "[", "]", "1", "[1", "1]", "[,]", "[1,]", "[,1]", "[1 2]", "[1,,2]", "[-1]", "[1.5]", "[0x2]", "[1_0]",
		"[é]", `["]`, `["a]`, `[""]`, `["a"b]`, "[?x]", "[9223372036854775808]", "[288230376151711745]", "[[1]]", "[1]]", "[a-b]",
	} {
		if s, err := shape.Parse(text); !errors.Is(err, shape.ErrShape) {
			t.Errorf("%q: got %v, error %v, want ErrShape", text, s, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"[]", "[1,batch,?]", `["past + new", 7]`, "[1,", `["\xff"]`, "[288230376151711744,0]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := shape.Parse(text)
		if err != nil {
			if !errors.Is(err, shape.ErrShape) {
				t.Fatalf("%q: got error %v, want ErrShape", text, err)
			}
			return
		}
		if back, err := shape.Parse(s.String()); err != nil || back != s {
			t.Fatalf("%q: got %s, and from that %v, error %v", text, s, back, err)
		}
	})
}

// Element counts, strides and bytes agree with arithmetic without bounds.
func TestStaticShapes(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, 5), rapid.SampledFrom([]int{1 << 20, 1 << 29, 1 << 30, 1 << 57, 1 << 58, 1<<58 + 1, math.MaxInt}))
	limit := big.NewInt(1 << 58)
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(size, 0, 5).Draw(rt, "sizes")
		nonzero, count := big.NewInt(1), big.NewInt(1)
		for _, n := range sizes {
			count.Mul(count, big.NewInt(int64(n)))
			if n != 0 {
				nonzero.Mul(nonzero, big.NewInt(int64(n)))
			}
		}
		s, err := shape.Of(sizes...)
		if nonzero.Cmp(limit) > 0 {
			if !errors.Is(err, shape.ErrShape) {
				rt.Fatalf("%v: got %v, error %v, want ErrShape", sizes, s, err)
			}
			return
		}
		if err != nil || !s.IsStatic() || int64(s.NumElements()) != count.Int64() || !slices.Equal(s.Sizes(), sizes) || s.Rank() != len(sizes) {
			rt.Fatalf("%v: got %v with %d elements, error %v, want %d", sizes, s, s.NumElements(), err, count)
		}
		step := 1
		for i := len(sizes) - 1; i >= 0; i-- {
			if s.Strides()[i] != step || s.Size(i) != sizes[i] || s.Dim(i) != shape.N(sizes[i]) {
				rt.Fatalf("%v: got stride %d and size %d at %d, want %d and %d", sizes, s.Strides()[i], s.Size(i), i, step, sizes[i])
			}
			step *= max(sizes[i], 1)
		}
		bytes := new(big.Int).Mul(count, big.NewInt(16))
		if got, err := shape.Bytes(dtype.C128, s); err != nil || int64(got) != bytes.Int64() {
			rt.Fatalf("%v: got %d bytes, error %v, want %d", sizes, got, err, bytes)
		}
		l := shape.RowMajor(s)
		if lo, hi := l.Span(); lo != 0 || int64(hi) != count.Int64()-1 || !l.IsContiguous() || l.Overlaps() {
			rt.Fatalf("%v: got span %d to %d, contiguous %t, overlaps %t", sizes, lo, hi, l.IsContiguous(), l.Overlaps())
		}
	})
}

func TestShapesWithoutSizes(t *testing.T) {
	s, err := shape.FromDims(shape.Sym("batch"), shape.N(3), shape.Unknown)
	if err != nil {
		t.Fatal(err)
	}
	if s.IsStatic() || s.NumElements() != -1 || s.Sizes() != nil || s.Strides() != nil {
		t.Errorf("%s: got static %t, %d elements, sizes %v, strides %v", s, s.IsStatic(), s.NumElements(), s.Sizes(), s.Strides())
	}
	if n := s.Size(1); n != 3 {
		t.Errorf("%s: got size %d at 1, want 3", s, n)
	}
	d := s.Dims()
	d[0] = shape.N(9)
	if s.Dim(0) != shape.Sym("batch") {
		t.Errorf("got %s after writing the copy of its dimensions", s)
	}
	if sym, ok := s.Dim(0).Symbol(); sym != "batch" || !ok {
		t.Errorf("got symbol %q, %t, want batch", sym, ok)
	}
	if _, ok := s.Dim(0).Size(); ok {
		t.Errorf("got a size for a symbol")
	}
	if shape.Sym("") != shape.Unknown || shape.Unknown != (shape.Dim{}) {
		t.Errorf("want the empty symbol and the zero Dim to be unknown")
	}
	for _, i := range []int{0, 2, 3, -1} {
		if n := s.Size(i); n != -1 {
			t.Errorf("%s: got size %d at %d, want -1", s, n, i)
		}
	}
	if d := s.Dim(3); d != shape.Unknown {
		t.Errorf("%s: got dimension %s behind the last, want an unknown one", s, d)
	}
	if l := shape.RowMajor(s); l != nil {
		t.Errorf("%s: got layout %s, want none", s, l)
	}
	defer func() {
		if r, ok := recover().(string); !ok || r[:4] != "BUG:" {
			t.Errorf("got panic %v, want one that starts with BUG:", r)
		}
	}()
	shape.MustOf(-1)
}

// Nil and zero shapes and layouts are refused, and their methods return
// nothing.
func TestNoShape(t *testing.T) {
	for _, s := range []*shape.Shape{nil, {}} {
		if s.IsStatic() || s.NumElements() != -1 || s.Rank() != 0 || s.Size(0) != -1 || len(s.Sizes()) != 0 || len(s.Dims()) != 0 || s.String() != "no shape" {
			t.Errorf("got %s: static %t, %d elements, rank %d", s, s.IsStatic(), s.NumElements(), s.Rank())
		}
		if _, err := shape.Bytes(dtype.F32, s); !errors.Is(err, shape.ErrShape) {
			t.Errorf("bytes: got %v, want ErrShape", err)
		}
		if _, err := shape.Strided(s); !errors.Is(err, shape.ErrShape) {
			t.Errorf("strided: got %v, want ErrShape", err)
		}
		if _, err := shape.Broadcast(s, shape.Scalar()); !errors.Is(err, shape.ErrShape) {
			t.Errorf("broadcast: got %v, want ErrShape", err)
		}
		if l := shape.RowMajor(s); l != nil {
			t.Errorf("row-major: got %s, want none", l)
		}
	}
	for _, l := range []*shape.Layout{nil, {}} {
		lo, hi := l.Span()
		if l.Shape() != nil || l.IsContiguous() || l.Overlaps() || lo != 0 || hi != -1 || l.String() != "no layout" {
			t.Errorf("got %s with shape %s, from %d to %d", l, l.Shape(), lo, hi)
		}
		if _, err := l.WithFlags(shape.Padded); !errors.Is(err, shape.ErrShape) {
			t.Errorf("with flags: got %v, want ErrShape", err)
		}
		if _, err := l.ByteSpan(dtype.F32); !errors.Is(err, shape.ErrShape) {
			t.Errorf("byte span: got %v, want ErrShape", err)
		}
	}
}

// refBroadcast is numpy's rule for sizes, extended to dimensions without sizes,
// which stand for all sizes that they may have.
func refBroadcast(x, y shape.Dim) (results map[int]bool, possible bool) {
	results = map[int]bool{}
	for _, n := range sizesOf(x) {
		for _, m := range sizesOf(y) {
			if x == y && n != m && x != shape.Unknown {
				continue // a symbol has one size
			}
			switch {
			case n == m || m == 1:
				results[n] = true
			case n == 1:
				results[m] = true
			}
		}
	}
	return results, len(results) > 0
}

// sizesOf returns sizes that stand for all others: zero, one, and several
// larger ones, which are all the cases that the rule distinguishes.
func sizesOf(d shape.Dim) []int {
	if n, ok := d.Size(); ok {
		return []int{n}
	}
	return []int{0, 1, 2, 3, 4, 5, 6, 7}
}

func TestBroadcast(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := anyShape(rt, "a"), anyShape(rt, "b")
		got, err := shape.Broadcast(a, b)
		other, err2 := shape.Broadcast(b, a)
		if got != other || (err == nil) != (err2 == nil) {
			rt.Fatalf("%s and %s: got %v, the other way round %v", a, b, got, other)
		}
		rank := max(a.Rank(), b.Rank())
		at := func(s *shape.Shape, i int) shape.Dim {
			if j := i - (rank - s.Rank()); j >= 0 {
				return s.Dim(j)
			}
			return shape.N(1)
		}
		for i := range rank {
			x, y := at(a, i), at(b, i)
			want, possible := refBroadcast(x, y)
			if !possible {
				if !errors.Is(err, shape.ErrShape) {
					rt.Fatalf("%s and %s: got %v, error %v, want ErrShape", a, b, got, err)
				}
				return
			}
			if err != nil {
				continue // another dimension is the reason
			}
			d := got.Dim(i)
			n, sized := d.Size()
			sym, symbolic := d.Symbol()
			switch {
			case sized && (len(want) != 1 || !want[n]):
				rt.Fatalf("%s and %s: got %s at %d, want one of %v", a, b, d, i, want)
			case !sized && len(want) == 1:
				rt.Fatalf("%s and %s: got %s at %d, want %v", a, b, d, i, want)
			case symbolic && !(x == d && (y == d || y == shape.N(1)) || y == d && x == shape.N(1)):
				rt.Fatalf("%s and %s: got symbol %s at %d", a, b, sym, i)
			case d == shape.Unknown && (x == shape.N(1) && y != d || y == shape.N(1) && x != d || x == y && x != d):
				rt.Fatalf("%s and %s: got nothing at %d", a, b, i)
			}
		}
		if err != nil {
			for i := range rank {
				if _, possible := refBroadcast(at(a, i), at(b, i)); !possible {
					return
				}
			}
			rt.Fatalf("%s and %s: got error %v, want a shape", a, b, err)
		}
	})
}

func TestErrorsNameBothSides(t *testing.T) {
	big, err := shape.Of(1<<57, 1)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := shape.FromDims(shape.Sym("batch"))
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]func() error{
		"shape: dimension 1 is -3, want zero or more: shape does not fit":                        func() error { _, err := shape.Of(2, -3); return err },
		"shape: [288230376151711744,2] has more than 2^58 elements: shape does not fit":          func() error { _, err := shape.Of(1<<58, 2); return err },
		"shape: [0,288230376151711744,2] has more than 2^58 elements: shape does not fit":        func() error { _, err := shape.Of(0, 1<<58, 2); return err },
		"broadcast: got [2,3] and [4], want equal sizes or 1 at dimension 1: shape does not fit": func() error { _, err := shape.Broadcast(shape.MustOf(2, 3), shape.MustOf(4)); return err },
		"shape: [144115188075855872,4] has more than 2^58 elements: shape does not fit":          func() error { _, err := shape.Broadcast(big, shape.MustOf(4)); return err },
		"layout: got shape [batch], want a static one: shape does not fit":                       func() error { _, err := shape.Strided(batch, 1); return err },
		"layout: got 1 strides for shape [2,3], want 2: shape does not fit":                      func() error { _, err := shape.Strided(shape.MustOf(2, 3), 1); return err },
		"layout: stride -9223372036854775808 over dimension 0 of [2] reaches past 2^58 elements: shape does not fit": func() error {
			_, err := shape.Strided(shape.MustOf(2), math.MinInt)
			return err
		},
		"layout: strides [288230376151711744 1] over [2,2] reach past 2^58 elements: shape does not fit": func() error {
			_, err := shape.Strided(shape.MustOf(2, 2), 1<<58, 1)
			return err
		},
		"shape: bytes of f32[batch]: got dimensions without a size, want a static shape: shape does not fit": func() error {
			_, err := shape.Bytes(dtype.F32, batch)
			return err
		},
	} {
		if err := f(); !errors.Is(err, shape.ErrShape) || err.Error() != want {
			t.Errorf("got error %q, want %q", err, want)
		}
	}
	if _, err := shape.Bytes(dtype.String, shape.MustOf(2)); !errors.Is(err, dtype.ErrDType) {
		t.Errorf("bytes of strings: got error %v, want ErrDType", err)
	}
}
