package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// checkTable recounts the lease table from its rows.
func (o *Owner) checkTable() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	refs, tickets, mapped, lost := map[*block]int{}, 0, map[*arena]int{}, map[*arena]int{}
	debts := map[*debtor]debtor{}
	for p := range o.peers {
		n, bytes := 0, int64(0)
		count := func(l lease) error {
			n++
			bytes += int64(l.block.bytes)
			refs[l.block]++
			if l.block.arena.blocks[l.block.key] != l.block {
				return fmt.Errorf("lease %d of connection %d is on a block that is free", l.offer.serial, p.info.Connection)
			}
			return nil
		}
		for serial, l := range p.row.leases {
			if err := count(l); err != nil || serial != l.offer.serial || serial > p.row.serial {
				return fmt.Errorf("lease %d under serial %d of %d: %v", l.offer.serial, serial, p.row.serial, err)
			}
		}
		for ticket, l := range p.row.tickets {
			tickets++
			if err := count(l); err != nil || o.tickets[ticket] != p {
				return fmt.Errorf("ticket %s is not the one that can be claimed: %v", ticket, err)
			}
		}
		if bytes != p.row.bytes || n > int(p.theirs.maxLeases) || uint64(bytes) > p.theirs.maxBytes || p.row.gone && n > 0 {
			return fmt.Errorf("connection %d: got %d leases of %d bytes (gone %v), the row says %d, the credit is %d of %d",
				p.info.Connection, n, bytes, p.row.gone, p.row.bytes, p.theirs.maxLeases, p.theirs.maxBytes)
		}
		d := debts[p.debtor]
		d.peers, d.leases, d.bytes, d.waiting = d.peers+1, d.leases+n, d.bytes+bytes, d.waiting+len(p.row.waiting)
		if p.lost {
			d.lost, d.lostBytes = d.lost+n, d.lostBytes+bytes
		}
		for _, m := range p.maps {
			if p.lost {
				lost[m.arena]++
			} else {
				mapped[m.arena]++
			}
			if m.pinned {
				d.pinned += int64(m.arena.size)
			}
		}
		debts[p.debtor] = d
	}
	for d, want := range debts {
		if d.waiting < want.waiting {
			return fmt.Errorf("debtor: got %d offers that wait, it says %d", want.waiting, d.waiting)
		}
		want.waiting = d.waiting // those that wait for a connection that is over hear so in a moment
		if want.id, want.lists = d.id, d.lists; *d != want || o.debtors[d.id] != d {
			return fmt.Errorf("debtor: got %+v by its connections, it says %+v", want, *d)
		}
	}
	if len(debts) != len(o.debtors) {
		return fmt.Errorf("got %d debtors with connections of %d", len(debts), len(o.debtors))
	}
	if tickets != len(o.tickets) {
		return fmt.Errorf("got %d tickets in rows and %d that can be claimed", tickets, len(o.tickets))
	}
	held := int64(0)
	for _, a := range o.arenas {
		held += int64(a.size)
		if mapped[a] != a.peers || lost[a] != a.lost {
			return fmt.Errorf("arena %x: %d and %d lost peers know it, it says %d and %d", a.id, mapped[a], lost[a], a.peers, a.lost)
		}
		for at, b := range a.blocks {
			if b.span.at != at || b.refs != refs[b] || (b.hold != nil) != (b.refs > 0) {
				return fmt.Errorf("block at %d: got %d leases and tickets, it says %d (held %v)", at, refs[b], b.refs, b.hold != nil)
			}
			delete(refs, b)
		}
	}
	for a := range o.retired {
		held += int64(a.size)
		if mapped[a] != a.peers || lost[a] != a.lost || len(a.blocks) > 0 {
			return fmt.Errorf("retired arena %x: %d peers know it, it says %d, with %d blocks", a.id, mapped[a], a.peers, len(a.blocks))
		}
	}
	if held != o.held || len(refs) != 0 {
		return fmt.Errorf("arenas of %d bytes, the owner says %d; %d blocks with leases are in no arena", held, o.held, len(refs))
	}
	return nil
}

// world is a few owners in this process, each connected to the next, and their
// tensors.
type world struct {
	owners   []*Owner
	ends     []*end
	tensors  []stamped // of owners
	received []stamped
	tickets  []minted
	stamp    uint8
}

// end is one side of a connection.
type end struct {
	peer   *Peer
	other  *end
	due    int // offers that are on the way to it
	closed bool
}

type stamped struct {
	x     *tensor.Tensor
	stamp uint8
	owner *Owner    // of an owner's tensor
	from  *Received // of a received one
	at    *end
}

type minted struct {
	ticket Ticket
	owner  *Owner
	stamp  uint8
}

const shortly = 20 * time.Second

func (w *world) check(t *rapid.T) {
	for _, o := range w.owners {
		if err := o.checkTable(); err != nil {
			t.Fatal(err)
		}
	}
}

func (s stamped) check(t *rapid.T, when string) {
	data, _ := s.x.UnsafeBytes()
	for i, b := range data {
		if b != s.stamp {
			t.Fatalf("%s: got byte %d at %d, want %d", when, b, i, s.stamp)
		}
	}
}

// mayFail says whether an error is one that the program has to reckon with.
func mayFail(t *rapid.T, what string, err error, kinds ...error) {
	if err == nil {
		return
	}
	for _, k := range kinds {
		if errors.Is(err, k) {
			return
		}
	}
	t.Fatalf("%s: got %v", what, err)
}

func pick[T any](t *rapid.T, list []T) (v T, i int) {
	if len(list) == 0 {
		t.Skip()
	}
	i = rapid.IntRange(0, len(list)-1).Draw(t, "which")
	return list[i], i
}

func without[T any](list []T, i int) []T {
	list[i] = list[len(list)-1]
	return list[:len(list)-1]
}

func (w *world) alloc(t *rapid.T) {
	o, _ := pick(t, w.owners)
	n := rapid.SampledFrom([]int{0, 1, 100, 5000, 100_000, 1 << 20}).Draw(t, "bytes")
	w.stamp++
	var src *Owner
	if rapid.Bool().Draw(t, "in an arena") {
		src = o
	}
	var x *tensor.Tensor
	var err error
	if src != nil {
		x, err = tensor.Make(src, dtype.U8, shape.MustOf(n))
	} else {
		x, err = tensor.Make(nil, dtype.U8, shape.MustOf(n))
	}
	if mayFail(t, "make", err, tensor.ErrLimit); err != nil {
		return
	}
	v, err := tensor.Write[uint8](x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.Data {
		v.Data[i] = w.stamp
	}
	v.Release()
	w.tensors = append(w.tensors, stamped{x: x, stamp: w.stamp, owner: o})
}

func (w *world) drop(t *rapid.T) {
	s, i := pick(t, w.tensors)
	s.check(t, "an owner's tensor")
	w.tensors = without(w.tensors, i)
	mayFail(t, "release", s.x.Release())
}

func (w *world) offer(t *rapid.T) {
	s, _ := pick(t, w.tensors)
	e, _ := pick(t, w.ends)
	ctx, cancel := context.WithTimeout(t.Context(), shortly)
	defer cancel()
	err := e.peer.o.Offer(ctx, s.x, []*Peer{e.peer}, NoWait(), Label(fmt.Sprint(s.stamp)))
	mayFail(t, "offer", err, ErrNoCredit, ErrClosed, tensor.ErrLimit)
	if err == nil {
		e.other.due++
	}
}

func (w *world) receive(t *rapid.T) {
	e, _ := pick(t, w.ends)
	if e.due == 0 || e.closed || e.other.closed {
		t.Skip()
	}
	ctx, cancel := context.WithTimeout(t.Context(), shortly)
	defer cancel()
	r, err := e.peer.Receive(ctx)
	mayFail(t, "receive", err)
	e.due--
	w.keep(t, r, e)
}

func (w *world) keep(t *rapid.T, r *Received, e *end) {
	var stamp uint8
	if _, err := fmt.Sscan(r.Label, &stamp); err != nil {
		t.Fatal(err)
	}
	s := stamped{x: r.Tensor, stamp: stamp, from: r, at: e}
	s.check(t, "on arrival")
	w.received = append(w.received, s)
}

func (w *world) letGo(t *rapid.T) {
	s, i := pick(t, w.received)
	s.check(t, "before it is released")
	w.received = without(w.received, i)
	mayFail(t, "release", s.x.Release())
}

func (w *world) view(t *rapid.T) {
	s, _ := pick(t, w.received)
	v, err := s.x.View()
	mayFail(t, "view", err)
	w.received = append(w.received, stamped{x: v, stamp: s.stamp, at: s.at})
}

func (w *world) mint(t *rapid.T) {
	s, _ := pick(t, w.received)
	if s.from == nil {
		t.Skip()
	}
	ctx, cancel := context.WithTimeout(t.Context(), shortly)
	defer cancel()
	ticket, err := s.from.Ticket(ctx)
	mayFail(t, "ticket", err, ErrNoCredit, ErrClosed, ErrNotFound, tensor.ErrUnsupported)
	if err == nil {
		w.tickets = append(w.tickets, minted{ticket, s.at.other.peer.o, s.stamp})
	}
}

func (w *world) claim(t *rapid.T) {
	m, i := pick(t, w.tickets)
	e, _ := pick(t, w.ends)
	if e.other.peer.o != m.owner {
		t.Skip()
	}
	ctx, cancel := context.WithTimeout(t.Context(), shortly)
	defer cancel()
	r, err := e.peer.Claim(ctx, m.ticket)
	mayFail(t, "claim", err, ErrNoCredit, ErrClosed, ErrNotFound)
	if err == nil {
		w.tickets = without(w.tickets, i)
		w.keep(t, r, e)
	}
}

func (w *world) cancel(t *rapid.T) {
	m, i := pick(t, w.tickets)
	e, _ := pick(t, w.ends)
	if e.other.peer.o != m.owner || e.closed {
		t.Skip()
	}
	e.peer.Cancel(m.ticket)
	w.tickets = without(w.tickets, i)
}

func (w *world) collect(t *rapid.T) {
	o, _ := pick(t, w.owners)
	o.Collect()
}

func (w *world) closeOne(t *rapid.T) {
	e, _ := pick(t, w.ends)
	if rapid.Bool().Draw(t, "at once") {
		mayFail(t, "disconnect", e.peer.Disconnect())
	} else {
		mayFail(t, "close", e.peer.Close())
	}
	e.closed = true
}

func (w *world) connect(t *rapid.T, a, b *Owner) {
	fa, fb, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan *Peer)
	go func() {
		p, _ := b.Attach(context.Background(), fb)
		made <- p
	}()
	x, err := a.Attach(context.Background(), fa)
	y := <-made
	if err != nil || y == nil {
		t.Fatalf("attach: %v", err)
	}
	one, two := &end{peer: x}, &end{peer: y}
	one.other, two.other = two, one
	w.ends = append(w.ends, one, two)
}

// TestRandomLives plays a random history of a few owners. At every moment the
// table agrees with its rows, bytes never change while a consumer reads them,
// and at the end nothing is left.
func TestRandomLives(t *testing.T) {
	checkDescriptors(t)
	memorytest.Check(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{}
		for range 3 {
			o, err := NewOwner(WithLimit(8<<20), WithCredits(rapid.IntRange(1, 6).Draw(rt, "leases"), 2<<20))
			if err != nil {
				rt.Fatal(err)
			}
			w.owners = append(w.owners, o)
			rt.Cleanup(func() { _ = o.Close() })
		}
		for i := range w.owners {
			w.connect(rt, w.owners[i], w.owners[(i+1)%len(w.owners)])
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": w.check, "alloc": w.alloc, "drop": w.drop, "offer": w.offer, "offer again": w.offer, "receive": w.receive, "receive more": w.receive,
			"let go": w.letGo, "view": w.view, "mint": w.mint, "claim": w.claim, "cancel": w.cancel, "collect": w.collect,
			"reconnect": func(t *rapid.T) {
				w.closeOne(t)
				a, i := pick(t, w.owners)
				w.connect(rt, a, w.owners[(i+1)%len(w.owners)])
			},
		})
		w.end(rt)
	})
}

// end lets go of everything, in the order in which it is found.
func (w *world) end(t *rapid.T) {
	for len(w.received) > 0 {
		w.letGo(t)
	}
	for len(w.tensors) > 0 {
		w.drop(t)
	}
	for _, o := range w.owners {
		mayFail(t, "close", o.Close())
	}
	for _, e := range w.ends {
		mayFail(t, "close", e.peer.Close()) // one that has ended before is not the owner's any more
		_, err := e.peer.Receive(t.Context())
		if !errors.Is(err, ErrClosed) && !errors.Is(err, io.EOF) { // the other end's END may have come first
			t.Fatalf("after close: got %v, want the end", err)
		}
	}
	for _, o := range w.owners {
		deadline := time.Now().Add(shortly)
		for {
			s := o.State()
			if len(s.Arenas)+len(s.Leases)+len(s.Blocks) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("what is left: %+v", s)
			}
			time.Sleep(100 * time.Microsecond)
		}
		if err := o.checkTable(); err != nil {
			t.Fatal(err)
		}
	}
}
