package cuda

import (
	"fmt"

	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// result is the tensor of an operation that is under way: in the bytes of an
// operand that was given up, or in fresh ones.
type result struct {
	t    *tensor.Tensor
	buf  *memory.Buffer // of fresh bytes, with a hold of the operation
	at   uint64         // address of element [0,...,0]
	kept int            // the operand whose bytes it has, -1 if they are fresh
}

// place puts a result into the bytes of the first operand of candidates that
// was given up, is exclusive and fits, and otherwise into fresh bytes. An
// operand that was donated strictly and is not used is an error.
func (o *operands) place(s *Stream, dt dtype.DType, sh *shape.Shape, candidates ...int) (r result, err error) {
	r.kept = -1
	for _, i := range candidates {
		t := o.taken.Tensor(i)
		if r.kept < 0 && o.taken.InPlace(i) && t.Shape() == sh && t.DType().Size() == dt.Size() && dt.Size() > 0 {
			r.kept = i
		}
	}
	for i := range o.uses {
		if i != r.kept && o.semantics[i] == tensor.DonateInput {
			t := o.taken.Tensor(i)
			where := "it takes fresh bytes"
			if r.kept >= 0 {
				where = fmt.Sprintf("it is in operand %d", r.kept)
			}
			return r, fmt.Errorf("cuda: %s: %s%s is donated, but the result %s%s cannot be in its bytes: %s: %w",
				o.name, t.DType(), t.Shape(), dt, sh, where, tensor.ErrNotReusable)
		}
	}
	if r.kept >= 0 {
		if r.t, err = o.taken.Keep(r.kept, dt, o.taken.Tensor(r.kept).Layout()); err != nil {
			return r, err
		}
		r.at = o.at(r.kept)
		o.uses[r.kept].write = true
		return r, nil
	}
	if r.t, err = s.Make(dt, sh); err != nil {
		return r, err
	}
	buf, at, err := r.t.Hold()
	if err != nil {
		return r, err
	}
	r.buf = buf
	b := blockOf(buf.Remote())
	r.at = uint64(b.Address) + uint64(at)
	o.uses = append(o.uses, use{b, true})
	return r, nil
}

// finish ends the operation: with the result, or with none after an error.
func (o *operands) finish(r result, err error) (*tensor.Tensor, error) {
	if r.buf != nil {
		_ = r.buf.Release() // the operation's own hold
	}
	if err != nil {
		if r.kept < 0 && r.t != nil {
			_ = r.t.Release()
		}
		o.taken.Rollback()
		return nil, err
	}
	o.taken.Commit()
	return r.t, nil
}

// operand describes operand i to the kernels.
func (o *operands) operand(i int) kernels.Operand {
	return asOperand(o.at(i), o.taken.Tensor(i))
}

func asOperand(at uint64, t *tensor.Tensor) kernels.Operand {
	return kernels.Operand{Address: at, Strides: inBytes(t.Layout().Strides(), t.DType().Size())}
}

func inBytes(strides []int, element int) []int64 {
	out := make([]int64, len(strides))
	for i, s := range strides {
		out[i] = int64(s) * int64(element)
	}
	return out
}

func sizes(s []int) []int64 {
	out := make([]int64, len(s))
	for i, n := range s {
		out[i] = int64(n)
	}
	return out
}

// run submits launches of the kernels of this package.
func (o *operands) run(s *Stream, launches ...*kernels.Launch) error {
	return s.run(o.name, o.uses, launches...)
}

func (s *Stream) run(op string, uses []use, launches ...*kernels.Launch) error {
	return s.submit(op, uses, func() error {
		for _, l := range launches {
			if l == nil || l.Blocks == 0 {
				continue
			}
			if err := s.start(l); err != nil {
				return err
			}
		}
		return nil
	})
}
