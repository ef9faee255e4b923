package ir

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Clone returns a copy that shares nothing with p but operators, attributes
// and shapes, none of which ever changes. Names and IDs are the same.
func (p *Program) Clone() *Program {
	c := cloner{}
	out := &Program{Name: p.Name, Weights: c.values(p.Weights), lastID: p.lastID, lastName: p.lastName}
	out.Body = c.block(p.Body)
	return out
}

// Clone returns a copy of the call, its regions and all values that they name,
// which shares nothing with the program but operators, attributes and shapes.
// IDs are the same. A value that is defined elsewhere has no definition in the
// copy.
func (c *Call) Clone() *Call { return cloner{}.call(c) }

// cloner maps values to their copies.
type cloner map[*Value]*Value

func (c cloner) value(v *Value) *Value {
	if v == nil {
		return nil
	}
	if c[v] == nil {
		copied := *v
		copied.Def = nil // set by the call that defines it
		c[v] = &copied
	}
	return c[v]
}

func (c cloner) values(list []*Value) []*Value {
	out := slices.Clone(list)
	for i, v := range list {
		out[i] = c.value(v)
	}
	return out
}

func (c cloner) block(b *Block) *Block {
	out := &Block{Params: c.values(b.Params), Calls: slices.Clone(b.Calls)}
	for i, call := range b.Calls {
		out.Calls[i] = c.call(call)
	}
	out.Results = c.values(b.Results)
	return out
}

func (c cloner) call(call *Call) *Call {
	out := *call
	out.Args = slices.Clone(call.Args)
	for i := range out.Args {
		out.Args[i].Value = c.value(out.Args[i].Value)
	}
	out.Regions = slices.Clone(call.Regions)
	for i, r := range call.Regions {
		out.Regions[i] = c.block(r)
	}
	out.Results = c.values(call.Results)
	if call.Writes != nil {
		out.Writes = c.values(call.Writes)
	}
	for _, v := range out.Results {
		if v != nil {
			v.Def = &out
		}
	}
	return &out
}

// Bind sets the types of the parameters to those of actual inputs, which
// [Program.CheckInputs] accepts. Call it on a clone, then [Infer].
func (p *Program) Bind(types ...op.Type) error {
	if err := p.CheckInputs(types); err != nil {
		return err
	}
	for i, v := range p.Body.Params {
		v.Type = types[i]
	}
	return nil
}

// CheckTypes checks the types of actual inputs: each must fit the declared
// type.
func (p *Program) CheckTypes(types []op.Type) error {
	if len(types) != len(p.Body.Params) {
		return fmt.Errorf("ir: @%s: got %d inputs, want %d", quoteName(p.Name), len(types), len(p.Body.Params))
	}
	for i, v := range p.Body.Params {
		if !fits(types[i], v.Type) {
			cause := shape.ErrShape
			if types[i].DType != v.Type.DType {
				cause = dtype.ErrDType
			}
			return fmt.Errorf("input %q: got %s, want %s: %w", v.Name, types[i], v.Type, cause)
		}
	}
	return nil
}

// CheckInputs is CheckTypes, and dimensions of one symbol must have one size.
func (p *Program) CheckInputs(types []op.Type) error {
	if err := p.CheckTypes(types); err != nil {
		return err
	}
	type binding struct {
		size int
		by   *Value
	}
	bound := map[string]binding{}
	for i, v := range p.Body.Params {
		if v.Type.Shape == nil || types[i].Shape == nil {
			continue
		}
		for axis, d := range v.Type.Shape.Dims() {
			symbol, named := d.Symbol()
			size, sized := types[i].Shape.Dim(axis).Size()
			if !named || !sized {
				continue
			}
			first, seen := bound[symbol]
			if seen && first.size != size {
				return fmt.Errorf("input %q: got %s, want %s with %s = %d as in input %q: %w", v.Name, types[i], v.Type, d, first.size, first.by.Name, shape.ErrShape)
			}
			if !seen {
				bound[symbol] = binding{size, v}
			}
		}
	}
	return nil
}
