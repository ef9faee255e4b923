package check_test

import (
	"errors"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// testOps is the table with, besides its own operators, one for each way to
// alias that is easier to have small.
var testOps = func() *op.Registry {
	ints := func(names ...string) (out []op.AttrDef) {
		for _, n := range names {
			out = append(out, op.AttrDef{Name: n, Kind: op.Int, Needed: true})
		}
		return out
	}
	like := func(s *op.Sig) error {
		for i := range s.Results {
			s.Results[i] = s.Args[0]
		}
		return nil
	}
	vector := func(s *op.Sig) error {
		n, err := shape.Of(int(s.Int("size")))
		s.Results[0] = op.Type{DType: dtype.F32, Shape: n}
		return err
	}
	resize := func(s *op.Sig, axis int, size func(int) int) error {
		sizes := slices.Clone(s.Args[0].Shape.Sizes())
		if axis >= len(sizes) {
			return errors.New("no such axis")
		}
		sizes[axis] = size(sizes[axis])
		n, err := shape.Of(sizes...)
		s.Results[0] = op.Type{DType: s.Args[0].DType, Shape: n}
		return err
	}
	r, err := op.Builtin().With(
		// Elements from .. from+size of a vector.
		&op.Def{Name: "test.part", MinArgs: 1, MaxArgs: 1, Attrs: ints("from", "size"), Infer: vector,
			Alias: op.Aliases(op.Rule{Kind: op.View, Offset: func(s *op.Sig, _ int) (int, bool) { return 4 * int(s.Int("from")), true }})},
		// Elements from .. from+size along an axis.
		&op.Def{Name: "test.box", MinArgs: 1, MaxArgs: 1, Attrs: ints("axis", "from", "size"),
			Infer: func(s *op.Sig) error {
				return resize(s, int(s.Int("axis")), func(n int) int { return min(int(s.Int("size")), n-int(s.Int("from"))) })
			},
			Alias: op.Fresh().OfBoxes(func(s *op.Sig, _ int, at []int) (int, bool) {
				clear(at)
				at[s.Int("axis")] = int(s.Int("from"))
				return 0, true
			})},
		// The operand with elements before and after it along an axis.
		&op.Def{Name: "test.frame", MinArgs: 1, MaxArgs: 1, Attrs: ints("axis", "before", "after"),
			Infer: func(s *op.Sig) error {
				return resize(s, int(s.Int("axis")), func(n int) int { return n + int(s.Int("before")+s.Int("after")) })
			},
			Alias: op.Fresh().OfParts(func(s *op.Sig, at []int) bool {
				clear(at)
				at[s.Int("axis")] = int(s.Int("before"))
				return true
			})},
		// Two axes as one.
		&op.Def{Name: "test.merge", MinArgs: 1, MaxArgs: 1, Attrs: ints("axis"), Alias: op.ViewOf(0),
			Infer: func(s *op.Sig) error {
				sizes, axis := slices.Clone(s.Args[0].Shape.Sizes()), int(s.Int("axis"))
				if axis+1 >= len(sizes) {
					return errors.New("no such axis")
				}
				sizes[axis] *= sizes[axis+1]
				n, err := shape.Of(slices.Delete(sizes, axis+1, axis+2)...)
				s.Results[0] = op.Type{DType: s.Args[0].DType, Shape: n}
				return err
			}},
		&op.Def{Name: "test.accumulate", MinArgs: 2, MaxArgs: 2, Infer: like, Alias: op.Aliases(op.Rule{Kind: op.Accumulate})},
		&op.Def{Name: "test.update", MinArgs: 2, MaxArgs: 2, Infer: like, Alias: op.Aliases(op.Rule{Kind: op.Update})},
		// Every element of the result needs all of operand 1.
		&op.Def{Name: "test.scale", MinArgs: 2, MaxArgs: 2, Infer: like, Alias: op.SameAs(0)},
		&op.Def{Name: "test.mix", MinArgs: 1, MaxArgs: op.Variadic, Attrs: ints("size"), Infer: vector, Alias: op.Fresh()},
		&op.Def{Name: "test.twins", MinArgs: 1, MaxArgs: 1, MinResults: 2, MaxResults: 2, Infer: like, Alias: op.Fresh()},
		&op.Def{Name: "test.silent", MinArgs: 1, MaxArgs: 1, Infer: like},
		&op.Def{Name: "test.print", MinArgs: 1, MaxArgs: 1, Infer: like, Alias: op.Fresh(), Impure: true},
		&op.Def{Name: "test.hungry", MinArgs: 1, MaxArgs: 1, Infer: like, Alias: op.Fresh(),
			Scratch: func(*op.Sig) (int, error) { return 100, nil }},
		// Adds a function of operand 0 to operand 1, element by element.
		&op.Def{Name: "test.both", MinArgs: 2, MaxArgs: 2, Infer: like, Alias: op.Aliases(op.Rule{Kind: op.Same}, op.Rule{Arg: 1, Kind: op.Accumulate})},
		&op.Def{Name: "test.loops", MinArgs: 1, MaxArgs: 1, Regions: 2, Infer: like, Alias: op.Fresh()},
		&op.Def{Name: "test.loop", MinArgs: 1, MaxArgs: 1, Regions: 1, Infer: like, Alias: op.Fresh()},
	)
	if err != nil {
		panic(err)
	}
	return r
}()
