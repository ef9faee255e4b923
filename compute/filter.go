package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"non_zero": bindNonZero,
})

// setSizes sets the type of a result whose size the kernel finds. It is not
// larger than the bound in the result's place.
func setSizes(c *op.Call, result int, sizes ...int) {
	dt := c.Out[result].DType
	sh := shape.MustOf(sizes...)
	c.Out[result].Type = op.Type{DType: dt, Shape: sh}
	c.Out[result].Layout = shape.RowMajor(sh)
}

func bindNonZero(c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	return small(func() {
		count := kernel.NonZeroCount(c.In[0].DType, c.In[0].Data)
		kernel.NonZero(c.In[0].DType, out[int64](c, 0)[:len(sizes)*count], c.In[0].Data, sizes)
		setSizes(c, 0, len(sizes), count)
	}), nil
}
