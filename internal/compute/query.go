package compute

import "github.com/tenure-go/tenure/op"

var _ = register(map[string]binder{"shape": bindShape, "size": bindSize})

// The elements of the operand are not read.
var _ = registerWalkers(operandsOnly, "shape", "size")

// oneTile is what kernels need of sizes whose work is next to nothing.
type oneTile struct{}

func (oneTile) Refill(t *Task) error {
	t.Tiles = 1
	return nil
}

func (oneTile) takesStrides() bool { return true }

type shapeKernel struct{ oneTile }

func bindShape(*op.Call) (Kernel, error) { return shapeKernel{}, nil }

func (shapeKernel) Tile(t *Task, _ int, _ []byte) {
	start, end := t.Call.ShapeRange()
	dst := out[int64](t.Call, 0)
	for i, n := range t.Call.In[0].Shape.Sizes()[start:end] {
		dst[i] = int64(n)
	}
}

type sizeKernel struct{ oneTile }

func bindSize(*op.Call) (Kernel, error) { return sizeKernel{}, nil }

func (sizeKernel) Tile(t *Task, _ int, _ []byte) {
	out[int64](t.Call, 0)[0] = int64(elements(&t.Call.In[0]))
}
