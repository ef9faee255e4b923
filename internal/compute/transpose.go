package compute

import (
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"transpose": unpacked(bindTranspose)})

var _ = registerWalkers(anyLayout, "transpose")

// transposed puts the axes of operand 0 in another order: by a copy, or within
// the operand's bytes where the result has those. There two axes of one size
// are exchanged in tiles, and other transposes are one tile.
type transposed struct {
	oneCopy
	perm     []int
	inPlace  bool // the sizes allow it
	permute  move.Permute
	square   move.Square
	isSquare bool
	prepared bool // permute is, for these sizes
	anywhere int  // tiles of the copy
}

func bindTranspose(*op.Call) (Kernel, error) { return &transposed{}, nil }

func (k *transposed) Refill(t *Task) (err error) {
	c := t.Call
	sizes, elem := c.In[0].Shape.Sizes(), c.In[0].DType.Size()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	if k.perm == nil || len(k.perm) != len(sizes) {
		if k.perm, err = c.Perm(len(sizes)); err != nil {
			return err
		}
	}
	k.copy.PrepareTranspose(elem, sizes, k.perm, stridesOf(&c.Out[0]), stridesOf(&c.In[0]))
	k.filled(t)
	k.anywhere = t.Tiles
	k.inPlace, k.prepared = c.AliasAlone(0, 0) == op.Permute && !k.isBox && !hasGaps(&c.In[0]) && !hasGaps(&c.Out[0]), false
	if k.isSquare = false; k.inPlace {
		if a, b := c.Exchanged(); a >= 0 {
			k.isSquare = true
			k.square.Prepare(elem, sizes, stridesOf(&c.In[0]), a, b)
		}
	}
	return nil
}

// overwrites reports whether the result has the operand's bytes.
func (k *transposed) overwrites(c *op.Call) bool {
	return k.inPlace && sameBytes(c.Out[0].Data, c.In[0].Data)
}

func (k *transposed) Start(t *Task) error {
	if t.Tiles = k.anywhere; !k.overwrites(t.Call) {
		return nil
	}
	if k.isSquare {
		t.Tiles = k.square.Tiles()
		return nil
	}
	t.Tiles = 1
	if x := &t.Call.In[0]; !k.prepared && !k.permute.Prepare(x.DType.Size(), x.Shape.Sizes(), k.perm) {
		return fmt.Errorf("BUG: compute: transpose of %v by %v in place takes %d bytes of scratch", x.Shape.Sizes(), k.perm, k.permute.ScratchBytes())
	}
	k.prepared = true
	return nil
}

// permuteScratch is the scratch of transposes in place, which plans do not
// count.
var permuteScratch = sync.Pool{New: func() any { return new([move.MostPermuteBytes]byte) }}

func (k *transposed) Tile(t *Task, tile int, _ []byte) {
	if !k.overwrites(t.Call) {
		k.tile(t, tile)
		return
	}
	scratch := permuteScratch.Get().(*[move.MostPermuteBytes]byte)
	if data := t.Call.Out[0].Data; k.isSquare {
		k.square.Tile(t.variant, tile, data, scratch[:move.SquareBytes])
	} else {
		k.permute.Run(t.variant, data, scratch[:])
	}
	permuteScratch.Put(scratch)
}
