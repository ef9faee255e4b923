package move_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// indices returns n random indices into an axis, of both signs.
func indices(r *rand.Rand, n, axis int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = int64(r.IntN(2*axis) - axis)
	}
	return x
}

func TestGather(t *testing.T) {
	t.Run("1", gathers[uint8])
	t.Run("2", gathers[uint16])
	t.Run("4", gathers[uint32])
	t.Run("8", gathers[uint64])
	t.Run("16", gathers[[2]uint64])
	t.Run("range", testOutOfRange)
}

func gathers[W comparable](t *testing.T) {
	for axis := range 3 {
		gather[W](t, []int{4, 5, 6}, axis, []int{2, 3})
		gather[W](t, []int{4, 5, 6}, axis, []int{})
		gatherElements[W](t, []int{4, 5, 6}, axis, []int{3, 4, 5})
		gatherElements[W](t, []int{4, 5, 6}, axis, []int{4, 5, 6})
	}
	gather[W](t, []int{7}, 0, []int{40})
	gather[W](t, []int{3, 0}, 0, []int{2})
	for _, c := range []struct {
		shape, index []int
		batch        int
	}{
		{[]int{4, 5}, []int{3, 2}, 0}, {[]int{4, 5}, []int{3, 1}, 0}, {[]int{2, 3, 4}, []int{2, 1}, 1}, {[]int{2, 3, 4}, []int{2, 5, 2}, 1},
		{[]int{2, 3, 4, 5}, []int{2, 3, 6, 1}, 2}, {[]int{6, 2}, []int{2, 2, 1}, 0},
	} {
		gatherND[W](t, c.shape, c.index, c.batch)
	}
}

func gather[W comparable](t *testing.T, shape []int, axis int, indexShape []int) {
	t.Helper()
	x := kerneltest.Words[W](ref.Size(shape), 1)
	idx := indices(kerneltest.NewRand(8), ref.Size(indexShape), shape[axis])
	want := ref.Gather(x, shape, idx, indexShape, axis)
	g := move.GatherSpec{Outer: ref.Size(shape[:axis]), Axis: shape[axis], Count: len(idx), Inner: ref.Size(shape[axis+1:]) * kerneltest.SizeOf[W]()}
	g.Prepare()
	s := kerneltest.NewSpace(t)
	src, dst, narrow := kerneltest.In(s, "src", x), kerneltest.Out[W](s, "dst", len(want)), kerneltest.Out[W](s, "dst32", len(want))
	i64, i32 := kerneltest.In(s, "indices", idx), kerneltest.In(s, "indices32", kerneltest.Narrowed(idx))
	kerneltest.Backwards(g.Tiles(), func(k int) {
		move.Gather(&g, k, kerneltest.AsBytes(dst), kerneltest.AsBytes(src), i64)
		move.Gather(&g, k, kerneltest.AsBytes(narrow), kerneltest.AsBytes(src), i32)
	})
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, narrow, want)
}

func gatherElements[W comparable](t *testing.T, shape []int, axis int, indexShape []int) {
	t.Helper()
	x := kerneltest.Words[W](ref.Size(shape), 1)
	idx := indices(kerneltest.NewRand(9), ref.Size(indexShape), shape[axis])
	want := ref.GatherElements(x, shape, idx, indexShape, axis)
	var g move.GatherElementsSpec
	g.Prepare(kerneltest.SizeOf[W](), shape, indexShape, axis, nil)
	s := kerneltest.NewSpace(t)
	src, dst, narrow := kerneltest.In(s, "src", x), kerneltest.Out[W](s, "dst", len(want)), kerneltest.Out[W](s, "dst32", len(want))
	i64, i32 := kerneltest.In(s, "indices", idx), kerneltest.In(s, "indices32", kerneltest.Narrowed(idx))
	kerneltest.Backwards(g.Tiles(), func(k int) {
		move.GatherElements(&g, k, kerneltest.AsBytes(dst), kerneltest.AsBytes(src), i64)
		move.GatherElements(&g, k, kerneltest.AsBytes(narrow), kerneltest.AsBytes(src), i32)
	})
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, narrow, want)
}

// tuples returns random index tuples for the axes of shape from batch on.
func tuples(r *rand.Rand, shape, indexShape []int, batch int) []int64 {
	k := indexShape[len(indexShape)-1]
	var idx []int64
	for range ref.Size(indexShape) / k {
		for j := range k {
			idx = append(idx, indices(r, 1, shape[batch+j])...)
		}
	}
	return idx
}

func gatherND[W comparable](t *testing.T, shape, indexShape []int, batch int) {
	t.Helper()
	x := kerneltest.Words[W](ref.Size(shape), 1)
	idx := tuples(kerneltest.NewRand(10), shape, indexShape, batch)
	want := ref.GatherND(x, shape, idx, indexShape, batch)
	var g move.TuplesSpec
	g.Prepare(shape, indexShape, batch, nil)
	s := kerneltest.NewSpace(t)
	src, dst, narrow := kerneltest.In(s, "src", x), kerneltest.Out[W](s, "dst", len(want)), kerneltest.Out[W](s, "dst32", len(want))
	i64, i32 := kerneltest.In(s, "indices", idx), kerneltest.In(s, "indices32", kerneltest.Narrowed(idx))
	kerneltest.Backwards(g.Tiles(), func(k int) {
		move.GatherND(&g, k, kerneltest.SizeOf[W](), kerneltest.AsBytes(dst), kerneltest.AsBytes(src), i64)
		move.GatherND(&g, k, kerneltest.SizeOf[W](), kerneltest.AsBytes(narrow), kerneltest.AsBytes(src), i32)
	})
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, narrow, want)
}

func testOutOfRange(t *testing.T) {
	for _, c := range []struct {
		idx  []int64
		n    int
		want int
	}{{[]int64{0, -3, 2}, 3, -1}, {[]int64{0, 3}, 3, 1}, {[]int64{-4}, 3, 0}, {nil, 0, -1}, {[]int64{0}, 0, 0}} {
		if got := move.OutOfRange(c.idx, c.n); got != c.want {
			t.Errorf("OutOfRange(%v, %d): got %d, want %d", c.idx, c.n, got, c.want)
		}
	}
	if got := move.OutOfRangeND([]int32{1, 4, -2, 5}, []int{2, 5}); got != 3 {
		t.Errorf("OutOfRangeND: got %d, want 3", got)
	}
}
