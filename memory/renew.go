package memory

import "github.com/tenure-go/tenure/internal/invariant"

// renewal is the additional state of a buffer of AdoptRenewable, guarded by
// storage.mu. The buffer keeps its safety net when it is freed, and the record
// of its first handle: a handle is two words, and a goroutine that reads a
// stale one while it changes must not combine the record of one handle with the
// generation of another.
type renewal struct {
	record uint32  // of the first handle; 0 if there was none, and after the buffer was dropped
	parked *record // the record while it has no handle
	vacant bool    // the buffer is completely freed
}

// AdoptRenewable is [Adopt] for a buffer that [Buffer.Renew] can point to other
// bytes once it has no holder. It is for bytes that arrive again and again,
// each released before the next. An old pointer to the buffer then refers to
// the new bytes.
func AdoptRenewable(data []byte, flags Flags, release func()) *Buffer {
	s := &storage{data: data[:len(data):len(data)], giveUp: release, purpose: noPurpose, renewal: new(renewal)}
	return s.publish(flags)
}

// Renew points a buffer of [AdoptRenewable] without holders to other bytes of
// the same size, and sets its label. It allocates no object. The caller gets
// the only hold, as a handle in place of ended, the first handle of the buffer;
// a stale copy of ended still counts as released.
//
// Renew does nothing and returns false if the buffer has a holder, if its last
// release is under way, or if the record of the handle has served as many
// handles as its generations can distinguish.
func (b *Buffer) Renew(ended Handle, data []byte, label string, release func()) (h Handle, ok bool) {
	if b.none() {
		return Handle{}, false
	}
	s := b.s
	if s.renewal == nil || len(data) != s.size || !s.claim(ended) {
		return Handle{}, false
	}
	// It has no holder and no other goroutine can renew it, so the caller owns
	// it.
	s.data, s.giveUp = data[:len(data):len(data)], release
	s.mu.Lock() // another goroutine may describe it
	s.label = label
	if invariant.Enabled {
		s.site = invariant.Here(1)
	}
	live.add(s)
	s.mu.Unlock()
	s.state.Or(exclusive)
	return s.attach(ended.rec), true
}

// claim makes the caller the owner of a freed buffer, if ended was on the
// record that it kept.
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

// vacated marks the end of free: from here on another goroutine may renew the
// buffer.
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

// unpark frees the record, now or when its handle ends: the buffer was dropped
// and is never renewed.
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
