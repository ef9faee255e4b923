package eager

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// isAligned reports whether kernels can address the elements.
func isAligned(data []byte, dt dtype.DType) bool {
	size := dt.Size()
	return size <= 1 || uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(min(size, 8)) == 0
}

// makeContiguous makes operand i, whose layout kernels cannot read, row-major:
// by reading its elements in the order in which they lie, where the operation
// does not mind and may overwrite them, and otherwise by a copy.
func (r *runner) makeContiguous(i int) error {
	at := r.claims[i]
	t := r.taken.Tensor(at)
	l := t.Layout()
	if r.call.op.flat && r.taken.InPlace(at) && isAligned(r.data[i], t.DType()) && isDense(l) {
		s, err := shape.Of(l.Shape().NumElements())
		if err != nil {
			return err
		}
		r.args[i].Shape, r.flat = s, l
		return nil
	}
	copied, err := tensor.MakeOnHost(r.from, t.DType(), l.Shape())
	if err != nil {
		return fmt.Errorf("%s: row-major copy of operand %d: %w", r.call.op.def.Name, i, err)
	}
	r.contiguous[i] = copied
	src, first := r.taken.Bytes(at)
	r.data[i], _ = copied.UnsafeBytes()
	if err := r.gather(i, src, first); err != nil {
		return err
	}
	r.stats.CopiedBytes += int64(copied.NumBytes())
	return nil
}

// gather copies operand i, whose bytes are src, into its row-major copy.
func (r *runner) gather(i int, src []byte, first int) error {
	t := r.taken.Tensor(r.claims[i])
	size := t.DType().Size()
	switch size {
	case 1, 2, 4, 8, 16:
		if !isAligned(src, t.DType()) {
			break
		}
		if task := compute.MakeContiguous(size, t.Shape().Sizes(), t.Layout().Strides(), first/size, r.data[i], src); task != nil {
			return pool().Run(nil, task, nil)
		}
	}
	r.taken.Gather(r.claims[i], r.data[i])
	return nil
}

// isDense reports whether the elements lie one after the other, in any order.
func isDense(l *shape.Layout) bool {
	low, high := l.Span()
	return !l.Overlaps() && high-low+1 == l.Shape().NumElements()
}

func (r *runner) dropGathered() {
	for i, t := range r.contiguous {
		if t != nil {
			_ = t.Release() // no other code knows it
			r.contiguous[i] = nil
		}
	}
}
