package pass

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Constants is the weight table as passes see it: bytes of weights, and a
// place for the bytes of constants that passes make. Names are free in the
// table when they are added.
type Constants interface {
	ir.Weights

	// New makes room for a weight, zeroed and aligned, which the caller fills.
	New(name string, t op.Type) ([]byte, error)

	// Share gives a name to bytes that the table holds already: those of
	// another weight or a part of them.
	Share(name string, t op.Type, data []byte) error

	// Postpone enters a weight whose bytes fill makes of those of another
	// weight, from, when somebody asks for them. It is false where the table
	// would have to keep from in memory for that, or it is not worth it.
	Postpone(name string, t op.Type, from []byte, fill func(dst []byte)) (bool, error)
}

// Context is what a pass works on.
type Context struct {
	Program   *ir.Program
	Constants Constants

	// MaxFold is the most bytes that folding one call may add to the table
	// where the result is larger than its operands.
	MaxFold int64

	// MaxFill is the most bytes that constant_of_shape may add in all beyond
	// MaxFold: fills that stand for a model's weights.
	MaxFill int64

	// Declined and Copies are what the passes report for the plan.
	Declined []plan.Declined
	Copies   []plan.Copy

	// Suspended are the faults that fold found in branches whose condition is
	// not known: they are faults of the program if it never is.
	Suspended []error

	// Notes are remarks for who reads the model.
	Notes []string

	names map[string]bool // of the weights
	room  *room           // left for folding; made by the first run of fold
}

// Overlay is a table of constants on top of another table, which it does not
// change. Its bytes are on the Go heap. While constants are added it belongs
// to one goroutine.
type Overlay struct {
	Base  ir.Weights
	bytes map[string][]byte
}

// Bytes returns the bytes of a weight, from the overlay or its base.
func (o *Overlay) Bytes(v *ir.Value) ([]byte, bool) {
	if b, ok := o.bytes[v.Name]; ok {
		return b, true
	}
	if o.Base == nil {
		return nil, false
	}
	return o.Base.Bytes(v)
}

// Has reports whether the overlay or its base has bytes of a weight.
func (o *Overlay) Has(v *ir.Value) bool {
	_, own := o.bytes[v.Name]
	return own || o.Base != nil && o.Base.Has(v)
}

// Raw returns the bytes of a weight at any address.
func (o *Overlay) Raw(v *ir.Value) ([]byte, bool) {
	if b, ok := o.bytes[v.Name]; ok || o.Base == nil {
		return b, ok
	}
	return o.Base.Raw(v)
}

// New makes room for a weight.
func (o *Overlay) New(name string, t op.Type) ([]byte, error) {
	n, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	// Words: elements of any type may lie there.
	words := make([]uint64, (n+7)/8+1)
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	return data, o.Share(name, t, data)
}

// Share gives a name to bytes that are held elsewhere.
func (o *Overlay) Share(name string, _ op.Type, data []byte) error {
	if o.bytes == nil {
		o.bytes = map[string][]byte{}
	}
	o.bytes[name] = data
	return nil
}

// Postpone postpones nothing: a constant for one set of shapes is small.
func (o *Overlay) Postpone(string, op.Type, []byte, func([]byte)) (bool, error) { return false, nil }

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
func (c *Context) newWeight(name string, t op.Type) (*ir.Value, []byte, error) {
	v := c.Program.NewValue(ir.Weight, "", t)
	v.Name = c.freeName(name)
	data, err := c.Constants.New(v.Name, t)
	if err != nil {
		return nil, nil, err
	}
	c.Program.Weights = append(c.Program.Weights, v)
	return v, data, nil
}

// deriveWeight makes a weight of the program whose bytes fill makes of those
// of another one, now or when they are needed.
func (c *Context) deriveWeight(name string, t op.Type, from []byte, fill func(dst []byte)) (*ir.Value, error) {
	v := c.Program.NewValue(ir.Weight, "", t)
	v.Name = c.freeName(name)
	later, err := c.Constants.Postpone(v.Name, t, from, fill)
	if err != nil {
		return nil, err
	}
	if !later {
		data, err := c.Constants.New(v.Name, t)
		if err != nil {
			return nil, err
		}
		fill(data)
	}
	c.Program.Weights = append(c.Program.Weights, v)
	return v, nil
}

// shareWeight makes a weight of the program over bytes of another one.
func (c *Context) shareWeight(name string, t op.Type, data []byte) (*ir.Value, error) {
	v := c.Program.NewValue(ir.Weight, "", t)
	v.Name = c.freeName(name)
	if err := c.Constants.Share(v.Name, t, data); err != nil {
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

// where names a call in an error.
func where(c *ir.Call) string {
	if c.Node != "" {
		return fmt.Sprintf("node %q (%s)", c.Node, c.Op.Name)
	}
	return c.Op.Name
}
