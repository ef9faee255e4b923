package plan_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/plan"
	"pgregory.net/rapid"
)

// chain is a producer, its consumer in place, and a bystander: in bytes with
// blocks of one byte.
func chain() *plan.Problem {
	return &plan.Problem{Align: 1, Storages: []plan.Storage{
		{Name: "a", Size: 8, Pieces: []plan.Piece{{0, 8, 1, 3}, {0, 4, 3, 6}}},
		{Name: "b", Size: 4, Pieces: []plan.Piece{{0, 4, 2, 4}}},
	}}
}

func TestValidate(t *testing.T) {
	if err := chain().Validate(); err != nil {
		t.Fatalf("valid problem: %v", err)
	}
	for _, test := range []struct {
		name string
		edit func(p *plan.Problem)
		want string
	}{
		{"negative size", func(p *plan.Problem) { p.Storages[1].Size = -1 }, `storage 1 ("b"): size: got -1, want 0`},
		{"size too large", func(p *plan.Problem) { p.Storages[1].Size = math.MaxInt64 }, `storage 1 ("b"): size: got 9223372036854775807`},
		{"negative piece", func(p *plan.Problem) { p.Storages[0].Pieces[1].Size = -4 }, `storage 0 ("a"): piece 1: size: got -4`},
		{"piece below its storage", func(p *plan.Problem) { p.Storages[0].Pieces[1].Offset = -1 }, `piece 1: bytes: got 4 at offset -1`},
		{"piece past its storage", func(p *plan.Problem) { p.Storages[0].Pieces[1].Offset = 5 }, `piece 1: bytes: got 4 at offset 5, want them within the storage's 8`},
		{"piece that overflows", func(p *plan.Problem) { p.Storages[0].Pieces[1].Size = math.MaxInt64 }, `piece 1: bytes: got 9223372036854775807 at offset 0`},
		{"no life", func(p *plan.Problem) { p.Storages[1].Pieces[0].End = 2 }, `piece 0: life: got [2,2), want its start before its end`},
		{"life backwards", func(p *plan.Problem) { p.Storages[1].Pieces[0].Start = 9 }, `piece 0: life: got [9,4)`},
		{"life before time", func(p *plan.Problem) { p.Storages[1].Pieces[0].Start = -1 }, `piece 0: life: got [-1,4), want it within`},
		{"life after time", func(p *plan.Problem) { p.Storages[1].Pieces[0].End = plan.MaxTime + 1 }, `want it within [0,1073741824)`},
		{"odd block size", func(p *plan.Problem) { p.Align = 48 }, `align: got 48, want a power of two`},
		{"negative block size", func(p *plan.Problem) { p.Align = -64 }, `align: got -64, want a power of two`},
		{"sum of sizes", func(p *plan.Problem) {
			p.Storages[0].Size, p.Storages[1].Size = plan.MaxBytes, 4
		}, `storage 1 ("b"): sum of sizes: got more than 4611686018427387904`},
	} {
		p := chain()
		test.edit(p)
		err := p.Validate()
		if !errors.Is(err, plan.ErrProblem) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ErrProblem with %q", test.name, err, test.want)
		}
		if err := p.CheckPlacement(plan.Placement{Offsets: []int64{0, 8}, Size: 12}); !errors.Is(err, plan.ErrProblem) {
			t.Errorf("%s: check: got %v, want ErrProblem", test.name, err)
		}
	}
}

func TestCheckPlacement(t *testing.T) {
	// b may use the tail of a from time 3 on, but it starts at 2.
	blocks := &plan.Problem{Storages: []plan.Storage{
		{Name: "a", Size: 100, Pieces: []plan.Piece{{0, 100, 0, 2}}},
		{Name: "b", Size: 10, Pieces: []plan.Piece{{0, 10, 1, 3}}},
	}}
	for _, test := range []struct {
		name    string
		problem *plan.Problem
		offsets []int64
		size    int64
		want    string // empty for a placement that holds
	}{
		{"apart", chain(), []int64{0, 8}, 12, ""},
		{"below", chain(), []int64{4, 0}, 12, ""},
		{"shared bytes", chain(), []int64{0, 7}, 12, `storage 0 ("a") piece 0 at bytes [0,8) and storage 1 ("b") piece 0 at bytes [7,11): got shared bytes at time 2`},
		{"shared later", chain(), []int64{0, 2}, 12, "got shared bytes"},
		{"too few offsets", chain(), []int64{0}, 12, "offsets: got 1, want 2"},
		{"past the end", chain(), []int64{0, 9}, 12, `storage 1 ("b"): end: got 4 bytes at offset 9, want them within 12`},
		{"overflow", chain(), []int64{0, math.MaxInt64}, 12, `end: got 4 bytes at offset 9223372036854775807`},
		{"negative offset", chain(), []int64{-8, 0}, 12, `storage 0 ("a"): offset: got -8, want a multiple of 1`},
		{"on blocks", blocks, []int64{0, 128}, 192, ""},
		{"off blocks", blocks, []int64{0, 100}, 192, `storage 1 ("b"): offset: got 100, want a multiple of 64`},
		{"shared block", blocks, []int64{0, 64}, 192, "got shared bytes at time 1"},
		{"half a block at the end", blocks, []int64{0, 128}, 138, `want them within 138`},
	} {
		err := test.problem.CheckPlacement(plan.Placement{Offsets: test.offsets, Size: test.size})
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want none", test.name, err)
			}
			continue
		}
		if !errors.Is(err, plan.ErrPlacement) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ErrPlacement with %q", test.name, err, test.want)
		}
	}
}

func TestLowerBound(t *testing.T) {
	for _, test := range []struct {
		name    string
		problem plan.Problem
		bytes   int64
		at      plan.Time
		live    []plan.StoragePiece
		rigid   bool
	}{
		{name: "nothing", problem: plan.Problem{}},
		{name: "chain", problem: *chain(), bytes: 12, at: 2, live: []plan.StoragePiece{{0, 0}, {1, 0}}},
		{name: "alias over the same bytes counts once", problem: plan.Problem{Align: 1, Storages: []plan.Storage{
			{Size: 10, Pieces: []plan.Piece{{0, 6, 0, 4}, {4, 6, 2, 4}, {0, 10, 3, 4}}},
			{Size: 5, Pieces: []plan.Piece{{0, 5, 0, 3}}},
		}}, bytes: 15, at: 2, live: []plan.StoragePiece{{0, 0}, {0, 1}, {1, 0}}},
		{name: "whole blocks", problem: plan.Problem{Storages: []plan.Storage{
			{Size: 65, Pieces: []plan.Piece{{0, 65, 0, 2}}},
			{Size: 200, Pieces: []plan.Piece{{100, 10, 1, 2}}},
		}}, bytes: 256, at: 0, live: []plan.StoragePiece{{1, 0}}, rigid: true},
		{name: "pieces in one block count once", problem: plan.Problem{Storages: []plan.Storage{
			{Size: 64, Pieces: []plan.Piece{{0, 8, 0, 2}, {8, 8, 1, 2}}},
			{Size: 1, Pieces: []plan.Piece{{0, 1, 1, 2}}},
		}}, bytes: 128, at: 1, live: []plan.StoragePiece{{0, 0}, {0, 1}, {1, 0}}},
		{name: "empty piece", problem: plan.Problem{Storages: []plan.Storage{{Size: 0, Pieces: []plan.Piece{{0, 0, 3, 5}}}}}},
	} {
		b := test.problem.LowerBound()
		if b.Bytes != test.bytes || b.Rigid != test.rigid || !slices.Equal(b.Live, test.live) && len(test.live) > 0 {
			t.Errorf("%s: got %+v, want %d bytes at %d, live %v, rigid %v", test.name, b, test.bytes, test.at, test.live, test.rigid)
		}
		if !test.rigid && b.At != test.at {
			t.Errorf("%s: got time %d, want %d", test.name, b.At, test.at)
		}
	}
}

// Problems draws small problems with pieces that alias, part and come back.
func problems() *rapid.Generator[*plan.Problem] {
	return rapid.Custom(func(t *rapid.T) *plan.Problem {
		p := &plan.Problem{Align: rapid.SampledFrom([]int64{1, 4}).Draw(t, "align")}
		for range rapid.IntRange(0, 5).Draw(t, "storages") {
			c := plan.Storage{Name: string(rune('a' + len(p.Storages))), Size: rapid.Int64Range(0, 12).Draw(t, "size")}
			for range rapid.IntRange(1, 3).Draw(t, "pieces") {
				offset := rapid.Int64Range(0, c.Size).Draw(t, "offset")
				start := rapid.IntRange(0, 6).Draw(t, "start")
				c.Pieces = append(c.Pieces, plan.Piece{
					Offset: offset, Size: rapid.Int64Range(0, c.Size-offset).Draw(t, "bytes"),
					Start: plan.Time(start), End: plan.Time(start + rapid.IntRange(1, 4).Draw(t, "life")),
				})
			}
			p.Storages = append(p.Storages, c)
		}
		return p
	})
}

// The bound equals a count over every block and every moment, and its witness
// adds up to it.
func TestLowerBoundCountsBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		align := p.Align
		at := func(moment plan.Time) (sum int64) {
			for _, c := range p.Storages {
				blocks := map[int64]bool{}
				for _, x := range c.Pieces {
					for byte := x.Offset; byte < x.Offset+x.Size && x.Start <= moment && moment < x.End; byte++ {
						blocks[byte/align] = true
					}
				}
				sum += int64(len(blocks)) * align
			}
			return sum
		}
		var want, widest int64
		for moment := plan.Time(0); moment < 12; moment++ {
			want = max(want, at(moment))
		}
		for _, c := range p.Storages {
			widest = max(widest, (c.Size+align-1)/align*align)
		}
		got := p.LowerBound()
		if got.Bytes != max(want, widest) || got.Rigid != (widest > want) {
			t.Fatalf("got %+v, want %d bytes live and a storage of %d", got, want, widest)
		}
		if !got.Rigid && at(got.At) != got.Bytes {
			t.Fatalf("got %d bytes at %d, where %d are live", got.Bytes, got.At, at(got.At))
		}
	})
}

// CheckPlacement agrees with a count of owners over every block and every
// moment.
func TestCheckPlacementCountsOwners(t *testing.T) {
	rejected := 0
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		a := plan.Placement{Size: rapid.Int64Range(0, 40).Draw(t, "arena")}
		for range p.Storages {
			a.Offsets = append(a.Offsets, rapid.Int64Range(0, 32).Draw(t, "offset"))
		}
		type cell struct {
			block  int64
			moment plan.Time
		}
		owner := map[cell]int{}
		good := true
		for i, c := range p.Storages {
			good = good && a.Offsets[i]%p.Align == 0 && a.Offsets[i]+(c.Size+p.Align-1)/p.Align*p.Align <= a.Size
			for _, x := range c.Pieces {
				for byte := a.Offsets[i] + x.Offset; byte < a.Offsets[i]+x.Offset+x.Size; byte++ {
					for moment := x.Start; moment < x.End; moment++ {
						k := cell{byte / p.Align, moment}
						if other, taken := owner[k]; taken && other != i {
							good = false
						}
						owner[k] = i
					}
				}
			}
		}
		err := p.CheckPlacement(a)
		if (err == nil) != good {
			t.Fatalf("got %v, want holds=%v", err, good)
		}
		if err != nil {
			rejected++
		}
	})
	if rejected == 0 {
		t.Error("no placement was rejected")
	}
}
