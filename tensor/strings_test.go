package tensor

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

func TestStrings(t *testing.T) {
	memorytest.Check(t)
	for _, tc := range []struct {
		list  []string
		dims  []int
		sizes []int
	}{
		{[]string{"a", "größe", "", "\xff b"}, []int{2, 2}, []int{2, 2, 7}},
		{[]string{"word"}, nil, []int{4}},
		{[]string{"", ""}, []int{2}, []int{2, 1}},
		{nil, []int{0}, []int{0, 1}},
	} {
		x := ok(OfStrings(tc.list, tc.dims...))(t)
		if got := ok(Strings(x))(t); x.Shape() != shape.MustOf(tc.sizes...) || !slices.Equal(got, tc.list) {
			t.Errorf("%q: got %q in %s, want %v", tc.list, got, x.describe(), tc.sizes)
		}
		release(t, x)
	}
	wide := ok(OfStringsWide(9, []string{"ab", ""}, 1, 2))(t)
	if got := ok(Strings(wide))(t); wide.Shape() != shape.MustOf(1, 2, 9) || !slices.Equal(got, []string{"ab", ""}) {
		t.Errorf("wide: got %q in %s", got, wide.describe())
	}
	release(t, wide)
	x := ok(OfStrings([]string{"ab", "c", "d", "ef"}, 2, 2))(t)
	y := ok(x.Permute(1, 0, 2))(t)
	if got := ok(Strings(y))(t); !slices.Equal(got, []string{"ab", "d", "c", "ef"}) {
		t.Errorf("transposed: got %q", got)
	}
	release(t, x, y)
}

func TestStringsFaults(t *testing.T) {
	memorytest.Check(t)
	_, err := OfStrings([]string{"a", "b\x00"}, 2)
	wantErr(t, "a NUL", err, ErrUnsupported)
	if !strings.Contains(err.Error(), "got a NUL at byte 1 of string 1") {
		t.Errorf("a NUL: got %v", err)
	}
	_, err = OfStrings([]string{"a", "b"}, 3)
	wantErr(t, "too few", err, ErrShape)
	_, err = OfStringsWide(2, []string{"a", "bcd"}, 2)
	wantErr(t, "too long", err, ErrShape)
	if !strings.Contains(err.Error(), "got 3 bytes in string 1, want at most 2") {
		t.Errorf("too long: got %v", err)
	}
	_, err = OfStringsWide(0, nil, 0)
	wantErr(t, "no width", err, ErrShape)
	_, err = OfStrings(nil, -1)
	wantErr(t, "negative", err, ErrShape)
	scalar, wide, empty := ok(Of([]uint8{1}))(t), ok(Of([]int16{1}, 1))(t), ok(Of([]uint8{}, 3, 0))(t)
	_, err = Strings(scalar)
	wantErr(t, "no dimension", err, ErrShape)
	_, err = Strings(wide)
	wantErr(t, "numbers", err, ErrDType)
	_, err = Strings(empty)
	wantErr(t, "no bytes", err, ErrShape)
	word := ok(OfStrings([]string{"a"}))(t)
	release(t, scalar, wide, empty, word)
	_, err = Strings(word)
	wantErr(t, "released", err, ErrReleased)
}
