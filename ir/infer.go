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
	return inferBlock(p.Body, known, 0)
}

// inferBlock infers the calls of a block that is in so many loops.
func inferBlock(b *Block, known func(*Value) ([]byte, bool), loops int) error {
	for _, c := range b.Calls {
		if c.Op.Loop {
			if err := inferLoop(c, known, loops); err != nil {
				return err
			}
		}
		for _, r := range c.Regions {
			if c.Op.Loop {
				break
			}
			if err := inferBlock(r, known, loops); err != nil {
				return err
			}
		}
		types, err := inferResults(c, known)
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

// inferResults returns the type of each result, the zero Type for one that is
// not wanted. It does not change the call.
func inferResults(c *Call, known func(*Value) ([]byte, bool)) ([]op.Type, error) {
	s := c.Sig(known)
	err := c.inferSig(s)
	return s.Results, err
}

// inferSig runs the shape rule on a signature of the call.
func (c *Call) inferSig(s *op.Sig) error {
	results := s.Results
	clear(results)
	if err := op.InferTypes(s); err != nil {
		return err
	}
	if len(s.Results) != len(results) {
		return fmt.Errorf("%s: the shape rule returns %d types, want %d", c.Op.Name, len(s.Results), len(results))
	}
	copy(results, s.Results)
	s.Results = results
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
