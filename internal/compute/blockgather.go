package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// blocksGathered: rows of the pool and of the result have no gaps, nor have
// tables and lengths.
func blocksGathered(_ *op.Sig, in, out []*shape.Layout) bool {
	whole := func(l *shape.Layout) bool { return l == nil || isWhole(l, 3) }
	return whole(in[0]) && noGaps(in[1:3]) && whole(out[0])
}

// blockGather copies the rows of each sequence out of the blocks of a pool. A
// tile is some heads of one sequence after the other.
type blockGather struct {
	batch, heads, count int // of the result
	blocks, rows        int // of the pool, and of a block
	columns             int // of the table
	row                 int // bytes
	end                 bool
	from, to            [3]int // bytes from one block or sequence, head and row to the next
	tile                groups // of heads of all sequences
}

func bindBlockGather(c *op.Call) (Kernel, error) {
	return &blockGather{end: c.Int("align_end") != 0}, nil
}

func (k *blockGather) takesStrides() bool { return true }

func (k *blockGather) Refill(t *Task) error {
	c := t.Call
	pool, all, size := c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes(), c.In[0].DType.Size()
	k.batch, k.heads, k.count = all[0], all[1], all[2]
	k.blocks, k.rows, k.row = pool[0], pool[2], pool[3]*size
	k.columns = c.In[1].Shape.Size(1)
	from, to := stridesOf(&c.In[0]), stridesOf(&c.Out[0])
	for i := range 3 {
		k.from[i], k.to[i] = from[i]*size, to[i]*size
	}
	k.tile = groupsOf(k.batch*k.heads, k.count*k.row)
	t.Tiles = k.tile.tiles()
	return nil
}

func (k *blockGather) Start(t *Task) error {
	table, used := in[int64](t.Call, 1), in[int64](t.Call, 2)
	for b, n := range used {
		if most := int64(min(k.count, k.columns*k.rows)); n < 0 || n > most {
			return fmt.Errorf("operand 2: got %d rows for sequence %d, want 0 to %d (the result has %d, and the table has %d blocks of %d)",
				n, b, most, k.count, k.columns, k.rows)
		}
		if n == 0 {
			continue
		}
		if err := checkBlocks(table[b*k.columns:], b, 0, kernel.CeilDiv(int(n), k.rows), k.blocks); err != nil {
			return err
		}
	}
	return nil
}

func (k *blockGather) Tile(t *Task, tile int, _ []byte) {
	table, used := in[int64](t.Call, 1), in[int64](t.Call, 2)
	lo, hi := k.tile.of(tile)
	for i := lo; i < hi; i++ {
		b, h := i/k.heads, i%k.heads
		k.gather(t.Call.Out[0].Data[b*k.to[0]+h*k.to[1]:], t.Call.In[0].Data[h*k.from[1]:], table[b*k.columns:][:k.columns], int(used[b]))
	}
}

// gather copies n rows of a head, and makes the others zeros.
func (k *blockGather) gather(dst, src []byte, table []int64, n int) {
	first := 0
	if k.end {
		first = k.count - n
	}
	k.clear(dst, 0, first)
	k.clear(dst, first+n, k.count)
	for row := 0; row < n; row += k.rows {
		from := src[int(table[row/k.rows])*k.from[0]:]
		move := min(k.rows, n-row)
		if at := (first + row) * k.to[2]; k.from[2] == k.row && k.to[2] == k.row {
			copy(dst[at:][:move*k.row], from)
			continue
		}
		for j := range move {
			copy(dst[(first+row+j)*k.to[2]:][:k.row], from[j*k.from[2]:])
		}
	}
}

// clear makes the rows [from, to) of a head zeros.
func (k *blockGather) clear(dst []byte, from, to int) {
	for row := from; row < to; row++ {
		clear(dst[row*k.to[2]:][:k.row])
	}
}
