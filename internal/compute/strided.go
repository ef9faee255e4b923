package compute

import (
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// An operand or a result may lie with strides, as a box of a larger buffer: see
// [Strided]. There are two ways for that. Some kernels walk strides themselves.
// All others run on the pieces of a call that are contiguous, see slabs.

// stridesTaker is a kernel that walks the strides of the operands and results
// of its call, for calls of which [Strided] is true.
type stridesTaker interface{ takesStrides() bool }

func takesStrides(k Kernel) bool {
	s, ok := k.(stridesTaker)
	return ok && s.takesStrides()
}

// walkers has the operators whose kernels walk strides, for the calls of which
// the function is true.
var walkers = map[*op.Def]func(s *op.Sig, in, out []*shape.Layout) bool{}

func registerWalkers(walks func(s *op.Sig, in, out []*shape.Layout) bool, names ...string) bool {
	for _, name := range names {
		walkers[builtin(name)] = walks
	}
	return true
}

// Strided reports whether a call of these types can be bound whose operands and
// results lie in these layouts, nil for those that are absent or contiguous. It
// depends on nothing else, and is true where all are contiguous. A layout with
// gaps has a positive stride on every axis, at least as long as all inner axes
// together, and elements of whole bytes; Data of its operand are the bytes from
// the first element to the end of the last. A kernel does not write those
// between.
func Strided(s *op.Sig, in, out []*shape.Layout) bool {
	some, ok := checkLayouts(s.Args, in)
	more, okOut := checkLayouts(s.Results, out)
	switch {
	case !ok || !okOut:
		return false
	case !some && !more:
		return true
	case s.Def.Kernel != nil || s.Def.Bound != nil:
		return false
	}
	if walks := walkers[s.Def]; walks != nil && walks(s, in, out) {
		return true
	}
	rule := rulesApart[s.Def]
	return rule != nil && rule.rounds(s, in, out) >= 0
}

// checkLayouts reports whether some layouts have gaps, and whether these are
// such as [Strided] demands.
func checkLayouts(types []op.Type, layouts []*shape.Layout) (some, ok bool) {
	for i, l := range layouts {
		if l == nil || l.IsContiguous() {
			continue
		}
		if some = true; i >= len(types) || l.Shape() != types[i].Shape || l.Flags() != 0 || types[i].DType.Size() == 0 || !isNested(l) {
			return true, false
		}
	}
	return some, true
}

// isNested reports whether the elements of each index of an axis lie before all
// of the next one.
func isNested(l *shape.Layout) bool {
	sizes, strides := l.Shape().Sizes(), l.Strides()
	reach := 0
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] > 1 {
			if strides[i] <= reach {
				return false
			}
			reach += (sizes[i] - 1) * strides[i]
		}
	}
	return true
}

// hasGaps reports whether an operand or a result does not lie in one piece.
func hasGaps(a *op.Arg) bool { return a.Layout != nil && !a.Layout.IsContiguous() }

// anyGaps reports whether some operand or result of the call has gaps.
func anyGaps(c *op.Call) bool {
	return slices.ContainsFunc(c.In, isStrided) || slices.ContainsFunc(c.Out, isStrided)
}

func isStrided(a op.Arg) bool { return hasGaps(&a) }

// stridesOf returns the strides of an operand or a result, in elements.
func stridesOf(a *op.Arg) []int {
	if hasGaps(a) {
		return a.Layout.Strides()
	}
	return a.Shape.Strides()
}

// gapStrides returns the strides of an operand or a result with gaps, in
// elements, and nil for one that lies in one piece.
func gapStrides(a *op.Arg) []int {
	if !hasGaps(a) {
		return nil
	}
	return a.Layout.Strides()
}

// appendBroadcast appends to dst the strides under which an operand is walked
// over the sizes of out, by numpy's rule.
func appendBroadcast(dst []int, a *op.Arg, out []int) []int {
	sizes, strides := a.Shape.Sizes(), stridesOf(a)
	for i := range out {
		at, step := i+len(sizes)-len(out), 0
		if at >= 0 && sizes[at] != 1 {
			step = strides[at]
		}
		dst = append(dst, step)
	}
	return dst
}

// operandsOnly is for kernels that walk the strides of operands only.
func operandsOnly(_ *op.Sig, _, out []*shape.Layout) bool {
	return noGaps(out)
}

// inRows reports whether the elements of rows follow each other in all layouts.
func inRows(layouts []*shape.Layout) bool {
	for _, l := range layouts {
		if l == nil || l.IsContiguous() {
			continue
		}
		sizes := l.Shape().Sizes()
		last := len(sizes) - 1
		for sizes[last] == 1 {
			last--
		}
		if l.Strides()[last] != 1 {
			return false
		}
	}
	return true
}

// anyLayout is for kernels that walk all strides of all operands and results.
func anyLayout(*op.Sig, []*shape.Layout, []*shape.Layout) bool { return true }
