package plan

import (
	"cmp"
	"slices"
)

// ClassPiece names a piece of a Problem by position.
type ClassPiece struct {
	Class, Piece int
}

// Bound is a number of bytes that no placement can go below, with its witness: a reader can add up the list.
type Bound struct {
	Bytes int64
	At    Time         // the first moment at which that many bytes are live
	Live  []ClassPiece // the pieces that live at At, in the order of the problem; bytes that pieces of one class share count once
	Rigid bool         // the bound is the extent of one class (Live names its pieces), which is larger than what is ever live at once
}

// LowerBound returns the largest number of block bytes that are live at one moment, or the extent of the largest class where
// that is more. p has to be valid.
func (p *Problem) LowerBound() Bound {
	var best Bound
	profile := p.LiveBytes()
	for _, s := range profile {
		if s.Bytes > best.Bytes {
			best.Bytes, best.At = s.Bytes, s.At
		}
	}
	widest := -1
	for i := range p.Classes {
		if extent := p.Extent(&p.Classes[i]); extent > best.Bytes {
			best, widest = Bound{Bytes: extent, Rigid: true}, i
		}
	}
	for i := range p.Classes {
		for j, x := range p.Classes[i].Pieces {
			if i == widest || widest < 0 && x.Start <= best.At && best.At < x.End {
				best.Live = append(best.Live, ClassPiece{Class: i, Piece: j})
			}
		}
	}
	if widest >= 0 && len(best.Live) > 0 {
		best.At = p.Classes[widest].Pieces[0].Start
	}
	return best
}

// LiveStep is one level of a [Problem.LiveBytes] profile: Bytes are live from At until the next level.
type LiveStep struct {
	At    Time
	Bytes int64
}

// LiveBytes returns the block bytes that are live over time, as levels in order of time; the last one has 0 bytes.
// p has to be valid.
func (p *Problem) LiveBytes() []LiveStep {
	type change struct {
		at    Time
		bytes int64
	}
	var changes []change
	for i := range p.Classes {
		for _, l := range p.classLevels(&p.Classes[i]) {
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

// classLevels returns how the live bytes of one class change over time: differences, not sums.
func (p *Problem) classLevels(c *Class) []LiveStep {
	if len(c.Pieces) == 1 {
		x := c.Pieces[0]
		lo, hi := p.Blocks(x)
		return []LiveStep{{At: x.Start, Bytes: hi - lo}, {At: x.End, Bytes: lo - hi}}
	}
	times := make([]Time, 0, 2*len(c.Pieces))
	for _, x := range c.Pieces {
		times = append(times, x.Start, x.End)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	var levels []LiveStep
	var before int64
	for _, t := range times {
		now := p.unionAt(c, t)
		levels = append(levels, LiveStep{At: t, Bytes: now - before})
		before = now
	}
	return levels
}

// unionAt returns the block bytes of class c that some piece holds at time t.
func (p *Problem) unionAt(c *Class, t Time) int64 {
	type span struct{ lo, hi int64 }
	var spans []span
	for _, x := range c.Pieces {
		if x.Start <= t && t < x.End {
			lo, hi := p.Blocks(x)
			spans = append(spans, span{lo, hi})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	var sum, end int64
	for _, s := range spans {
		sum += max(0, s.hi-max(s.lo, end))
		end = max(end, s.hi)
	}
	return sum
}
