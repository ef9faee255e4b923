package share

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Received is a tensor from another process. Its lease ends when the tensor and
// all its views and exports are released.
type Received struct {
	Tensor *tensor.Tensor // read-only; the caller releases it
	Label  string
	peer   *Peer
	serial uint64         // 0 if it came inside the message
	again  *tensor.Tensor // the tensor that ReceiveInto made, for its next call
}

// Receive returns the next tensor that the peer offers. It waits until ctx
// ends. After the peer's orderly end it returns [io.EOF]. Tensors that were
// offered before an end or a death are still returned.
func (p *Peer) Receive(ctx context.Context) (*Received, error) {
	a, err := p.next(ctx)
	if err != nil {
		return nil, err
	}
	return p.deliver(a)
}

// ReceiveInto is [Peer.Receive] into r, an earlier Received or a zero one, for
// a program that releases each tensor before it receives the next. If both are
// of the same type, layout and size, it allocates no object, so the collector
// need not run.
//
// ReceiveInto replaces everything in r in place, including the Tensor: a
// pointer to the earlier tensor points to the new one afterwards and must not
// be used. Bytes that are still held do not change: if the earlier tensor was
// not released, or a view, an export or a hold of it exists, its bytes and
// objects stay as they are, and r gets new objects. After an error r is
// unchanged.
func (p *Peer) ReceiveInto(ctx context.Context, r *Received) error {
	if r == nil {
		return errors.New("share receive: got no Received, want one to receive into")
	}
	a, err := p.next(ctx)
	if err != nil {
		return err
	}
	return p.deliverInto(a, r)
}

// next removes the next arrival from the inbox.
func (p *Peer) next(ctx context.Context) (arrival, error) {
	if p.none() {
		return arrival{}, fmt.Errorf("share receive: %w", errNoPeer)
	}
	if ctx == nil {
		return arrival{}, fmt.Errorf("share receive: %w", errNilContext)
	}
	for {
		p.mu.Lock()
		if len(p.inbox) > 0 {
			a := p.inbox[0]
			p.inbox[0] = arrival{}
			if p.inbox = p.inbox[1:]; len(p.inbox) == 0 {
				p.inbox = p.boxes[:0] // from the start of the array again
			}
			if a.lease == nil {
				if p.inline -= a.cost(); p.inline == 0 {
					p.inRoom.empty(p.account)
				}
				wake(p.room)
			}
			if len(p.inbox) > 0 {
				wake(p.arrived) // there are arrivals for another receiver
			}
			p.mu.Unlock()
			return a, nil
		}
		err := p.err
		p.mu.Unlock()
		if err != nil {
			wake(p.arrived)
			if errors.Is(err, io.EOF) {
				return arrival{}, io.EOF
			}
			return arrival{}, fmt.Errorf("share receive: %w", err)
		}
		if err := p.await(ctx, p.arrived); err != nil {
			return arrival{}, fmt.Errorf("share receive: %w", err)
		}
	}
}

// deliver makes a tensor of an arrival.
func (p *Peer) deliver(a arrival) (*Received, error) {
	crashAt(26)
	t, err := a.tensor(memory.Adopt)
	if err != nil {
		return nil, err
	}
	crashAt(27)
	return &Received{Tensor: t, Label: a.offer.label, peer: p, serial: a.offer.serial}, nil
}

// deliverInto is deliver with the previous tensor, if nothing holds it and the
// new one is like it.
func (p *Peer) deliverInto(a arrival, r *Received) error {
	crashAt(26)
	m := &a.offer
	t, again := r.again, r.again
	if a.lease == nil || a.lease.view.region != nil || !t.Renew(a.bytes(), m.label, a.lease.giveUp, m.first, m.dt, m.layout) {
		var err error
		if t, err = a.tensor(memory.AdoptRenewable); err != nil {
			return err
		}
		if a.lease != nil && a.lease.view.region == nil {
			again = t
		}
	}
	crashAt(27)
	*r = Received{Tensor: t, Label: m.label, peer: p, serial: m.serial, again: again}
	return nil
}

// bytes returns the bytes of a lease.
func (a *arrival) bytes() []byte {
	return a.lease.view.data[a.offer.offset : a.offer.offset+a.offer.bytes]
}

// tensor makes a tensor of an arrival. adopt makes a buffer of its bytes,
// unless they came inside the message.
func (a *arrival) tensor(adopt func([]byte, memory.Flags, func()) *memory.Buffer) (t *tensor.Tensor, err error) {
	m := &a.offer
	var buf *memory.Buffer
	switch {
	case a.lease == nil:
		t, err = tensor.FromBytes(m.dt, m.layout.Shape(), a.data)
	case a.lease.view.region != nil:
		v := a.lease.view
		if buf, err = v.region.Block(m.offset, m.bytes, a.after, m.sequence, v.living, a.lease.giveUp); err != nil {
			a.lease.giveUp()
		}
	default:
		buf = adopt(a.bytes(), memory.Imported|memory.ReadOnly, a.lease.giveUp)
	}
	if buf != nil {
		buf.SetLabel(m.label)
		t, err = tensor.FromBuffer(buf, m.first, m.dt, m.layout)
		release(buf) // the tensor has a hold of its own; after an error this returns the lease
	}
	if err != nil {
		return nil, fmt.Errorf("share receive: %w", err)
	}
	return t, nil
}
