package cuda

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// The operations of this package. A result is computed into the bytes of an
// operand that was given up where these are exclusive and fit, as in package
// eager; a strict donation that cannot be used is an error.
var (
	opCopy    = tensor.NewOperation("copy").OnDevices()
	opFill    = tensor.NewOperation("fill").OnDevices()
	opConvert = tensor.NewOperation("convert").OnDevices()
	opAdd     = tensor.NewOperation("add", "x", "y").OnDevices()
	opSum     = tensor.NewOperation("sum").OnDevices()
)

// Copy returns a tensor with the elements of x in bytes of its own, row-major,
// on the stream's device: x's own bytes if it is given up, exclusive and
// row-major.
func (s *Stream) Copy(x tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opCopy, x); err != nil {
		return nil, err
	}
	t := o.taken.Tensor(0)
	var candidates []int
	if t.Layout().IsContiguous() {
		candidates = []int{0}
	}
	r, err := o.place(s, t.DType(), t.Shape(), candidates...)
	if err == nil && r.kept < 0 && t.NumElements() > 0 {
		err = o.copyTo(s, r, t)
	}
	return o.finish(r, err)
}

// copyTo copies operand 0, t, into fresh bytes.
func (o *operands) copyTo(s *Stream, r result, t *tensor.Tensor) error {
	if t.Layout().IsContiguous() { // packed elements too
		return s.submit(o.name, o.uses, func() error {
			return s.d.drv.MemcpyDtoDAsync(s.d.ctx, driver.Pointer(r.at), driver.Pointer(o.at(0)), uint64(t.NumBytes()), s.handle)
		})
	}
	l, err := kernels.Copy(asOperand(r.at, r.t), o.operand(0), sizes(t.Shape().Sizes()), t.DType().Size())
	if err != nil {
		return fmt.Errorf("cuda: copy: %w", err)
	}
	return o.run(s, l)
}

// Fill returns a tensor of the type and shape of x with v in every element. v
// is of the Go type of the elements, such as float32.
func (s *Stream) Fill(x tensor.Operand, v any) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opFill, x); err != nil {
		return nil, err
	}
	t := o.taken.Tensor(0)
	pattern := numberBytes(v)
	if pattern == nil || len(pattern) != t.DType().Size() || len(pattern) > 8 {
		o.taken.Rollback()
		return nil, fmt.Errorf("cuda: fill %s%s: got a value of type %T, want a number of %d bytes: %w", t.DType(), t.Shape(), v, t.DType().Size(), tensor.ErrDType)
	}
	r, err := o.place(s, t.DType(), t.Shape(), 0)
	if err == nil {
		var l *kernels.Launch
		if l, err = kernels.Fill(asOperand(r.at, r.t), sizes(t.Shape().Sizes()), pattern); err == nil {
			o.uses = o.uses[len(o.uses)-1:] // x is not read
			err = o.run(s, l)
		}
	}
	return o.finish(r, err)
}

// Convert returns x with elements of another type, converted as the operator
// cast does. It is in x's bytes if both types have one size.
func (s *Stream) Convert(x tensor.Operand, to dtype.DType) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opConvert, x); err != nil {
		return nil, err
	}
	t := o.taken.Tensor(0)
	r, err := o.place(s, to, t.Shape(), 0)
	if err == nil {
		var l *kernels.Launch
		if l, err = kernels.Convert(asOperand(r.at, r.t), to, o.operand(0), t.DType(), sizes(t.Shape().Sizes())); err == nil {
			err = o.run(s, l)
		} else {
			err = fmt.Errorf("cuda: convert: %w", err)
		}
	}
	return o.finish(r, err)
}

// Add returns the sum of x and y, whose shapes are broadcast.
func (s *Stream) Add(x, y tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opAdd, x, y); err != nil {
		return nil, err
	}
	a, b := o.taken.Tensor(0), o.taken.Tensor(1)
	r := result{kept: -1}
	var err error
	if a.DType() != b.DType() {
		err = fmt.Errorf("cuda: add: got %s and %s, want one type: %w", a.DType(), b.DType(), tensor.ErrDType)
	}
	var sh *shape.Shape
	if err == nil {
		sh, err = shape.Broadcast(a.Shape(), b.Shape())
	}
	if err == nil {
		r, err = o.place(s, a.DType(), sh, 0, 1)
	}
	if err == nil {
		var l *kernels.Launch
		l, err = kernels.Add(a.DType(), asOperand(r.at, r.t), o.spread(0, sh), o.spread(1, sh), sizes(sh.Sizes()))
		if err == nil {
			err = o.run(s, l)
		} else {
			err = fmt.Errorf("cuda: add: %w", err)
		}
	}
	return o.finish(r, err)
}

// spread describes operand i as broadcast to a shape.
func (o *operands) spread(i int, to *shape.Shape) kernels.Operand {
	t := o.taken.Tensor(i)
	from := o.operand(i)
	missing := to.Rank() - t.Shape().Rank()
	out := kernels.Operand{Address: from.Address, Strides: make([]int64, to.Rank())}
	for axis, n := range t.Shape().Sizes() {
		if n > 1 || to.Size(missing+axis) == 1 {
			out.Strides[missing+axis] = from.Strides[axis]
		}
	}
	return out
}

// Sum returns the sum of all elements of x, f32 or f64, as a scalar. Its order
// is the same on every device and does not depend on the layout of x.
func (s *Stream) Sum(x tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opSum, x); err != nil {
		return nil, err
	}
	t := o.taken.Tensor(0)
	scalar, err := shape.Of()
	if err != nil {
		o.taken.Rollback()
		return nil, err
	}
	r := result{kept: -1}
	if t.Layout().IsContiguous() {
		r, err = o.place(s, t.DType(), scalar)
	} else {
		err = fmt.Errorf("cuda: sum: got %s%s, want a contiguous layout (Copy makes one): %w", t.DType(), t.Layout(), tensor.ErrLayout)
	}
	if err == nil {
		err = o.sumAll(s, r, t)
	}
	return o.finish(r, err)
}

func (o *operands) sumAll(s *Stream, r result, t *tensor.Tensor) error {
	n := uint64(t.NumElements())
	scratch, err := s.Source(memory.Scratch).Alloc(int(kernels.SumAllScratch(t.DType(), n)))
	if err != nil {
		return err
	}
	defer scratch.Release()
	b := blockOf(scratch.Remote())
	launches, err := kernels.SumAll(t.DType(), r.at, o.at(0), uint64(b.Address), n)
	if err != nil {
		return fmt.Errorf("cuda: sum: %w", err)
	}
	o.uses = append(o.uses, use{b, true})
	return o.run(s, launches...)
}

// SumLast returns the sums of x, f32 or f64, along its last axis, which the
// result does not have.
func (s *Stream) SumLast(x tensor.Operand) (*tensor.Tensor, error) {
	var o operands
	if err := o.begin(s, opSum, x); err != nil {
		return nil, err
	}
	t := o.taken.Tensor(0)
	r := result{kept: -1}
	var err error
	if t.Shape().Rank() == 0 {
		err = fmt.Errorf("cuda: sum: got a scalar, want an axis: %w", tensor.ErrShape)
	}
	var sh *shape.Shape
	if err == nil {
		sh, err = shape.Of(t.Shape().Sizes()[:t.Shape().Rank()-1]...)
	}
	if err == nil {
		r, err = o.place(s, t.DType(), sh)
	}
	if err == nil {
		var l *kernels.Launch
		if l, err = kernels.Sum(t.DType(), asOperand(r.at, r.t), o.operand(0), sizes(t.Shape().Sizes())); err == nil {
			err = o.run(s, l)
		} else {
			err = fmt.Errorf("cuda: sum: %w", err)
		}
	}
	return o.finish(r, err)
}

// start launches a kernel of this package. The caller has s.mu.
func (s *Stream) start(l *kernels.Launch) error {
	f, err := s.d.function(l.Kernel)
	if err != nil {
		return err
	}
	return s.d.drv.LaunchKernel(s.d.ctx, f, driver.Dim3{X: l.Blocks, Y: 1, Z: 1}, driver.Dim3{X: kernels.Threads, Y: 1, Z: 1}, 0, s.handle, l.Args)
}

// Gather is work of the main stream.
func (e engine) Gather(_ context.Context, to *memory.Buffer, at int, from memory.Spread) error {
	src, err := e.block("gather", from.Buffer, 0, from.Buffer.Len())
	if err != nil {
		return err
	}
	n := from.Element
	for _, size := range from.Sizes {
		n *= size
	}
	dst, err := e.block("gather", to, at, n)
	if err != nil {
		return err
	}
	compact := make([]int64, len(from.Sizes))
	step := int64(from.Element)
	for i := len(compact) - 1; i >= 0; i-- {
		compact[i] = step
		step *= int64(from.Sizes[i])
	}
	l, err := kernels.Copy(kernels.Operand{Address: uint64(dst.Address) + uint64(at), Strides: compact},
		kernels.Operand{Address: uint64(src.Address) + uint64(from.At), Strides: inBytes(from.Strides, from.Element)}, sizes(from.Sizes), from.Element)
	if err != nil {
		return fmt.Errorf("cuda: gather: %w", err)
	}
	defer runtime.KeepAlive(to)
	defer runtime.KeepAlive(from.Buffer)
	return e.d.main.run("gather", []use{{b: src}, {dst, true}}, l)
}
