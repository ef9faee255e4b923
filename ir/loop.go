package ir

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Parameters of a loop's region before the loop state, and the result before
// the next loop state.
const (
	LoopIteration = 0 // i64[]: number of the iteration
	LoopRuns      = 1 // bool[]: it is to run
	LoopArgs      = 2 // the loop state: operands of the call from here on too
)

// isEndless reports whether the condition of a loop is known to hold always.
func (c *Call) isEndless(known func(*Value) ([]byte, bool)) bool {
	holds := func(v *Value) bool {
		if known == nil || v == nil || v.Kind != Weight {
			return false
		}
		data, ok := known(v)
		return ok && len(data) == 1 && data[0] != 0
	}
	region := c.Regions[0]
	if len(region.Results) == 0 || len(region.Params) < LoopArgs {
		return false
	}
	if len(c.Args) > 1 && c.Args[1].Value != nil && !holds(c.Args[1].Value) {
		return false
	}
	v := region.Results[0]
	for range region.Calls { // no more of them lie in between, except in a circle, which Verify has yet to refuse
		if v == nil || v.Def == nil || v.Def.Op.Name != "identity" && v.Def.Op.Name != "copy" || len(v.Def.Args) == 0 || !slices.Contains(region.Calls, v.Def) {
			break
		}
		v = v.Def.Args[0].Value
	}
	return v == region.Params[LoopRuns] || holds(v)
}

// loopArity checks the operands, region and results of a loop.
func (c *Call) loopArity() error {
	region, carried := c.Regions[0], max(0, len(c.Args)-LoopArgs)
	if len(region.Params) != LoopArgs+carried {
		return fmt.Errorf("got %d parameters of the region, want %d", len(region.Params), LoopArgs+carried)
	}
	if len(region.Results) != 1+len(c.Results) || len(c.Results) < carried {
		return fmt.Errorf("got %d results of the region and %d of the call, want one more than the call's, and %d of the call or more",
			len(region.Results), len(c.Results), carried)
	}
	for i := range carried {
		if c.Args[LoopArgs+i].Value == nil {
			return fmt.Errorf("operand %d is absent, want a value", LoopArgs+i)
		}
	}
	return nil
}

// EmptyPart returns the type of the parts of a loop's stack i when no iteration
// returned one: the known sizes of t, the type of the region's result, and for
// the others those that the loop declares. Sizes that are not known either way
// are 0; a rank that is not known is an error.
func (c *Call) EmptyPart(i int, t op.Type) (op.Type, error) {
	carried := max(0, len(c.Args)-LoopArgs)
	parts, err := op.LoopParts(c.Attrs.Ints("parts"), len(c.Results)-carried)
	if err != nil {
		return op.Type{}, err
	}
	declared := parts[i]
	if t.Shape == nil && declared == nil {
		return op.Type{}, fmt.Errorf("got no iteration that returns a value of type %s, want one or a known rank: %w", t, op.ErrUnsupported)
	}
	rank := len(declared)
	if t.Shape != nil {
		rank = t.Shape.Rank()
	}
	sizes := make([]int, rank)
	for axis := range sizes {
		if len(declared) == rank {
			sizes[axis] = int(max(0, declared[axis]))
		}
		if t.Shape == nil {
			continue
		}
		if n, ok := t.Shape.Dim(axis).Size(); ok {
			sizes[axis] = n
		}
	}
	s, err := shape.Of(sizes...)
	return op.Type{DType: t.DType, Shape: s}, err
}

// deepLoops is how many loops inside each other are inferred one iteration
// after the other: each may double the work.
const deepLoops = 3

// InferLoop sets the types of the parameters of a loop's region to types that
// hold in every iteration, and infers the region: at first to the types of the
// operands, then to the common part of these and the types of the next state.
func InferLoop(c *Call, known func(*Value) ([]byte, bool)) error {
	x := inference{known: known}
	return x.loop(c, 0)
}

// LoopTypes infers one loop for types that change: see [LoopTypes.Infer]. It is
// used by one goroutine at a time.
type LoopTypes struct {
	call *Call
	inference
}

// NewLoopTypes returns a LoopTypes for the call, whose operands and regions
// must not change but in their types. known is that of [InferLoop].
func NewLoopTypes(c *Call, known func(*Value) ([]byte, bool)) *LoopTypes {
	return &LoopTypes{c, inference{known, map[*Call]*op.Sig{}}}
}

// Infer is [InferLoop] for the types that the values have now. After the first
// time it makes no signatures.
func (l *LoopTypes) Infer() error { return l.loop(l.call, 0) }

func (x *inference) loop(c *Call, depth int) error {
	if err := c.loopArity(); err != nil {
		return fmt.Errorf("ir: %s: %w", c.Where(), err)
	}
	region := c.Regions[0]
	region.Params[LoopIteration].Type = op.Type{DType: dtype.I64, Shape: shape.Scalar()}
	region.Params[LoopRuns].Type = op.Type{DType: dtype.Bool, Shape: shape.Scalar()}
	for i, p := range region.Params[LoopArgs:] {
		p.Type = c.Args[LoopArgs+i].Value.Type
		if depth >= deepLoops {
			p.Type = p.Type.Open()
		}
	}
	for {
		if err := x.block(region, depth+1); err != nil {
			return err
		}
		settled := true
		for i, p := range region.Params[LoopArgs:] {
			next := region.Results[1+i].Type
			if next.DType != p.Type.DType {
				return fmt.Errorf("ir: %s: got %s carried on as %s, want one element type", c.Where(), p.Type, next)
			}
			both, err := op.Either(p.Type, next)
			if err != nil {
				return fmt.Errorf("ir: %s: %w", c.Where(), err)
			}
			if both != p.Type {
				p.Type, settled = both, false
			}
		}
		if settled {
			return nil
		}
	}
}
