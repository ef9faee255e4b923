package op

import (
	"cmp"

	"github.com/tenure-go/tenure/shape"
)

// blockOps work on pools of blocks, as in paged attention: a pool [blocks,
// heads, rows, size] has the rows of many sequences. Row r of a sequence is row
// r % rows of the block whose number its table, a row of i64 [batch,columns],
// has in column r / rows.
var blockOps = []*Def{
	{
		Name: "block_scatter",
		Doc: "returns a pool of blocks [blocks,heads,rows,size] with the rows of an update [batch,heads,n,size] written behind those of each sequence: operands " +
			"pool, update, table of blocks, and per sequence the row to begin with, which is how many rows there are, if a fifth operand has those",
		MinArgs: 4, MaxArgs: 5, Infer: inferBlockScatter, Alias: Aliases(Rule{Kind: Update}),
	},
	{
		Name: "block_gather",
		Doc: "returns the rows of each sequence in a pool of blocks [blocks,heads,rows,size] as [batch,heads,n,size]: operands pool, table of blocks, number of rows per " +
			"sequence, and a value whose first size is n; zeros stand behind the rows of a sequence that has fewer, or before them if align_end is 1",
		MinArgs: 4, MaxArgs: 4, Attrs: []AttrDef{intAttr("align_end", 0)}, Infer: inferBlockGather, Alias: Fresh(),
	},
	{
		Name: "block_attention",
		Doc: "computes attention over keys and values in pools of blocks [blocks,heads,rows,size]: operands q, k, v, table of blocks, number of keys per sequence, " +
			"the last of which are those of the queries, and mask",
		MinArgs: 5, MaxArgs: 6,
		Attrs: []AttrDef{
			intAttr("is_causal", 0), {Name: "scale", Kind: Float}, floatAttr("softcap", 0), intAttr("left_window_size", -1), intAttr("right_window_size", -1),
		},
		Infer: inferBlockAttention, Alias: Fresh(),
	},
}

// blockDims are the dimensions of an operand of four axes, unknown ones where
// its rank is not known.
func (s *Sig) blockDims(arg int) (h heads, err error) {
	var buf [4]shape.Dim
	d, err := s.dimsIn(buf[:], arg)
	if err != nil {
		return h, err
	}
	return heads{d[0], d[1], d[2], d[3]}, nil
}

// wantTable checks a table of blocks [batch,columns], and a vector with an
// element per sequence.
func (s *Sig) wantTable(table, vector int, batch *shape.Dim) error {
	if err := cmp.Or(s.want(table, int64s), s.want(vector, int64s)); err != nil {
		return err
	}
	var buf [2]shape.Dim
	d, err := s.dimsIn(buf[:], table)
	if err != nil {
		return err
	}
	return cmp.Or(s.meet("batch", batch, &d[0]), s.wantVector(vector, *batch, "sequence"))
}

func inferBlockScatter(s *Sig) error {
	if err := cmp.Or(s.want(0, floats), s.wantLike(1, 0), s.want(4, int64s)); err != nil {
		return err
	}
	pool, err := s.blockDims(0)
	if err != nil {
		return err
	}
	update, err := s.blockDims(1)
	if err != nil {
		return err
	}
	err = cmp.Or(s.meet("heads of pool and update", &pool.heads, &update.heads), s.meet("head size of pool and update", &pool.size, &update.size),
		s.wantTable(2, 3, &update.batch), s.wantVector(4, update.batch, "sequence"))
	if err != nil {
		return err
	}
	return s.giveLike(0)
}

func inferBlockGather(s *Sig) error {
	if _, err := s.wantFlag("align_end"); err != nil {
		return err
	}
	var batch shape.Dim
	if err := cmp.Or(s.want(0, floats), s.wantTable(1, 2, &batch), s.wantRank(3, 1, -1)); err != nil {
		return err
	}
	pool, err := s.blockDims(0)
	if err != nil {
		return err
	}
	var n shape.Dim
	if like := s.Args[3].Shape; like != nil {
		n = like.Dim(0)
	}
	return s.give(0, s.Args[0].DType, batch, pool.heads, n, pool.size)
}

func inferBlockAttention(s *Sig) error {
	a, err := s.blockAttention()
	if err != nil {
		return err
	}
	if s.Args[0].Shape == nil {
		return s.giveAny(0, s.Args[0].DType)
	}
	return s.give(0, s.Args[0].DType, a.q.batch, a.q.heads, a.q.length, a.v.size)
}

// blockAttention returns the dimensions of a call of block_attention: length is
// the rows of a block for k and v, total the keys that a table has room for.
func (s *Sig) blockAttention() (a attention, err error) {
	if err := s.want(0, floats); err != nil {
		return a, err
	}
	if err := cmp.Or(s.wantLike(1, 0), s.wantLike(2, 0), s.want(5, floats|boolean)); err != nil {
		return a, err
	}
	if s.Has(5) && !boolean.has(s.Args[5].DType) {
		if err := s.wantLike(5, 0); err != nil {
			return a, err
		}
	}
	if _, err := s.wantFlag("is_causal"); err != nil {
		return a, err
	}
	if s.Int("left_window_size") < -1 || s.Int("right_window_size") < -1 {
		return a, badShape("window sizes: got %d and %d, want -1 or more", s.Int("left_window_size"), s.Int("right_window_size"))
	}
	a.past.length = shape.N(0)
	for i, h := range [3]*heads{&a.q, &a.k, &a.v} {
		if *h, err = s.blockDims(i); err != nil {
			return a, err
		}
	}
	err = cmp.Or(s.meet("blocks of k and v", &a.k.batch, &a.v.batch), s.meet("head size of q and k", &a.q.size, &a.k.size),
		s.meet("heads of k and v", &a.k.heads, &a.v.heads), s.meet("rows of blocks of k and v", &a.k.length, &a.v.length),
		wantGroups(a.q.heads, a.k.heads), s.wantTable(3, 4, &a.q.batch))
	if err != nil {
		return a, err
	}
	if sh := s.Args[3].Shape; sh != nil {
		if a.total, err = product([]shape.Dim{sh.Dim(1), a.k.length}); err != nil {
			return a, err
		}
	}
	return a, s.wantMask(5, &a)
}

// BlockAttentionSizes returns the sizes of a call of block_attention with
// static operands: Keys are the rows of a block.
func (s *Sig) BlockAttentionSizes() (n AttentionSizes, err error) {
	a, err := s.blockAttention()
	if err != nil {
		return n, err
	}
	return a.sizes()
}
