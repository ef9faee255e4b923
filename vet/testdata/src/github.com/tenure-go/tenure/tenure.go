package tenure

import (
	"context"

	"github.com/tenure-go/tenure/tensor"
)

type Inputs map[string]tensor.Operand

type Outputs map[string]*tensor.Tensor

func (o Outputs) Release() error { return nil }

func (o Outputs) Get(name string) (*tensor.Tensor, error) { return o[name], nil }

type Model struct{ n int }

func Load(path string) (*Model, error) { return &Model{}, nil }

func (m *Model) NewSession() (*Session, error) { return &Session{}, nil }
func (m *Model) Close() error                  { return nil }

type Session struct{ n int }

func (s *Session) Run(ctx context.Context, in Inputs, opts ...RunOption) (Outputs, error) {
	return nil, nil
}
func (s *Session) RunInto(ctx context.Context, in []tensor.Operand, out []*tensor.Tensor, opts ...RunOption) error {
	return nil
}
func (s *Session) Bind() (*Binding, error) { return &Binding{}, nil }
func (s *Session) Close() error            { return nil }

type RunOption func(n *int)

func Into(name string, t *tensor.Tensor) RunOption { return nil }

type Binding struct{ n int }

func (b *Binding) Run(ctx context.Context, in ...tensor.Operand) ([]*tensor.Tensor, error) {
	return nil, nil
}
func (b *Binding) Into(i int, t *tensor.Tensor) error { return nil }
func (b *Binding) Take(i int) (*tensor.Tensor, error) { return nil, nil }
func (b *Binding) Close() error                       { return nil }
