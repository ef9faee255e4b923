package compute

import (
	"slices"

	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"concat": bindConcat, "split": bindSplit})

var _ = registerWalkers(anyLayout, "concat", "split")

var _ = needValues(map[string][]int{"split": {1}})

// batch is a stretch of a task's tiles: those of one large copy, several at a
// time, or one tile that does several small copies.
type batch struct {
	first  int // tile of the task
	lo, hi int // movers
	each   int // tiles of the copy in one of the task
}

// movers are several copies, whose tiles are put together until a tile is
// worth claiming. What it keeps grows with their number, not their size.
type movers struct {
	list    []mover
	batches []batch
}

// next returns one more copy, to be filled.
func (k *movers) next() *mover {
	if n := len(k.list); n < cap(k.list) {
		k.list = k.list[:n+1] // with what its copy reuses
	} else {
		k.list = append(k.list, mover{})
	}
	return &k.list[len(k.list)-1]
}

// filled ends Refill, when the copies are prepared.
func (k *movers) filled(t *Task) {
	k.batches = k.batches[:0]
	tiles, open, filled := 0, false, 0 // open: the last batch takes more small copies
	for i := range k.list {
		m := &k.list[i]
		n := m.copy.Tiles()
		switch {
		case n == 0:
		case m.bytes >= copySpan:
			each := max(1, min(n, copySpan/max(1, m.bytes/n)))
			k.batches = append(k.batches, batch{tiles, i, i + 1, each})
			tiles += (n-1)/each + 1
			open = false
		case open && filled < copySpan:
			k.batches[len(k.batches)-1].hi = i + 1
			filled += m.bytes
		default:
			k.batches = append(k.batches, batch{tiles, i, i + 1, n})
			tiles++
			open, filled = true, m.bytes
		}
	}
	t.Tiles = tiles
}

func (k *movers) takesStrides() bool { return true }

func (k *movers) Tile(t *Task, tile int, _ []byte) {
	at, found := slices.BinarySearchFunc(k.batches, tile, func(b batch, tile int) int { return b.first - tile })
	if !found {
		at--
	}
	b := &k.batches[at]
	for i := b.lo; i < b.hi; i++ {
		m := &k.list[i]
		from, to := 0, m.copy.Tiles()
		if b.hi == b.lo+1 {
			from = (tile - b.first) * b.each
			to = min(from+b.each, to)
		}
		for part := from; part < to; part++ {
			m.tile(t, part)
		}
	}
}

type concatenated struct{ movers }

func bindConcat(*op.Call) (Kernel, error) { return &concatenated{}, nil }

func (k *concatenated) Refill(t *Task) error {
	c := t.Call
	sizes := c.Out[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	axis, start := axisOf(c, len(sizes)), 0
	k.list = k.list[:0]
	to := stridesOf(&c.Out[0])
	for i := range c.In {
		n, from := c.In[i].Shape.Size(axis), stridesOf(&c.In[i])
		m := k.next()
		m.in, m.bytes = i, elements(&c.In[i])*c.In[i].DType.Size()
		m.copy.PrepareInsert(c.Out[0].DType.Size(), sizes, axis, start, n, to, from)
		m.place(c)
		start += n
	}
	k.filled(t)
	return nil
}

type splits struct {
	movers
	sizes []int64 // of the parts, where the call names them
}

func bindSplit(*op.Call) (Kernel, error) { return &splits{}, nil }

func (k *splits) Refill(t *Task) error {
	c := t.Call
	sizes := c.In[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	axis, start := axisOf(c, len(sizes)), 0
	k.sizes, _ = c.AppendKnownInts(k.sizes[:0], 1)
	k.list = k.list[:0]
	from := stridesOf(&c.In[0])
	for i := range c.Out {
		n := (sizes[axis] + len(c.Out) - 1) / len(c.Out)
		switch {
		case wanted(c, i):
			n = c.Out[i].Shape.Size(axis)
			m, to := k.next(), stridesOf(&c.Out[i])
			m.out, m.bytes = i, elements(&c.Out[i])*c.Out[i].DType.Size()
			m.copy.PrepareExtract(c.In[0].DType.Size(), sizes, axis, start, n, to, from)
			m.place(c)
		case i < len(k.sizes):
			n = int(k.sizes[i])
		case has(c, 1):
			return unknown(c, 1)
		}
		start += n
	}
	k.filled(t)
	return nil
}
