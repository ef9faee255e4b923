package exec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/shape"
)

// bytesAt lists the bytes of a place in the order of its elements.
func bytesAt(p place, typ *shape.Shape, elem int64) (list []int64) {
	strides := typ.Strides()
	if p.layout != nil {
		strides = p.layout.Strides()
	}
	starts := []int64{p.offset}
	for d, n := range typ.Sizes() {
		var next []int64
		for _, at := range starts {
			for i := range n {
				next = append(next, at+int64(i*strides[d])*elem)
			}
		}
		starts = next
	}
	for _, at := range starts {
		for b := range elem {
			list = append(list, at+b)
		}
	}
	return list
}

// drawBox draws a box of a frame that begins somewhere in a storage.
func drawBox(t *rapid.T, s *storage, frame *shape.Shape, start, elem int64) (place, *shape.Shape) {
	at, sizes := 0, make([]int, frame.Rank())
	for d, n := range frame.Sizes() {
		lo := rapid.IntRange(0, n-1).Draw(t, "from")
		sizes[d] = rapid.IntRange(1, n-lo).Draw(t, "size")
		at += lo * frame.Strides()[d]
	}
	typ := shape.MustOf(sizes...)
	p := place{storage: s, offset: start + int64(at)*elem, size: int64(typ.NumElements()) * elem}
	if l, err := shape.Strided(typ, frame.Strides()...); err != nil {
		t.Fatal(err)
	} else if !l.IsContiguous() {
		p.layout = l
	}
	return p, typ
}

func drawFrame(t *rapid.T) *shape.Shape {
	return shape.MustOf(rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "frame")...)
}

// TestRegions compares what is said of two places with lists of their bytes: of
// boxes of one frame exactly, of others it is never wrong to the wrong side.
func TestRegions(t *testing.T) {
	apart, inside := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var s storage
		elem := rapid.SampledFrom([]int64{1, 4}).Draw(t, "elem")
		frame := drawFrame(t)
		start := elem * rapid.Int64Range(0, 9).Draw(t, "start")
		p, typ := drawBox(t, &s, frame, start, elem)
		same := rapid.Bool().Draw(t, "same")
		if !same {
			frame, start = drawFrame(t), elem*rapid.Int64Range(0, 9).Draw(t, "start")
		}
		q, other := drawBox(t, &s, frame, start, elem)
		a, b := bytesAt(p, typ, elem), bytesAt(q, other, elem)
		if got, want := p.extent(), slices.Max(a)-p.offset+1; got != want {
			t.Fatalf("%v: got an extent of %d, want %d", p, got, want)
		}
		meet := slices.ContainsFunc(a, func(at int64) bool { return slices.Contains(b, at) })
		contained := !slices.ContainsFunc(b, func(at int64) bool { return !slices.Contains(a, at) })
		got, covers := p.overlaps(q), p.covers(q)
		if got != q.overlaps(p) {
			t.Fatalf("%v and %v: got %t, and %t the other way round", p, q, got, !got)
		}
		if meet && !got || covers && !contained || same && got != meet {
			t.Fatalf("%v and %v of %s: got overlap %t, covers %t, want %t, %t", p, q, frame, got, covers, meet, contained)
		}
		switch {
		case !got && max(p.offset, q.offset) < min(p.offset+p.extent(), q.offset+q.extent()):
			apart++
		case covers:
			inside++
		}
	})
	if seen := apart > 0 && inside > 0; !seen && !testing.Short() {
		t.Errorf("got %d pairs of places that are apart within one range and %d inside of one another, want some of each", apart, inside)
	}
	var s storage
	column := func(at int64, n int) place {
		l, err := shape.Strided(shape.MustOf(3, n), 8, 1)
		if err != nil {
			t.Fatal(err)
		}
		return place{storage: &s, offset: at, size: int64(3 * n), layout: l}
	}
	left, right, all := column(0, 4), column(4, 4), column(0, 7)
	if left.overlaps(right) || !left.overlaps(all) || !right.overlaps(all) {
		t.Errorf("got columns [0,4) and [4,8) overlapping %t, [0,4) and [0,7) %t, [4,8) and [0,7) %t, want false, true, true", left.overlaps(right), left.overlaps(all), right.overlaps(all))
	}
	if !all.covers(left) || all.covers(right) || left.covers(all) {
		t.Errorf("got columns [0,7) covering [0,4) %t, [4,8) %t, and covered by [0,4) %t, want true, false, false", all.covers(left), all.covers(right), left.covers(all))
	}
}

// TestRebase compares the strides of parts of a value that gets strides with
// where its elements go.
func TestRebase(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		var s storage
		outer := drawFrame(t)
		p, typ := drawBox(t, &s, outer, 0, 1)
		// A box of the value as it is, or of the same elements with other axes.
		as := typ
		if rapid.Bool().Draw(t, "reshaped") {
			as = shape.MustOf(typ.NumElements())
		} else if rapid.Bool().Draw(t, "joined") && typ.Rank() > 1 {
			as = shape.MustOf(append([]int{typ.Size(0) * typ.Size(1)}, typ.Sizes()[2:]...)...)
		}
		part, inner := drawBox(t, &s, as, 0, 1)
		layout, err := shape.Strided(typ, outer.Strides()...)
		if err != nil {
			t.Fatal(err)
		}
		from := inner.Strides()
		if part.layout != nil {
			from = part.layout.Strides()
		}
		where := bytesAt(place{layout: layout}, typ, 1)
		var want []int64
		for _, at := range bytesAt(part, inner, 1) {
			want = append(want, where[at])
		}
		to, offset, ok := rebase(layout, inner, from, int(part.offset))
		if !ok {
			if layout.IsContiguous() || as == typ {
				t.Fatalf("%s at %d of %s: got no strides for a box", inner, part.offset, layout)
			}
			return
		}
		moved++
		l, err := shape.Strided(inner, to...)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytesAt(place{offset: int64(offset), layout: l}, inner, 1); !slices.Equal(got, want) {
			t.Fatalf("%s at %d of %s, now %v: got strides %v from %d on, elements %v, want %v", inner, part.offset, typ, p.layout, to, offset, got, want)
		}
	})
	if moved == 0 {
		t.Error("got no part moved, want some")
	}
	rows, err := shape.Strided(shape.MustOf(2, 3), 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	if to, _, ok := rebase(rows, shape.MustOf(6), []int{1}, 0); ok {
		t.Errorf("got strides %v for an axis over two rows with a gap", to)
	}
	if to, at, ok := rebase(rows, shape.MustOf(3), []int{1}, 3); !ok || at != 4 || !slices.Equal(to, []int{1}) {
		t.Errorf("got strides %v from %d on, %t, for the second row, want [1] from 4 on", to, at, ok)
	}
}

// TestRegionsOfManyAxes has more axes than a region has room for by itself:
// elements two bytes apart along each, between which others lie.
func TestRegionsOfManyAxes(t *testing.T) {
	s := &storage{}
	at := func(offset int64, rank int) (place, *shape.Shape) {
		sizes, strides := make([]int, rank), make([]int, rank)
		for d := range rank {
			sizes[d], strides[d] = 2, 2<<(2*(rank-1-d))
		}
		typ := shape.MustOf(sizes...)
		layout, err := shape.Strided(typ, strides...)
		if err != nil {
			t.Fatal(err)
		}
		return place{storage: s, offset: offset, size: int64(typ.NumElements()), layout: layout}, typ
	}
	for _, rank := range []int{3, 6, 8} {
		for shift := range int64(12) {
			p, typ := at(0, rank)
			q, _ := at(shift, rank)
			shared := false
			list := bytesAt(q, typ, 1)
			for _, b := range bytesAt(p, typ, 1) {
				shared = shared || slices.Contains(list, b)
			}
			if shared && !p.overlaps(q) {
				t.Errorf("rank %d, %d bytes on: the places share bytes, and are said not to", rank, shift)
			}
			if shift == 1 && p.overlaps(q) {
				t.Errorf("rank %d: places between each other are said to share bytes", rank)
			}
			if shift == 0 && (!p.covers(q) || !p.isInGrid()) {
				t.Errorf("rank %d: a place is said not to cover itself", rank)
			}
			if rank < 6 {
				if n := testing.AllocsPerRun(5, func() { p.overlaps(q); p.covers(q); p.isInGrid() }); n != 0 {
					t.Errorf("rank %d: got %v allocations, want none", rank, n)
				}
			}
		}
	}
}
