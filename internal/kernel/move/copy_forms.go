package move

import "github.com/tenure-go/tenure/internal/kernel"

// In the forms of a copy, dstStride and srcStride are the strides of the whole
// tensors of both sides, in elements and in the order of their axes; nil is
// row-major order without gaps.

// PrepareTranspose makes axis i of dst axis perm[i] of src, which has the given
// shape.
func (c *Copy) PrepareTranspose(elemBytes int, shape, perm, dstStride, srcStride []int) {
	var buf [4][kernel.MaxRank]int
	strides := orRowMajor(srcStride, buf[0][:], shape)
	size, src := buf[1][:0], buf[2][:0]
	for _, p := range perm {
		size, src = append(size, shape[p]), append(src, strides[p])
	}
	c.Prepare(elemBytes, size, 0, orRowMajor(dstStride, buf[3][:], size), 0, src)
}

// PrepareSlice takes count[i] elements of axis i from start[i] on, step[i] (not
// 0, of either sign) apart.
func (c *Copy) PrepareSlice(elemBytes int, shape, start, step, count, dstStride, srcStride []int) {
	var buf [3][kernel.MaxRank]int
	src := append(buf[2][:0], orRowMajor(srcStride, buf[0][:], shape)...)
	offset := 0
	for i, s := range src {
		offset += start[i] * s
		src[i] = step[i] * s
	}
	c.Prepare(elemBytes, count, 0, orRowMajor(dstStride, buf[1][:], count), offset, src)
}

// PrepareExpand repeats src, whose shape is aligned with the end of to, along
// the axes where its size is 1 and along those it lacks.
func (c *Copy) PrepareExpand(elemBytes int, shape, to, dstStride, srcStride []int) {
	var buf [3][kernel.MaxRank]int
	strides := orRowMajor(srcStride, buf[0][:], shape)
	src := append(buf[1][:0], to...)
	clear(src)
	lead := len(to) - len(shape)
	for i, n := range shape {
		if n != 1 {
			src[lead+i] = strides[i]
		}
	}
	c.Prepare(elemBytes, to, 0, orRowMajor(dstStride, buf[2][:], to), 0, src)
}

// PrepareTile lays repeats[i] copies of src side by side along axis i.
func (c *Copy) PrepareTile(elemBytes int, shape, repeats, dstStride, srcStride []int) {
	var buf [5][kernel.MaxRank]int
	strides := orRowMajor(srcStride, buf[0][:], shape)
	size, src, dst := buf[1][:0], buf[2][:0], buf[3][:0]
	for i, n := range shape {
		size = append(size, repeats[i], n)
		src = append(src, 0, strides[i])
		if dstStride != nil {
			dst = append(dst, n*dstStride[i], dstStride[i])
		}
	}
	if dstStride == nil {
		dst = kernel.RowMajorIn(buf[4][:], size)
	}
	c.Prepare(elemBytes, size, 0, dst, 0, src)
}

// PrepareInsert writes src as positions [start, start+count) of one axis of
// dst, which has the given shape: a piece of a concatenation.
func (c *Copy) PrepareInsert(elemBytes int, shape []int, axis, start, count int, dstStride, srcStride []int) {
	var buf [3][kernel.MaxRank]int
	size := pieceOf(buf[0][:0], shape, axis, count)
	strides := orRowMajor(dstStride, buf[1][:], shape)
	c.Prepare(elemBytes, size, start*strides[axis], strides, 0, orRowMajor(srcStride, buf[2][:], size))
}

// PrepareExtract reads positions [start, start+count) of one axis of src, which
// has the given shape, into dst: a piece of a split.
func (c *Copy) PrepareExtract(elemBytes int, shape []int, axis, start, count int, dstStride, srcStride []int) {
	var buf [3][kernel.MaxRank]int
	size := pieceOf(buf[0][:0], shape, axis, count)
	strides := orRowMajor(srcStride, buf[1][:], shape)
	c.Prepare(elemBytes, size, 0, orRowMajor(dstStride, buf[2][:], size), start*strides[axis], strides)
}

// pieceOf appends the sizes of a piece to none.
func pieceOf(none, shape []int, axis, count int) []int {
	size := append(none, shape...)
	size[axis] = count
	return size
}

// orRowMajor returns strides, or those of row-major order in the memory of buf
// if there are none.
func orRowMajor(strides, buf, shape []int) []int {
	if strides != nil {
		return strides
	}
	return kernel.RowMajorIn(buf, shape)
}
