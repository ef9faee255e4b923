package share

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

// An event of a device travels once per connection, and offers name its records
// by number. The peer says whether it could open the event. Until then, and
// where it could not, offers wait for the work themselves.

// sentEvent is an event of this process that the peer was told of. The owner's
// mutex guards it.
type sentEvent struct {
	slot  uint32
	state mapState
}

// gotEvent is an event of the peer.
type gotEvent struct {
	event Event
	why   error // why it is not open
}

// markFor returns the mark of the work that wrote the block, for an offer to
// this peer. If the peer has not opened the event of that work, markFor waits
// until the work is complete; without wait it fails with ErrNoCredit instead.
func (p *Peer) markFor(ctx context.Context, b *block, buf *memory.Buffer, c offerOptions, wait bool) (mark, error) {
	if !b.arena.isOnDevice() {
		return mark{}, nil
	}
	e, record, complete, err := p.o.device.Written(buf, c.beforeWork && !p.noEvents.Load())
	if err != nil || complete {
		return mark{}, err
	}
	if e != nil {
		if slot := p.openedAt(e); slot != 0 {
			return mark{slot, record}, nil
		}
	}
	if !wait {
		return mark{}, fmt.Errorf("%s: the work that writes the tensor is not complete: %w", p.who(), ErrNoCredit)
	}
	p.o.waits.Add(1)
	return mark{}, p.o.device.AwaitWritten(ctx, buf)
}

// openedAt returns the slot of an event that the peer has opened, else 0. It
// tells the peer of an event that it does not know.
func (p *Peer) openedAt(e Source) uint32 {
	p.o.mu.Lock()
	s := p.sent[e]
	if s != nil {
		defer p.o.mu.Unlock()
		if s.state != mapped {
			return 0
		}
		return s.slot
	}
	if len(p.sent) >= maxEvents {
		p.o.mu.Unlock()
		return 0
	}
	if p.sent == nil {
		p.sent = map[Source]*sentEvent{}
	}
	s = &sentEvent{slot: uint32(len(p.sent) + 1)}
	p.sent[e] = s
	p.o.mu.Unlock()
	note := eventNote{slot: s.slot, kind: cudaArena, handle: e.Handle()}
	p.reply(header{kind: kindEvent}, note.append)
	crashAt(15)
	return 0
}

// opened handles OPENED.
func (p *Peer) opened(slot uint32, why error) error {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	for _, s := range p.sent {
		if s.slot == slot && s.state == announced {
			if s.state = mapped; why != nil {
				s.state = refused
				p.noEvents.Store(true) // it cannot open the others either
			}
			return nil
		}
	}
	return malformed("got an answer about event %d, which was not asked", slot)
}

// maxEvents bounds the events that one connection can make this process open.
const maxEvents = 1024

// openEvent handles EVENT.
func (p *Peer) openEvent(note eventNote) error {
	p.mu.Lock()
	_, known := p.events[note.slot]
	n := len(p.events)
	device := p.device
	p.mu.Unlock()
	if known || n >= maxEvents {
		return malformed("got EVENT %d behind %d others, want a new one of at most %d", note.slot, n, maxEvents)
	}
	crashAt(32)
	var g gotEvent
	if device == nil {
		g.why = fmt.Errorf("no arena of a device is mapped")
	} else {
		g.event, g.why = device.OpenEvent(note.handle, func() bool { return !p.s.hungUp() })
	}
	p.mu.Lock()
	if p.events == nil {
		p.events = map[uint32]gotEvent{}
	}
	p.events[note.slot] = g
	p.mu.Unlock()
	crashAt(33)
	p.reply(header{kind: kindOpened}, func(b []byte) []byte {
		b = le.AppendUint32(b, note.slot)
		if g.why == nil {
			return le.AppendUint32(b, 0)
		}
		return append(le.AppendUint32(b, 1), reason(g.why.Error())...)
	})
	return nil
}

// eventOf returns the event that an offer names. The caller has p.mu.
func (p *Peer) eventOf(m *offer, v *view) (Event, error) {
	if v.region == nil {
		if m.device != 0 {
			return nil, malformed("got an offer on a device in arena %#x, which is the host's memory", m.arena)
		}
		return nil, nil
	}
	if m.device != cudaMemory {
		return nil, malformed("got an offer of host memory in arena %#x, which is on a device", m.arena)
	}
	if m.slot == 0 {
		return nil, nil
	}
	g, known := p.events[m.slot]
	if !known || g.why != nil {
		return nil, malformed("got an offer behind event %d, which is not open", m.slot)
	}
	if mutated("no event") {
		return nil, nil
	}
	return g.event, nil
}

// closeEvents closes the events of the peer, of which no tensor is held any
// more and none will come.
func (p *Peer) closeEvents() {
	p.mu.Lock()
	var all map[uint32]gotEvent
	if p.ended && len(p.holding) == 0 {
		all, p.events = p.events, nil
	}
	p.mu.Unlock()
	for _, g := range all {
		if g.event != nil {
			_ = g.event.Close() // the device refuses only when it is lost
		}
	}
}
