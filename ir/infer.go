package ir

import (
	"fmt"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Infer runs the shape rules of all calls in execution order, those in
// regions before the call around them, and replaces the types of their
// results. It is for programs whose parameters, weights or attributes have
// changed. known returns the bytes of values that are known before the program
// runs, see [op.Sig.Known]; it may be nil. On an error the types are partly
// replaced.
func Infer(p *Program, known func(*Value) ([]byte, bool)) error {
	x := inference{known: known}
	return x.block(p.Body, 0)
}

// inference infers the types of calls.
type inference struct {
	known func(*Value) ([]byte, bool)
	sigs  map[*Call]*op.Sig // of the calls that were inferred before; nil if none is kept
}

// block infers the calls of a block that is in so many loops.
func (x *inference) block(b *Block, loops int) error {
	for _, c := range b.Calls {
		if c.Op.Loop {
			if err := x.loop(c, loops); err != nil {
				return err
			}
		}
		for _, r := range c.Regions {
			if c.Op.Loop {
				break
			}
			if err := x.block(r, loops); err != nil {
				return err
			}
		}
		types, err := x.results(c)
		if err != nil {
			return fmt.Errorf("ir: %s: %w", c.Where(), err)
		}
		for i, v := range c.Results {
			if v != nil {
				v.Type = types[i]
			}
		}
	}
	return nil
}

// results returns the type of each result, the zero Type for one that is not
// wanted. It does not change the call.
func (x *inference) results(c *Call) ([]op.Type, error) {
	if s := x.sigs[c]; s != nil {
		c.refill(s, x.known)
		return s.Results, c.inferWith(s, s.Def.Infer) // the number of operands and the attributes were checked
	}
	s := c.Sig(x.known)
	err := c.inferSig(s)
	if err == nil && x.sigs != nil {
		x.sigs[c] = s
	}
	return s.Results, err
}

// refill makes a signature of the call that of the types that its values have.
func (c *Call) refill(s *op.Sig, known func(*Value) ([]byte, bool)) {
	set := func(types []op.Type, values []*Value) {
		for i, v := range values {
			if v != nil {
				types[i] = v.Type
			}
		}
	}
	for i, a := range c.Args {
		if a.Value != nil {
			s.Args[i] = a.Value.Type
		}
	}
	for i, r := range c.Regions {
		set(s.Regions[i], r.Results)
	}
	if c.Op.Loop && len(c.Regions) == 1 {
		s.Endless = c.isEndless(known)
	}
}

// inferResults returns the type of each result, the zero Type for one that is
// not wanted. It does not change the call.
func inferResults(c *Call, known func(*Value) ([]byte, bool)) ([]op.Type, error) {
	x := inference{known: known}
	return x.results(c)
}

// inferSig runs the shape rule on a signature of the call.
func (c *Call) inferSig(s *op.Sig) error { return c.inferWith(s, op.InferTypes) }

// inferWith is inferSig by a function that runs the shape rule.
func (c *Call) inferWith(s *op.Sig, infer func(*op.Sig) error) error {
	results := s.Results
	clear(results)
	err := infer(s)
	found := s.Results
	s.Results = results
	if err != nil {
		return err
	}
	if len(found) != len(results) {
		return fmt.Errorf("%s: the shape rule returns %d types, want %d", c.Op.Name, len(found), len(results))
	}
	copy(results, found)
	for i, v := range c.Results {
		if v == nil {
			results[i] = op.Type{}
		} else if results[i].IsZero() {
			return fmt.Errorf("%s: the shape rule returns no type for result %d", c.Op.Name, i)
		}
	}
	return nil
}

// fits reports whether a value can have both types: they agree in the element
// type and in every size that both know.
func fits(a, b op.Type) bool {
	if a.DType != b.DType {
		return false
	}
	if a.Shape == nil || b.Shape == nil || a.Shape == b.Shape {
		return true
	}
	if a.Shape.Rank() != b.Shape.Rank() {
		return false
	}
	for i := range a.Shape.Rank() {
		x, xok := a.Shape.Dim(i).Size()
		y, yok := b.Shape.Dim(i).Size()
		if xok && yok && x != y {
			return false
		}
	}
	return true
}

// refine returns what both of two fitting types know. Where both name a
// dimension by a symbol the first one's stays.
func refine(a, b op.Type) op.Type {
	switch {
	case a.Shape == nil:
		return b
	case b.Shape == nil || a.Shape == b.Shape:
		return a
	}
	dims := a.Shape.Dims()
	for i, d := range dims {
		other := b.Shape.Dim(i)
		_, sized := d.Size()
		_, otherSized := other.Size()
		if d == shape.Unknown || !sized && otherSized {
			dims[i] = other
		}
	}
	s, err := shape.FromDims(dims...)
	if err != nil {
		return a // both fit, yet their sizes together have too many elements
	}
	return op.Type{DType: a.DType, Shape: s}
}
