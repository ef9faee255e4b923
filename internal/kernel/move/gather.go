package move

import "github.com/tenure-go/tenure/internal/kernel"

// OutOfRange returns the position of the first index that is outside [-n, n),
// or -1. Gather and scatter kernels take checked indices.
func OutOfRange[I kernel.Index](indices []I, n int) int {
	for i, x := range indices {
		if uint(int(x)+n) >= 2*uint(n) {
			return i
		}
	}
	return -1
}

// OutOfRangeND is OutOfRange for tuples of one index per axis.
func OutOfRangeND[I kernel.Index](indices []I, dims []int) int {
	for at := 0; at < len(indices); at += len(dims) {
		for k, n := range dims {
			if x := int(indices[at+k]); x < -n || x >= n {
				return at + k
			}
		}
	}
	return -1
}

func wrap[I kernel.Index](i I, n int) int {
	return int(i) + n&(int(i)>>63)
}

// GatherSpec is a lookup along one axis: dst[o, i, :] = src[o, indices[i], :].
type GatherSpec struct {
	Outer int // product of the axes before the gathered one
	Axis  int // its size
	Count int // number of indices
	Inner int // product of the axes after it, in bytes

	// The bytes from one index of the gathered axis to the next, and from one
	// outer index to the next; 0 where they follow each other.
	SrcRow, SrcOuter, DstRow, DstOuter int

	rows int // of dst, per tile
	even bool
}

// Prepare fills the rest.
func (s *GatherSpec) Prepare() {
	s.rows = max(1, 4*kernel.RangeElements/max(1, s.Inner))
	s.even = true
	for _, d := range []struct {
		bytes *int
		own   int
	}{{&s.SrcRow, s.Inner}, {&s.SrcOuter, s.Axis * s.Inner}, {&s.DstRow, s.Inner}, {&s.DstOuter, s.Count * s.Inner}} {
		if *d.bytes == 0 {
			*d.bytes = d.own
		}
		s.even = s.even && *d.bytes == d.own
	}
}

// Tiles returns the number of tiles.
func (s *GatherSpec) Tiles() int {
	if s.Inner == 0 {
		return 0
	}
	return kernel.CeilDiv(s.Outer*s.Count, s.rows)
}

// Gather computes part t.
func Gather[I kernel.Index](s *GatherSpec, t int, dst, src []byte, indices []I) {
	lo, hi := t*s.rows, min((t+1)*s.rows, s.Outer*s.Count)
	if s.Inner == 4 && s.even && kernel.IsAligned[uint32](dst) && kernel.IsAligned[uint32](src) { // slices of four bytes may lie anywhere
		gatherWords(s, lo, hi, kernel.View[uint32](dst), kernel.View[uint32](src), indices)
		return
	}
	for r := lo; r < hi; {
		outer, first := r/s.Count, r%s.Count
		n := min(s.Count-first, hi-r)
		from, to := outer*s.SrcOuter, outer*s.DstOuter+first*s.DstRow
		for _, x := range indices[first : first+n] {
			copy(dst[to:to+s.Inner], src[from+wrap(x, s.Axis)*s.SrcRow:])
			to += s.DstRow
		}
		r += n
	}
}

// gatherWords is the case where a call of copy per row would be most of the
// work.
func gatherWords[W kernel.Word, I kernel.Index](s *GatherSpec, lo, hi int, dst, src []W, indices []I) {
	for r := lo; r < hi; {
		outer, first := r/s.Count, r%s.Count
		n := min(s.Count-first, hi-r)
		from := src[outer*s.Axis:][:s.Axis]
		d := dst[r : r+n]
		for i, x := range indices[first : first+n] {
			d[i] = from[wrap(x, s.Axis)]
		}
		r += n
	}
}

// GatherElementsSpec is a lookup of single elements: dst has the shape of the
// indices, and each element comes from its own place in src but for the axis,
// where the index says.
type GatherElementsSpec struct {
	elem int
	nest kernel.Nest // operands dst and indices (contiguous), src
	axis int
	step int
}

// Prepare takes the shapes of src and of the indices; the indices may be
// smaller along the other axes. srcStride are the strides of src, nil for one
// without gaps.
func (s *GatherElementsSpec) Prepare(elemBytes int, shape, indexShape []int, axis int, srcStride []int) {
	var buf [3][kernel.MaxRank]int
	strides := append(buf[2][:0], orRowMajor(srcStride, buf[0][:], shape)...)
	*s = GatherElementsSpec{elem: elemBytes, nest: s.nest, axis: shape[axis], step: strides[axis]}
	strides[axis] = 0
	s.nest.Prepare(indexShape, kernel.RowMajorIn(buf[1][:], indexShape), strides)
}

// Tiles returns the number of tiles.
func (s *GatherElementsSpec) Tiles() int { return s.nest.Tiles() }

// GatherElements computes part t.
func GatherElements[I kernel.Index](s *GatherElementsSpec, t int, dst, src []byte, indices []I) {
	switch s.elem {
	case 1:
		gatherElements(s, t, dst, src, indices)
	case 2:
		gatherElements(s, t, kernel.View[uint16](dst), kernel.View[uint16](src), indices)
	case 4:
		gatherElements(s, t, kernel.View[uint32](dst), kernel.View[uint32](src), indices)
	case 8:
		gatherElements(s, t, kernel.View[uint64](dst), kernel.View[uint64](src), indices)
	case 16:
		gatherElements(s, t, kernel.View[kernel.Word16](dst), kernel.View[kernel.Word16](src), indices)
	default:
		kernel.BadElem("gather_elements", s.elem)
	}
}

func gatherElements[W kernel.Word, I kernel.Index](s *GatherElementsSpec, t int, dst, src []W, indices []I) {
	lo, hi := s.nest.Range(t)
	c := s.nest.Cursor(lo, hi)
	for c.Next() {
		d, at := c.Off[0], c.Off[1]
		for range c.N {
			dst[d] = src[at+wrap(indices[d], s.axis)*s.step]
			d, at = d+c.Step[0], at+c.Step[1]
		}
	}
}

// TuplesSpec addresses slices of a tensor by tuples of indices into its leading
// axes: what GatherND and ScatterND share. The first batchDims axes of tensor
// and indices are walked together.
type TuplesSpec struct {
	perBatch    int   // tuples of one batch
	tuples      int   // of all batches
	dims        []int // sizes of the indexed axes
	strides     []int // their strides
	batchStride int   // from one batch to the next
	slice       int   // elements
}

// Prepare takes the shape of the tensor and of the indices, whose last axis is
// the tuple, and the strides of the tensor, nil for one without gaps. There are
// none in slices, nor between the first batchDims axes.
func (s *TuplesSpec) Prepare(shape, indexShape []int, batchDims int, stride []int) {
	var buf [kernel.MaxRank]int
	stride = orRowMajor(stride, buf[:], shape)
	last := len(indexShape) - 1
	k := indexShape[last]
	s.dims = append(s.dims[:0], shape[batchDims:batchDims+k]...)
	s.strides = append(s.strides[:0], stride[batchDims:batchDims+k]...)
	s.batchStride = 0
	for i, n := range shape[:batchDims] {
		if n != 1 {
			s.batchStride = stride[i]
		}
	}
	s.slice = kernel.Product(shape[batchDims+k:])
	s.perBatch = kernel.Product(indexShape[batchDims:last])
	s.tuples = s.perBatch * kernel.Product(indexShape[:batchDims])
}

// place is where the slice begins that tuple i means.
func place[I kernel.Index](s *TuplesSpec, i int, indices []I) int {
	at := i / s.perBatch * s.batchStride
	k := len(s.dims)
	for j, x := range indices[i*k : (i+1)*k] {
		at += wrap(x, s.dims[j]) * s.strides[j]
	}
	return at
}

func (s *TuplesSpec) perTile() int { return max(1, kernel.RangeElements/max(1, s.slice)) }

// Tiles returns the number of tiles.
func (s *TuplesSpec) Tiles() int { return kernel.CeilDiv(s.tuples, s.perTile()) }

// GatherND computes part t of dst[i] = src[tuple i].
func GatherND[I kernel.Index](s *TuplesSpec, t, elemBytes int, dst, src []byte, indices []I) {
	n := s.slice * elemBytes
	for i := t * s.perTile(); i < min((t+1)*s.perTile(), s.tuples); i++ {
		at := place(s, i, indices)
		copy(dst[i*n:(i+1)*n], src[at*elemBytes:])
	}
}
