package move

import "github.com/tenure-go/tenure/internal/kernel"

// PrepareTranspose makes axis i of dst axis perm[i] of src, which has the given
// shape. Both are contiguous.
func (c *Copy) PrepareTranspose(elemBytes int, shape, perm []int) {
	var buf [4][kernel.MaxRank]int
	strides := kernel.RowMajorIn(buf[0][:], shape)
	size, src := buf[1][:0], buf[2][:0]
	for _, p := range perm {
		size, src = append(size, shape[p]), append(src, strides[p])
	}
	c.Prepare(elemBytes, size, 0, kernel.RowMajorIn(buf[3][:], size), 0, src)
}

// PrepareSlice takes count[i] elements of axis i from start[i] on, step[i] (not
// 0, of either sign) apart. Both sides are contiguous.
func (c *Copy) PrepareSlice(elemBytes int, shape, start, step, count []int) {
	var buf [2][kernel.MaxRank]int
	src := kernel.RowMajorIn(buf[0][:], shape)
	offset := 0
	for i, s := range src {
		offset += start[i] * s
		src[i] = step[i] * s
	}
	c.Prepare(elemBytes, count, 0, kernel.RowMajorIn(buf[1][:], count), offset, src)
}

// PrepareExpand repeats src, whose shape is aligned with the end of to, along
// the axes where its size is 1 and along those it lacks.
func (c *Copy) PrepareExpand(elemBytes int, shape, to []int) {
	var buf [3][kernel.MaxRank]int
	strides := kernel.RowMajorIn(buf[0][:], shape)
	src := append(buf[1][:0], to...)
	clear(src)
	lead := len(to) - len(shape)
	for i, n := range shape {
		if n != 1 {
			src[lead+i] = strides[i]
		}
	}
	c.Prepare(elemBytes, to, 0, kernel.RowMajorIn(buf[2][:], to), 0, src)
}

// PrepareTile lays repeats[i] copies of src side by side along axis i.
func (c *Copy) PrepareTile(elemBytes int, shape, repeats []int) {
	var buf [4][kernel.MaxRank]int
	strides := kernel.RowMajorIn(buf[0][:], shape)
	size, src := buf[1][:0], buf[2][:0]
	for i, n := range shape {
		size = append(size, repeats[i], n)
		src = append(src, 0, strides[i])
	}
	c.Prepare(elemBytes, size, 0, kernel.RowMajorIn(buf[3][:], size), 0, src)
}

// PrepareInsert writes a contiguous src as positions [start, start+count) of
// one axis of dst, which has the given shape: a piece of a concatenation.
func (c *Copy) PrepareInsert(elemBytes int, shape []int, axis, start, count int) {
	var buf [3][kernel.MaxRank]int
	size, strides := pieceOf(&buf, shape, axis, count)
	c.Prepare(elemBytes, size, start*strides[axis], strides, 0, kernel.RowMajorIn(buf[2][:], size))
}

// PrepareExtract reads positions [start, start+count) of one axis of src, which
// has the given shape, into a contiguous dst: a piece of a split.
func (c *Copy) PrepareExtract(elemBytes int, shape []int, axis, start, count int) {
	var buf [3][kernel.MaxRank]int
	size, strides := pieceOf(&buf, shape, axis, count)
	c.Prepare(elemBytes, size, 0, kernel.RowMajorIn(buf[2][:], size), start*strides[axis], strides)
}

// pieceOf returns the sizes of a piece and the strides of the whole, in the
// first two of buf where they suffice.
func pieceOf(buf *[3][kernel.MaxRank]int, shape []int, axis, count int) (size, strides []int) {
	size = append(buf[0][:0], shape...)
	size[axis] = count
	return size, kernel.RowMajorIn(buf[1][:], shape)
}
