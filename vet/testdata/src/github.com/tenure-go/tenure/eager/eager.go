package eager

import "github.com/tenure-go/tenure/tensor"

func Relu(x tensor.Operand) (*tensor.Tensor, error)       { return &tensor.Tensor{}, nil }
func Add(x, y tensor.Operand) (*tensor.Tensor, error)     { return &tensor.Tensor{}, nil }
func AddAssign(x **tensor.Tensor, y tensor.Operand) error { return nil }

type Scope struct{ err error }

func NewScope() *Scope                                            { return &Scope{} }
func (s *Scope) Relu(x tensor.Operand) *tensor.Tensor             { return nil }
func (s *Scope) Add(x, y tensor.Operand) *tensor.Tensor           { return nil }
func (s *Scope) Keep(x *tensor.Tensor) *tensor.Tensor             { return x }
func (s *Scope) Adopt(x *tensor.Tensor, err error) *tensor.Tensor { return x }
func (s *Scope) AddAssign(x **tensor.Tensor, y tensor.Operand)    {}
func (s *Scope) Err() error                                       { return s.err }
func (s *Scope) Close() error                                     { return s.err }

func TopK(x tensor.Operand, k int) (values, indices *tensor.Tensor, err error) {
	return &tensor.Tensor{}, &tensor.Tensor{}, nil
}
