package share

import "math/bits"

// spans divides an arena into blocks. It implements the two-level segregated
// fit of Masmano, Ripoll, Crespo and Real ("TLSF: a new dynamic memory
// allocator for real-time systems", 2004): free spans are in lists by size,
// four lists to a power of two, two levels of bit masks mark the non-empty
// lists, and neighbours are merged when they are freed. Every operation takes
// constant time. All of its data is outside the arena.
type spans struct {
	size int
	used int
	wide uint64 // bit i: classes[i] has a free span
	fine [64]uint8
	free [64][fineClasses]*span
}

const (
	fineBits    = 2
	fineClasses = 1 << fineBits
)

// span is a part of an arena, in use or free.
type span struct {
	at, size      int
	taken         bool
	before, after *span // neighbours in the arena
	prev, next    *span // in the list of free spans
}

func newSpans(size int) *spans {
	s := &spans{size: size}
	s.put(&span{size: size})
	return s
}

// class returns the list of free spans of that size.
func class(size int) (int, int) {
	i := bits.Len(uint(size)) - 1
	return i, size >> (i - fineBits) & (fineClasses - 1)
}

// roundUp returns size rounded up to a multiple of blockMultiple, at least one:
// every block has an address of its own.
func roundUp(size int) int {
	return max((size+blockMultiple-1)/blockMultiple*blockMultiple, blockMultiple)
}

// take returns a span of at least size bytes, nil if no list is certain to have
// one. size is a result of roundUp.
func (s *spans) take(size int) *span {
	f := s.find(size)
	if f == nil {
		return nil
	}
	s.drop(f)
	f.taken = true
	if rest := f.size - size; rest >= blockMultiple {
		cut := &span{at: f.at + size, size: rest, before: f, after: f.after}
		if f.after != nil {
			f.after.before = cut
		}
		f.after, f.size = cut, size
		s.put(cut)
	}
	s.used += f.size
	return f
}

// find looks in the lists whose spans are all large enough, and then at the
// first span of the list of size itself.
func (s *spans) find(size int) *span {
	i, j := class(size)
	if f := s.free[i][j]; f != nil && f.size >= size {
		return f
	}
	if later := s.fine[i] &^ (1<<(j+1) - 1); later != 0 {
		return s.free[i][bits.TrailingZeros8(later)]
	}
	if wider := s.wide &^ (1<<(i+1) - 1); wider != 0 {
		i = bits.TrailingZeros64(wider)
		return s.free[i][bits.TrailingZeros8(s.fine[i])]
	}
	return nil
}

// release frees a span and merges it with free neighbours.
func (s *spans) release(f *span) {
	s.used -= f.size
	f.taken = false
	if a := f.after; a != nil && !a.taken {
		s.drop(a)
		f.size += a.size
		if f.after = a.after; f.after != nil {
			f.after.before = f
		}
	}
	if b := f.before; b != nil && !b.taken {
		s.drop(b)
		b.size += f.size
		if b.after = f.after; b.after != nil {
			b.after.before = b
		}
		f = b
	}
	s.put(f)
}

func (s *spans) put(f *span) {
	i, j := class(f.size)
	f.prev, f.next = nil, s.free[i][j]
	if f.next != nil {
		f.next.prev = f
	}
	s.free[i][j] = f
	s.fine[i] |= 1 << j
	s.wide |= 1 << i
}

func (s *spans) drop(f *span) {
	i, j := class(f.size)
	if f.prev != nil {
		f.prev.next = f.next
	} else if s.free[i][j] = f.next; f.next == nil {
		if s.fine[i] &^= 1 << j; s.fine[i] == 0 {
			s.wide &^= 1 << i
		}
	}
	if f.next != nil {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
}
