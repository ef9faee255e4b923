package eager

import (
	"fmt"

	"github.com/tenure-go/tenure/tensor"
)

// AddAssign makes *x the sum of *x and y: in its bytes if it is exclusive, in
// fresh ones otherwise. The tensor that x pointed at is given up; on an error x
// is unchanged, unless the error is tensor.ErrPartlyWritten.
func AddAssign(x **tensor.Tensor, y tensor.Operand) error { return assign(opAdd, x, y) }

// SubAssign is [AddAssign] for the difference *x - y.
func SubAssign(x **tensor.Tensor, y tensor.Operand) error { return assign(opSub, x, y) }

// MulAssign is [AddAssign] for the product.
func MulAssign(x **tensor.Tensor, y tensor.Operand) error { return assign(opMul, x, y) }

// DivAssign is [AddAssign] for the quotient *x / y.
func DivAssign(x **tensor.Tensor, y tensor.Operand) error { return assign(opDiv, x, y) }

func assign(o *operator, x **tensor.Tensor, y tensor.Operand) error {
	if x == nil {
		return fmt.Errorf("%s: operand 0: got a nil **Tensor: %w", o.def.Name, tensor.ErrNoTensor)
	}
	t, err := one(nil, binary(o, (*x).Reuse(), y))
	if err == nil {
		*x = t
	}
	return err
}

// AddAssign is the function [AddAssign] with the new *x the scope's.
func (s *Scope) AddAssign(x **tensor.Tensor, y tensor.Operand) { s.assign(opAdd, x, y) }

// SubAssign is the function [SubAssign] with the new *x the scope's.
func (s *Scope) SubAssign(x **tensor.Tensor, y tensor.Operand) { s.assign(opSub, x, y) }

// MulAssign is the function [MulAssign] with the new *x the scope's.
func (s *Scope) MulAssign(x **tensor.Tensor, y tensor.Operand) { s.assign(opMul, x, y) }

// DivAssign is the function [DivAssign] with the new *x the scope's.
func (s *Scope) DivAssign(x **tensor.Tensor, y tensor.Operand) { s.assign(opDiv, x, y) }

func (s *Scope) assign(o *operator, x **tensor.Tensor, y tensor.Operand) {
	if x == nil {
		if s != nil {
			s.fail(fmt.Errorf("%s: operand 0: got a nil **Tensor: %w", o.def.Name, tensor.ErrNoTensor))
		}
		return
	}
	if t := s.one(binary(o, (*x).Reuse(), y)); t != nil {
		*x = t
	}
}
