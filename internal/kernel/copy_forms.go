package kernel

// rowMajor gives the strides of a contiguous tensor.
func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// PrepareTranspose makes axis i of dst axis perm[i] of src, which has the given shape. Both are contiguous.
func (c *Copy) PrepareTranspose(elemBytes int, shape, perm []int) {
	strides := rowMajor(shape)
	size, src := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		size[i], src[i] = shape[p], strides[p]
	}
	c.Prepare(elemBytes, size, 0, rowMajor(size), 0, src)
}

// PrepareSlice takes count[i] elements of axis i from start[i] on, step[i] (not 0, of either sign) apart. Both sides are contiguous.
func (c *Copy) PrepareSlice(elemBytes int, shape, start, step, count []int) {
	strides := rowMajor(shape)
	offset := 0
	src := make([]int, len(shape))
	for i, s := range strides {
		offset += start[i] * s
		src[i] = step[i] * s
	}
	c.Prepare(elemBytes, count, 0, rowMajor(count), offset, src)
}

// PrepareExpand repeats src, whose shape is aligned with the end of to, along the axes where its size is 1 and along those it lacks.
func (c *Copy) PrepareExpand(elemBytes int, shape, to []int) {
	strides := rowMajor(shape)
	src := make([]int, len(to))
	lead := len(to) - len(shape)
	for i, n := range shape {
		if n != 1 {
			src[lead+i] = strides[i]
		}
	}
	c.Prepare(elemBytes, to, 0, rowMajor(to), 0, src)
}

// PrepareTile lays repeats[i] copies of src side by side along axis i.
func (c *Copy) PrepareTile(elemBytes int, shape, repeats []int) {
	strides := rowMajor(shape)
	size, src := make([]int, 0, 2*len(shape)), make([]int, 0, 2*len(shape))
	for i, n := range shape {
		size = append(size, repeats[i], n)
		src = append(src, 0, strides[i])
	}
	c.Prepare(elemBytes, size, 0, rowMajor(size), 0, src)
}

// PrepareInsert writes a contiguous src as positions [start, start+count) of one axis of dst, which has the given shape: a piece of a
// concatenation.
func (c *Copy) PrepareInsert(elemBytes int, shape []int, axis, start, count int) {
	size, strides := pieceOf(shape, axis, count)
	c.Prepare(elemBytes, size, start*strides[axis], strides, 0, rowMajor(size))
}

// PrepareExtract reads positions [start, start+count) of one axis of src, which has the given shape, into a contiguous dst: a piece of a
// split.
func (c *Copy) PrepareExtract(elemBytes int, shape []int, axis, start, count int) {
	size, strides := pieceOf(shape, axis, count)
	c.Prepare(elemBytes, size, 0, rowMajor(size), start*strides[axis], strides)
}

func pieceOf(shape []int, axis, count int) (size, strides []int) {
	size = append([]int(nil), shape...)
	size[axis] = count
	return size, rowMajor(shape)
}
