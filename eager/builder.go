package eager

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Builder configures one call in steps: the operator, its operands and whether
// each is borrowed or given up, its attributes. It runs any operator of the
// table, and operators of the caller. Run returns the first error of a step.
//
//	y, err := eager.Op("leaky_relu").On(x).InPlaceIfPossible().Float("alpha", 0.1).Run()
type Builder struct {
	op       *operator
	scope    *Scope
	operands []tensor.Operand
	attrs    []op.Attr
	results  int
	err      error
}

// Op begins a call of the operator of that name in the table.
func Op(name string) *Builder {
	def := op.Builtin().Lookup(name)
	if def == nil {
		return &Builder{err: fmt.Errorf("%s: got an operator that the table does not have, want one of docs/operators.md: %w", name, tensor.ErrUnsupported)}
	}
	return Call(def)
}

// Call begins a call of an operator of the caller. Its alias rules decide
// whether its operands' bytes may be overwritten, as for the operators of the
// table.
func Call(def *op.Def) *Builder {
	if def == nil {
		return &Builder{err: errors.New("call: got no operator, want one")}
	}
	return &Builder{op: &operator{def: def, name: tensor.NewOperation(def.Name), user: true}, results: max(def.MinResults, 1)}
}

// In makes the results the scope's, and their bytes those of its source.
func (b *Builder) In(s *Scope) *Builder {
	b = b.begun()
	b.scope = s
	return b
}

// On adds an operand: x is borrowed, x.Donate() and x.Reuse() are given up, nil
// is absent.
func (b *Builder) On(x tensor.Operand) *Builder {
	b = b.begun()
	b.operands = append(b.operands, x)
	return b
}

// InPlaceIfPossible gives up the last operand: the result is written into its
// bytes if that is allowed.
func (b *Builder) InPlaceIfPossible() *Builder { return b.Semantics(tensor.ReuseInput) }

// Donate gives up the last operand strictly: the result is written into its
// bytes, or the call is an error.
func (b *Builder) Donate() *Builder { return b.Semantics(tensor.DonateInput) }

// Semantics sets the semantics of the last operand.
func (b *Builder) Semantics(s tensor.CopySemantics) *Builder {
	b = b.begun()
	n := len(b.operands)
	if n == 0 || b.operands[n-1] == nil {
		b.fail("%s: got no operand to %s, want one before", b.name(), s)
		return b
	}
	switch t := b.operands[n-1].Tensor(); s {
	case tensor.Borrow:
		b.operands[n-1] = t
	case tensor.ReuseInput:
		b.operands[n-1] = t.Reuse()
	case tensor.DonateInput:
		b.operands[n-1] = t.Donate()
	default:
		b.fail("%s: got %s for an operand, want borrow, reuse or donate", b.name(), s)
	}
	return b
}

// Int sets an attribute.
func (b *Builder) Int(name string, v int) *Builder { return b.set(name, int64(v)) }

// Float sets an attribute.
func (b *Builder) Float(name string, v float64) *Builder { return b.set(name, v) }

// String sets an attribute.
func (b *Builder) String(name, v string) *Builder { return b.set(name, v) }

// Ints sets an attribute.
func (b *Builder) Ints(name string, v ...int) *Builder { return b.set(name, intsOf(v)) }

// DType sets an attribute.
func (b *Builder) DType(name string, v dtype.DType) *Builder { return b.set(name, v) }

// Attr sets an attribute of any kind.
func (b *Builder) Attr(a op.Attr) *Builder {
	b = b.begun()
	b.attrs = append(b.attrs, a)
	return b
}

func (b *Builder) set(name string, v any) *Builder { return b.Attr(op.Attr{Name: name, Value: v}) }

// Results sets the number of results; the default is the smallest that the
// operator allows.
func (b *Builder) Results(n int) *Builder {
	b = b.begun()
	b.results = n
	return b
}

// begun returns the builder; for a nil one a builder that fails.
func (b *Builder) begun() *Builder {
	if b == nil {
		return Call(nil)
	}
	return b
}

func (b *Builder) name() string {
	if b.op == nil {
		return "call"
	}
	return b.op.def.Name
}

func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// call returns the configured call.
func (b *Builder) call() (call, error) {
	if b.err != nil {
		return call{}, b.err
	}
	if b.op == nil {
		return call{}, errors.New("call: got no operator, want one of Op or Call")
	}
	if b.results < 1 {
		return call{}, fmt.Errorf("%s: got %d results wanted, want at least 1", b.name(), b.results)
	}
	c := nary(b.op, b.operands).with(b.attrs...)
	c.results = b.results
	return c, c.err
}

// Run runs the call and returns its first result. Others that were wanted are
// released.
func (b *Builder) Run() (*tensor.Tensor, error) {
	ts, err := b.RunAll()
	if err != nil {
		return nil, err
	}
	for _, t := range ts[1:] {
		_ = t.Release()
	}
	return ts[0], nil
}

// RunAll runs the call and returns its results. In a scope they are the
// scope's, which keeps the error too.
func (b *Builder) RunAll() ([]*tensor.Tensor, error) {
	b = b.begun()
	c, err := b.call()
	if b.scope == nil {
		if err != nil {
			return nil, err
		}
		return many(nil, c)
	}
	b.scope.failIf(err)
	if err != nil {
		return nil, err
	}
	ts := b.scope.many(c)
	if ts == nil {
		return nil, b.scope.err
	}
	return ts, nil
}
