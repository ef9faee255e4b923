package eager

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Stack joins the operands, all of one type and shape, along a new axis: of
// vectors, the rows of a matrix where axis is 0, and its columns where it is 1
// or -1. [Concat] joins along an axis that is there.
func Stack(axis int, xs ...tensor.Operand) (*tensor.Tensor, error) { return stack(nil, axis, xs) }

// Stack is [Stack] with a result of the scope's.
func (s *Scope) Stack(axis int, xs ...tensor.Operand) *tensor.Tensor {
	if c := nary(opStack, xs); !s.ready(&c) {
		return nil
	}
	return s.own(stack(s, axis, xs))
}

// opStack has stack's name in errors; the operator is concat.
var opStack = &operator{def: &op.Def{Name: "stack"}, name: tensor.NewOperation("stack")}

// stack concatenates views of the operands that have the new axis.
func stack(s *Scope, axis int, xs []tensor.Operand) (*tensor.Tensor, error) {
	if len(xs) == 0 {
		return nil, fmt.Errorf("stack: got no operands, want at least 1: %w", tensor.ErrShape)
	}
	var taken tensor.Taken
	if err := taken.Begin(opStack.name, xs...); err != nil {
		return nil, err
	}
	defer taken.Rollback()
	first := taken.Tensor(0)
	for i, x := range xs {
		t := taken.Tensor(i)
		kind := tensor.ErrShape
		if t.DType() != first.DType() {
			kind = tensor.ErrDType
		}
		switch {
		case t.DType() != first.DType() || t.Shape() != first.Shape():
			return nil, fmt.Errorf("stack: operand %d: got %s%s, want %s%s as operand 0: %w", i, t.DType(), t.Shape(), first.DType(), first.Shape(), kind)
		case x.Semantics() == tensor.DonateInput:
			return nil, fmt.Errorf("stack: operand %d, %s%s, is donated, but no result of stack lies over an operand: %w", i, t.DType(), t.Shape(), tensor.ErrNotReusable)
		}
	}
	rank := first.Shape().Rank()
	if axis < -rank-1 || axis > rank {
		return nil, fmt.Errorf("stack: got axis %d for operands %s%s, want %d to %d: %w", axis, first.DType(), first.Shape(), -rank-1, rank, tensor.ErrShape)
	}
	at := (axis + rank + 1) % (rank + 1)
	views := make([]tensor.Operand, 0, len(xs))
	defer func() {
		for _, v := range views {
			_ = v.Tensor().Release() // no other code knows it
		}
	}()
	for i := range xs {
		v, err := withAxis(&taken, i, at)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	t, err := one(s, concat(at, views...))
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	taken.Commit()
	return t, nil
}

// withAxis returns a view of operand i with an axis of size 1 before the given
// one.
func withAxis(taken *tensor.Taken, i, at int) (*tensor.Tensor, error) {
	l := taken.Tensor(i).Layout()
	s, err := shape.Of(slices.Insert(slices.Clone(l.Shape().Sizes()), at, 1)...)
	if err != nil {
		return nil, fmt.Errorf("stack: operand %d: %w", i, err)
	}
	if l, err = shape.Strided(s, slices.Insert(slices.Clone(l.Strides()), at, 0)...); err != nil {
		return nil, fmt.Errorf("stack: operand %d: %w", i, err)
	}
	return taken.Share(i, 0, taken.Tensor(i).DType(), l)
}
