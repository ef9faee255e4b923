package pass

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Constants is the table of a program's constants as passes see it. A constant
// that a pass makes must have a name that is free in the table.
type Constants interface {
	ir.Weights // Has and Bytes

	// Derive enters the constant v. fill writes its bytes, which are zeroed and
	// aligned, from those of the constant of from offset on, which may lie at
	// any address: now, or each time that the table loads v. If of is nil, fill
	// runs now, and src is nil. If fill is nil, v shares the bytes of the
	// constant of.
	Derive(v, of *ir.Value, offset int, fill func(dst, src []byte)) error
}

// Context is the input and the state of a pass.
type Context struct {
	Program   *ir.Program
	Constants Constants

	// Bound says that the program was bound to one set of input types: a value
	// that is computed from sizes then is a constant of this set alone.
	Bound bool

	// LeastMemory makes the pass Donate mark operands whose elements one thread
	// would put into another order, in place of a copy by all threads.
	LeastMemory bool

	// Fixed says that the program runs with these types of its inputs alone.
	Fixed bool

	// MaxFold is the most bytes that folding one call may add to the table
	// where the result is larger than its operands.
	MaxFold int64

	// MaxFill is the most bytes that constant_of_shape may add in all beyond
	// MaxFold: fills that stand for a model's weights.
	MaxFill int64

	// Declined and Copies are the passes' entries in the plan.
	Declined []plan.Declined
	Copies   []plan.Copy

	// Suspended are the faults that fold found in branches whose condition is
	// not known: they are faults of the program if it never is.
	Suspended []error

	// Notes are remarks for readers of the model.
	Notes []string

	names     map[string]bool    // of the weights
	allowance *allowance         // left for folding; made by the first run of fold
	varying   map[*ir.Value]bool // constants that were computed from the sizes or values of inputs
	recorder  *recorder          // nil: no structure is made
}

// vary notes that a constant of a bound program depends on its inputs.
func (c *Context) vary(v *ir.Value) {
	if !c.Bound {
		return
	}
	if c.varying == nil {
		c.varying = map[*ir.Value]bool{}
	}
	c.varying[v] = true
}

// known returns the bytes of a value that is a constant.
func (c *Context) known(v *ir.Value) ([]byte, bool) {
	if v == nil || v.Kind != ir.Weight {
		return nil, false
	}
	return c.Constants.Bytes(v)
}

// isKnown reports whether a value is a constant.
func (c *Context) isKnown(v *ir.Value) bool {
	return v != nil && v.Kind == ir.Weight && c.Constants.Has(v)
}

// newWeight makes a weight of the program and returns its bytes to be filled.
func (c *Context) newWeight(name string, t op.Type) (v *ir.Value, data []byte, err error) {
	v, err = c.deriveWeight(name, t, nil, 0, func(dst, _ []byte) { data = dst })
	return v, data, err
}

// deriveLike makes a weight of the type of another one from its bytes.
func (c *Context) deriveLike(of *ir.Value, fill func(dst, src []byte)) (*ir.Value, error) {
	return c.deriveWeight(of.Name, of.Type, of, 0, fill)
}

// deriveWeight makes a weight of the program whose bytes fill makes from those
// of another one, now or when they are needed; without fill it shares them.
func (c *Context) deriveWeight(name string, t op.Type, of *ir.Value, offset int, fill func(dst, src []byte)) (*ir.Value, error) {
	v := c.Program.NewValue(ir.Weight, "", t)
	v.Name = c.freeName(name)
	if err := c.Constants.Derive(v, of, offset, fill); err != nil {
		return nil, err
	}
	c.Program.Weights = append(c.Program.Weights, v)
	return v, nil
}

// freeName returns a name that neither a value of the program nor a weight of
// the table has.
func (c *Context) freeName(name string) string {
	if c.names == nil {
		c.names = map[string]bool{}
		for _, w := range c.Program.Weights {
			c.names[w.Name] = true
		}
	}
	probe := ir.Value{Kind: ir.Weight, Name: name}
	for i := 1; ; i++ {
		if !c.Constants.Has(&probe) && !c.names[probe.Name] {
			break
		}
		probe.Name = fmt.Sprintf("%s.%d", name, i)
	}
	c.names[probe.Name] = true
	return probe.Name
}

// replacer maps values to the values that take their place. Its chains are
// resolved when they are read.
type replacer map[*ir.Value]*ir.Value

func (r replacer) of(v *ir.Value) *ir.Value {
	for r[v] != nil {
		v = r[v]
	}
	return v
}

// apply rewrites every operand and result list in the block and its regions.
func (r replacer) apply(b *ir.Block) {
	if len(r) == 0 {
		return
	}
	for _, c := range b.Calls {
		for i := range c.Args {
			c.Args[i].Value = r.of(c.Args[i].Value)
		}
		for _, region := range c.Regions {
			r.apply(region)
		}
	}
	for i, v := range b.Results {
		b.Results[i] = r.of(v)
	}
}
