package compute

import "github.com/tenure-go/tenure/op"

var _ = register(map[string]binder{"shape": bindShape, "size": bindSize})

// small is the task of an operator whose work is next to nothing.
func small(tile func()) *Task {
	return &Task{Tiles: 1, Tile: func(int, []byte) { tile() }}
}

func bindShape(c *op.Call) (*Task, error) {
	start, end := c.ShapeRange()
	sizes := c.In[0].Shape.Sizes()[start:end]
	return small(func() {
		dst := out[int64](c, 0)
		for i, n := range sizes {
			dst[i] = int64(n)
		}
	}), nil
}

func bindSize(c *op.Call) (*Task, error) {
	n := int64(elements(&c.In[0]))
	return small(func() { out[int64](c, 0)[0] = n }), nil
}
