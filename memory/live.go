package memory

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// live is the list of all buffers with a holder, in parts, so that cores seldom
// wait for one lock.
var live registry

type registry struct {
	lastID atomic.Uint64
	parts  [16]struct {
		mu    sync.Mutex
		first *storage
		_     [48]byte
	}
}

func (r *registry) add(s *storage) {
	s.id = r.lastID.Add(1)
	p := &r.parts[s.id%uint64(len(r.parts))]
	p.mu.Lock()
	s.after = p.first
	if p.first != nil {
		p.first.before = s
	}
	p.first = s
	p.mu.Unlock()
}

func (r *registry) remove(s *storage) {
	p := &r.parts[s.id%uint64(len(r.parts))]
	p.mu.Lock()
	if s.before != nil {
		s.before.after = s.after
	} else {
		p.first = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	}
	s.before, s.after = nil, nil
	p.mu.Unlock()
}

func (r *registry) all() []*storage {
	var all []*storage
	for i := range r.parts {
		p := &r.parts[i]
		p.mu.Lock()
		for s := p.first; s != nil; s = s.after {
			all = append(all, s)
		}
		p.mu.Unlock()
	}
	return all
}

// BufferInfo describes a live buffer.
type BufferInfo struct {
	ID      uint64 // buffers are numbered in the order of creation
	Bytes   int
	Device  *Device // nil for the processor's memory
	Purpose Purpose
	Label   string
	Flags   Flags
	Holders int
	Handles []HandleInfo // the holders that are handles, newest first
	Site    string       // where it was allocated; only in builds with the tag `invariants`
}

// HandleInfo describes a handle whose hold has not ended.
type HandleInfo struct {
	ID      uint64 // unique among all handles of the process
	Dead    bool   // ended, but still in use
	Uses    int
	Exports int    // uses that foreign code ends
	Site    string // where it was made; only in builds with the tag `invariants`
}

// Live describes all buffers that have a holder, oldest first, as reports of
// leaks do. It is slow and takes locks.
func Live() []BufferInfo {
	all := live.all()
	infos := make([]BufferInfo, 0, len(all))
	for _, s := range all {
		if info, ok := s.info(); ok {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b BufferInfo) int { return cmp.Compare(a.ID, b.ID) })
	return infos
}

// Info describes the buffer.
func (b *Buffer) Info() BufferInfo {
	if b.none() {
		return BufferInfo{Purpose: noPurpose}
	}
	info, _ := b.s.info()
	return info
}

// info does not access the bytes: the buffer may be freed while it runs. ok is
// false if it was freed.
func (s *storage) info() (info BufferInfo, ok bool) {
	state := s.state.Load()
	info = BufferInfo{
		Bytes: s.size, Purpose: s.purpose, Flags: Flags(state &^ holdersMask), Holders: int(state & holdersMask), Handles: s.handles(),
	}
	if s.remote != nil {
		info.Device = s.remote.Device
	}
	s.mu.Lock() // another goroutine may renew it
	defer s.mu.Unlock()
	info.ID, info.Label, info.Site = s.id, s.label, s.site.String()
	return info, info.Holders > 0
}

func (s *storage) handles() []HandleInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []HandleInfo
	for at := s.first; at != 0; {
		slab, i := slabOf(at)
		r := &slab.records[i]
		w := r.word.Load()
		info := HandleInfo{ID: w&genMask | uint64(r.index)&^genMask, Dead: w&dead != 0, Site: slab.sites[i].String()}
		info.Uses, info.Exports = usesIn(w)
		infos = append(infos, info)
		at = r.next
	}
	return infos
}

func (s *storage) chain(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.prev, r.next = 0, s.first
	if s.first != 0 {
		recordAt(s.first).prev = r.index
	}
	s.first = r.index
	if s.renewal != nil && s.renewal.record == 0 {
		s.renewal.record = r.index
	}
}

func (s *storage) unchain(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.prev != 0 {
		recordAt(r.prev).next = r.next
	} else {
		s.first = r.next
	}
	if r.next != 0 {
		recordAt(r.next).prev = r.prev
	}
	r.prev, r.next = 0, 0
}
