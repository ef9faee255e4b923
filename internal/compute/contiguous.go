package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
)

// MakeContiguous returns the task that copies the elements of a layout, of 1,
// 2, 4, 8 or 16 bytes, into row-major order; nil if it has more axes than
// kernels walk. Both slices are aligned to the elements. first is where in src
// the first element is, and strides may be negative, both in elements.
func MakeContiguous(elemBytes int, sizes, strides []int, first int, dst, src []byte) *Task {
	if checkLoops(sizes) != nil {
		return nil
	}
	var buf [kernel.MaxRank]int
	row, n := append(buf[:0], sizes...), 1
	for i := len(sizes) - 1; i >= 0; i-- {
		row[i] = n
		n *= sizes[i]
	}
	k := &gatherLayout{dst: dst, src: src}
	k.copy.Prepare(elemBytes, sizes, 0, row, first, strides)
	t := newTask(machine.Best(), &op.Call{Sig: &op.Sig{Def: op.Builtin().Lookup("copy")}}, k)
	t.Tiles = k.copy.Tiles()
	return t
}

// gatherLayout is the copy of a layout, which no call has as an operand.
type gatherLayout struct {
	copy     move.Copy
	dst, src []byte
}

func (k *gatherLayout) Refill(*Task) error { return ErrRebind }

func (k *gatherLayout) Tile(t *Task, tile int, _ []byte) { k.copy.Tile(t.variant, tile, k.dst, k.src) }
