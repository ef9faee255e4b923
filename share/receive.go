package share

import (
	"errors"
	"io"
	"syscall"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// view is an arena of the peer that is mapped here for reading.
type view struct {
	file    *mappedFile
	data    []byte
	region  View // of a device's memory; data is nil then
	size    int
	leases  int         // number of tensors in it that this end holds
	lent    bool        // memory of another allocator
	living  func() bool // of it: whether its process exists; nil for this one
	gone    bool        // closed: its region must not be used
	retired bool
	filled  []uint64 // a bit for each tableBytes whose page tables are filled; of the reading goroutine
}

// tableBytes is the number of bytes that one page of page tables describes.
const tableBytes = 2 << 20

// fill fills the page tables of a block the first time that a tensor in it is
// offered. The bytes are needed then, and an arena that is announced and never
// used costs nothing.
func (v *view) fill(offset, bytes int) {
	if v.region != nil {
		return
	}
	for at := offset / tableBytes; at*tableBytes < offset+bytes; at++ {
		word, bit := &v.filled[at/64], uint64(1)<<(at%64)
		switch {
		case *word == 1<<64-1:
			at |= 63
		case *word&bit == 0:
			*word |= bit
			osmem.Populate(v.data[at*tableBytes : min((at+1)*tableBytes, len(v.data))])
		}
	}
}

// arrival is a tensor that waits to be received.
type arrival struct {
	offer offer
	lease *borrowed
	after Event  // of the owner's device, before which the bytes are not complete
	data  []byte // of an inline tensor, which has no lease
}

// borrowed is a lease of the peer that this end holds, for a tensor or an
// arrival. A returned one is reused for a later lease, together with the
// function that returns it, so that a hand-over allocates neither.
type borrowed struct {
	serial uint64
	bytes  int
	view   *view
	giveUp func()
}

// maxSpare is the number of them that are kept for later leases.
const maxSpare = 64

// cost returns the memory that an inline tensor takes while it waits, also one
// without elements.
func (a *arrival) cost() int { return len(a.data) + 1024 }

// wake puts a token into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// giveUp returns a lease; nil, for an inline tensor, does nothing. It does not
// block, because any goroutine may release a tensor last.
func (p *Peer) giveUp(l *borrowed) {
	if l == nil {
		return
	}
	p.mu.Lock()
	serial, v := l.serial, l.view
	held := p.holding[serial] == l
	delete(p.holding, serial)
	p.bytes -= uint64(l.bytes)
	v.leases--
	gone, ending := v.leases == 0 && (v.retired || p.ended), p.sentEnd || p.ended
	if l.view = nil; len(p.spare) < maxSpare {
		p.spare = append(p.spare, l)
	}
	p.mu.Unlock()
	if invariant.Enabled && !held {
		invariant.Failf("share: lease %d was returned twice", serial)
	}
	crashAt(28)
	p.reply(header{kind: kindRelease, count: 1}, func(b []byte) []byte { return le.AppendUint64(b, serial) })
	crashAt(29)
	if gone && v.region != nil {
		go p.unmapIdle() // the driver may wait for the device
	} else if gone {
		p.unmapIdle()
	}
	if ending {
		p.closeEvents()
	}
	if ending && v.lent {
		go p.settle() // likewise
	} else if ending {
		p.settle()
	}
}

// unmapIdle unmaps the arenas in which this end holds no tensor and will get
// none.
func (p *Peer) unmapIdle() {
	var list []ending
	p.mu.Lock()
	for id, v := range p.views {
		if v.leases == 0 && (v.retired || p.ended) {
			if !v.gone {
				list = append(list, ending{id, v.file})
			}
			delete(p.views, id)
		}
	}
	if len(list) == 0 {
		p.mu.Unlock()
		return
	}
	p.busy++
	p.mu.Unlock()
	p.unmap(list)
	p.mu.Lock()
	p.busy--
	again := p.sentEnd
	p.mu.Unlock()
	if again { // it has waited for this
		p.settle()
	}
}

// handle handles one packet. fd is the descriptor that came with it, -1 for
// none.
func (p *Peer) handle(packet []byte, fd int, lost bool) error {
	h, body, err := parseHeader(packet)
	if fd >= 0 {
		defer closeDescriptor(fd)
		if err == nil && h.kind != kindArena {
			err = malformed("got a descriptor with %s", h.kind)
		}
	}
	if err != nil {
		return err
	}
	switch h.kind {
	case kindArena:
		return p.mapArena(body, fd, lost)
	case kindMapped:
		return p.answered(le.Uint64(body), nil)
	case kindRefused:
		why, err := parseRefusal(body)
		if err != nil {
			return err
		}
		return p.answered(le.Uint64(body), why)
	case kindRetire:
		return p.retired(le.Uint64(body))
	case kindUnmapped:
		return p.unmapped(le.Uint64(body))
	case kindOffer:
		return p.offered(h, body)
	case kindRelease:
		return p.released(body)
	case kindEnd:
		p.o.mu.Lock()
		p.gotEnd = true
		p.o.mu.Unlock()
		p.finish(io.EOF)
		p.sendEnd()
		p.settle()
		return nil
	case kindEvent:
		note, err := parseEvent(body)
		if err != nil {
			return err
		}
		return p.openEvent(note)
	case kindOpened:
		slot, why, err := parseOpened(body)
		if err != nil {
			return err
		}
		return p.opened(slot, why)
	case kindHello:
		return malformed("got a second HELLO")
	}
	return p.handleQuestion(h, body)
}

// mapArena handles ARENA.
func (p *Peer) mapArena(body []byte, fd int, lost bool) error {
	note, err := parseArena(body)
	if errors.Is(err, ErrPeer) {
		return err
	}
	p.mu.Lock()
	_, known := p.views[note.id]
	p.mu.Unlock()
	var file *mappedFile
	switch {
	case known:
		return malformed("got arena %#x twice", note.id)
	case err != nil: // an arena of a kind that this version does not support
	case lost && note.kind != allocationArena:
		err = syscall.EMFILE
	case fd < 0 && note.kind != allocationArena:
		return malformed("got ARENA without a descriptor")
	case fd >= 0 && note.kind == allocationArena:
		return malformed("got a descriptor with an allocation, which has a handle")
	default:
		crashAt(23)
		file, err = p.mapNote(note, fd)
	}
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		p.reply(header{kind: kindRefused}, func(b []byte) []byte {
			b = le.AppendUint64(b, note.id)
			b = le.AppendUint32(b, uint32(errno))
			b = le.AppendUint32(b, 0)
			return append(b, reason(err.Error())...)
		})
		return nil
	}
	v := &view{file: file, data: file.data, region: file.region, size: note.size, lent: note.kind == allocationArena, filled: make([]uint64, (note.size+64*tableBytes-1)/(64*tableBytes))}
	if v.lent {
		v.living = p.living()
	}
	p.mu.Lock()
	p.views[note.id] = v
	p.mu.Unlock()
	crashAt(24)
	p.reply(header{kind: kindMapped}, func(b []byte) []byte { return le.AppendUint64(b, note.id) })
	crashAt(25)
	if v.lent {
		p.openedAllocation()
	}
	return nil
}

// mapNote maps an arena that was announced.
func (p *Peer) mapNote(note arenaNote, fd int) (*mappedFile, error) {
	if note.kind == allocationArena {
		file, err := p.openAllocation(note)
		if err != nil {
			p.openedAllocation()
		}
		return file, err
	}
	if note.kind == hostArena {
		return processBudget().mapFile(p.account, fd, note.size)
	}
	d, err := deviceOf(note.uuid)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.device = d
	p.mu.Unlock()
	id := fileID{process: p.account.id, instance: p.info.Instance, arena: note.id}
	return processBudget().mapWith(p.account, id, note.size, func() (*mappedFile, error) {
		region, err := d.MapChunk(fd, note.size)
		if err != nil {
			return nil, err
		}
		return &mappedFile{region: region}, nil
	})
}

// retired handles RETIRE.
func (p *Peer) retired(id uint64) error {
	p.mu.Lock()
	v := p.views[id]
	if v == nil || v.retired {
		p.mu.Unlock()
		return malformed("got RETIRE of arena %#x, which is not mapped", id)
	}
	v.retired = true
	idle := v.leases == 0
	p.mu.Unlock()
	if idle {
		p.unmapIdle()
	}
	return nil
}

// offered handles OFFER: it records the leases and puts the tensors into the
// inbox, or delivers the answer to a question.
func (p *Peer) offered(h header, body []byte) error {
	if h.request != 0 && h.count != 1 {
		return malformed("got %d offers for one question", h.count)
	}
	for i := range h.count {
		m, err := parseOffer(body[i*offerBytes:], p.reading.label)
		if err != nil {
			return err
		}
		p.reading.label = m.label
		data := body[h.count*offerBytes:]
		if m.serial != 0 && len(data) != 0 || m.serial == 0 && (h.count != 1 || len(data) != m.bytes) {
			return malformed("got %d bytes behind %d offers", len(data), h.count)
		}
		a := arrival{offer: m}
		if m.serial == 0 {
			a.data = append([]byte{}, data...)
		} else if err := p.take(&a); err != nil {
			return err
		} else {
			a.lease.view.fill(m.offset, m.bytes)
		}
		if err := p.put(a, h.request); err != nil {
			return err
		}
	}
	return nil
}

// take records a lease.
func (p *Peer) take(a *arrival) error {
	m := &a.offer
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.views[m.arena]
	_, again := p.holding[m.serial]
	switch {
	case v == nil || v.retired:
		return malformed("got an offer in arena %#x, which is not mapped", m.arena)
	case m.bytes > v.size || m.offset > v.size-m.bytes:
		return malformed("got an offer of %d bytes at %d of an arena of %d", m.bytes, m.offset, v.size)
	case again:
		return malformed("got lease %d twice", m.serial)
	case len(p.holding)+int(p.unsaid.Load()) >= int(p.o.maxLeases) || p.bytes+uint64(m.bytes) > p.o.maxBytes:
		return malformed("got a tensor of %d bytes over the %d of %d bytes that are here, want at most %d of %d", m.bytes, len(p.holding), p.bytes, p.o.maxLeases, p.o.maxBytes)
	}
	after, err := p.eventOf(m, v)
	if err != nil {
		return err
	}
	a.after = after
	a.lease = p.borrow()
	a.lease.serial, a.lease.bytes, a.lease.view = m.serial, m.bytes, v
	p.holding[m.serial] = a.lease
	p.bytes += uint64(m.bytes)
	v.leases++
	return nil
}

func (p *Peer) borrow() *borrowed {
	if n := len(p.spare) - 1; n >= 0 {
		l := p.spare[n]
		p.spare = p.spare[:n]
		return l
	}
	l := new(borrowed)
	l.giveUp = func() { p.giveUp(l) }
	return l
}

// put delivers an arrival to the inbox or to the question that it answers.
func (p *Peer) put(a arrival, request uint32) error {
	if request != 0 {
		return p.answer(request, reply{arrival: a, offered: true}, false)
	}
	p.mu.Lock()
	closed := p.closed || p.sentEnd // the peer may have been told that this end holds nothing, and may reuse the bytes
	if !closed {
		if p.inbox = append(p.inbox, a); len(p.inbox) == 1 {
			p.boxes = p.inbox
		}
		if a.lease == nil {
			p.inline += a.cost()
		}
	}
	p.mu.Unlock()
	if closed {
		p.giveUp(a.lease)
		return nil
	}
	wake(p.arrived)
	return nil
}

// full reports whether too many bytes of inline tensors wait to be received,
// here or in all connections of the peer's process.
func (p *Peer) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inline > maxInlineBox || !p.inRoom.fits(p.account, p.inline)
}

// waitForRoom waits while the inbox is full. It returns when the peer's side is
// over, so that the peer's leases end then.
func (p *Peer) waitForRoom() {
	if !p.full() {
		return
	}
	ended, stop := p.s.awaitEndUntil()
	defer stop()
	for p.full() {
		select {
		case <-p.room:
		case <-p.over:
			return
		case <-ended:
			return
		}
	}
}
