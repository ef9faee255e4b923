package randomprogram

import (
	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// mostElements bounds the elements of an input.
const mostElements = 1 << 16

// Sizes draws static types of the parameters: 0 and 1, primes, equal sizes and
// others, and one large size now and then.
func (o *Open) Sizes(t *rapid.T) []op.Type {
	pick := func(of ...int) int { return rapid.SampledFrom(of).Draw(t, "size") }
	size := func() int { return pick(0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 11, 64) }
	of := map[string]int{}
	same := pick(0, 0, 0, 1) == 1
	for i, s := range symbols {
		if of[s] = size(); same && i > 0 {
			of[s] = of[symbols[0]]
		}
	}
	sizes := make([][]int, len(o.Program.Body.Params))
	for i, p := range o.Program.Body.Params {
		sizes[i] = make([]int, p.Type.Shape.Rank())
		for axis, dim := range p.Type.Shape.Dims() {
			if n, ok := dim.Size(); ok {
				sizes[i][axis] = n
			} else if s, ok := dim.Symbol(); ok {
				sizes[i][axis] = of[s]
			} else {
				sizes[i][axis] = size()
			}
		}
	}
	if pick(0, 0, 0, 0, 0, 0, 0, 0, 0, 1) == 1 && !o.scans {
		o.enlarge(sizes, symbols[pick(0, 1, 2)], pick(65, 67, 127, 257, 1021, 4093, 65521, 65536))
	}
	most := mostElements
	if o.scans {
		most = 1 << 10 // each round of a loop may copy all
	}
	types := make([]op.Type, len(sizes))
	for i := range sizes {
		if shape.MustOf(sizes[i]...).NumElements() > most {
			for k := range sizes {
				for axis, n := range sizes[k] {
					sizes[k][axis] = min(n, 4)
				}
			}
		}
	}
	for i, p := range o.Program.Body.Params {
		types[i] = op.Type{DType: p.Type.DType, Shape: shape.MustOf(sizes[i]...)}
	}
	return types
}

// enlarge sets the sizes of a symbol to n, if no parameter has too many
// elements then.
func (o *Open) enlarge(sizes [][]int, symbol string, n int) {
	larger := make([][]int, len(sizes))
	for i, p := range o.Program.Body.Params {
		elements := 1
		for axis, dim := range p.Type.Shape.Dims() {
			size := sizes[i][axis]
			if s, ok := dim.Symbol(); ok && s == symbol {
				size = n
			}
			larger[i] = append(larger[i], size)
			if elements *= size; elements > mostElements {
				return
			}
		}
	}
	copy(sizes, larger)
}

// Inputs returns the parameters' values for these types: small numbers, and
// integers that may be sizes.
func (o *Open) Inputs(types []op.Type, seed int) []op.Arg {
	list := make([]op.Arg, len(types))
	for i, t := range types {
		list[i] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape)}
		if t.DType == dtype.F32 {
			list[i].Data = SmallFloats(t, seed+i)
			continue
		}
		numbers := make([]int64, t.Shape.NumElements())
		for k := range numbers {
			numbers[k] = []int64{2, 1, 3, 0, 4, 2, -1, 5}[(seed*3+i+k)%8]
		}
		if first := types[0].Shape; seed%3 == 0 && len(numbers) > 0 && first.Rank() > 0 {
			numbers[0] = int64(first.Size(0))
		}
		list[i].Data = int64s(numbers...)
	}
	return list
}
