package op

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

func inferRotary(s *Sig) error {
	if _, _, err := s.Rotary(); err != nil {
		return err
	}
	return s.giveLike(0)
}

// Rotary returns the heads of operand 0 of rotary_embedding, and how many
// numbers of each head are rotated; 0 where that is not known.
func (s *Sig) Rotary() (numHeads, rotated int, err error) {
	for i := range 3 {
		if err := s.want(i, floats); err != nil {
			return 0, 0, err
		}
		if err := s.wantLike(i, 0); err != nil {
			return 0, 0, err
		}
	}
	if err := s.want(3, int64s); err != nil {
		return 0, 0, err
	}
	if _, err := s.wantFlag("interleaved"); err != nil {
		return 0, 0, err
	}
	if err := s.wantRank(0, 3, 4); err != nil || s.Args[0].Shape == nil {
		return 0, 0, err
	}
	x, err := s.headsOf(0, s.Args[0].Shape.Rank(), "num_heads")
	if err != nil {
		return 0, 0, err
	}
	width := s.Int("rotary_embedding_dim")
	size, sized := x.size.Size()
	if width < 0 || sized && width > int64(size) || width > maxSize {
		return 0, 0, badShape("rotary_embedding_dim: got %d, want at most the head size of %s, %s", width, s.Args[0], x.size)
	}
	half := shape.Unknown
	if width == 0 && sized {
		width = int64(size)
	}
	if width%2 != 0 {
		return 0, 0, badShape("got %d numbers of a head to turn, want an even number", width)
	}
	if width > 0 || sized {
		half = shape.N(int(width / 2))
	}
	numHeads, _ = x.heads.Size()
	return numHeads, int(width), s.wantAngles(x, half)
}

// wantAngles checks cosines and sines: [positions, half] with the positions in
// an operand, [batch, length, half] without.
func (s *Sig) wantAngles(x heads, half shape.Dim) error {
	wantBuf := [3]shape.Dim{x.batch, x.length, half}
	want := wantBuf[:]
	var buf [3]shape.Dim
	if s.Has(3) {
		want = append(wantBuf[:0], shape.Unknown, half)
		at, err := s.dimsIn(buf[:2], 3)
		if err != nil {
			return err
		}
		if err := s.meet("batch of positions", &x.batch, &at[0]); err != nil {
			return err
		}
		if err := s.meet("length of positions", &x.length, &at[1]); err != nil {
			return err
		}
	}
	for arg := 1; arg <= 2; arg++ {
		buf = [3]shape.Dim{}
		d, err := s.dimsIn(buf[:len(want)], arg)
		if err != nil {
			return err
		}
		for i := range d {
			if err := s.meet("cosines or sines", &want[i], &d[i]); err != nil {
				return badShape("operand %d: got %s, want %v to fit %s", arg, s.Args[arg], slices.Clone(want), s.Args[0])
			}
		}
	}
	return nil
}
