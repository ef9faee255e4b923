package memory

import "github.com/tenure-go/tenure/internal/invariant"

// renewal is what a buffer of AdoptRenewable has beside others, under storage.mu. Its net stays on it when it is freed, and so does
// the record of its first handle: a handle is two words, and whoever reads a stale one while it changes must not find the record of
// one with the generation of another.
type renewal struct {
	record uint32  // of the first handle; 0 if there was none, and once the buffer was dropped
	parked *record // that record while no handle is on it
	vacant bool    // the buffer is freed, to the last step
}

// AdoptRenewable is [Adopt] for a buffer that [Buffer.Renew] can point to other bytes once it has no holder: for bytes
// that arrive again and again, each released before the next. A pointer to the buffer from before then refers to the
// new bytes.
func AdoptRenewable(data []byte, flags Flags, release func()) *Buffer {
	s := &storage{data: data[:len(data):len(data)], giveUp: release, purpose: noPurpose, renewal: new(renewal)}
	return s.publish(flags)
}

// Renew points a buffer of [AdoptRenewable] without holders to other bytes, as many as before, and sets its label. It
// allocates no object. The caller gets its one hold in the form of a handle, in place of ended, the first handle that
// the buffer had; a stale copy of ended is still released.
//
// Where that is not possible Renew does nothing and returns false: the buffer has a holder, or its last release is
// under way, or the record behind the handle has served as many handles as it can distinguish.
func (b *Buffer) Renew(ended Handle, data []byte, label string, release func()) (h Handle, ok bool) {
	if b.none() {
		return Handle{}, false
	}
	s := b.s
	if s.renewal == nil || len(data) != s.size || !s.claim(ended) {
		return Handle{}, false
	}
	// Nobody holds it and nobody else can renew it: it is the caller's.
	s.data, s.giveUp = data[:len(data):len(data)], release
	s.mu.Lock() // somebody may describe it
	s.label = label
	if invariant.Enabled {
		s.site = invariant.Here(1)
	}
	live.add(s)
	s.mu.Unlock()
	s.state.Or(exclusive)
	return s.attach(ended.rec), true
}

// claim makes a freed buffer the caller's, if ended was on the record that it kept.
func (s *storage) claim(ended Handle) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.renewal
	if !r.vacant || r.parked == nil || r.parked != ended.rec {
		return false
	}
	r.vacant, r.parked = false, nil
	return true
}

// vacated notes the end of free: from here on somebody may be renewing the buffer.
func (s *storage) vacated() {
	s.mu.Lock()
	s.renewal.vacant = true
	s.mu.Unlock()
}

// park keeps the record of the first handle for the next one.
func (s *storage) park(r *record) bool {
	if s.renewal == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewal.record != r.index {
		return false
	}
	s.renewal.parked = r
	return true
}

// unpark gives the record to the others, now or when its handle ends: the buffer is dropped, so nobody will renew it.
func (s *storage) unpark() {
	if s.renewal == nil {
		return
	}
	s.mu.Lock()
	r := s.renewal.parked
	s.renewal.record, s.renewal.parked = 0, nil
	s.mu.Unlock()
	if r != nil {
		putRecord(r)
	}
}
