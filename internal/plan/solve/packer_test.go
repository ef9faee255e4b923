package solve

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/plan"
)

// buffer is a storage of one piece.
func buffer(size int64, start, end plan.Time) plan.Storage {
	return plan.Storage{Size: size, Pieces: []plan.Piece{{Size: size, Start: start, End: end}}}
}

// The third to fifth buffers leave free, from the ground up, gaps of 4, 2 and
// 3: the last chooses among them.
func TestPackRules(t *testing.T) {
	for _, test := range []struct {
		size             int64
		lowest, tightest int64 // base
	}{
		{1, 0, 5}, {2, 0, 5}, {3, 0, 8}, {4, 0, 0}, {5, 12, 12},
	} {
		p := &plan.Problem{Align: 1, Storages: []plan.Storage{
			buffer(4, 0, 1), buffer(1, 0, 9), buffer(2, 0, 1), buffer(1, 0, 9), buffer(3, 0, 1), buffer(1, 0, 9), buffer(test.size, 1, 9),
		}}
		for rule, want := range map[fit]int64{lowest: test.lowest, tightest: test.tightest} {
			k := newPacker(compile(p), &budget{ctx: context.Background()})
			top, ok := k.pack([]int{0, 1, 2, 3, 4, 5, 6}, 0, rule, math.MaxInt64)
			if !slices.Equal(k.base[:6], []int64{0, 4, 5, 7, 8, 11}) {
				t.Fatalf("got %v, want the first six on top of each other", k.base)
			}
			if k.base[6] != want || !ok || top != max(12, want+test.size) {
				t.Errorf("%v fit of %d: got base %d and top %d, want %d", rule, test.size, k.base[6], top, want)
			}
			if _, ok := k.pack([]int{0, 1, 2, 3, 4, 5, 6}, 0, rule, top-1); ok {
				t.Errorf("%v fit of %d: got a placement within %d, want none", rule, test.size, top-1)
			}
		}
	}
}

// Distances at which two storages share bytes: a hole that is as large as the
// guest is one legal point.
func TestForbidden(t *testing.T) {
	frame := []rect{{0, 4, 0, 9}, {7, 9, 0, 9}}
	for _, test := range []struct {
		guest []rect
		want  []interval
	}{
		{[]rect{{0, 3, 2, 5}}, []interval{{-3, 4}, {4, 9}}},
		{[]rect{{0, 4, 2, 5}}, []interval{{-4, 9}}},
		{[]rect{{0, 1, 2, 5}}, []interval{{-1, 4}, {6, 9}}},
		{[]rect{{0, 1, 9, 12}}, nil},
		{[]rect{{0, 1, 2, 3}, {5, 6, 3, 4}}, []interval{{-6, -1}, {-1, 4}, {6, 9}}},
	} {
		if got := forbidden(nil, frame, test.guest); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.guest, got, test.want)
		}
	}
}

// Pieces over the same bytes are one rect while one of them lives, and equal
// lives above each other are one rect.
func TestCut(t *testing.T) {
	p := &plan.Problem{Align: 1}
	var c cutter
	for _, test := range []struct {
		pieces []plan.Piece
		want   []rect
	}{
		{nil, nil},
		{[]plan.Piece{{Offset: 3, Size: 0, Start: 0, End: 9}}, nil},
		{[]plan.Piece{{Offset: 0, Size: 4, Start: 0, End: 3}, {Offset: 0, Size: 4, Start: 3, End: 5}}, []rect{{0, 4, 0, 5}}},
		{[]plan.Piece{{Offset: 0, Size: 4, Start: 0, End: 3}, {Offset: 0, Size: 4, Start: 4, End: 5}}, []rect{{0, 4, 0, 3}, {0, 4, 4, 5}}},
		{[]plan.Piece{{Offset: 0, Size: 4, Start: 0, End: 3}, {Offset: 0, Size: 2, Start: 2, End: 5}}, []rect{{0, 2, 0, 5}, {2, 4, 0, 3}}},
		{[]plan.Piece{{Offset: 0, Size: 2, Start: 1, End: 3}, {Offset: 2, Size: 2, Start: 1, End: 3}}, []rect{{0, 4, 1, 3}}},
		{[]plan.Piece{{Offset: 0, Size: 2, Start: 1, End: 3}, {Offset: 4, Size: 2, Start: 1, End: 3}}, []rect{{0, 2, 1, 3}, {4, 6, 1, 3}}},
	} {
		if got := c.cut(nil, p, &plan.Storage{Size: 9, Pieces: test.pieces}); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.pieces, got, test.want)
		}
	}
}

// Sizes are counted in the largest unit that divides all of them.
func TestUnits(t *testing.T) {
	p := &plan.Problem{Storages: []plan.Storage{buffer(600, 0, 2), buffer(1900, 1, 3), buffer(1, 1, 3)}}
	if in := compile(p); in.unit != 64 || in.bound != (640+1920+64)/64 || in.storages[1].extent != 30 {
		t.Errorf("got unit %d, bound %d and extent %d, want 64, 41 and 30", in.unit, in.bound, in.storages[1].extent)
	}
	p.Storages = p.Storages[:2]
	if in := compile(p); in.unit != 640 || in.bound != 4 {
		t.Errorf("got unit %d and bound %d, want 640 and 4", in.unit, in.bound)
	}
}

// Too many pairs are not kept; the neighbours that are found instead are the
// same.
func TestDenseInstance(t *testing.T) {
	p := &plan.Problem{Align: 1}
	for i := range 1500 {
		p.Storages = append(p.Storages, buffer(int64(1+i%5), plan.Time(i%3), 9))
	}
	in := compile(p)
	if !in.dense || in.storages[0].near != nil {
		t.Errorf("got dense=%v and %d neighbours of the first, want true and none kept", in.dense, len(in.storages[0].near))
	}
	p.Storages = p.Storages[:40]
	in = compile(p)
	for i := range in.storages {
		kept := slices.Clone(in.neighbours(i, nil))
		slices.SortFunc(kept, func(a, b neighbour) int { return a.other - b.other })
		in.dense = true
		if found := in.neighbours(i, nil); len(kept) != 39 || !slices.Equal(found, kept) {
			t.Fatalf("storage %d: got %v, want %v", i, found, kept)
		}
		in.dense = false
	}
}
