package plan

import (
	"cmp"
	"slices"
)

// StoragePiece names a piece of a Problem by position.
type StoragePiece struct {
	Storage, Piece int
}

// Bound is a number of bytes that no placement can go below, with its witness:
// a reader can add up the list.
type Bound struct {
	Bytes int64
	At    Time           // the first moment at which that many bytes are live
	Live  []StoragePiece // the pieces that live at At, in the problem's order; bytes that pieces of one storage share count once
	Rigid bool           // the bound is the extent of one storage, whose pieces Live names: more than is ever live at once
}

// LowerBound returns the largest number of block bytes that are live at one
// moment, or the extent of the largest storage where that is more. p has to be
// valid.
func (p *Problem) LowerBound() Bound {
	var best Bound
	profile := p.LiveBytes()
	for _, s := range profile {
		if s.Bytes > best.Bytes {
			best.Bytes, best.At = s.Bytes, s.At
		}
	}
	widest := -1
	for i := range p.Storages {
		if extent := p.Extent(&p.Storages[i]); extent > best.Bytes {
			best, widest = Bound{Bytes: extent, Rigid: true}, i
		}
	}
	for i := range p.Storages {
		for j, x := range p.Storages[i].Pieces {
			if i == widest || widest < 0 && x.Start <= best.At && best.At < x.End {
				best.Live = append(best.Live, StoragePiece{Storage: i, Piece: j})
			}
		}
	}
	if widest >= 0 && len(best.Live) > 0 {
		best.At = p.Storages[widest].Pieces[0].Start
	}
	return best
}

// LiveStep is one level of a [Problem.LiveBytes] profile: Bytes are live from
// At until the next level.
type LiveStep struct {
	At    Time
	Bytes int64
}

// LiveBytes returns the block bytes that are live over time, as levels in order
// of time; the last one has 0 bytes. p has to be valid.
func (p *Problem) LiveBytes() []LiveStep {
	type change struct {
		at    Time
		bytes int64
	}
	var changes []change
	for i := range p.Storages {
		for _, l := range p.storageLevels(&p.Storages[i]) {
			changes = append(changes, change{at: l.At, bytes: l.Bytes})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var levels []LiveStep
	var live int64
	for i, c := range changes {
		live += c.bytes
		if i+1 == len(changes) || changes[i+1].at != c.at {
			levels = append(levels, LiveStep{At: c.at, Bytes: live})
		}
	}
	return levels
}

// storageLevels returns how the live bytes of one storage change over time:
// differences, not sums. It cuts the storage into cells at the edges of its
// pieces and counts the pieces over each cell, so that bytes of two pieces
// count once.
func (p *Problem) storageLevels(s *Storage) []LiveStep {
	type event struct {
		at     Time
		lo, hi int64
		add    int
	}
	var events []event
	var edges []int64
	for _, x := range s.Pieces {
		if lo, hi := p.Blocks(x); lo < hi {
			events = append(events, event{x.Start, lo, hi, 1}, event{x.End, lo, hi, -1})
			edges = append(edges, lo, hi)
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), b.add-a.add) })
	slices.Sort(edges)
	edges = slices.Compact(edges)
	cover := make([]int, len(edges)) // pieces over the cell that begins at each edge
	var levels []LiveStep
	for i, e := range events {
		if i == 0 || e.at != events[i-1].at {
			levels = append(levels, LiveStep{At: e.at})
		}
		first, _ := slices.BinarySearch(edges, e.lo)
		for k := first; edges[k] < e.hi; k++ {
			before := min(cover[k], 1)
			cover[k] += e.add
			levels[len(levels)-1].Bytes += int64(min(cover[k], 1)-before) * (edges[k+1] - edges[k])
		}
	}
	return levels
}
