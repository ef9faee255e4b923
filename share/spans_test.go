package share

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSpansAgainstAMap takes and releases at random and compares the spans with
// a map of the taken bytes: no overlap, every byte in one span, free neighbours
// merged, and after the last release one span.
func TestSpansAgainstAMap(t *testing.T) {
	const size = 1 << 16
	rapid.Check(t, func(t *rapid.T) {
		s := newSpans(size)
		var out []*span
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(out) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				s.release(out[i])
				out = append(out[:i], out[i+1:]...)
			} else if f := s.take(roundUp(rapid.IntRange(0, size/4).Draw(t, "size"))); f != nil {
				out = append(out, f)
			}
			checkSpans(t, s, out)
		}
		for _, f := range out {
			s.release(f)
		}
		if f := s.take(size); f == nil || f.at != 0 || s.take(blockMultiple) != nil {
			t.Fatal("after every release the arena is not one free span")
		}
	})
}

func checkSpans(t *rapid.T, s *spans, out []*span) {
	if len(out) == 0 {
		return
	}
	first := out[0]
	for first.before != nil {
		first = first.before
	}
	at, used, taken := 0, 0, 0
	for f := first; f != nil; f = f.after {
		if f.at != at || f.size <= 0 || f.at%blockMultiple != 0 {
			t.Fatalf("span at %d of %d bytes, want one at %d", f.at, f.size, at)
		}
		if !f.taken && f.after != nil && !f.after.taken {
			t.Fatalf("two free neighbours at %d", f.at)
		}
		if f.taken {
			used += f.size
			taken++
		}
		at += f.size
	}
	if at != s.size || used != s.used || taken != len(out) {
		t.Fatalf("spans cover %d of %d bytes, %d used (%d counted), %d taken of %d", at, s.size, used, s.used, taken, len(out))
	}
}

// TestSpansFindWhatFits: a size that a wider list serves is found although its
// own list is empty, in every class.
func TestSpansFindWhatFits(t *testing.T) {
	for size := blockMultiple; size <= 1<<14; size += blockMultiple {
		s := newSpans(size)
		if f := s.take(size); f == nil || f.size != size {
			t.Fatalf("an arena of %d bytes does not give %d", size, size)
		}
		s = newSpans(2 * size)
		if s.take(size) == nil {
			t.Fatalf("an arena of %d bytes does not give %d", 2*size, size)
		}
	}
}
