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

func (s *Session) Run(ctx context.Context, in Inputs) (Outputs, error) { return nil, nil }
func (s *Session) Close() error                                        { return nil }
