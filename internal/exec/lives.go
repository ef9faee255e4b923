package exec

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// endAt makes the bytes of a value stay until the given moment, at least.
func (l *lowering) endAt(v *ir.Value, end plan.Time) {
	x := l.of(v)
	x.end = max(x.end, end)
}

// collectEnds finds until when each value is read. An operand whose bytes
// become the results' ends when the call reads it; any other lives until the
// results are written, and so does one beside whose bytes a result lies: that
// result may be written while the operand is read.
func (l *lowering) collectEnds() {
	for k := range l.calls {
		c := &l.calls[k]
		partly := l.isPartlyView(k)
		for _, a := range c.Args {
			if a.Value == nil {
				continue
			}
			end := plan.Time(2*k + 2)
			if !partly && l.becomesResults(c.Call, a.Value) {
				end--
			}
			l.endAt(a.Value, end)
		}
	}
	// Loops first: the results of a branch live as long as the call's result,
	// which a later loop may read in every iteration.
	for _, loops := range []bool{true, false} {
		for k, c := range l.calls {
			if len(c.Regions) > 0 && c.Op.Loop == loops {
				l.endRegions(k)
			}
		}
	}
}

// clearEnds drops what collectEnds found.
func (l *lowering) clearEnds() {
	for _, v := range l.numbered[1:] {
		l.of(v).end = 0
	}
}

// isPartlyView reports whether some results of a call are views, and others are
// computed: these are not to be written over what the call reads.
func (l *lowering) isPartlyView(k int) bool {
	c := &l.calls[k]
	views, all := false, true
	for r, v := range c.Results {
		if v == nil || len(c.Regions) > 0 || l.of(v).size == 0 {
			continue
		}
		is := l.isView(k, r)
		views, all = views || is, all && is
	}
	return views && !all
}

// becomesResults reports whether a result of c lies in bytes of an operand, and
// none beside them, unless regions of c compute the results.
func (l *lowering) becomesResults(c *ir.Call, operand *ir.Value) bool {
	from, some := l.of(operand).place, false
	for _, r := range c.Results {
		if r == nil {
			continue
		}
		is := l.of(r).overlaps(from)
		if !is && l.of(r).size > 0 && len(c.Regions) == 0 {
			return false
		}
		some = some || is
	}
	return some
}

// endRegions finds the lives of the parameters and results of a call's regions.
func (l *lowering) endRegions(k int) {
	c := &l.calls[k]
	end := plan.Time(2 * c.end)
	for _, r := range c.Results {
		if r != nil {
			l.endAt(r, end) // it is there when a region ends, whether or not it is read then
		}
	}
	if c.Op.Loop {
		l.endLoop(k, end)
		return
	}
	for _, region := range c.Regions {
		for i, y := range region.Results {
			if r := c.Results[i]; r != nil {
				l.endAt(y, l.of(r).end) // it lives on as the call's result
			}
		}
	}
}

// endLoop finds the lives of the operands and state of a loop. Values from
// outside are read again in every iteration, so they stay until the loop ends.
func (l *lowering) endLoop(k int, end plan.Time) {
	region := l.calls[k].Regions[0]
	for _, p := range region.Params {
		l.of(p).end = end
	}
	for _, y := range region.Results {
		l.endAt(y, end)
	}
	for v := range region.Uses() {
		if !l.index.IsInside(v, k) {
			l.endAt(v, end)
		}
	}
}

// endDynamic sets when the buffers of a block's dynamic values are freed: after
// the call of that block in which they are used last, and those that the block
// returns, left, when the results of the call around it share them. The first
// call of the block has the number k, and next is the number after those of its
// calls.
func (l *lowering) endDynamic(b *ir.Block, k int) (left []int, next int) {
	var own []*ir.Value // dynamic values that calls of the block define
	for _, c := range b.Calls {
		for v := range c.Uses() {
			if x := l.of(v); x.last >= 0 && l.index.Calls[l.index.Def(v)].Block == b {
				x.last = k
			}
		}
		for _, v := range c.Results {
			if v != nil && !l.isStatic(v) {
				l.of(v).last = k
				own = append(own, v)
			}
		}
		inner := k + 1
		for i, region := range c.Regions {
			l.calls[k].left[i], inner = l.endDynamic(region, inner)
		}
		k = inner
	}
	for _, v := range own {
		x := l.of(v)
		if x.storage.space != plan.SpaceOwn {
			continue
		}
		c := &l.calls[x.last]
		x.end = max(x.end, plan.Time(2*c.end))
		if slices.Contains(b.Results, v) {
			left = append(left, x.dynamic)
		} else {
			c.freed = append(c.freed, x.dynamic)
		}
	}
	return left, k
}

// life returns when the bytes of v are needed.
func (l *lowering) life(v *ir.Value) (start, end plan.Time) {
	steps := plan.Time(2 * len(l.calls))
	k := l.index.Def(v)
	if k < 0 {
		return 0, max(steps, 1)
	}
	start = plan.Time(2*k + 1)
	end = max(l.of(v).end, start+1)
	if space := l.of(v).storage.space; space != plan.SpaceArena && space != plan.SpaceOwn && space != plan.SpaceSlot {
		return start, max(end, steps)
	}
	return start, end
}

// collectPieces collects the pieces of the arena's storages.
func (l *lowering) collectPieces() {
	for _, v := range l.defs {
		l.of(v).storage.count++
	}
	for _, s := range l.storages {
		if s.space == plan.SpaceArena {
			n := len(l.pieces)
			l.pieces = slices.Grow(l.pieces, s.count)[:n+s.count]
			s.first, s.count = n, 0
		}
	}
	for _, v := range l.defs {
		at := l.of(v).place
		if at.storage.space != plan.SpaceArena {
			continue
		}
		start, end := l.life(v)
		l.pieces[at.storage.first+at.storage.count] = plan.Piece{Offset: at.offset, Size: at.extent(), Start: start, End: end}
		at.storage.count++
	}
}
