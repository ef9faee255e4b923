package share

import (
	"context"
	"fmt"
	"time"
)

// mapping is the state of an arena at a peer.
type mapping struct {
	id      uint64 // as announced; the arena has another id if it was taken back since
	arena   *arena
	state   mapState
	retired bool
	asked   time.Time // when the last message that the peer must answer was sent
	pinned  bool      // the arena was returned although this peer, which is disconnected, may have it mapped
	why     error     // the reason if refused
}

type mapState uint8

const (
	announced mapState = iota
	mapped
	refused
)

// mapped makes sure that the peer has the arena mapped: it announces the arena
// before the first offer in it.
func (p *Peer) mapped(ctx context.Context, a *arena) error {
	m, ready, err := p.announce(a)
	if err != nil || ready {
		return err
	}
	return p.awaitMapped(ctx, a, m)
}

// announce announces the arena to the peer, unless the peer knows it. ready
// reports whether the peer has it mapped. While packets wait for the peer to
// read, announce does nothing and returns no mapping, because each waiting
// arena takes a descriptor.
func (p *Peer) announce(a *arena) (m *mapping, ready bool, err error) {
	o := p.o
	if err := p.takes(a); err != nil {
		return nil, false, err
	}
	o.mu.Lock()
	m = p.maps[a.id]
	if m != nil && m.state == mapped {
		o.mu.Unlock()
		return m, true, nil
	}
	if p.row.gone || p.lost || p.gotEnd && a.alloc != nil {
		o.mu.Unlock()
		return nil, false, fmt.Errorf("%s: %w", p.who(), p.closedErr())
	}
	if m != nil && m.state == refused && a.alloc != nil { // it gets copies
		defer o.mu.Unlock()
		return nil, false, m.why
	}
	ask := m == nil || m.state == refused
	if ask && p.congested() {
		o.mu.Unlock()
		return nil, false, nil
	}
	if m == nil {
		m = &mapping{id: a.id, arena: a}
		p.maps[a.id] = m
		a.peers++
	}
	if ask {
		m.asked = time.Now()
	}
	m.state = announced
	o.mu.Unlock()
	if !ask {
		return m, false, nil
	}
	if err := p.postArena(m, a); err != nil {
		err = fmt.Errorf("%s cannot be told of the arena: %w", p.who(), err)
		o.mu.Lock()
		if p.maps[m.id] == m { // other offers wait for the answer to a question that was not sent
			p.setMapState(m, refused, err)
		}
		o.mu.Unlock()
		o.giveBack()
		return nil, false, err
	}
	crashAt(2)
	return m, false, nil
}

// postArena sends ARENA.
func (p *Peer) postArena(m *mapping, a *arena) error {
	note := arenaNote{id: m.id, size: a.size}
	if a.alloc != nil {
		note.kind, note.uuid, note.handle = allocationArena, p.o.device.uuid, a.alloc.Handle
		return p.post(header{kind: kindArena}, note.append)
	}
	if a.chunk == nil {
		return p.postWith(header{kind: kindArena}, note.append, a.shm.Fd())
	}
	fd, err := a.chunk.Export()
	if err != nil {
		return err
	}
	defer closeDescriptor(fd)
	note.kind, note.uuid, note.pages = cudaArena, p.o.device.uuid, p.o.device.pages
	return p.postWith(header{kind: kindArena}, note.append, fd)
}

// awaitMapped waits for the peer's answer about an arena. m is the result of
// announce.
func (p *Peer) awaitMapped(ctx context.Context, a *arena, m *mapping) error {
	for m == nil {
		if err := p.whenRead(ctx, true); err != nil {
			return err
		}
		var ready bool
		var err error
		if m, ready, err = p.announce(a); err != nil || ready {
			return err
		}
	}
	return p.whenFree(ctx, true, func() (bool, error) {
		if m.state == refused {
			return true, m.why
		}
		return m.state == mapped, nil
	})
}

// setMapState sets the state of an arena at the peer. The caller has o.mu.
func (p *Peer) setMapState(m *mapping, state mapState, why error) {
	m.state, m.why = state, why
	p.signal()
	if m.retired {
		p.tellRetired(m)
	}
}

// answered handles MAPPED and REFUSED.
func (p *Peer) answered(id uint64, why error) error {
	o := p.o
	defer o.giveBack() // a refused arena may have been retired meanwhile
	o.mu.Lock()
	defer o.mu.Unlock()
	m := p.maps[id]
	if m == nil || m.state != announced {
		return malformed("got an answer about arena %#x, which was not asked", id)
	}
	if why != nil {
		p.setMapState(m, refused, fmt.Errorf("%s cannot map the arena: %w", p.who(), why))
	} else {
		p.setMapState(m, mapped, nil)
	}
	return nil
}

// retire tells the peer that an arena is retired. The caller has o.mu.
func (p *Peer) retire(a *arena) {
	if m := p.maps[a.id]; m != nil {
		m.retired = true
		if m.state != announced { // otherwise after its answer
			p.tellRetired(m)
		}
	}
}

func (p *Peer) tellRetired(m *mapping) {
	if m.state == refused {
		p.forget(m)
		return
	}
	m.asked = time.Now()
	if p.o.stall != StallWait {
		p.lastRead(m.asked)
	}
	p.reply(header{kind: kindRetire}, func(b []byte) []byte { return le.AppendUint64(b, m.id) })
	crashAt(13)
}

// unmapped handles UNMAPPED.
func (p *Peer) unmapped(id uint64) error {
	o := p.o
	defer o.giveBack()
	o.mu.Lock()
	defer o.mu.Unlock()
	m := p.maps[id]
	if m == nil || m.state != mapped || !m.retired && (m.arena.alloc == nil || !p.gotEnd) {
		return malformed("got UNMAPPED for arena %#x, which is not retired", id)
	}
	p.forget(m)
	return nil
}

// forget records that the peer does not have an arena mapped any more. The
// caller has o.mu.
func (p *Peer) forget(m *mapping) {
	delete(p.maps, m.id)
	if !p.lost {
		m.arena.peers--
		return
	}
	size := int64(m.arena.size)
	if m.arena.lost--; m.arena.lost == 0 && m.pinned {
		p.o.pinned -= size
	}
	if m.pinned {
		p.debtor.pinned -= size
		p.signalFellows()
	}
}
