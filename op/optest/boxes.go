package optest

import (
	"fmt"

	"github.com/tenure-go/tenure/op"
)

// checkBoxes holds operands against the boxes of the result that they are, and
// results against the boxes of operands.
func checkBoxes(s *op.Sig, c Case, want [][]byte) error {
	if rank := s.Results[0].Shape.Rank(); !s.Results[0].IsZero() {
		at := s.Parts(nil)
		for i := range len(at) / max(1, rank) {
			index := at[i*rank : (i+1)*rank]
			if index[0] < 0 {
				continue
			}
			part, err := box(s.Results[0], want[0], index, s.Args[i])
			if err != nil {
				return fmt.Errorf("operand %d as a part of the result: %w", i, err)
			}
			if at := firstDifference(part, c.Args[i].Data); at >= 0 {
				return fmt.Errorf("operand %d is a part of the result from %v on: got byte %#x at %d from the kernel, want the operand's %#x", i, index, part[at], at, c.Args[i].Data[at])
			}
		}
	}
	for r, t := range s.Results {
		if t.IsZero() {
			continue
		}
		index := make([]int, t.Shape.Rank())
		arg := s.BoxOf(r, index)
		if arg < 0 {
			continue
		}
		part, err := box(s.Args[arg], c.Args[arg].Data, index, t)
		if err != nil {
			return fmt.Errorf("result %d as a box of operand %d: %w", r, arg, err)
		}
		if at := firstDifference(want[r], part); at >= 0 {
			return fmt.Errorf("result %d is a box of operand %d from %v on: got byte %#x at %d from the kernel, want the operand's %#x", r, arg, index, want[r][at], at, part[at])
		}
	}
	return nil
}

// box returns the bytes of the elements of x that the type is a box of, from
// the index on.
func box(x op.Type, data []byte, at []int, t op.Type) ([]byte, error) {
	size := x.DType.Size()
	if x.DType != t.DType || x.Shape.Rank() != t.Shape.Rank() || size == 0 {
		return nil, fmt.Errorf("got %s in %s, want whole bytes, the same elements and as many axes", t, x)
	}
	start := 0
	for d, n := range t.Shape.Sizes() {
		if at[d] < 0 || at[d]+n > x.Shape.Size(d) {
			return nil, fmt.Errorf("got %s from %v on in %s, want it inside", t, at, x)
		}
		start += at[d] * x.Shape.Strides()[d]
	}
	index, part := make([]int, len(at)), make([]byte, 0, t.Shape.NumElements()*size)
	for range t.Shape.NumElements() {
		from := start
		for d, i := range index {
			from += i * x.Shape.Strides()[d]
		}
		part = append(part, data[from*size:(from+1)*size]...)
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < t.Shape.Size(d) {
				break
			}
			index[d] = 0
		}
	}
	return part, nil
}
