package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The operators of this file find rows by tables of blocks. Tables are read
// when a call starts: a number that is no block of the pool is an error, in all
// columns that the call reads or writes.
var _ = register(map[string]binder{
	"block_scatter":   bindBlockScatter,
	"block_gather":    bindBlockGather,
	"block_attention": bindBlockAttention,
})

var (
	_ = registerWalkers(blocksWritten, "block_scatter")
	_ = registerWalkers(blocksGathered, "block_gather")
	_ = registerWalkers(blocksRead, "block_attention")
)

// blocksWritten: the rows of the result have no gaps, nor have the other
// operands.
func blocksWritten(_ *op.Sig, in, out []*shape.Layout) bool {
	return noGaps(in[1:]) && (out[0] == nil || isWhole(out[0], 3))
}

// blocksRead: rows have no gaps, nor have masks, tables and lengths.
func blocksRead(s *op.Sig, in, out []*shape.Layout) bool {
	return isAttended(s.Args[0].DType) && evenlyLaid(in[:3], -1) && noGaps(in[3:]) && evenlyLaid(out, -1)
}

// checkBlocks checks the columns [from, to) of a sequence's table.
func checkBlocks(table []int64, sequence, from, to, blocks int) error {
	for column := from; column < to; column++ {
		if b := table[column]; b < 0 || b >= int64(blocks) {
			return fmt.Errorf("table: got block %d in column %d of sequence %d, want 0 to %d", b, column, sequence, blocks-1)
		}
	}
	return nil
}

// blockScatter writes the rows of each sequence into the blocks of a pool.
type blockScatter struct {
	copyFirst
	batch, heads, count int // sequences, heads, and rows of each that are written
	blocks, rows        int // of the pool, and of a block
	columns             int // of the table
	row                 int // bytes

	block, head, next int // bytes from one block, head and row to the next in the result
}

func bindBlockScatter(*op.Call) (Kernel, error) { return &blockScatter{}, nil }

func (k *blockScatter) Refill(t *Task) error {
	c := t.Call
	pool, update, size := c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes(), c.In[0].DType.Size()
	k.batch, k.heads, k.count = update[0], update[1], update[2]
	k.blocks, k.rows, k.row = pool[0], pool[2], pool[3]*size
	k.columns = c.In[2].Shape.Size(1)
	to := stridesOf(&c.Out[0])
	k.block, k.head, k.next = to[0]*size, to[1]*size, to[2]*size
	return k.copyFirst.Refill(t)
}

func (k *blockScatter) Start(t *Task) error {
	table, at, used := in[int64](t.Call, 2), in[int64](t.Call, 3), in[int64](t.Call, 4)
	for b := range k.batch {
		first, most := at[b], int64(k.columns*k.rows-k.count)
		if first < 0 || first > most {
			return fmt.Errorf("operand 3: got row %d for sequence %d, want 0 to %d (%d rows are written, and the table has %d blocks of %d)",
				first, b, most, k.count, k.columns, k.rows)
		}
		if used != nil && used[b] != first {
			return fmt.Errorf("operand 3: got row %d for sequence %d, want %d, behind the rows that it has", first, b, used[b])
		}
		if k.count == 0 {
			continue
		}
		from, to := int(first)/k.rows, kernel.CeilDiv(int(first)+k.count, k.rows)
		if err := checkBlocks(table[b*k.columns:], b, from, to, k.blocks); err != nil {
			return err
		}
	}
	return k.copyFirst.Start(t)
}

func (k *blockScatter) Finish(t *Task) error {
	dst, src := t.Call.Out[0].Data, t.Call.In[1].Data
	table, at := in[int64](t.Call, 2), in[int64](t.Call, 3)
	if k.row == 0 {
		return nil
	}
	for b := range k.batch {
		for i := 0; i < k.count; {
			row := int(at[b]) + i
			n := min(k.count-i, k.rows-row%k.rows)
			to := int(table[b*k.columns+row/k.rows])*k.block + row%k.rows*k.next
			for h := range k.heads {
				from := src[((b*k.heads+h)*k.count+i)*k.row:][:n*k.row]
				if k.next == k.row {
					copy(dst[to+h*k.head:][:len(from)], from)
					continue
				}
				for j := range n {
					copy(dst[to+h*k.head+j*k.next:][:k.row], from[j*k.row:])
				}
			}
			i += n
		}
	}
	return nil
}

func bindBlockAttention(c *op.Call) (Kernel, error) {
	if !isAttended(c.In[0].DType) {
		return nil, unsupported(c)
	}
	return &blockAttention{}, nil
}

// blockAttention is attention over keys and values in blocks.
type blockAttention struct {
	spec   sequence.Attend
	ranges sequence.Ranges
	blocks int // of the pool
}

func (k *blockAttention) takesStrides() bool { return true }

func (k *blockAttention) mostScratch(t *Task, fixed Fixed) int { return mostOfHeads(&k.spec, t, fixed) }

func (k *blockAttention) Refill(t *Task) error {
	c, a := t.Call, &k.spec
	n, err := c.BlockAttentionSizes()
	if err != nil {
		return err
	}
	k.blocks = c.In[1].Shape.Size(0)
	setHeads(a, &k.ranges, c, &n, 5)
	a.Block, a.Columns = n.Keys, c.In[3].Shape.Size(1)
	a.Keys = a.Block * a.Columns
	placeHeads(&a.Q, c.In, 0, n.Heads, n.Queries, n.Size, false)
	placeHeads(&a.K, c.In, 1, n.Groups, n.Keys, n.Size, false)
	placeHeads(&a.V, c.In, 2, n.Groups, n.Keys, n.ValueSize, false)
	placeHeads(&a.Y, c.Out, 0, n.Heads, n.Queries, n.ValueSize, false)
	a.BlockK, a.BlockV = a.K.Batch[0], a.V.Batch[0] // samples find their blocks by the table
	a.K.Batch[0], a.V.Batch[0] = 0, 0
	a.Prepare(t.variant)
	t.Tiles, t.Scratch = a.Tiles(), a.ScratchBytes()
	return nil
}

func (k *blockAttention) Start(t *Task) error {
	a, table := &k.spec, in[int64](t.Call, 3)
	for b, n := range in[int64](t.Call, 4) {
		if n < 0 || n > int64(a.Keys) {
			return fmt.Errorf("operand 4: got %d keys for sequence %d, want 0 to %d", n, b, a.Keys)
		}
		if n > 0 {
			if err := checkBlocks(table[b*a.Columns:], b, 0, kernel.CeilDiv(int(n), a.Block), k.blocks); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *blockAttention) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := sequence.AttendArgs{
		Y: floatsOf(&c.Out[0]), Q: floatsOf(&c.In[0]), K: floatsOf(&c.In[1]), V: floatsOf(&c.In[2]), Tables: in[int64](c, 3), Lengths: in[int64](c, 4),
	}
	setMasks(&args, c, 5)
	k.spec.Tile(tile, scratch, &args)
}
