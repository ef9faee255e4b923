package ir

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Builder builds one program. The first error sticks: later calls do nothing
// and return a value that only this builder may see, and Build returns it.
type Builder struct {
	reg   *op.Registry
	prog  *Program
	block *Block
	names map[string]*Value
	auto  map[*Value]bool // values whose name was not chosen
	node  string
	err   error
}

// Arg is an operand of a call: a *Value, of which nil is an absent operand,
// or what [Donate] returns.
type Arg interface{ operand() Operand }

func (v *Value) operand() Operand  { return Operand{Value: v} }
func (o Operand) operand() Operand { return o }

// Donate returns the operand that gives up the value to the call that takes it.
func Donate(v *Value) Operand { return Operand{Value: v, Donate: true} }

// View returns the operand of a call whose results are views of the value: what
// is written into one changes the others. See [Functionalize].
func View(v *Value) Operand { return Operand{Value: v, View: true} }

// NewBuilder returns a builder of a program with the operators of r.
func NewBuilder(name string, r *op.Registry) *Builder {
	body := &Block{}
	return &Builder{reg: r, prog: &Program{Name: name, Body: body}, block: body,
		names: map[string]*Value{}, auto: map[*Value]bool{}}
}

func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("ir: @%s: %w", quoteName(b.prog.Name), fmt.Errorf(format, args...))
	}
}

// Err returns the first error so far.
func (b *Builder) Err() error { return b.err }

// value makes a value; an empty name is replaced by a number.
func (b *Builder) value(kind ValueKind, name string, t op.Type) *Value {
	v := b.prog.NewValue(kind, name, t)
	if name == "" {
		b.auto[v] = true
	}
	b.claim(v)
	return v
}

// claim registers the value's name. A chosen name takes precedence over a
// generated one.
func (b *Builder) claim(v *Value) {
	if holder := b.names[v.Name]; holder != nil && !b.auto[v] {
		if !b.auto[holder] {
			b.fail("the name %s is given twice", quoteName(v.Name))
			return
		}
		b.names[v.Name] = v
		v = holder
	}
	for b.names[v.Name] != nil {
		v.Name += "_"
	}
	b.names[v.Name] = v
}

func (b *Builder) param(name string, t op.Type) *Value {
	if b.block != b.prog.Body {
		b.fail("parameter %s is declared inside a region", quoteName(name))
	}
	v := b.value(Param, name, t)
	v.Index = len(b.prog.Body.Params)
	b.prog.Body.Params = append(b.prog.Body.Params, v)
	return v
}

// Param adds a parameter that the program reads.
func (b *Builder) Param(name string, t op.Type) *Value { return b.param(name, t) }

// DonatedParam adds a parameter that the program may consume.
func (b *Builder) DonatedParam(name string, t op.Type) *Value {
	v := b.param(name, t)
	v.Donated = true
	return v
}

// Weight adds a weight.
func (b *Builder) Weight(name string, t op.Type) *Value {
	v := b.value(Weight, name, t)
	b.prog.Weights = append(b.prog.Weights, v)
	return v
}

// Call applies the operator of that name and returns its only result. The
// attributes need not be sorted.
func (b *Builder) Call(name string, attrs op.Attrs, args ...Arg) *Value {
	return b.CallN(1, name, attrs, args...)[0]
}

// CallN is [Builder.Call] for an operator with another number of results.
func (b *Builder) CallN(results int, name string, attrs op.Attrs, args ...Arg) []*Value {
	return b.call(results, name, attrs, args, nil)
}

// If runs one of two blocks, depending on a boolean scalar, and returns what
// that block returns. The functions build the blocks with this builder.
func (b *Builder) If(condition Arg, then, otherwise func() []*Value) []*Value {
	regions := []*Block{b.region(then), b.region(otherwise)}
	return b.call(len(regions[0].Results), "if", nil, []Arg{condition}, regions)
}

func (b *Builder) region(build func() []*Value) *Block {
	outer := b.block
	b.block = &Block{}
	defer func() { b.block = outer }()
	b.block.Results = build()
	return b.block
}

func (b *Builder) call(results int, name string, attrs op.Attrs, args []Arg, regions []*Block) []*Value {
	out := make([]*Value, results)
	for i := range out {
		out[i] = &Value{Name: broken} // stands in after an error
	}
	c := &Call{Op: b.reg.Lookup(name), Results: slices.Clone(out), Regions: regions, Node: b.node}
	if c.Op == nil {
		b.fail("operator %q is not in the table: %w", name, op.ErrUnsupported)
	}
	var err error
	if c.Attrs, err = op.NewAttrs(attrs...); err != nil {
		b.fail("%s: %w", name, err)
	}
	for _, a := range args {
		if a == nil {
			a = Operand{}
		}
		c.Args = append(c.Args, a.operand())
	}
	if b.err != nil {
		return out
	}
	types, err := inferResults(c, nil)
	if err != nil {
		if c.Node != "" {
			err = fmt.Errorf("%s: %w", c.Where(), err)
		}
		b.fail("%w", err)
		return out
	}
	for i, t := range types {
		out[i] = b.value(Result, "", t)
		out[i].Def, out[i].Index = c, i
	}
	c.Results = slices.Clone(out)
	b.block.Calls = append(b.block.Calls, c)
	return out
}

// Write applies the operator of that name, and its only result replaces the
// elements of a value. See [Functionalize].
func (b *Builder) Write(into *Value, name string, attrs op.Attrs, args ...Arg) {
	out := b.call(1, name, attrs, args, nil)
	if b.err == nil {
		out[0].Def.Writes = []*Value{into}
	}
}

// Node names the node of the model file that the following calls come from.
func (b *Builder) Node(name string) { b.node = name }

// Name renames a value of this builder and returns it.
func (b *Builder) Name(v *Value, name string) *Value {
	if b.err != nil {
		return v
	}
	delete(b.names, v.Name)
	delete(b.auto, v)
	v.Name = name
	b.claim(v)
	return v
}

// Drop says that a result of a call is not wanted.
func (b *Builder) Drop(v *Value) {
	if b.err != nil {
		return
	}
	if v.Def == nil {
		b.fail("drop: %s is no result of a call", v)
		return
	}
	v.Def.Results[v.Index] = nil
}

// Return ends the program with its results.
func (b *Builder) Return(results ...*Value) { b.prog.Body.Results = results }

// Build returns the program. It fails with the first error of the builder, or
// with all that [Verify] finds, for a program that writes values with all that
// [Functionalize] finds. The builder must not be used after it.
func (b *Builder) Build() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	pure, err := Functionalize(b.prog, nil)
	if err == nil {
		err = Verify(pure)
	}
	if err != nil {
		return nil, fmt.Errorf("ir: @%s: %w", quoteName(b.prog.Name), err)
	}
	return b.prog, nil
}
