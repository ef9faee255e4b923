package op_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

func TestLoopParts(t *testing.T) {
	for _, c := range []struct {
		list   []int64
		stacks int
		want   [][]int64 // nil for an error
	}{
		{nil, 2, [][]int64{nil, nil}},
		{[]int64{2, 5, -1, -1, 0}, 3, [][]int64{{5, -1}, nil, {}}},
		{[]int64{-1}, 2, nil},
		{[]int64{-1, -1, 3}, 2, nil},
		{[]int64{3, 1, 2}, 1, nil},
		{[]int64{-2}, 1, nil},
		{[]int64{1 << 40}, 1, nil},
		{[]int64{1, -2}, 1, nil},
		{[]int64{1, 1 << 62}, 1, nil},
		{[]int64{1}, 0, nil},
	} {
		got, err := op.LoopParts(c.list, c.stacks)
		if c.want == nil && !errors.Is(err, shape.ErrShape) || c.want != nil && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%v for %d stacks: got %v, %v, want %v", c.list, c.stacks, got, err, c.want)
		}
	}
}
