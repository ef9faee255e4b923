package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// Straighten returns the task that copies the elements of a layout, of 1, 2, 4, 8 or 16 bytes, into row-major order; nil if it has more
// axes than kernels walk. Both slices are aligned to the elements. first is where in src the first element is, and strides may be negative,
// both in elements.
func Straighten(elemBytes int, sizes, strides []int, first int, dst, src []byte) *Task {
	if checkLoops(sizes) != nil {
		return nil
	}
	row, n := make([]int, len(sizes)), 1
	for i := len(sizes) - 1; i >= 0; i-- {
		row[i] = n
		n *= sizes[i]
	}
	c := new(kernel.Copy)
	c.Prepare(elemBytes, sizes, 0, row, first, strides)
	call := &op.Call{Sig: &op.Sig{Def: op.Builtin().Lookup("copy")}}
	return &Task{Call: call, Tiles: c.Tiles(), Tile: func(tile int, _ []byte) { c.Tile(machine.Best(), tile, dst, src) }}
}
