package solve

import "github.com/tenure-go/tenure/plan"

// sections are the moments that matter, with the storages that live there.
type sections struct {
	members [][]member // by section: the storages that live there
	span    []span     // by storage
}

// member is a storage that lives at a section, with the lowest unit that is
// live there.
type member struct {
	storage int
	lo      int64
}

// span is the live part of a storage from section first on, by section.
type span struct {
	first int
	cells []cell
}

func (s *span) end() int { return s.first + len(s.cells) }

// cell is the live part of a storage at one section: size units, the lowest at
// lo from its base; nothing if size is 0.
type cell struct{ lo, size int64 }

// maxCells is the most cells for which sections are made: some tens of
// megabytes.
const maxCells = 1 << 21

// newSections returns the sections of in, or false where there would be too
// many cells.
func newSections(in *instance) (*sections, bool) {
	cells := 0
	for i := range in.storages {
		if cells += in.storages[i].moments; cells > maxCells {
			return nil, false
		}
	}
	c := &sections{members: make([][]member, len(in.times)), span: make([]span, len(in.storages))}
	for i := range in.storages {
		owner := &in.storages[i]
		s := span{first: owner.first, cells: make([]cell, owner.moments)}
		for k := range s.cells {
			s.cells[k] = owner.cellAt(in.times[s.first+k])
			if s.cells[k].size > 0 {
				c.members[s.first+k] = append(c.members[s.first+k], member{i, s.cells[k].lo})
			}
		}
		c.span[i] = s
	}
	return c, true
}

func (s *storage) cellAt(t plan.Time) (c cell) {
	for _, r := range s.rects {
		if r.start <= t && t < r.end {
			if c.size == 0 || r.lo < c.lo {
				c.lo = r.lo
			}
			c.size += r.hi - r.lo
		}
	}
	return c
}
