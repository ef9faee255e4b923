package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"softmax":                inFloats(bindSoftmax[float32], bindSoftmax[float64]),
	"log_softmax":            inFloats(bindSoftmax[float32], bindSoftmax[float64]),
	"layer_normalization":    inFloats(bindLayerNorm[float32], bindLayerNorm[float64]),
	"instance_normalization": inFloats(bindInstanceNorm[float32], bindInstanceNorm[float64]),
	"group_normalization":    inFloats(bindGroupNorm[float32], bindGroupNorm[float64]),
	"batch_normalization":    inFloats(bindBatchNorm[float32], bindBatchNorm[float64]),
})

// inFloats picks the binder by the type of operand 0; 16-bit floats are
// computed as f32.
func inFloats(single, double binder) binder {
	return func(c *op.Call) (*Task, error) {
		switch c.In[0].DType {
		case dtype.F32:
			return single(c)
		case dtype.F64:
			return double(c)
		case dtype.F16, dtype.BF16:
			return halfAsF32(c)
		}
		return nil, unsupported(c)
	}
}

func bindSoftmax[T kernel.Float](c *op.Call) (*Task, error) {
	if c.In[0].Shape.Rank() == 0 {
		return nil, unsupported(c)
	}
	outer, axis, inner := around(c.In[0].Shape.Sizes(), int(c.Int("axis")))
	s := &kernel.Softmax{Outer: outer, Axis: axis, Inner: inner, Log: c.Def.Name == "log_softmax"}
	if axis == 0 || inner == 0 {
		return &Task{}, nil
	}
	return &Task{Tiles: s.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.SoftmaxTile(s, tile, out[T](c, 0), in[T](c, 0))
	}}, nil
}

func bindLayerNorm[T kernel.Float](c *op.Call) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	axis := int(c.Int("axis"))
	if axis < 0 {
		axis += len(sizes)
	}
	n := &kernel.Norm{Rows: 1, Len: 1, Epsilon: c.Float("epsilon")}
	for i, s := range sizes {
		if i < axis {
			n.Rows *= s
		} else {
			n.Len *= s
		}
	}
	for i := 1; i < len(c.In); i++ {
		if !c.In[i].IsZero() && elements(&c.In[i]) != n.Len {
			return nil, fmt.Errorf("got operand %d %s for rows of %d elements, want one element for each: %w", i, c.In[i].Type, n.Len, op.ErrUnsupported)
		}
	}
	for i := 1; i < len(c.Out); i++ {
		if t := c.Out[i].Type; !t.IsZero() && t.DType != c.In[0].DType {
			return nil, fmt.Errorf("got statistics in %s for operands in %s, want one type: %w", t.DType, c.In[0].DType, op.ErrUnsupported)
		}
	}
	return &Task{Tiles: n.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.NormTile(n, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1),
			in[T](c, 2), out[T](c, 1), out[T](c, 2))
	}}, nil
}

func bindInstanceNorm[T kernel.Float](c *op.Call) (*Task, error) {
	return bindChannelNorm[T](c, c.In[0].Shape.Size(1))
}

func bindGroupNorm[T kernel.Float](c *op.Call) (*Task, error) {
	return bindChannelNorm[T](c, int(c.Int("num_groups")))
}

// bindChannelNorm normalises rows of whole channels: groups of them per
// batch index.
func bindChannelNorm[T kernel.Float](c *op.Call, groups int) (*Task, error) {
	sizes := c.In[0].Shape.Sizes()
	all, channels := c.In[0].Shape.NumElements(), sizes[1]
	n := &kernel.Norm{Rows: sizes[0] * groups, Channels: channels, Epsilon: c.Float("epsilon")}
	if all == 0 {
		return &Task{}, nil
	}
	n.Len, n.Area = all/n.Rows, all/(sizes[0]*channels)
	return &Task{Tiles: n.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.NormTile(n, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2), nil, nil)
	}}, nil
}

func bindBatchNorm[T kernel.Float](c *op.Call) (*Task, error) {
	if c.Int("training_mode") != 0 {
		return nil, fmt.Errorf("got training_mode 1, want 0: %w", op.ErrUnsupported)
	}
	for i := 1; i < 5; i++ {
		if c.In[i].DType != c.In[0].DType {
			return nil, unsupported(c)
		}
	}
	all, channels := elements(&c.In[0]), elements(&c.In[1])
	if all == 0 {
		return &Task{}, nil
	}
	planes := c.In[0].Shape.Size(0) * channels
	if c.In[0].Shape.Rank() == 1 {
		planes = all // one channel
	}
	area, epsilon := all/planes, c.Float("epsilon")
	perTile := max(1, (16<<10)/area)
	return &Task{Tiles: (planes + perTile - 1) / perTile, Tile: func(tile int, _ []byte) {
		lo := tile * perTile
		kernel.BatchNormTile(lo, min(lo+perTile, planes), area, epsilon, out[T](c, 0), in[T](c, 0),
			in[T](c, 1), in[T](c, 2), in[T](c, 3), in[T](c, 4))
	}}, nil
}
