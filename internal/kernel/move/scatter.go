package move

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// ScatterOp says how an update meets the element it goes to. Updates are
// applied in the order of their indices, by one worker: two of them may meet in
// one element.
type ScatterOp uint8

const (
	ScatterSet ScatterOp = iota
	ScatterAdd
	ScatterMul
	ScatterMin
	ScatterMax
	numScatter
)

var scatterNames = [numScatter]string{"none", "add", "mul", "min", "max"}

func (op ScatterOp) String() string { return scatterNames[op] }

// ScatterElementsSpec writes single elements: each update goes to its own place
// in dst but for the axis, where the index says.
type ScatterElementsSpec struct {
	nest kernel.Nest // operands updates and indices (contiguous), dst
	axis int
	step int
}

// Prepare takes the shapes of dst and of the indices; the indices may be
// smaller along the other axes. dstStride are the strides of dst, nil for one
// without gaps.
func (s *ScatterElementsSpec) Prepare(shape, indexShape []int, axis int, dstStride []int) {
	var buf [3][kernel.MaxRank]int
	strides := append(buf[2][:0], orRowMajor(dstStride, buf[0][:], shape)...)
	*s = ScatterElementsSpec{nest: s.nest, axis: shape[axis], step: strides[axis]}
	strides[axis] = 0
	s.nest.Prepare(indexShape, kernel.RowMajorIn(buf[1][:], indexShape), strides)
}

// ScatterElements applies all updates to dst, which holds the data.
func ScatterElements[I kernel.Index](s *ScatterElementsSpec, op ScatterOp, dt dtype.DType, dst []byte, indices []I, updates []byte) {
	if op == ScatterSet {
		scatterElementsSet(s, dt.Size(), dst, indices, updates)
		return
	}
	switch dt {
	case dtype.F32:
		scatterElements(s, op, kernel.View[float32](dst), indices, kernel.View[float32](updates))
	case dtype.F64:
		scatterElements(s, op, kernel.View[float64](dst), indices, kernel.View[float64](updates))
	case dtype.I8:
		scatterElements(s, op, kernel.View[int8](dst), indices, kernel.View[int8](updates))
	case dtype.I16:
		scatterElements(s, op, kernel.View[int16](dst), indices, kernel.View[int16](updates))
	case dtype.I32:
		scatterElements(s, op, kernel.View[int32](dst), indices, kernel.View[int32](updates))
	case dtype.I64:
		scatterElements(s, op, kernel.View[int64](dst), indices, kernel.View[int64](updates))
	case dtype.U8:
		scatterElements(s, op, dst, indices, updates)
	case dtype.U16:
		scatterElements(s, op, kernel.View[uint16](dst), indices, kernel.View[uint16](updates))
	case dtype.U32:
		scatterElements(s, op, kernel.View[uint32](dst), indices, kernel.View[uint32](updates))
	case dtype.U64:
		scatterElements(s, op, kernel.View[uint64](dst), indices, kernel.View[uint64](updates))
	case dtype.F16, dtype.BF16:
		d, u := kernel.View[uint16](dst), kernel.View[uint16](updates)
		eachTarget(s, indices, func(to, from int) { combineHalf(op, dt, d[to:to+1], u[from:from+1]) })
	default:
		kernel.Bug("scatter: %s of %s", op, dt)
	}
}

func scatterElementsSet[I kernel.Index](s *ScatterElementsSpec, elemBytes int, dst []byte, indices []I, updates []byte) {
	switch elemBytes {
	case 1:
		scatterWords(s, dst, indices, updates)
	case 2:
		scatterWords(s, kernel.View[uint16](dst), indices, kernel.View[uint16](updates))
	case 4:
		scatterWords(s, kernel.View[uint32](dst), indices, kernel.View[uint32](updates))
	case 8:
		scatterWords(s, kernel.View[uint64](dst), indices, kernel.View[uint64](updates))
	case 16:
		scatterWords(s, kernel.View[kernel.Word16](dst), indices, kernel.View[kernel.Word16](updates))
	default:
		kernel.BadElem("scatter_elements", elemBytes)
	}
}

// eachTarget calls f with the place in dst and the number of each update, in
// order.
func eachTarget[I kernel.Index](s *ScatterElementsSpec, indices []I, f func(to, from int)) {
	c := s.nest.Cursor(0, s.nest.Elements())
	for c.Next() {
		from, at := c.Off[0], c.Off[1]
		for range c.N {
			f(at+wrap(indices[from], s.axis)*s.step, from)
			from, at = from+c.Step[0], at+c.Step[1]
		}
	}
}

func scatterWords[W kernel.Word, I kernel.Index](s *ScatterElementsSpec, dst []W, indices []I, updates []W) {
	eachTarget(s, indices, func(to, from int) { dst[to] = updates[from] })
}

func scatterElements[T kernel.Number, I kernel.Index](s *ScatterElementsSpec, op ScatterOp, dst []T, indices []I, updates []T) {
	eachTarget(s, indices, func(to, from int) { combine(op, dst[to:to+1], updates[from:from+1]) })
}

func combine[T kernel.Number](op ScatterOp, dst, updates []T) {
	switch op {
	case ScatterAdd:
		for i, u := range updates {
			dst[i] += u
		}
	case ScatterMul:
		for i, u := range updates {
			dst[i] *= u
		}
	case ScatterMin:
		for i, u := range updates {
			dst[i] = min(dst[i], u)
		}
	case ScatterMax:
		for i, u := range updates {
			dst[i] = max(dst[i], u)
		}
	default:
		kernel.Bug("scatter op %d", op)
	}
}

// combineHalf rounds after every update, so its result does not depend on which
// updates arrive in one call.
func combineHalf(op ScatterOp, dt dtype.DType, dst, updates []uint16) {
	var d, u [1]float32
	for i := range updates {
		elementwise.Widen(kernel.Portable, dt, d[:], dst, i, 1)
		elementwise.Widen(kernel.Portable, dt, u[:], updates, i, 1)
		combine(op, d[:], u[:])
		elementwise.Narrow(kernel.Portable, dt, dst, i, 1, d[:])
	}
}

// ScatterND applies all updates, one slice per tuple of indices, to dst, which
// holds the data. The spec has no batch dimensions.
func ScatterND[I kernel.Index](s *TuplesSpec, op ScatterOp, dt dtype.DType, dst []byte, indices []I, updates []byte) {
	if op == ScatterSet {
		n := s.slice * dt.Size()
		for i := range s.tuples {
			at := place(s, i, indices) * dt.Size()
			copy(dst[at:at+n], updates[i*n:])
		}
		return
	}
	switch dt {
	case dtype.F32:
		scatterND(s, op, kernel.View[float32](dst), indices, kernel.View[float32](updates))
	case dtype.F64:
		scatterND(s, op, kernel.View[float64](dst), indices, kernel.View[float64](updates))
	case dtype.I8:
		scatterND(s, op, kernel.View[int8](dst), indices, kernel.View[int8](updates))
	case dtype.I16:
		scatterND(s, op, kernel.View[int16](dst), indices, kernel.View[int16](updates))
	case dtype.I32:
		scatterND(s, op, kernel.View[int32](dst), indices, kernel.View[int32](updates))
	case dtype.I64:
		scatterND(s, op, kernel.View[int64](dst), indices, kernel.View[int64](updates))
	case dtype.U8:
		scatterND(s, op, dst, indices, updates)
	case dtype.U16:
		scatterND(s, op, kernel.View[uint16](dst), indices, kernel.View[uint16](updates))
	case dtype.U32:
		scatterND(s, op, kernel.View[uint32](dst), indices, kernel.View[uint32](updates))
	case dtype.U64:
		scatterND(s, op, kernel.View[uint64](dst), indices, kernel.View[uint64](updates))
	case dtype.F16, dtype.BF16:
		d, u := kernel.View[uint16](dst), kernel.View[uint16](updates)
		for i := range s.tuples {
			combineHalf(op, dt, d[place(s, i, indices):], u[i*s.slice:(i+1)*s.slice])
		}
	default:
		kernel.Bug("scatter: %s of %s", op, dt)
	}
}

func scatterND[T kernel.Number, I kernel.Index](s *TuplesSpec, op ScatterOp, dst []T, indices []I, updates []T) {
	for i := range s.tuples {
		combine(op, dst[place(s, i, indices):], updates[i*s.slice:(i+1)*s.slice])
	}
}
