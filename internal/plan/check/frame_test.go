package check

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// bytesOf returns the bytes of a piece and the image of each.
func bytesOf(t *rapid.T, list ...piece) map[int64]int64 {
	out := map[int64]int64{}
	for _, p := range list {
		var walk func(at, from int64, axes []axis)
		walk = func(at, from int64, axes []axis) {
			if len(axes) > 0 {
				for i := range axes[0].n {
					walk(at+i*axes[0].at, from+i*axes[0].from, axes[1:])
				}
				return
			}
			for i := range p.run {
				if _, twice := out[at+i]; twice {
					t.Fatalf("byte %d twice in %v", at+i, list)
				}
				out[at+i] = from + i
			}
		}
		walk(p.lo, p.offset, p.axes)
	}
	return out
}

// drawPiece draws a piece of a few bytes. Its steps are products of few
// numbers, so that many pairs have a frame, or any numbers.
func drawPiece(t *rapid.T, w *workspace, root int) piece {
	below := func(n int) int64 { return int64(rapid.IntRange(0, n-1).Draw(t, "n")) }
	steps := rapid.SampledFrom([][]int64{{1, 4, 24, 96}, {1, 2, 8, 40}, {1, 12, 24, 72}, {1, 5, 25, 100}, {1, 4, 12, 36}, nil}).Draw(t, "steps")
	w.begin(1)
	span, image := int64(1), int64(1) // of the axes so far
	for d := range 1 + below(4) {
		step := span + below(4)
		if steps != nil {
			step = steps[min(d, 3)]
		}
		if step < span {
			continue
		}
		n := 1 + below(4)
		if steps != nil && d < 3 && below(3) == 0 { // all of a row
			n = steps[d+1] / steps[d]
		}
		from := image + below(2)*below(5)
		if d == 0 {
			step, from = 1, 1
		}
		if n > 1 {
			w.add(n, step, from)
			span += (n - 1) * step
			image += (n - 1) * from
		}
	}
	p := piece{below(60), content{root, below(20)}, w.end()}
	if below(4) == 0 {
		p.lo += 96 * below(2)
	}
	return p
}

// drawPair draws two pieces; now and then the second is a part of the first, or
// lies beside it.
func drawPair(t *rapid.T, w *workspace) (p, q piece) {
	p = drawPiece(t, w, 1)
	q = drawPiece(t, w, 1)
	if rapid.IntRange(0, 2).Draw(t, "related") > 0 {
		w.begin(p.run)
		for i := len(p.axes) - 1; i >= 0; i-- {
			w.add(int64(rapid.IntRange(1, int(p.axes[i].n)).Draw(t, "n")), p.axes[i].at, p.axes[i].from)
		}
		q = piece{p.lo, p.content, w.end()}
		for _, a := range p.axes {
			skip := int64(rapid.IntRange(0, 2).Draw(t, "skip"))
			q.lo, q.offset = q.lo+skip*a.at, q.offset+skip*a.from
		}
	}
	return p, q
}

// Boxes of bytes intersect and differ as the sets of their bytes do.
func TestBoxesAgreeWithSetsOfBytes(t *testing.T) {
	framed, met, apart, cut := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			w := &workspace{}
			p, q := drawPair(t, w)
			of, minus := bytesOf(t, p), bytesOf(t, q)
			if n := int64(len(of)); n != p.size() || p.hi()-p.lo != p.extent() {
				t.Fatalf("%v: got %d bytes over %d, want %d", p, p.size(), p.extent(), n)
			}
			common, alike := map[int64]int64{}, map[int64]int64{}
			for at, image := range of {
				if other, both := minus[at]; both {
					common[at] = image
					if image == other {
						alike[at] = image
					}
				}
			}
			overlap := func() bool {
				a, b := place{lo: p.lo, hi: p.hi(), box: &p.box}, place{lo: q.lo, hi: q.hi(), box: &q.box}
				return a.lo < b.hi && b.lo < a.hi && w.overlap(a, b)
			}()
			if !overlap && len(common) > 0 {
				t.Fatalf("%v and %v: got no common bytes, want %d", p, q, len(common))
			}
			left, ok := w.without(nil, &p, &q)
			if !ok || !w.align(&p, &q) { // a piece and itself may have none
				continue
			}
			framed++
			if overlap != (len(common) > 0) {
				t.Fatalf("%v and %v: got overlap %v of %d common bytes", p, q, overlap, len(common))
			}
			rest := maps.Clone(of)
			maps.DeleteFunc(rest, func(at, _ int64) bool { _, both := minus[at]; return both })
			if got := bytesOf(t, left...); !maps.Equal(got, rest) {
				t.Fatalf("%v without %v: got %v, want the bytes %v", p, q, left, rest)
			}
			if len(left) > 1 {
				cut++
			}
			if len(common) > 0 {
				met++
			} else if p.lo < q.hi() && q.lo < p.hi() {
				apart++
			}
			if got := bytesOf(t, w.shared(nil, &p, &q)...); len(got) > len(alike) || !isSubset(got, alike) {
				t.Fatalf("%v and %v: got %v shared, want some of %v", p, q, got, alike)
			} else if len(alike) == len(common) && len(got) < len(alike) {
				t.Fatalf("%v and %v: got %d bytes shared, want all %d", p, q, len(got), len(alike))
			}
			moved, ok := w.through(nil, &p, &q)
			want := map[int64]int64{}
			for at, image := range common {
				want[minus[at]] = image
			}
			if got := bytesOf(t, moved...); !ok || !maps.Equal(got, want) {
				t.Fatalf("%v through %v: got %v (%v), want the bytes %v", p, q, moved, ok, want)
			}
		}
	})
	t.Logf("%d pairs with a frame: %d share bytes, %d mesh without, %d are cut", framed, met, apart, cut)
	if framed < 500 || met < framed/4 || apart < framed/200 || cut < framed/20 {
		t.Errorf("got %d pairs with a frame, %d that share bytes, %d that mesh without, %d that are cut: too few", framed, met, apart, cut)
	}
}

func isSubset(a, b map[int64]int64) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// The inverse of a box leads back.
func TestInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &workspace{}
		p := drawPiece(t, w, 1)
		back := p.inverse(nil)
		want := map[int64]int64{}
		for at, image := range bytesOf(t, p) {
			want[image] = at
		}
		if got := bytesOf(t, back); !maps.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", p, got, want)
		}
	})
}
