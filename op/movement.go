package op

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// movementOps put the elements of their operands in other places.
var movementOps = []*Def{
	{
		Name: "transpose", ONNX: "Transpose", Doc: "permutes the axes of x by perm, or reverses them",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intsAttr("perm")}, Infer: inferTranspose,
		Alias: Aliases(Rule{Kind: View, When: movesOnlyOnes}, Rule{Kind: Permute, When: movesInPlace, Shared: exchangesMany}),
	},
	{
		Name: "expand", ONNX: "Expand", Doc: "broadcasts x with a given shape",
		MinArgs: 2, MaxArgs: 2, Infer: inferExpand, Alias: Aliases(Rule{Kind: View, When: sameCount}),
	},
	{
		Name: "tile", ONNX: "Tile", Doc: "repeats x along each axis",
		MinArgs: 2, MaxArgs: 2, Infer: inferTile, Alias: Aliases(Rule{Kind: View, When: sameCount}),
	},
	{
		Name: "depth_to_space", ONNX: "DepthToSpace", Doc: "moves channels of x [N,C,H,W] into blocks of height and width",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("blocksize", Int), stringAttr("mode", "DCR")},
		Infer: inferDepthToSpace, Alias: Fresh(),
	},
	{
		Name: "space_to_depth", ONNX: "SpaceToDepth", Doc: "moves blocks of height and width of x [N,C,H,W] into channels",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("blocksize", Int), stringAttr("mode", "DCR")},
		Infer: inferSpaceToDepth, Alias: Fresh(),
	},
	{
		Name: "reverse_sequence", ONNX: "ReverseSequence", Doc: "reverses the first elements of each sequence of x; an operand holds how many",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{intAttr("batch_axis", 1), intAttr("time_axis", 0)}, Infer: inferReverseSequence, Alias: SameAs(0),
	},
}

// Perm returns, for each axis of the result of a transpose, the axis of the
// operand, whose rank is given.
func (s *Sig) Perm(rank int) ([]int, error) { return s.permIn(make([]int, rank)) }

// permIn is Perm into perm, as long as the rank.
func (s *Sig) permIn(perm []int) ([]int, error) {
	rank := len(perm)
	if !s.Attrs.Has("perm") {
		for i := range perm {
			perm[i] = rank - 1 - i
		}
		return perm, nil
	}
	list := s.Ints("perm")
	var seen uint64
	for i, a := range list {
		if len(list) != rank || a < 0 || a >= int64(rank) || seen>>a&1 != 0 {
			return nil, badShape("perm: got %v, want an order of the %d axes", list, rank)
		}
		seen |= 1 << a
		perm[i] = int(a)
	}
	if len(list) != rank {
		return nil, badShape("perm: got %v, want an order of the %d axes", list, rank)
	}
	return perm, nil
}

func inferTranspose(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, stored); err != nil {
		return err
	}
	if x.Shape == nil {
		if !s.Attrs.Has("perm") {
			return s.giveAny(0, x.DType)
		}
		n := len(s.Ints("perm"))
		if err := s.giveRank(0, x.DType, n); err != nil {
			return err
		}
		_, err := s.Perm(n)
		return err
	}
	var permBuf [MaxRank]int
	perm, err := s.permIn(permBuf[:x.Shape.Rank()])
	if err != nil {
		return err
	}
	var buf [8]shape.Dim
	dims := buf[:0]
	for _, a := range perm {
		dims = append(dims, x.Shape.Dim(a))
	}
	return s.give(0, x.DType, dims...)
}

// movesOnlyOnes: the axes that are not of size 1 keep their order.
func movesOnlyOnes(s *Sig) bool {
	x := s.Args[0]
	if !x.IsStatic() {
		return false
	}
	var buf [MaxRank]int
	perm, err := s.permIn(buf[:x.Shape.Rank()])
	last := -1
	for _, a := range perm {
		if x.Shape.Size(a) == 1 {
			continue
		}
		if a < last {
			return false
		}
		last = a
	}
	return err == nil
}

// mostMoved bounds the scratch of a transpose in place, in bytes: a mark for
// each unit of elements that stay together, or a block in which the last axis
// changes places with others.
const mostMoved = 56 << 10

// Exchanged returns the two axes of one size that a transpose exchanges where
// all others stay, a < b; a is -1 for another transpose. The operand's type is
// static.
func (s *Sig) Exchanged() (a, b int) {
	var buf [MaxRank]int
	perm, err := s.permIn(buf[:s.Args[0].Shape.Rank()])
	if err != nil {
		return -1, 0
	}
	return exchanged(s.Args[0].Shape, perm)
}

func exchanged(x *shape.Shape, perm []int) (a, b int) {
	a = -1
	for i, p := range perm {
		switch {
		case p == i || p < i && p == a && i == b:
		case p > i && a < 0 && x.Size(i) == x.Size(p) && perm[p] == i:
			a, b = i, p
		default:
			return -1, 0
		}
	}
	return a, b
}

// leastExchanged is the size in bytes from which on the elements of a transpose
// change places in no more time than they are copied: where two such values do
// not fit into the caches next to a core.
const leastExchanged = 512 << 10

// exchangesMany: two axes of one size are exchanged, of many bytes.
func exchangesMany(s *Sig) bool {
	if a, _ := s.Exchanged(); a < 0 {
		return false
	}
	n, err := s.Args[0].Bytes()
	return err == nil && n >= leastExchanged
}

// movesInPlace: two axes of one size are exchanged, or there are few enough
// units, and blocks are small enough.
func movesInPlace(s *Sig) bool {
	x := s.Args[0]
	if !x.IsStatic() || x.DType.Bits()%8 != 0 {
		return false
	}
	var buf [MaxRank]int
	perm, err := s.permIn(buf[:x.Shape.Rank()])
	if err != nil || len(perm) == 0 {
		return false
	}
	if a, _ := exchanged(x.Shape, perm); a >= 0 {
		return true
	}
	last := len(perm) - 1
	at := slices.Index(perm, last)
	block := x.Shape.Size(last) * x.DType.Size()
	for _, a := range perm[at+1:] {
		block *= x.Shape.Size(a)
	}
	if at != last && block > mostMoved {
		return false
	}
	return x.Shape.NumElements()/max(1, x.Shape.Size(last)) <= 8*mostMoved
}

func inferExpand(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 1); err != nil {
		return err
	}
	n, counted := s.listLen(1)
	if x.Shape == nil || !counted {
		return s.giveAny(0, x.DType)
	}
	if n > MaxRank {
		return badShape("shape: got %d dimensions, want at most %d", n, MaxRank)
	}
	var buf [fewDims]shape.Dim
	var ints [fewDims]int64
	target := slices.Grow(buf[:0], n)[:n]
	list, _ := s.AppendKnownInts(ints[:0], 1)
	for i, v := range list {
		size, err := sizeOf(v, "shape")
		if err != nil {
			return err
		}
		target[i] = shape.N(size)
	}
	to, err := shape.FromDims(target...)
	if err != nil {
		return err
	}
	out, err := shape.Broadcast(x.Shape, to)
	if err != nil {
		return err
	}
	s.Results[0] = Type{x.DType, out}
	return nil
}

// sameCount: the operator only ever repeats elements, and there is no more of
// them than before.
func sameCount(s *Sig) bool {
	x, y := s.Args[0], s.Results[0]
	return x.IsStatic() && y.IsStatic() && x.Shape.NumElements() == y.Shape.NumElements()
}

func inferTile(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.wantList(1, int64s, 1); err != nil {
		return err
	}
	n, counted := s.listLen(1)
	if x.Shape == nil {
		if counted {
			return s.giveRank(0, x.DType, n)
		}
		return s.giveAny(0, x.DType)
	}
	rank := x.Shape.Rank()
	if counted && n != rank {
		return badShape("repeats: got %d numbers for %s, want %d", n, x, rank)
	}
	list, known := s.KnownInts(1)
	if !known {
		return s.giveRank(0, x.DType, rank)
	}
	dims := x.Shape.Dims()
	for i, v := range list {
		times, err := sizeOf(v, "repeats")
		if err != nil {
			return err
		}
		if dims[i], err = product([]shape.Dim{dims[i], shape.N(times)}); err != nil {
			return err
		}
	}
	return s.give(0, x.DType, dims...)
}

// blockOf checks the attributes that both block operators have.
func (s *Sig) blockOf() (int, error) {
	if err := s.want(0, plain); err != nil {
		return 0, err
	}
	if err := s.wantRank(0, 4, 4); err != nil {
		return 0, err
	}
	if _, err := s.wantOneOf("mode", "DCR", "CRD"); err != nil {
		return 0, err
	}
	b := s.Int("blocksize")
	if b < 1 || b > 1<<20 {
		return 0, badShape("blocksize: got %d, want 1 to 2^20", b)
	}
	return int(b), nil
}

// divided is a dimension over n, which must divide it.
func divided(d shape.Dim, n int, of Type) (shape.Dim, error) {
	size, ok := d.Size()
	switch {
	case n == 1:
		return d, nil
	case !ok:
		return shape.Unknown, nil
	case size%n != 0:
		return d, badShape("got %s, want its size %d to be a multiple of %d", of, size, n)
	}
	return shape.N(size / n), nil
}

func inferDepthToSpace(s *Sig) error {
	b, err := s.blockOf()
	if err != nil {
		return err
	}
	x := s.Args[0]
	if x.Shape == nil {
		return s.giveRank(0, x.DType, 4)
	}
	dims := x.Shape.Dims()
	if dims[1], err = divided(dims[1], b*b, x); err != nil {
		return err
	}
	for i := 2; i < 4; i++ {
		if dims[i], err = product([]shape.Dim{dims[i], shape.N(b)}); err != nil {
			return err
		}
	}
	return s.give(0, x.DType, dims...)
}

func inferSpaceToDepth(s *Sig) error {
	b, err := s.blockOf()
	if err != nil {
		return err
	}
	x := s.Args[0]
	if x.Shape == nil {
		return s.giveRank(0, x.DType, 4)
	}
	dims := x.Shape.Dims()
	if dims[1], err = product([]shape.Dim{dims[1], shape.N(b * b)}); err != nil {
		return err
	}
	for i := 2; i < 4; i++ {
		if dims[i], err = divided(dims[i], b, x); err != nil {
			return err
		}
	}
	return s.give(0, x.DType, dims...)
}

func inferReverseSequence(s *Sig) error {
	if err := s.want(0, plain); err != nil {
		return err
	}
	if err := s.want(1, int64s); err != nil {
		return err
	}
	if err := s.wantRank(0, 2, -1); err != nil {
		return err
	}
	batch, time := s.Int("batch_axis"), s.Int("time_axis")
	if batch < 0 || batch > 1 || time != 1-batch {
		return badShape("got batch_axis %d and time_axis %d, want 0 and 1 or 1 and 0", batch, time)
	}
	if x := s.Args[0].Shape; x != nil {
		if err := s.wantVector(1, x.Dim(int(batch)), "sequence"); err != nil {
			return err
		}
	}
	return s.giveLike(0)
}
