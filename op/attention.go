package op

import (
	"cmp"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var attentionOps = []*Def{
	{
		Name: "attention", ONNX: "Attention",
		Doc: "computes softmax(q * k^T * scale + mask) * v per head; operands q, k, v, mask, past k and v, and the number of keys per sample; " +
			"optionally returns present k and v, and the scores",
		MinArgs: 3, MaxArgs: 7, MinResults: 1, MaxResults: 4,
		Attrs: []AttrDef{
			intAttr("is_causal", 0), intAttr("q_num_heads", 0), intAttr("kv_num_heads", 0), intAttr("qk_matmul_output_mode", 0),
			{Name: "scale", Kind: Float}, floatAttr("softcap", 0), intAttr("left_window_size", -1), intAttr("right_window_size", -1),
		},
		Infer: inferAttention, Alias: Fresh(),
	},
	{
		Name: "rotary_embedding", ONNX: "RotaryEmbedding",
		Doc:     "rotates pairs of numbers of each head by an angle per position; operands x, cosines, sines, positions",
		MinArgs: 3, MaxArgs: 4,
		Attrs: []AttrDef{intAttr("interleaved", 0), intAttr("num_heads", 0), intAttr("rotary_embedding_dim", 0)},
		Infer: inferRotary, Alias: SameAs(0),
	},
	{
		Name: "rms_normalization", ONNX: "RMSNormalization",
		Doc:     "divides x by its root mean square over the axes from the given one on, and multiplies by scale",
		MinArgs: 2, MaxArgs: 2,
		Attrs: []AttrDef{intAttr("axis", -1), floatAttr("epsilon", 1e-5), intAttr("stash_type", 1)},
		Infer: inferRMSNorm, Alias: SameAs(0),
	},
}

func inferRMSNorm(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	if _, err := s.stashType(); err != nil {
		return err
	}
	if x.Shape != nil {
		axis, err := axisOf(s.Int("axis"), x.Shape.Rank())
		if err != nil {
			return err
		}
		row, err := shape.FromDims(x.Shape.Dims()[axis:]...)
		if err != nil {
			return err
		}
		if err := s.wantSpread(1, row); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}

// heads are the dimensions of an operand of attention [batch, heads, length,
// size], or [batch, length, heads * size] with the heads in an attribute.
type heads struct{ batch, heads, length, size shape.Dim }

func (s *Sig) headsOf(arg, rank int, attr string) (h heads, err error) {
	var buf [4]shape.Dim
	d, err := s.dimsIn(buf[:rank], arg)
	if err != nil {
		return h, err
	}
	n := s.Int(attr)
	if n < 0 || n > maxSize || rank == 3 && n == 0 {
		return h, badShape("%s: got %d, want 1 or more for operands of 3 dimensions", attr, n)
	}
	if rank == 4 {
		h = heads{d[0], d[1], d[2], d[3]}
		if n > 0 {
			var ok bool
			if h.heads, ok = unify(d[1], shape.N(int(n))); !ok {
				return h, badShape("%s: got %d, want the heads of operand %d, %s", attr, n, arg, s.Args[arg])
			}
		}
		return h, nil
	}
	h = heads{batch: d[0], heads: shape.N(int(n)), length: d[1]}
	if size, ok := d[2].Size(); ok {
		if int64(size)%n != 0 {
			return h, badShape("operand %d: got %s, want a multiple of %d heads in the last dimension", arg, s.Args[arg], n)
		}
		h.size = shape.N(size / int(n))
	}
	return h, nil
}

// meet unifies dimensions that must agree, and writes the result to both.
func (s *Sig) meet(meaning string, a, b *shape.Dim) error {
	d, ok := unify(*a, *b)
	if !ok {
		return badShape("got %s and %s for the %s, want one", *a, *b, meaning)
	}
	*a, *b = d, d
	return nil
}

// attention holds the dimensions of a call.
type attention struct {
	q, k, v     heads
	past, pastV heads
	total       shape.Dim // keys, past ones too
	packed      bool      // operands of 3 dimensions
	rankIsKnown bool
	hasPast     bool
	isCausal    bool
	mode        int64
	left, right int64
}

func (s *Sig) attention() (a attention, err error) {
	for i := range s.Args {
		switch i {
		case 3:
			err = s.want(i, floats|boolean)
			if err == nil && s.Has(3) && s.Args[3].DType != dtype.Bool {
				err = s.wantLike(3, 0)
			}
		case 6:
			err = s.want(i, int64s)
		default:
			if err = s.want(i, floats); err == nil {
				err = s.wantLike(i, 0)
			}
		}
		if err != nil {
			return a, err
		}
	}
	if err := s.attentionAttrs(&a); err != nil {
		return a, err
	}
	rank := 0
	for i := range 3 {
		if err := s.wantRank(i, 3, 4); err != nil {
			return a, err
		}
		if sh := s.Args[i].Shape; sh != nil && rank == 0 {
			rank = sh.Rank()
		}
	}
	if rank == 0 {
		return a, nil
	}
	a.rankIsKnown, a.packed = true, rank == 3
	if a.q, err = s.headsOf(0, rank, "q_num_heads"); err != nil {
		return a, err
	}
	if a.k, err = s.headsOf(1, rank, "kv_num_heads"); err != nil {
		return a, err
	}
	if a.v, err = s.headsOf(2, rank, "kv_num_heads"); err != nil {
		return a, err
	}
	return a, s.meetAll(&a)
}

func (s *Sig) attentionAttrs(a *attention) (err error) {
	if a.isCausal, err = s.wantFlag("is_causal"); err != nil {
		return err
	}
	if a.mode = s.Int("qk_matmul_output_mode"); a.mode < 0 || a.mode > 3 {
		return badShape("qk_matmul_output_mode: got %d, want 0 to 3", a.mode)
	}
	a.left, a.right = s.Int("left_window_size"), s.Int("right_window_size")
	if a.left < -1 || a.right < -1 {
		return badShape("window sizes: got %d and %d, want -1 or more", a.left, a.right)
	}
	a.hasPast = s.Has(4)
	if s.Has(4) != s.Has(5) {
		return badShape("got one of past key and past value, want both or none")
	}
	if s.Has(6) && a.hasPast {
		return badShape("got past keys and the number of keys per sample, want one of them")
	}
	return nil
}

// meetPast holds past keys and values against the others.
func (s *Sig) meetPast(a *attention) error {
	for i, h := range [2]*heads{&a.past, &a.pastV} {
		var buf [4]shape.Dim
		d, err := s.dimsIn(buf[:], 4+i)
		if err != nil {
			return err
		}
		*h = heads{d[0], d[1], d[2], d[3]}
	}
	return cmp.Or(s.meet("batch", &a.q.batch, &a.past.batch), s.meet("batch", &a.q.batch, &a.pastV.batch),
		s.meet("heads of past and k", &a.k.heads, &a.past.heads), s.meet("heads of past and v", &a.k.heads, &a.pastV.heads),
		s.meet("length of past k and v", &a.past.length, &a.pastV.length),
		s.meet("head size of past and k", &a.k.size, &a.past.size), s.meet("head size of past and v", &a.v.size, &a.pastV.size))
}

// meetAll holds the operands against each other.
func (s *Sig) meetAll(a *attention) (err error) {
	err = cmp.Or(s.meet("batch", &a.q.batch, &a.k.batch), s.meet("batch", &a.k.batch, &a.v.batch),
		s.meet("head size of q and k", &a.q.size, &a.k.size), s.meet("heads of k and v", &a.k.heads, &a.v.heads),
		s.meet("length of k and v", &a.k.length, &a.v.length))
	if err != nil {
		return err
	}
	a.past.length = shape.N(0)
	if a.hasPast {
		if err := s.meetPast(a); err != nil {
			return err
		}
	}
	a.q.batch, _ = unify(a.q.batch, a.v.batch)
	if err := wantGroups(a.q.heads, a.k.heads); err != nil {
		return err
	}
	if a.total, err = total([]shape.Dim{a.past.length, a.k.length}); err != nil {
		return err
	}
	if err := s.wantVector(6, a.q.batch, "sample"); err != nil {
		return err
	}
	return s.wantMask(3, a)
}

// wantGroups checks that heads of q share those of k evenly.
func wantGroups(q, k shape.Dim) error {
	h, known := q.Size()
	if g, ok := k.Size(); ok && known && (g == 0 || h%g != 0) {
		return badShape("got %d heads of q and %d of k, want a multiple", h, g)
	}
	return nil
}

// wantMask checks a mask that broadcasts to [batch, heads, queries, keys] but
// may lack keys at the end.
func (s *Sig) wantMask(arg int, a *attention) error {
	if !s.Has(arg) || s.Args[arg].Shape == nil {
		return nil
	}
	if err := s.wantRank(arg, 1, 4); err != nil {
		return err
	}
	sh := s.Args[arg].Shape
	last, known := sh.Dim(sh.Rank() - 1).Size()
	if n, ok := a.total.Size(); ok && known && last > n {
		return badShape("operand %d: got %s, want at most %d keys", arg, s.Args[arg], n)
	}
	for i, d := range []shape.Dim{a.q.length, a.q.heads, a.q.batch} {
		at := sh.Rank() - 2 - i
		if at < 0 {
			break
		}
		if _, ok := unify(sh.Dim(at), d); !ok && !isSize(sh.Dim(at), 1) {
			return badShape("operand %d: got %s, want size 1 or %s on axis %d", arg, s.Args[arg], d, at)
		}
	}
	return nil
}

func inferAttention(s *Sig) error {
	a, err := s.attention()
	if err != nil {
		return err
	}
	dt := s.Args[0].DType
	if !a.rankIsKnown {
		for i := range s.Results {
			if err := s.giveAny(i, dt); err != nil {
				return err
			}
		}
		return nil
	}
	if a.packed {
		width, err := product([]shape.Dim{a.q.heads, a.v.size})
		if err != nil {
			return err
		}
		err = s.give(0, dt, a.q.batch, a.q.length, width)
		if err != nil {
			return err
		}
	} else if err := s.give(0, dt, a.q.batch, a.q.heads, a.q.length, a.v.size); err != nil {
		return err
	}
	for i := 1; i < len(s.Results); i++ {
		dims := []shape.Dim{a.q.batch, a.k.heads, a.total, a.k.size}
		switch i {
		case 2:
			dims[3] = a.v.size
		case 3:
			dims = []shape.Dim{a.q.batch, a.q.heads, a.q.length, a.total}
		}
		if err := s.give(i, dt, dims...); err != nil {
			return err
		}
	}
	return nil
}

// AttentionSizes are the sizes of a call of attention with static operands.
type AttentionSizes struct {
	Batch, Heads, Groups int // Groups: heads of k and v
	Queries, Past, Keys  int // Keys: without past ones
	Size, ValueSize      int // of a head
	Packed               bool
}

// AttentionSizes returns the sizes of a call of attention.
func (s *Sig) AttentionSizes() (n AttentionSizes, err error) {
	a, err := s.attention()
	if err != nil {
		return n, err
	}
	return a.sizes()
}

// sizes returns the sizes of a call whose operands are static.
func (a *attention) sizes() (n AttentionSizes, err error) {
	n.Packed = a.packed
	known := true
	size := func(d shape.Dim) int {
		n, ok := d.Size()
		known = known && ok
		return n
	}
	n.Batch, n.Heads, n.Groups, n.Queries = size(a.q.batch), size(a.q.heads), size(a.k.heads), size(a.q.length)
	n.Past, n.Keys, n.Size, n.ValueSize = size(a.past.length), size(a.k.length), size(a.q.size), size(a.v.size)
	if !known {
		return n, badShape("got operands of unknown sizes, want static shapes")
	}
	return n, nil
}
