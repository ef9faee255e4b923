package kerneltest

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func testCopy(t *testing.T, v *kernel.Variant) {
	t.Run("1", with(v, copies[uint8]))
	t.Run("2", with(v, copies[uint16]))
	t.Run("4", with(v, copies[uint32]))
	t.Run("8", with(v, copies[uint64]))
	t.Run("16", with(v, copies[[2]uint64]))
	t.Run("permute 1", with(v, permutations[uint8]))
	t.Run("permute 4", with(v, permutations[uint32]))
	t.Run("permute 16", with(v, permutations[[2]uint64]))
}

// backwards runs tiles from the last to the first: their order must not matter.
func backwards(tiles int, f func(t int)) {
	for t := tiles - 1; t >= 0; t-- {
		f(t)
	}
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

func permutations[W comparable](t *testing.T, v *kernel.Variant) {
	for _, c := range []struct{ shape, perm []int }{
		{[]int{1, 128, 12, 64}, []int{0, 2, 1, 3}}, {[]int{1, 128, 12, 64}, []int{0, 2, 3, 1}}, {[]int{3, 2, 5, 2000}, []int{2, 0, 1, 3}},
		{[]int{7, 5, 3, 2}, []int{2, 3, 1, 0}}, {[]int{4, 1, 6, 3}, []int{3, 0, 2, 1}},
	} {
		x := words[W](ref.Size(c.shape), 1)
		permuteInPlace(t, v, c.shape, c.perm, x, ref.Transpose(x, c.shape, c.perm))
	}
}

// permuteInPlace puts x in another order in its own bytes, where that takes little scratch.
func permuteInPlace[W comparable](t *testing.T, v *kernel.Variant, shape, perm []int, x, want []W) {
	t.Helper()
	var p move.Permute
	if !p.Prepare(sizeOf[W](), shape, perm) {
		return
	}
	s := newSpace(t)
	data, scratch := out[W](s, "data", len(x)), out[W](s, "scratch", p.ScratchBytes()/sizeOf[W]()+1)
	copy(data, x)
	p.Run(v, asBytes(data), asBytes(scratch))
	s.check()
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
		s := newSpace(t)
		src, dst := in(s, "src", x), out[W](s, "dst", len(want))
		backwards(c.Tiles(), func(i int) { c.Tile(v, i, asBytes(dst), asBytes(src)) })
		s.check()
		for i := range want {
			if dst[i] != want[i] {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, dst[i], want[i])
			}
		}
	}
	size := sizeOf[W]()
	for _, c := range []struct{ shape, perm []int }{
		{[]int{}, []int{}}, {[]int{5}, []int{0}}, {[]int{2, 3}, []int{1, 0}}, {[]int{40, 70}, []int{1, 0}}, {[]int{3, 1100}, []int{1, 0}},
		{[]int{2, 3, 4, 5}, []int{0, 2, 1, 3}}, {[]int{2, 3, 4, 5}, []int{3, 1, 0, 2}}, {[]int{2, 35, 6, 33}, []int{0, 3, 2, 1}},
		{[]int{2, 3, 50, 20}, []int{0, 2, 3, 1}}, {[]int{2, 0, 3}, []int{2, 0, 1}}, {[]int{1, 9, 1, 7}, []int{3, 2, 1, 0}},
		{[]int{2, 2, 2, 2, 2, 2}, []int{5, 3, 1, 4, 2, 0}},
		{[]int{2, 300, 3}, []int{0, 2, 1}}, {[]int{2, 3, 300}, []int{0, 2, 1}}, {[]int{2, 130, 4}, []int{0, 2, 1}}, {[]int{2, 2, 130}, []int{0, 2, 1}},
	} {
		x := words[W](ref.Size(c.shape), 1)
		want := ref.Transpose(x, c.shape, c.perm)
		run(fmt.Sprint("transpose ", c), func(k *move.Copy) { k.PrepareTranspose(size, c.shape, c.perm) }, x, want)
		permuteInPlace(t, v, c.shape, c.perm, x, want)
	}
	for rows := 1; rows <= 40; rows++ {
		for cols := 1; cols <= 40; cols++ {
			if size > 4 && rows%8 != 0 && cols%8 != 1 {
				continue // vectors are for smaller elements
			}
			shape, perm := []int{rows, cols}, []int{1, 0}
			x := words[W](rows*cols, 7)
			want := ref.Transpose(x, shape, perm)
			run(fmt.Sprint("transpose ", shape), func(k *move.Copy) { k.PrepareTranspose(size, shape, perm) }, x, want)
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
		x := words[W](ref.Size(c.shape), 3)
		run(fmt.Sprint("expand ", c), func(k *move.Copy) { k.PrepareExpand(size, c.shape, c.to) }, x, ref.Expand(x, c.shape, c.to))
	}
	for _, c := range []struct{ shape, repeats []int }{
		{[]int{4}, []int{3}}, {[]int{2, 3}, []int{2, 2}}, {[]int{2, 1, 3}, []int{1, 5, 2}}, {[]int{2, 3}, []int{0, 1}},
	} {
		x := words[W](ref.Size(c.shape), 4)
		run(fmt.Sprint("tile ", c), func(k *move.Copy) { k.PrepareTile(size, c.shape, c.repeats) }, x, ref.Tile(x, c.shape, c.repeats))
	}
	for axis := range 3 {
		concatSplit[W](t, v, axis)
	}
	transposed[W](t, v)
}

// sliced takes parts of tensors, forwards and backwards.
func sliced[W comparable](t *testing.T, run func(name string, prepare func(c *move.Copy), x, want []W)) {
	t.Helper()
	size := sizeOf[W]()
	for _, c := range []struct{ shape, start, step, count []int }{
		{[]int{10}, []int{2}, []int{3}, []int{3}}, {[]int{10}, []int{9}, []int{-1}, []int{10}}, {[]int{10}, []int{8}, []int{-4}, []int{3}},
		{[]int{4, 5, 6}, []int{1, 0, 2}, []int{1, 1, 1}, []int{2, 5, 3}}, {[]int{4, 5, 6}, []int{3, 4, 0}, []int{-2, -1, 2}, []int{2, 5, 3}},
		{[]int{4, 5}, []int{0, 0}, []int{1, 1}, []int{4, 5}}, {[]int{4, 5}, []int{1, 1}, []int{1, 1}, []int{0, 2}},
		{[]int{5, 40, 40}, []int{4, 39, 0}, []int{-1, -1, 1}, []int{5, 40, 40}},
		{[]int{40_007}, []int{40_006}, []int{-1}, []int{40_007}}, {[]int{40_007}, []int{0}, []int{2}, []int{20_004}},
	} {
		x := words[W](ref.Size(c.shape), 2)
		run(fmt.Sprint("slice ", c), func(k *move.Copy) { k.PrepareSlice(size, c.shape, c.start, c.step, c.count) }, x,
			ref.Slice(x, c.shape, c.start, c.step, c.count))
	}
	for n := 1; n <= 140; n++ {
		shape := []int{2*n - 1}
		x := words[W](2*n-1, 5)
		for by, start := range map[int]int{-1: n - 1, 2: 0} {
			run(fmt.Sprintf("every %d of %d", by, n), func(k *move.Copy) { k.PrepareSlice(size, shape, []int{start}, []int{by}, []int{n}) }, x,
				ref.Slice(x, shape, []int{start}, []int{by}, []int{n}))
		}
	}
}

// concatSplit joins three parts and takes them apart again.
func concatSplit[W comparable](t *testing.T, v *kernel.Variant, axis int) {
	t.Helper()
	size, shape, sizes := sizeOf[W](), []int{3, 4, 5}, []int{2, 0, 7}
	parts := make([][]W, len(sizes))
	s := newSpace(t)
	whole := append([]int(nil), shape...)
	whole[axis] = 9
	for i, n := range sizes {
		part := append([]int(nil), shape...)
		part[axis] = n
		parts[i] = in(s, "part", words[W](ref.Size(part), 10*i))
	}
	joined := out[W](s, "joined", ref.Size(whole))
	at := 0
	for i, n := range sizes {
		var c move.Copy
		c.PrepareInsert(size, whole, axis, at, n)
		backwards(c.Tiles(), func(k int) { c.Tile(v, k, asBytes(joined), asBytes(parts[i])) })
		at += n
	}
	wantEqual(t, joined, ref.Concat(parts, shape, axis, sizes))
	at = 0
	for i, n := range sizes {
		var c move.Copy
		c.PrepareExtract(size, whole, axis, at, n)
		dst := out[W](s, "split", len(parts[i]))
		backwards(c.Tiles(), func(k int) { c.Tile(v, k, asBytes(dst), asBytes(joined)) })
		wantEqual(t, dst, parts[i])
		at += n
	}
	s.check()
}

// transposed writes a transposed block into the middle of a larger matrix, with the source read backwards along one axis.
func transposed[W comparable](t *testing.T, v *kernel.Variant) {
	t.Helper()
	const rows, cols, wide = 37, 45, 60
	s := newSpace(t)
	src, dst := in(s, "src", words[W](rows*cols, 5)), inout(s, "dst", make([]W, wide*wide))
	var c move.Copy
	c.Prepare(sizeOf[W](), []int{cols, rows}, 3*wide+2, []int{wide, 1}, (rows-1)*cols, []int{1, -cols})
	backwards(c.Tiles(), func(k int) { c.Tile(v, k, asBytes(dst), asBytes(src)) })
	s.check()
	want := make([]W, wide*wide)
	for r := range rows {
		for k := range cols {
			want[(3+k)*wide+2+r] = src[(rows-1-r)*cols+k]
		}
	}
	wantEqual(t, dst, want)
}
