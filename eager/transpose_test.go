package eager_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// A transpose of an operand that is given up moves the elements within their
// own bytes, and its result equals that of a borrowed tensor.
func TestTransposeInPlace(t *testing.T) {
	memorytest.Check(t)
	data := make([]float32, 2*30*12*16)
	for i := range data {
		data[i] = float32(i)
	}
	for _, perm := range [][]int{{0, 2, 1, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 2, 3}} {
		x := of(t, data, 2, 30, 12, 16)
		want := ok(eager.Transpose(x, perm...))(t)
		at := address(x)
		got := ok(eager.Transpose(x.Donate(), perm...))(t)
		if address(got) != at {
			t.Errorf("%v: got other bytes, want those of the operand", perm)
		}
		a, err := tensor.Float32s(got)
		b, err2 := tensor.Float32s(want)
		if err != nil || err2 != nil || got.Shape() != want.Shape() || !slices.Equal(a, b) {
			t.Errorf("%v: got %s, want %s with the same elements (errors %v, %v)", perm, got.Shape(), want.Shape(), err, err2)
		}
		if x.Alive() {
			t.Errorf("%v: the operand is alive", perm)
		}
		release(t, got, want)
	}
}

// Where that would take much scratch, a donation is refused.
func TestTransposeTooLargeInPlace(t *testing.T) {
	memorytest.Check(t)
	x := of(t, make([]float32, 300*400), 300, 400)
	wantErr(t, "large", second(eager.Transpose(x.Donate())), tensor.ErrNotReusable, "transpose: operand 0, f32[300,400]", "writes no result over it")
	release(t, x, ok(eager.Transpose(x))(t))
}
