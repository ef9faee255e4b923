package cuda

import (
	"fmt"

	"github.com/tenure-go/tenure/tensor"
)

// use is how work uses a block.
type use struct {
	b     *block
	write bool
}

// submit calls do, which submits work to the stream that uses the blocks, after
// the stream was told to wait for what must come before. do is called with the
// stream locked. After an error of the wait, do was not called.
//
// The blocks get their stamps also if do fails, because a part of its work may
// have been submitted. They may be of several devices: events cross devices.
func (s *Stream) submit(op string, uses []use, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(op); err != nil {
		return err
	}
	for _, u := range uses {
		if err := u.b.before(s, u.write); err != nil {
			return err
		}
	}
	err := do()
	now := stamp{s, s.submitted.Add(1)}
	for _, u := range uses {
		u.b.after(now, u.write)
	}
	if err != nil {
		return s.d.fail(op, err)
	}
	return nil
}

// operands is the tensors of an operation on a stream.
type operands struct {
	taken     tensor.Taken
	name      string
	uses      []use // of the operands, in order, and then of fresh bytes
	semantics []tensor.CopySemantics
}

// begin takes the operands, which must be on the stream's device.
func (o *operands) begin(s *Stream, op *tensor.Operation, list ...tensor.Operand) error {
	if err := s.none(op.Name()); err != nil {
		return err
	}
	if err := o.taken.Begin(op, list...); err != nil {
		return err
	}
	o.name = op.Name()
	for i := range list {
		o.semantics = append(o.semantics, list[i].Semantics())
		r, _ := o.taken.Remote(i)
		b := blockOf(r)
		if b == nil || b.d != s.d {
			t := o.taken.Tensor(i)
			o.taken.Rollback()
			return fmt.Errorf("cuda: %s: got %s%s on %s, want it on %s (tensor.To copies it): %w", op.Name(), t.DType(), t.Shape(), t.Device(), s.d, tensor.ErrDevice)
		}
		o.uses = append(o.uses, use{b: b})
	}
	return nil
}

// at returns the address of element [0,...,0] of operand i.
func (o *operands) at(i int) uint64 {
	r, offset := o.taken.Remote(i)
	return uint64(r.Address) + uint64(offset)
}
