package op

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var fusedAttention = &Def{
	Name: "fused_attention",
	Doc: "computes softmax(q * k^T * scale, masked) * v, products of the last two axes, without the scores as a value: the axes before broadcast, " +
		"and each matrix of k and v is for as many neighbours of q on the axis before the last two as there are; operands q, k, v, an addend, a mask and a " +
		"second addend, which broadcast to the scores, or to the scores with their first axis as two",
	MinArgs: 3, MaxArgs: 6,
	Attrs: []AttrDef{
		// a score x is q * k^T * scale, or softcap * tanh(x / softcap) of it
		floatAttr("scale", 1), floatAttr("softcap", 0),
		// after mask_after of the addends, scores whose mask is false, or true
		// if it hides, become fill
		intAttr("mask_after", 0), floatAttr("fill", float32(math.Inf(-1))), intAttr("mask_hides", 0),
		// a row of softmax with a NaN, which is NaN as a whole, becomes zeros
		intAttr("nan_to_zero", 0),
		// q, k and v are read, and the result is written, with its axes in
		// these orders; the last axis of q, v and the result stays the last,
		// and that of k one of the last two
		intsAttr("q_perm"), intsAttr("k_perm"), intsAttr("v_perm"), intsAttr("y_perm"),
	},
	Infer: inferFusedAttention, Alias: Fresh(),
}

func inferFusedAttention(s *Sig) error {
	if err := s.wantFusedTypes(); err != nil {
		return err
	}
	if err := s.wantRank(0, 2, fewDims); err != nil {
		return err
	}
	for i := range 3 {
		if s.Args[i].Shape == nil {
			return s.giveAny(0, s.Args[0].DType)
		}
		if n := s.Args[0].Shape.Rank(); s.Args[i].Shape.Rank() != n {
			return badShape("operand %d: got %s, want %d dimensions, like operand 0", i, s.Args[i], n)
		}
	}
	var buf [4][fewDims]shape.Dim
	q, err := s.turned(buf[0][:0], 0, "q_perm")
	if err != nil {
		return err
	}
	k, err := s.turned(buf[1][:0], 1, "k_perm")
	if err != nil {
		return err
	}
	v, err := s.turned(buf[2][:0], 2, "v_perm")
	if err != nil {
		return err
	}
	if err := s.meetMatrices(q, k, v); err != nil {
		return err
	}
	// q has the dimensions of the result now, but for the last.
	rank := len(q)
	q[rank-1] = k[rank-2]
	outer, inner, err := s.splitScores(q, k)
	if err != nil {
		return err
	}
	for arg := 3; arg < 6; arg++ {
		if err := s.wantMaskOf(arg, outer, inner, q); err != nil {
			return err
		}
	}
	q[rank-1] = v[rank-1]
	var order [fewDims]int
	perm, err := s.OrderOf("y_perm", order[:0], rank)
	if err != nil {
		return err
	}
	y := buf[3][:0]
	for _, axis := range perm {
		y = append(y, q[axis])
	}
	return s.give(0, s.Args[0].DType, y...)
}

// wantFusedTypes checks the element types of a fused_attention, and its flags.
func (s *Sig) wantFusedTypes() error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	for _, i := range []int{1, 2, 3, 5} {
		if i > 2 && s.Has(i) && s.Args[i].DType == dtype.F32 {
			continue // scores are computed in it
		}
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	if err := s.want(4, boolean); err != nil {
		return err
	}
	for _, flag := range []string{"mask_hides", "nan_to_zero"} {
		if _, err := s.wantFlag(flag); err != nil {
			return err
		}
	}
	if n := s.Int("mask_after"); n < 0 || n > 2 {
		return badShape("mask_after: got %d, want 0 to 2 addends", n)
	}
	return nil
}

// OrderOf appends to perm the order of axes that an attribute of
// fused_attention states: axis i of what is read is axis perm[i] of what is
// there.
func (s *Sig) OrderOf(attr string, perm []int, rank int) ([]int, error) {
	list := s.Ints(attr)
	if list == nil {
		for i := range rank {
			perm = append(perm, i)
		}
		return perm, nil
	}
	var seen uint64
	for _, a := range list {
		if len(list) != rank || a < 0 || a >= int64(rank) || seen>>a&1 != 0 {
			return nil, badShape("%s: got %v, want an order of the %d axes", attr, list, rank)
		}
		seen |= 1 << a
		perm = append(perm, int(a))
	}
	if len(list) != rank || perm[rank-1] != rank-1 && (attr != "k_perm" || perm[rank-2] != rank-1) {
		return nil, badShape("%s: got %v, want an order of the %d axes with the last one in its place", attr, list, rank)
	}
	return perm, nil
}

// turned appends the dimensions of an operand in the order of an attribute.
func (s *Sig) turned(dims []shape.Dim, arg int, attr string) ([]shape.Dim, error) {
	var buf [fewDims]int
	sh := s.Args[arg].Shape
	perm, err := s.OrderOf(attr, buf[:0], sh.Rank())
	for _, axis := range perm {
		dims = append(dims, sh.Dim(axis))
	}
	return dims, err
}

// meetMatrices holds the operands of a fused_attention against each other, and
// sets the axes of q before the last two to those of the result.
func (s *Sig) meetMatrices(q, k, v []shape.Dim) error {
	rank := len(q)
	if err := s.meet("size of rows of q and k", &q[rank-1], &k[rank-1]); err != nil {
		return err
	}
	if err := s.meet("rows of k and v", &k[rank-2], &v[rank-2]); err != nil {
		return err
	}
	if rank == 2 {
		return nil
	}
	if err := s.meet("matrices of k and v", &k[rank-3], &v[rank-3]); err != nil {
		return err
	}
	h, known := q[rank-3].Size()
	if g, ok := k[rank-3].Size(); ok && known && (g == 0 && h > 0 || g > 0 && h%g != 0) {
		return badShape("got %d matrices of q and %d of k, want a multiple", h, g)
	}
	for i := range rank - 3 {
		for _, d := range [2]shape.Dim{k[i], v[i]} {
			all, ok := unify(q[i], d)
			_, isSized := all.Size()
			switch {
			case isSize(q[i], 1):
				all = d
			case isSize(d, 1):
				all = q[i]
			case !ok:
				return badShape("got sizes %s and %s of axis %d, want sizes that broadcast", q[i], d, i)
			case !isSized && q[i] != d:
				all = shape.Unknown
			}
			q[i] = all
		}
	}
	return nil
}

// splitScores returns the first axis of the scores as two, where an operand has
// an axis more than they have. k are the dimensions of operand 1.
func (s *Sig) splitScores(scores, k []shape.Dim) (outer, inner shape.Dim, err error) {
	outer, inner = shape.N(1), shape.N(1)
	found := false
	for arg := 3; arg < 6; arg++ {
		if !s.Has(arg) || s.Args[arg].Shape == nil || s.Args[arg].Shape.Rank() != len(scores)+1 {
			continue
		}
		found = true
		for i, to := range [2]*shape.Dim{&outer, &inner} {
			d := s.Args[arg].Shape.Dim(i)
			both, ok := unify(*to, d)
			switch {
			case isSize(d, 1):
			case isSize(*to, 1):
				*to = d
			case !ok:
				return outer, inner, badShape("operand %d: got %s, want size 1 or %s on axis %d", arg, s.Args[arg], *to, i)
			default:
				*to = both
			}
		}
	}
	if !found {
		return outer, inner, nil
	}
	if len(scores) < 3 || len(scores) == fewDims {
		return outer, inner, badShape("got a mask of %d axes, want at most those of the scores, %d", len(scores)+1, len(scores))
	}
	if n, ok := k[0].Size(); ok && len(scores) == 3 {
		if m, ok := scores[0].Size(); ok && n != m {
			return outer, inner, badShape("got %d matrices of q and %d of k, want as many where a mask has an axis more", m, n)
		}
	}
	all, ok := scores[0].Size()
	x, okOuter := outer.Size()
	y, okInner := inner.Size()
	switch {
	case !ok || !okOuter || !okInner:
	case x == 1 && y > 0 && all%y == 0:
		outer = shape.N(all / y)
	case y == 1 && x > 0 && all%x == 0:
		inner = shape.N(all / x)
	case x*y != all && !isSize(scores[len(scores)-2], 0) && !isSize(scores[len(scores)-1], 0):
		return outer, inner, badShape("got masks for %d times %d matrices of scores, want %d", x, y, all)
	}
	return outer, inner, nil
}

// AttentionSplit returns the sizes of the two axes that operands of
// fused_attention with an axis more than the scores have for the first axis of
// these. ok is false where there is no such operand.
func (s *Sig) AttentionSplit(first int) (outer, inner int, ok bool) {
	rank := s.Args[0].Shape.Rank()
	outer, inner = 1, 1
	for arg := 3; arg < 6; arg++ {
		if !s.Has(arg) || s.Args[arg].Shape.Rank() != rank+1 {
			continue
		}
		ok = true
		if n := s.Args[arg].Shape.Size(0); n != 1 {
			outer = n
		}
		if n := s.Args[arg].Shape.Size(1); n != 1 {
			inner = n
		}
	}
	switch {
	case outer == 1 && inner > 0:
		outer = first / inner
	case inner == 1 && outer > 0:
		inner = first / outer
	}
	return outer, inner, ok
}

// wantMaskOf checks that an operand, if present, broadcasts to dims, or to
// these with the first one as two.
func (s *Sig) wantMaskOf(arg int, outer, inner shape.Dim, dims []shape.Dim) error {
	if err := s.wantRank(arg, 0, len(dims)+1); err != nil || !s.Has(arg) || s.Args[arg].Shape == nil {
		return err
	}
	sh := s.Args[arg].Shape
	if sh.Rank() > len(dims) {
		dims = append([]shape.Dim{outer, inner}, dims[1:]...)
	}
	for i := range sh.Rank() {
		want := dims[len(dims)-sh.Rank()+i]
		if _, ok := unify(sh.Dim(i), want); !ok && !isSize(sh.Dim(i), 1) {
			return badShape("operand %d: got %s, want size 1 or %s on axis %d", arg, s.Args[arg], want, i)
		}
	}
	return nil
}
