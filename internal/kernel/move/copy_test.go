package move_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestCopy(t *testing.T) { kerneltest.EachVariant(t, testCopy) }

func testCopy(t *testing.T, v *kernel.Variant) {
	t.Run("1", kerneltest.With(v, copies[uint8]))
	t.Run("2", kerneltest.With(v, copies[uint16]))
	t.Run("4", kerneltest.With(v, copies[uint32]))
	t.Run("8", kerneltest.With(v, copies[uint64]))
	t.Run("16", kerneltest.With(v, copies[[2]uint64]))
	t.Run("permute 1", kerneltest.With(v, permutations[uint8]))
	t.Run("permute 4", kerneltest.With(v, permutations[uint32]))
	t.Run("permute 16", kerneltest.With(v, permutations[[2]uint64]))
}

func permutations[W comparable](t *testing.T, v *kernel.Variant) {
	for _, c := range []struct{ shape, perm []int }{
		{[]int{1, 128, 12, 64}, []int{0, 2, 1, 3}}, {[]int{1, 128, 12, 64}, []int{0, 2, 3, 1}}, {[]int{3, 2, 5, 2000}, []int{2, 0, 1, 3}},
		{[]int{7, 5, 3, 2}, []int{2, 3, 1, 0}}, {[]int{4, 1, 6, 3}, []int{3, 0, 2, 1}},
	} {
		x := kerneltest.Words[W](ref.Size(c.shape), 1)
		permuteInPlace(t, v, c.shape, c.perm, x, ref.Transpose(x, c.shape, c.perm))
	}
}

// permuteInPlace puts x in another order in its own bytes, where that takes
// little scratch.
func permuteInPlace[W comparable](t *testing.T, v *kernel.Variant, shape, perm []int, x, want []W) {
	t.Helper()
	var p move.Permute
	if !p.Prepare(kerneltest.SizeOf[W](), shape, perm) {
		return
	}
	s := kerneltest.NewSpace(t)
	data, scratch := kerneltest.Out[W](s, "data", len(x)), kerneltest.Out[W](s, "scratch", p.ScratchBytes()/kerneltest.SizeOf[W]()+1)
	copy(data, x)
	p.Run(v, kerneltest.AsBytes(data), kerneltest.AsBytes(scratch))
	s.Check()
	for i := range want {
		if data[i] != want[i] {
			t.Fatalf("permute %v by %v: element %d: got %v, want %v", shape, perm, i, data[i], want[i])
		}
	}
}

func copies[W comparable](t *testing.T, v *kernel.Variant) {
	run := func(name string, prepare func(c *move.Copy), x, want []W) {
		t.Helper()
		var c move.Copy
		prepare(&c)
		s := kerneltest.NewSpace(t)
		src, dst := kerneltest.In(s, "src", x), kerneltest.Out[W](s, "dst", len(want))
		kerneltest.Backwards(c.Tiles(), func(i int) { c.Tile(v, i, kerneltest.AsBytes(dst), kerneltest.AsBytes(src)) })
		s.Check()
		for i := range want {
			if dst[i] != want[i] {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, dst[i], want[i])
			}
		}
	}
	size := kerneltest.SizeOf[W]()
	for _, c := range []struct{ shape, perm []int }{
		{[]int{}, []int{}}, {[]int{5}, []int{0}}, {[]int{2, 3}, []int{1, 0}}, {[]int{40, 70}, []int{1, 0}}, {[]int{3, 1100}, []int{1, 0}},
		{[]int{2, 3, 4, 5}, []int{0, 2, 1, 3}}, {[]int{2, 3, 4, 5}, []int{3, 1, 0, 2}}, {[]int{2, 35, 6, 33}, []int{0, 3, 2, 1}},
		{[]int{2, 3, 50, 20}, []int{0, 2, 3, 1}}, {[]int{2, 0, 3}, []int{2, 0, 1}}, {[]int{1, 9, 1, 7}, []int{3, 2, 1, 0}},
		{[]int{2, 2, 2, 2, 2, 2}, []int{5, 3, 1, 4, 2, 0}},
		{[]int{2, 300, 3}, []int{0, 2, 1}}, {[]int{2, 3, 300}, []int{0, 2, 1}}, {[]int{2, 130, 4}, []int{0, 2, 1}}, {[]int{2, 2, 130}, []int{0, 2, 1}},
	} {
		x := kerneltest.Words[W](ref.Size(c.shape), 1)
		want := ref.Transpose(x, c.shape, c.perm)
		run(fmt.Sprint("transpose ", c), func(k *move.Copy) { k.PrepareTranspose(size, c.shape, c.perm, nil, nil) }, x, want)
		permuteInPlace(t, v, c.shape, c.perm, x, want)
	}
	for rows := 1; rows <= 40; rows++ {
		for cols := 1; cols <= 40; cols++ {
			if size > 4 && rows%8 != 0 && cols%8 != 1 {
				continue // vectors are for smaller elements
			}
			shape, perm := []int{rows, cols}, []int{1, 0}
			x := kerneltest.Words[W](rows*cols, 7)
			want := ref.Transpose(x, shape, perm)
			run(fmt.Sprint("transpose ", shape), func(k *move.Copy) { k.PrepareTranspose(size, shape, perm, nil, nil) }, x, want)
			// The same from the last row to the first.
			back := ref.Slice(want, []int{cols, rows}, []int{0, rows - 1}, []int{1, -1}, []int{cols, rows})
			run(fmt.Sprint("transpose backwards ", shape), func(k *move.Copy) {
				k.Prepare(size, []int{cols, rows}, 0, []int{rows, 1}, (rows-1)*cols, []int{1, -cols})
			}, x, back)
		}
	}
	sliced(t, run)
	for _, c := range []struct{ shape, to []int }{
		{[]int{}, []int{7}}, {[]int{1}, []int{40000}}, {[]int{3, 1}, []int{3, 50}}, {[]int{3, 1}, []int{2, 3, 4}}, {[]int{5}, []int{3, 4, 5}},
		{[]int{2, 1, 3}, []int{2, 4, 3}},
	} {
		x := kerneltest.Words[W](ref.Size(c.shape), 3)
		run(fmt.Sprint("expand ", c), func(k *move.Copy) { k.PrepareExpand(size, c.shape, c.to, nil, nil) }, x, ref.Expand(x, c.shape, c.to))
	}
	for _, c := range []struct{ shape, repeats []int }{
		{[]int{4}, []int{3}}, {[]int{2, 3}, []int{2, 2}}, {[]int{2, 1, 3}, []int{1, 5, 2}}, {[]int{2, 3}, []int{0, 1}},
	} {
		x := kerneltest.Words[W](ref.Size(c.shape), 4)
		run(fmt.Sprint("tile ", c), func(k *move.Copy) { k.PrepareTile(size, c.shape, c.repeats, nil, nil) }, x, ref.Tile(x, c.shape, c.repeats))
	}
	for axis := range 3 {
		concatSplit[W](t, v, axis)
	}
	transposed[W](t, v)
}

// sliced takes parts of tensors, forwards and backwards.
func sliced[W comparable](t *testing.T, run func(name string, prepare func(c *move.Copy), x, want []W)) {
	t.Helper()
	size := kerneltest.SizeOf[W]()
	for _, c := range []struct{ shape, start, step, count []int }{
		{[]int{10}, []int{2}, []int{3}, []int{3}}, {[]int{10}, []int{9}, []int{-1}, []int{10}}, {[]int{10}, []int{8}, []int{-4}, []int{3}},
		{[]int{4, 5, 6}, []int{1, 0, 2}, []int{1, 1, 1}, []int{2, 5, 3}}, {[]int{4, 5, 6}, []int{3, 4, 0}, []int{-2, -1, 2}, []int{2, 5, 3}},
		{[]int{4, 5}, []int{0, 0}, []int{1, 1}, []int{4, 5}}, {[]int{4, 5}, []int{1, 1}, []int{1, 1}, []int{0, 2}},
		{[]int{5, 40, 40}, []int{4, 39, 0}, []int{-1, -1, 1}, []int{5, 40, 40}},
		{[]int{40_007}, []int{40_006}, []int{-1}, []int{40_007}}, {[]int{40_007}, []int{0}, []int{2}, []int{20_004}},
	} {
		x := kerneltest.Words[W](ref.Size(c.shape), 2)
		run(fmt.Sprint("slice ", c), func(k *move.Copy) { k.PrepareSlice(size, c.shape, c.start, c.step, c.count, nil, nil) }, x,
			ref.Slice(x, c.shape, c.start, c.step, c.count))
	}
	for n := 1; n <= 140; n++ {
		shape := []int{2*n - 1}
		x := kerneltest.Words[W](2*n-1, 5)
		for by, start := range map[int]int{-1: n - 1, 2: 0} {
			run(fmt.Sprintf("every %d of %d", by, n), func(k *move.Copy) { k.PrepareSlice(size, shape, []int{start}, []int{by}, []int{n}, nil, nil) }, x,
				ref.Slice(x, shape, []int{start}, []int{by}, []int{n}))
		}
	}
}

// concatSplit joins three parts and takes them apart again.
func concatSplit[W comparable](t *testing.T, v *kernel.Variant, axis int) {
	t.Helper()
	size, shape, sizes := kerneltest.SizeOf[W](), []int{3, 4, 5}, []int{2, 0, 7}
	parts := make([][]W, len(sizes))
	s := kerneltest.NewSpace(t)
	whole := append([]int(nil), shape...)
	whole[axis] = 9
	for i, n := range sizes {
		part := append([]int(nil), shape...)
		part[axis] = n
		parts[i] = kerneltest.In(s, "part", kerneltest.Words[W](ref.Size(part), 10*i))
	}
	joined := kerneltest.Out[W](s, "joined", ref.Size(whole))
	at := 0
	for i, n := range sizes {
		var c move.Copy
		c.PrepareInsert(size, whole, axis, at, n, nil, nil)
		kerneltest.Backwards(c.Tiles(), func(k int) { c.Tile(v, k, kerneltest.AsBytes(joined), kerneltest.AsBytes(parts[i])) })
		at += n
	}
	kerneltest.WantEqual(t, joined, ref.Concat(parts, shape, axis, sizes))
	at = 0
	for i, n := range sizes {
		var c move.Copy
		c.PrepareExtract(size, whole, axis, at, n, nil, nil)
		dst := kerneltest.Out[W](s, "split", len(parts[i]))
		kerneltest.Backwards(c.Tiles(), func(k int) { c.Tile(v, k, kerneltest.AsBytes(dst), kerneltest.AsBytes(joined)) })
		kerneltest.WantEqual(t, dst, parts[i])
		at += n
	}
	s.Check()
}

// transposed writes a transposed block into the middle of a larger matrix, with
// the source read backwards along one axis.
func transposed[W comparable](t *testing.T, v *kernel.Variant) {
	t.Helper()
	const rows, cols, wide = 37, 45, 60
	s := kerneltest.NewSpace(t)
	src, dst := kerneltest.In(s, "src", kerneltest.Words[W](rows*cols, 5)), kerneltest.InOut(s, "dst", make([]W, wide*wide))
	var c move.Copy
	c.Prepare(kerneltest.SizeOf[W](), []int{cols, rows}, 3*wide+2, []int{wide, 1}, (rows-1)*cols, []int{1, -cols})
	kerneltest.Backwards(c.Tiles(), func(k int) { c.Tile(v, k, kerneltest.AsBytes(dst), kerneltest.AsBytes(src)) })
	s.Check()
	want := make([]W, wide*wide)
	for r := range rows {
		for k := range cols {
			want[(3+k)*wide+2+r] = src[(rows-1-r)*cols+k]
		}
	}
	kerneltest.WantEqual(t, dst, want)
}
