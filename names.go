package tenure

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// namedDim is a dimension of an input that has a name.
type namedDim struct {
	name        string
	input, axis int
	first       int // place in the list of the first dimension of that name
	terms       []int
	rest        int // with the sizes of terms the sum that the name is, if there are terms
}

// namedDims lists the dimensions of inputs that have names.
func namedDims(inputs []Info) []namedDim {
	var list []namedDim
	var names []string
	for i, in := range inputs {
		if in.Shape == nil {
			continue
		}
		for axis := range in.Shape.Rank() {
			if name, ok := in.Shape.Dim(axis).Symbol(); ok {
				names = append(names, name)
				list = append(list, namedDim{name: name, input: i, axis: axis, first: slices.Index(names, name)})
			}
		}
	}
	for i := range list {
		terms, rest := sumOf(list[i].name, names)
		for _, term := range terms {
			list[i].terms = append(list[i].terms, slices.Index(names, term))
		}
		list[i].rest = int(rest)
	}
	return list
}

// size is the size of the dimension in types of inputs that fit the model's.
func (d *namedDim) size(types []op.Type) int { return types[d.input].Shape.Size(d.axis) }

// twoSizes looks for a dimension's name that the types of inputs give two
// sizes, or a sum of names that is not that of their sizes. It returns the name
// and an error that names the first such input, nil where there is none.
func (m *Model) twoSizes(types []op.Type) (name string, err error) {
	for i := range m.named {
		d := &m.named[i]
		want := m.named[d.first].size(types)
		if d.first == i && len(d.terms) > 0 {
			want = d.rest
			for _, term := range d.terms {
				want += m.named[term].size(types)
			}
		}
		if want != d.size(types) {
			in, as := m.inputs[d.input], "the sum that its name says"
			if d.first != i {
				as = fmt.Sprintf("in input %q", m.inputs[m.named[d.first].input].Name)
			}
			return d.name, fmt.Errorf("input %q: got %s, want %s with %s = %d as %s: %w", in.Name, types[d.input], op.Type{DType: in.DType, Shape: in.Shape}, d.name, want, as, ErrShape)
		}
	}
	return "", nil
}

// withoutOnes returns the types with another size, one that no other dimension
// has, for each 1 of a dimension whose name has two sizes. It reports whether
// there is one.
func (m *Model) withoutOnes(types []op.Type) (apart []op.Type, any bool) {
	fresh := 2
	for i := range m.named {
		fresh = max(fresh, m.named[i].size(types)+1)
	}
	apart = slices.Clone(types)
	for i := range m.named {
		d := &m.named[i]
		other := slices.ContainsFunc(m.named, func(o namedDim) bool { return o.first == d.first && o.size(types) != 1 })
		if d.size(types) != 1 || !other {
			continue
		}
		sizes := slices.Clone(apart[d.input].Shape.Sizes())
		sizes[d.axis] = fresh
		if s, err := shape.Of(sizes...); err == nil {
			apart[d.input].Shape = s
			fresh++
			any = true
		}
	}
	return apart, any
}
