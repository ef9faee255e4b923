package ptx

import "fmt"

// stamp is an access: who, when and where in the text.
type stamp struct {
	block  uint32
	epoch  uint32 // barriers of the block before it
	own    uint32 // barriers of the warp before it
	at     int32  // the instruction, counted from 1; 0 is no access
	thread uint16
	atomic bool
}

// trail holds the accesses of one kind to some bytes that another could still
// conflict with: two of different threads of one block, and one of another
// block. Whoever comes has one of them to conflict with if it has any.
type trail struct{ last, beside, other stamp }

// cell is the history of a byte, or of a word whose bytes have one history.
type cell struct{ written, read trail }

// shadow is the history of a memory. Memory is accessed mostly in whole words,
// so that it holds a cell for each, which is split when a part is accessed.
type shadow struct{ pages map[uint64]*[pageWords]entry }

const pageWords = 256

type entry struct {
	whole cell
	parts *[4]cell
}

func newShadow() *shadow { return &shadow{pages: map[uint64]*[pageWords]entry{}} }

// access records an access of n bytes, which lie in one page, and reports what
// it conflicts with.
func (s *shadow) access(t *thread, address uint64, n int, u use) {
	now := stamp{uint32(t.block.number), t.block.epoch, t.epoch, int32(t.pc), uint16(t.id), u == updates}
	page := s.pages[address/4/pageWords]
	if page == nil {
		page = new([pageWords]entry)
		s.pages[address/4/pageWords] = page
	}
	for end := address + uint64(n); address < end; {
		e := &page[address/4%pageWords]
		if n >= 4 && e.parts == nil {
			e.whole.access(t, now, address, u)
			address += 4
			continue
		}
		if e.parts == nil {
			e.parts = &[4]cell{e.whole, e.whole, e.whole, e.whole}
		}
		e.parts[address%4].access(t, now, address, u)
		address++
	}
}

func (c *cell) access(t *thread, now stamp, address uint64, u use) {
	c.written.check(t, now, address, u)
	if u == reads {
		c.read.add(now)
		return
	}
	c.read.check(t, now, address, u)
	c.written.add(now)
}

// ordered reports whether an access came before now for certain.
func (s stamp) ordered(now stamp) bool {
	if s.at == 0 {
		return true
	}
	if s.block != now.block {
		return false
	}
	return s.thread == now.thread || s.epoch < now.epoch || s.thread/32 == now.thread/32 && s.own < now.own
}

func (tr *trail) check(t *thread, now stamp, address uint64, u use) {
	for _, s := range [...]stamp{tr.last, tr.beside, tr.other} {
		if !s.ordered(now) && !(s.atomic && now.atomic) {
			t.race(s, now, address, u)
			return
		}
	}
}

// add keeps the new access, and of the old ones those that it does not make
// superfluous.
func (tr *trail) add(now stamp) {
	last := tr.last
	switch {
	case last.at == 0:
	case last.block != now.block:
		tr.other, tr.beside = last, stamp{}
	case last.thread != now.thread && last.epoch == now.epoch:
		tr.beside = last
	case last.epoch != now.epoch:
		tr.beside = stamp{}
	}
	tr.last = now
}

func (t *thread) race(old, now stamp, address uint64, u use) {
	run := t.block.run
	kind, who := RaceInBlock, fmt.Sprintf("thread %v", split(uint64(old.thread), run.launch.Block))
	if old.block != now.block {
		kind, who = RaceOfBlocks, fmt.Sprintf("block %v, thread %v", split(uint64(old.block), run.launch.Grid), split(uint64(old.thread), run.launch.Block))
	}
	if !run.first(kind, old.at, now.at) {
		return
	}
	p := run.kernel.places[old.at-1]
	what := map[use]string{reads: "a load", writes: "a store", updates: "an atomic operation"}[u]
	order := "a barrier between"
	if kind == RaceOfBlocks {
		order = "only atomic operations, or one block"
	}
	f := t.fault(fmt.Sprintf("got %s of the byte at %#x that line %d, %q, of %s also uses, want %s", what, address, p.line, p.text, who, order))
	run.report.Findings = append(run.report.Findings, Finding{kind, *f})
}
