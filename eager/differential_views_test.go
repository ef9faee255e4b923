package eager_test

import (
	"errors"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// viewer is what tensors and the two ways to give one up have in common.
type viewer interface {
	Slice(...tensor.Range) (*tensor.Tensor, error)
	Reshape(...int) (*tensor.Tensor, error)
	Permute(...int) (*tensor.Tensor, error)
	Unsqueeze(...int) (*tensor.Tensor, error)
}

// view makes a view of a variable; on one that is given up it moves the hold.
func (p *program) view() {
	v := p.any()
	o := p.pass(v)
	var from viewer = v.t
	switch x := o.(type) {
	case tensor.Donated:
		from = x
	case tensor.Reused:
		from = x
	}
	sizes := v.want.Shape.Sizes()
	var t *tensor.Tensor
	var err error
	var index func(i []int) []int // where element i of the view is in v
	var dims []int
	switch kind := p.r.IntN(5); {
	case kind == 0 && len(sizes) > 0 && sizes[0] > 0: // every step-th row from some row on
		start, step := p.r.IntN(sizes[0]), 1+p.r.IntN(2)
		dims = append([]int{(sizes[0]-start-1)/step + 1}, sizes[1:]...)
		t, err = from.Slice(tensor.Range{Start: start, Stop: tensor.End, Step: step})
		index = func(i []int) []int { return append([]int{start + step*i[0]}, i[1:]...) }
	case kind == 1 && len(sizes) > 0:
		axes := p.r.Perm(len(sizes))
		for _, a := range axes {
			dims = append(dims, sizes[a])
		}
		t, err = from.Permute(axes...)
		index = func(i []int) []int {
			at := make([]int, len(i))
			for k, a := range axes {
				at[a] = i[k]
			}
			return at
		}
	case kind == 2 && v.t.Layout().IsContiguous():
		dims = []int{v.want.Shape.NumElements()}
		t, err = from.Reshape(-1)
		index = func(i []int) []int { return unflatten(i[0], sizes) }
	case kind == 3 && len(sizes) < 4 && o.Semantics() == tensor.Borrow:
		dims = append([]int{2}, sizes...)
		t, err = v.t.Broadcast(dims...)
		index = func(i []int) []int { return i[1:] }
	case len(sizes) < 4:
		dims = append([]int{1}, sizes...)
		t, err = from.Unsqueeze(0)
		index = func(i []int) []int { return i[1:] }
	default:
		return
	}
	p.totals.views.Add(1)
	if err != nil {
		if !errors.Is(err, tensor.ErrShared) {
			p.errorf("view of %s: %v", v.want.Type, err)
		}
		p.totals.refused.Add(1)
		p.check(v)
		return
	}
	want := value{op.Type{DType: v.want.DType, Shape: shape.MustOf(dims...)}, nil}
	size := v.want.DType.Size()
	for k := range want.Shape.NumElements() {
		at := 0
		for d, i := range index(unflatten(k, dims)) {
			at += i * v.want.Shape.Strides()[d]
		}
		want.data = append(want.data, v.want.data[at*size:(at+1)*size]...)
	}
	if o.Semantics() != tensor.Borrow {
		for k, x := range p.vars {
			if x == v {
				p.vars = append(p.vars[:k:k], p.vars[k+1:]...)
				break
			}
		}
		if e := v.t.Release(); !errors.Is(e, tensor.ErrDonated) {
			p.errorf("view: a tensor that was given up: got %v, want ErrDonated", e)
		}
	}
	p.add(t, want, false)
}

// unflatten returns the index of element k in row-major order.
func unflatten(k int, dims []int) []int {
	index := make([]int, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		index[d] = k % dims[d]
		k /= dims[d]
	}
	return index
}
