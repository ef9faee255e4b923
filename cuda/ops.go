package cuda

import (
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/tensor"
)

var (
	opCopy  = tensor.NewOperation("copy").OnDevices()
	opClear = tensor.NewOperation("clear").OnDevices()
)

// Copy returns a tensor with the elements of x in bytes of its own, row-major,
// on the stream's device.
func (s *Stream) Copy(x tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opCopy, x); err != nil {
		return nil, err
	}
	defer o.taken.Rollback()
	t := o.taken.Tensor(0)
	y, err := s.Make(t.DType(), t.Shape())
	if err != nil {
		return nil, err
	}
	if err := s.copyInto(y, &o); err != nil {
		_ = y.Release()
		return nil, err
	}
	o.taken.Commit()
	return y, nil
}

// copyInto copies operand 0 into a tensor that nothing else knows.
func (s *Stream) copyInto(y *tensor.Tensor, o *operands) error {
	buf, at, err := y.Hold()
	if err != nil {
		return err
	}
	defer buf.Release()
	r, from := o.taken.Remote(0)
	return s.copy(blockOf(buf.Remote()), at, blockOf(r), from, y.NumBytes())
}

// Clear sets every element to 0: in x's bytes if x is given up and exclusive,
// otherwise in fresh ones.
func (s *Stream) Clear(x tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opClear, x); err != nil {
		return nil, err
	}
	defer o.taken.Rollback()
	t := o.taken.Tensor(0)
	if !o.taken.InPlace(0) || !t.Layout().IsContiguous() {
		y, err := s.Zeros(t.DType(), t.Shape())
		if err == nil {
			o.taken.Commit()
		}
		return y, err
	}
	y, err := o.taken.Keep(0, t.DType(), t.Layout())
	if err != nil {
		return nil, err
	}
	o.uses[0].write = true
	if err := s.submit("clear", o.uses, func() error {
		return s.d.drv.MemsetD8Async(s.d.ctx, driver.Pointer(o.at(0)), 0, uint64(t.NumBytes()), s.handle)
	}); err != nil {
		return nil, err
	}
	o.taken.Commit()
	return y, nil
}
