package eager

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// operator is an operator of the table as this package calls it.
type operator struct {
	def  *op.Def
	name *tensor.Operation
	flat bool // element k of the result needs only element k of the one operand, wherever both lie
	user bool // a function of the user's may run in it, and end the call by a panic
}

func builtin(name string) *operator {
	def := op.Builtin().Lookup(name)
	if def == nil {
		panic("BUG: eager: the table has no operator " + name)
	}
	return &operator{def: def, name: tensor.NewOperation(name)}
}

// elementwise is builtin for a function of one element.
func elementwise(name string) *operator {
	o := builtin(name)
	o.flat = true
	return o
}

// constant is an operand that the caller passed as Go numbers.
type constant struct {
	at   int // its number among the operands
	t    op.Type
	data []byte
}

// call is one operation with its operands and attributes.
type call struct {
	op      *operator
	few     [3]tensor.Operand
	more    []tensor.Operand // the operands after those in few; nil elements are absent, as in few
	n       int              // operands, constants among them
	results int
	attrs   op.Attrs
	consts  []constant
	once    bool  // no further call of this operator will be made
	err     error // a fault in the caller's numbers
}

func unary(o *operator, x tensor.Operand) call {
	return call{op: o, few: [3]tensor.Operand{x}, n: 1, results: 1}
}

func binary(o *operator, x, y tensor.Operand) call {
	return call{op: o, few: [3]tensor.Operand{x, y}, n: 2, results: 1}
}

func ternary(o *operator, x, y, z tensor.Operand) call {
	return call{op: o, few: [3]tensor.Operand{x, y, z}, n: 3, results: 1}
}

func nary(o *operator, xs []tensor.Operand) call {
	c := call{op: o, n: len(xs), results: 1}
	if n := copy(c.few[:], xs); n < len(xs) {
		c.more = xs[n:]
	}
	return c
}

func (c *call) operand(i int) tensor.Operand {
	switch at := i - len(c.few); {
	case at < 0:
		return c.few[i]
	case at < len(c.more):
		return c.more[at]
	}
	return nil // given as numbers
}

// with sets attributes. Their names and types come from this package's code, so
// a wrong one is found by the first test that makes the call.
func (c call) with(attrs ...op.Attr) call {
	list, err := op.NewAttrs(attrs...)
	if err != nil {
		c.err = fmt.Errorf("%s: %w", c.op.def.Name, err)
	}
	c.attrs = list
	return c
}

// ints makes operand i the given numbers.
func (c call) ints(i int, dims []int, values ...int) call {
	data := make([]byte, 0, 8*len(values))
	for _, v := range values {
		data = appendInt(data, v)
	}
	return c.constant(i, dtype.I64, dims, data)
}

func (c call) constant(i int, dt dtype.DType, dims []int, data []byte) call {
	s, err := shape.Of(dims...)
	if err != nil {
		c.err = fmt.Errorf("%s: operand %d: %w", c.op.def.Name, i, err)
	}
	c.consts = append(c.consts, constant{at: i, t: op.Type{DType: dt, Shape: s}, data: data})
	c.n = max(c.n, i+1)
	return c
}

func intsOf(values []int) []int64 {
	out := make([]int64, len(values))
	for i, v := range values {
		out[i] = int64(v)
	}
	return out
}

func bit(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
