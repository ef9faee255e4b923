package compute

import (
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"pad": unpacked(bindPad)})

var _ = needValues(map[string][]int{"pad": {1, 3}})

var _ = registerWalkers(anyLayout, "pad")

var padModes = map[string]move.PadMode{
	"constant": move.PadConstant, "reflect": move.PadReflect, "edge": move.PadEdge, "wrap": move.PadWrap,
}

// padded copies operand 0 with elements around it. Of the operand as it is, it
// is a plain copy.
type padded struct {
	copyFirst
	mode  move.PadMode
	zero  []byte
	whole bool // nothing is added or taken away
	pad   move.Pad
}

func bindPad(c *op.Call) (Kernel, error) {
	return &padded{mode: padModes[c.Str("mode")], zero: make([]byte, c.In[0].DType.Size())}, nil
}

func (k *padded) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	begin, end, ok, err := c.Pads(len(sizes))
	if err != nil {
		return err
	}
	if !ok {
		if has(c, 3) {
			if _, known := c.KnownInts(3); !known {
				return unknown(c, 3)
			}
		}
		return unknown(c, 1)
	}
	kind, _ := c.AliasOf(0, 0)
	if k.whole = kind == op.View; k.whole {
		return k.copyFirst.Refill(t)
	}
	outer := len(sizes)
	for outer > 1 && begin[outer-1] == 0 && end[outer-1] == 0 {
		outer-- // the elements of these axes stay together
	}
	for i, n := range c.Out[0].Shape.Sizes()[:outer] {
		if err := checkTable(i, n); err != nil {
			return err
		}
	}
	k.pad.Prepare(c.In[0].DType.Size(), sizes, begin, end, k.mode, stridesOf(&c.Out[0]), stridesOf(&c.In[0]))
	t.Tiles = k.pad.Tiles()
	return nil
}

func (k *padded) Start(t *Task) error {
	if k.whole {
		return k.copyFirst.Start(t)
	}
	return nil
}

func (k *padded) Tile(t *Task, tile int, scratch []byte) {
	c, value := t.Call, k.zero
	if k.whole {
		k.copyFirst.Tile(t, tile, scratch)
		return
	}
	if has(c, 2) {
		value = c.In[2].Data
	}
	k.pad.Tile(tile, c.Out[0].Data, c.In[0].Data, value)
}
