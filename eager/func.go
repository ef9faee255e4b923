package eager

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/tensor"
)

// Func is an operation that is written as a function over tensors. It declares
// which of its parameters it consumes: a tensor passed for one of those with
// Donate or Reuse belongs to the body, which may give it up in turn and so
// compute in its bytes; a borrowed tensor is never written.
type Func struct {
	name     *tensor.Operation
	params   int
	consumes []bool
	body     func(s *Scope, args []*tensor.Tensor) ([]*tensor.Tensor, error)
}

const maxParams = 1 << 16

// NewFunc returns the operation of the given name with the given number of
// parameters, of which it consumes those listed. Its body computes in a scope
// of its own: results must be kept with [Scope.Keep] or made outside the scope,
// and everything else that belongs to the scope is released when it returns.
func NewFunc(name string, params int, consumes []int, body func(s *Scope, args []*tensor.Tensor) ([]*tensor.Tensor, error)) (*Func, error) {
	switch {
	case params < 0 || params > maxParams:
		return nil, fmt.Errorf("%s: got %d parameters, want 0 to %d", name, params, maxParams)
	case body == nil:
		return nil, fmt.Errorf("%s: got no body, want one", name)
	}
	f := &Func{name: tensor.NewOperation(name), params: params, consumes: make([]bool, params), body: body}
	for _, i := range consumes {
		if i < 0 || i >= params {
			return nil, fmt.Errorf("%s: got parameter %d to consume, want one of 0 to %d", name, i, params-1)
		}
		f.consumes[i] = true
	}
	return f, nil
}

// Consumes reports whether the operation consumes parameter i.
func (f *Func) Consumes(i int) bool { return f != nil && i >= 0 && i < f.params && f.consumes[i] }

// Call runs the operation. A consumed parameter takes any operand: an operand
// that was given up goes to the body as it is, and is dead after a call that
// succeeds, even if the body left it alone; of a borrowed one the body gets a
// copy. A parameter that is not consumed is lent to the body as a view, and an
// operand that is given up for it is an error. Donated operands must be
// exclusive. After an error of the body, the operands that it had not consumed
// are unchanged; if it had consumed one, the error is tensor.ErrPartlyWritten.
func (f *Func) Call(operands ...tensor.Operand) ([]*tensor.Tensor, error) {
	return f.CallIn(nil, operands...)
}

// CallIn is Call with results of the scope's, which keeps the error too; a nil
// scope is none.
func (f *Func) CallIn(s *Scope, operands ...tensor.Operand) ([]*tensor.Tensor, error) {
	if f == nil || f.body == nil {
		err := errors.New("call: got no operation, want one of NewFunc")
		s.fail(err)
		return nil, err
	}
	if s != nil {
		if s.closed {
			s.fail(fmt.Errorf("%s: %w", f.name.Name(), errClosed))
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	inner := NewScope()
	if s != nil {
		inner.from, inner.keep, inner.ctx = s.from, HoldOpen, s.ctx // the results stay in the scope's bytes
	}
	results, err := f.run(inner, operands)
	if s != nil {
		s.stats.add(&inner.stats)
		s.failIf(err)
		for _, t := range results {
			s.own(t, nil)
		}
	}
	return results, err
}

func (f *Func) run(inner *Scope, operands []tensor.Operand) ([]*tensor.Tensor, error) {
	if err := f.check(operands); err != nil {
		return nil, err
	}
	args, err := f.lend(inner, operands)
	if err != nil {
		inner.Close()
		return nil, err
	}
	returned := false
	defer func() {
		if !returned { // the body panics, or its goroutine ends
			_ = inner.Close()
		}
	}()
	results, err := f.body(inner, args)
	returned = true
	if err == nil {
		err = inner.Err()
	}
	if err == nil {
		err = f.checkResults(inner, args, results)
	}
	_ = inner.Close() // its error is known
	if err != nil {
		return nil, f.failed(operands, results, err)
	}
	return f.end(operands, results)
}

// end releases the operands that the body received and left alone. A result
// that is such a tensor gets its hold under a new handle.
func (f *Func) end(operands []tensor.Operand, results []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var k tensor.Taken
	for _, o := range operands {
		t := o.Tensor()
		if o.Semantics() == tensor.Borrow || !t.Alive() {
			continue
		}
		err := k.Begin(f.name, t.Reuse())
		if at := slices.Index(results, t); err == nil && at >= 0 {
			results[at], err = k.View(0, 0, t.DType(), t.Layout())
		}
		if err != nil {
			k.Rollback()
			return nil, f.failed(operands, results, err)
		}
		k.Commit()
	}
	return results, nil
}

// check refuses operands that the operation cannot take, before anything is
// consumed.
func (f *Func) check(operands []tensor.Operand) error {
	name := f.name.Name()
	if len(operands) != f.params {
		return fmt.Errorf("%s: got %d operands, want %d", name, len(operands), f.params)
	}
	for i, o := range operands {
		if o == nil || o.Tensor() == nil {
			return fmt.Errorf("%s: operand %d: got %w", name, i, tensor.ErrNoTensor)
		}
		switch sem := o.Semantics(); {
		case sem != tensor.Borrow && !f.consumes[i]:
			return fmt.Errorf("%s: operand %d: got a tensor to %s, want one to borrow: the operation does not consume it: %w", name, i, sem, tensor.ErrNotReusable)
		case sem == tensor.DonateInput:
			if err := o.Tensor().WhyNotDonatable(); err != nil {
				return fmt.Errorf("%s: operand %d: %w", name, i, err)
			}
		}
		for k := range i {
			if operands[k].Tensor() == o.Tensor() && (o.Semantics() != tensor.Borrow || operands[k].Semantics() != tensor.Borrow) {
				return fmt.Errorf("%s: operand %d is given up and listed again as operand %d, want it listed once: %w", name, k, i, tensor.ErrShared)
			}
		}
	}
	return nil
}

// lend makes the body's arguments.
func (f *Func) lend(inner *Scope, operands []tensor.Operand) ([]*tensor.Tensor, error) {
	args := make([]*tensor.Tensor, len(operands))
	for i, o := range operands {
		t := o.Tensor()
		switch {
		case o.Semantics() != tensor.Borrow:
			args[i] = t // the body's: if it fails before it consumes it, nothing has happened
			if !t.Alive() {
				return nil, t.WhyNotWritable()
			}
			continue
		case f.consumes[i]:
			args[i] = inner.one(unary(opCopy, t))
		default:
			args[i] = inner.Adopt(t.View())
		}
		if args[i] == nil {
			return nil, fmt.Errorf("%s: operand %d: %w", f.name.Name(), i, inner.Err())
		}
	}
	return args, nil
}

// checkResults refuses results that would die with the scope, or that were only
// lent.
func (f *Func) checkResults(inner *Scope, args, results []*tensor.Tensor) error {
	for i, t := range results {
		switch {
		case t == nil || !t.Alive():
			return fmt.Errorf("%s: result %d: got a tensor that is gone: %w", f.name.Name(), i, tensor.ErrReleased)
		case slices.Contains(inner.owned, t):
			return fmt.Errorf("%s: result %d: got a tensor of the body's scope, want one that was kept: %w", f.name.Name(), i, tensor.ErrReleased)
		}
	}
	return nil
}

// failed ends a call whose body failed. Results that it made are released.
func (f *Func) failed(operands []tensor.Operand, results []*tensor.Tensor, err error) error {
	consumed := false
	for _, o := range operands {
		consumed = consumed || o.Semantics() != tensor.Borrow && !o.Tensor().Alive()
	}
	for _, t := range results {
		own := t != nil && !slices.ContainsFunc(operands, func(o tensor.Operand) bool { return o.Tensor() == t })
		if own {
			_ = t.Release()
		}
	}
	if consumed && !errors.Is(err, tensor.ErrPartlyWritten) {
		return fmt.Errorf("%s: %w: %w", f.name.Name(), tensor.ErrPartlyWritten, err)
	}
	return fmt.Errorf("%s: %w", f.name.Name(), err)
}
