package share

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/tensor"
)

// ask is an open question to the peer.
type ask struct {
	kind      kind
	text      []byte // of an answer in parts
	charged   int64  // to the account of the peer's process, for text
	tooMuch   error  // why text was not kept
	reply     reply  // valid once done is closed
	done      chan struct{}
	abandoned bool // the caller does not wait any more; the answer is still to come
}

// reply is the answer to a question.
type reply struct {
	offered bool
	arrival arrival
	ticket  Ticket
	text    []byte
	err     error
}

// maxState bounds the size of a peer's answer to LIST.
const maxState = 64 << 20

// question sends a question and waits for its answer.
func (p *Peer) question(ctx context.Context, k kind, body func([]byte) []byte) (reply, error) {
	if p.none() {
		return reply{}, errNoPeer
	}
	if ctx == nil {
		return reply{}, errNilContext
	}
	select {
	case p.asking <- struct{}{}:
	case <-p.over:
		return reply{}, fmt.Errorf("%s: %w", p.who(), p.closedErr())
	case <-ctx.Done():
		return reply{}, fmt.Errorf("%s has %d questions to answer: %w", p.who(), maxQuestions, ended.Error(ctx))
	}
	a := &ask{kind: k, done: make(chan struct{})}
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return reply{}, fmt.Errorf("%s: %w", p.who(), p.closedErr())
	}
	for p.lastAsk++; p.lastAsk == 0 || p.asks[p.lastAsk] != nil; p.lastAsk++ {
	}
	id := p.lastAsk
	p.asks[id] = a
	p.mu.Unlock()
	if err := p.post(header{kind: k, request: id}, body); err != nil {
		return reply{}, fmt.Errorf("%s: %w", p.who(), err)
	}
	if k == kindTicket {
		crashAt(41)
	} else if k == kindClaim {
		crashAt(44)
	}
	err := p.await(ctx, a.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended.Closed(a.done) {
		return a.reply, a.reply.err
	}
	a.abandoned = true
	if err == nil { // the connection is over, and this question is about to fail
		return reply{}, fmt.Errorf("%s: %w", p.who(), ErrClosed)
	}
	return reply{}, fmt.Errorf("%s does not answer: %w", p.who(), err)
}

// answer delivers a reply to the goroutine that asked. With more, another part
// of a text follows.
func (p *Peer) answer(request uint32, r reply, more bool) error {
	p.mu.Lock()
	a := p.asks[request]
	if a == nil || !a.takes(r) {
		over := p.err != nil // this end has given up the question, as all others
		p.mu.Unlock()
		if r.offered {
			p.giveUp(r.arrival.lease)
		}
		if over {
			return nil
		}
		return malformed("got an answer to question %d, which is none of its kind", request)
	}
	if r.text != nil {
		a.add(p.account, r.text)
		if len(a.text) > maxState {
			p.mu.Unlock()
			return malformed("got an answer of more than %d bytes", maxState)
		}
		if more {
			p.mu.Unlock()
			return nil
		}
		r.text, r.err = a.text, a.tooMuch
	}
	a.settle(p.account)
	delete(p.asks, request)
	<-p.asking
	if a.abandoned {
		p.mu.Unlock()
		if r.offered {
			p.giveUp(r.arrival.lease)
		}
		return nil
	}
	a.reply = r
	close(a.done)
	p.mu.Unlock()
	return nil
}

// add appends a part of a text, unless the budget has no room for it or for an
// earlier part.
func (a *ask) add(of *account, part []byte) {
	if a.tooMuch != nil {
		return
	}
	if a.tooMuch = processBudget().charge(of, memoryBytes, int64(len(part))); a.tooMuch != nil {
		a.text = []byte{}
		return
	}
	a.charged += int64(len(part))
	a.text = append(a.text, part...)
}

// settle ends the charge for the text, which is complete and delivered.
func (a *ask) settle(of *account) {
	if a.charged > 0 {
		processBudget().giveBack(of, memoryBytes, a.charged)
		a.charged = 0
	}
}

// takes reports whether r can answer the question.
func (a *ask) takes(r reply) bool {
	switch {
	case r.err != nil:
		return true
	case a.kind == kindTicket:
		return r.ticket != Ticket{}
	case a.kind == kindClaim || a.kind == kindGet:
		return r.offered
	}
	return r.text != nil
}

// failAsks fails all questions of a connection that is over.
func (p *Peer) failAsks() {
	err := p.closedErr()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asks {
		a.settle(p.account)
		a.reply = reply{err: err}
		close(a.done)
	}
	p.asks = map[uint32]*ask{}
}

// handleQuestion handles questions and answers.
func (p *Peer) handleQuestion(h header, body []byte) error {
	if forms[h.kind].question && p.open.Add(1) > maxQuestions {
		return malformed("got more than %d questions at once", maxQuestions)
	}
	switch h.kind {
	case kindTicket:
		return p.mint(le.Uint64(body), h.request)
	case kindCancel:
		p.cancel(Ticket(body))
		return nil
	case kindTicketed:
		crashAt(42)
		return p.answer(h.request, reply{ticket: Ticket(body)}, false)
	case kindText:
		return p.answer(h.request, reply{text: append([]byte{}, body...)}, h.count == 1)
	case kindNo:
		if !utf8.Valid(body[4:]) {
			return malformed("got NO with the reason %q, want UTF-8", body[4:])
		}
		return p.answer(h.request, reply{err: noError(le.Uint32(body), string(body[4:]))}, false)
	case kindClaim:
		t := Ticket(body) // the packet's memory is reused for the next one
		p.serve(h, func() { p.claim(t, h.request) })
		return nil
	case kindList:
		p.serve(h, func() { p.list(h.request) })
		return nil
	}
	name := string(body)
	if !utf8.ValidString(name) {
		return malformed("got %s of %q, want a name in UTF-8", h.kind, name)
	}
	if h.kind == kindGet {
		p.serve(h, func() { p.get(name, h.request) })
	} else {
		p.serve(h, func() { p.dropName(name, h.request) })
	}
	return nil
}

// serve answers a question on a goroutine of its own, because the answer may
// have to wait, if the budget has room for it.
func (p *Peer) serve(h header, answer func()) {
	cost := int64(questionBytes)
	if h.kind == kindList {
		cost = listBytes
	}
	if err := processBudget().charge(p.account, memoryBytes, cost); err != nil {
		p.no(h.request, noMemory, err.Error())
		return
	}
	go func() {
		defer processBudget().giveBack(p.account, memoryBytes, cost)
		begin := time.Now()
		answer()
		processBudget().pace(p.account, min(time.Since(begin), longAnswer)) // the peer's next question waits for it
	}()
}

// Memory of an answer in progress: a stack and a packet, and for LIST the text
// of a page.
const (
	questionBytes = 16 << 10
	listBytes     = 256 << 10
	longAnswer    = 100 * time.Microsecond // an answer that takes longer has waited; LIST rests on its own
)

// no refuses a question.
func (p *Peer) no(request uint32, code uint32, why string) {
	p.reply(header{kind: kindNo, request: request}, func(b []byte) []byte {
		return append(le.AppendUint32(b, code), reason(why)...)
	})
}

// noBecause answers a question with an error. A connection that is ending
// answers nothing: its end is the answer.
func (p *Peer) noBecause(request uint32, err error) {
	code := notSupported
	switch {
	case errors.Is(err, ErrClosed):
		return
	case errors.Is(err, ErrNoCredit):
		code = noCredit
	case errors.Is(err, tensor.ErrLimit):
		code = noMemory
	}
	p.no(request, code, err.Error())
}

func noError(code uint32, why string) error {
	kind := map[uint32]error{noName: ErrNotFound, noTicket: ErrNotFound, noCredit: ErrNoCredit, notAllowed: ErrRefused, noMemory: tensor.ErrLimit,
		notSupported: tensor.ErrUnsupported}[code]
	if kind == nil {
		kind = ErrRefused
	}
	return fmt.Errorf("%w: %s", kind, why)
}

// Publish makes x available to peers under a name until it is withdrawn or the
// owner is closed. A tensor outside of the arenas is copied into one now,
// unless it is shared in place; see [InPlace]. The caller keeps x. Its bytes
// are never written again once a peer has received them.
func (o *Owner) Publish(name string, x *tensor.Tensor) error {
	if len(name) < 1 || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("share publish: got the name %q, want 1 to %d bytes of UTF-8", name, maxName)
	}
	if o.none() {
		return fmt.Errorf("share publish %q: %w", name, errNoOwner)
	}
	mine, err := o.inArena(x)
	if err != nil {
		return fmt.Errorf("share publish %q: %w", name, err)
	}
	o.mu.Lock()
	_, taken := o.names[name]
	if !taken && !o.closed {
		o.names[name] = mine
		o.mu.Unlock()
		return nil
	}
	closed := o.closed
	o.mu.Unlock()
	_ = mine.Release() // no peer has seen it
	if closed {
		return fmt.Errorf("share publish %q: the owner is %w", name, ErrClosed)
	}
	return fmt.Errorf("share publish %q: the name is taken: %w", name, ErrRefused)
}

// inArena returns a tensor of x's elements in the owner's arenas: a view of x,
// or a copy if x is elsewhere.
func (o *Owner) inArena(x *tensor.Tensor) (*tensor.Tensor, error) {
	buf, _, err := x.Hold()
	if err != nil {
		return nil, err
	}
	defer release(buf)
	if r := x.Shape().Rank(); r > maxRank {
		return nil, fmt.Errorf("got a tensor of rank %d, want at most %d: %w", r, maxRank, tensor.ErrUnsupported)
	}
	if o.blockOf(buf) != nil || buf.Len() == 0 && o.device == nil || o.isLendable(buf) {
		return x.View()
	}
	c, err := x.CopyTo(o)
	if err == nil {
		o.copied.Add(int64(c.NumBytes()))
	}
	return c, err
}

// Withdraw removes a published name, and reports whether it existed. Peers that
// received the tensor keep it.
func (o *Owner) Withdraw(name string) bool {
	if o.none() {
		return false
	}
	o.mu.Lock()
	x := o.names[name]
	delete(o.names, name)
	o.mu.Unlock()
	if x == nil {
		return false
	}
	_ = x.Release() // no other goroutine has it
	return true
}

// get answers GET.
func (p *Peer) get(name string, request uint32) {
	o := p.o
	o.mu.Lock()
	x := o.names[name]
	o.mu.Unlock()
	if x == nil {
		p.no(request, noName, fmt.Sprintf("nothing is published as %q", name))
		return
	}
	err := o.offer(p.ctx, x, []*Peer{p}, offerOptions{label: labelOf(name), noWait: true, request: request})
	if errors.Is(err, tensor.ErrReleased) {
		p.no(request, noName, fmt.Sprintf("%q is withdrawn since a moment", name))
	} else if err != nil {
		p.noBecause(request, err)
	}
}

// labelOf truncates a name to the length of a label.
func labelOf(name string) string {
	n := min(len(name), maxLabel)
	for n < len(name) && n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// dropName answers DROP.
func (p *Peer) dropName(name string, request uint32) {
	switch {
	case !p.o.allowDrop:
		p.no(request, notAllowed, "this owner does not let others withdraw what it publishes")
	case !p.o.Withdraw(name):
		p.no(request, noName, fmt.Sprintf("nothing is published as %q", name))
	default:
		p.reply(header{kind: kindText, request: request}, nil)
	}
}

// Get requests a tensor that the peer has published.
func (p *Peer) Get(ctx context.Context, name string) (*Received, error) {
	if len(name) < 1 || len(name) > maxName || !utf8.ValidString(name) {
		return nil, fmt.Errorf("share get: got the name %q, want 1 to %d bytes of UTF-8", name, maxName)
	}
	r, err := p.question(ctx, kindGet, func(b []byte) []byte { return append(b, name...) })
	if err != nil {
		return nil, fmt.Errorf("share get %q: %w", name, err)
	}
	return p.deliver(r.arrival)
}

// Ticket requests a ticket for a received tensor from its owner. Another peer
// of that owner can claim the tensor with the ticket, also after this peer has
// released it. The ticket counts against this peer's credits until it is
// claimed or cancelled, and ends with this process. A tensor that came inside a
// message has no ticket; offer it instead.
func (r *Received) Ticket(ctx context.Context) (Ticket, error) {
	if r == nil || r.Tensor == nil {
		return Ticket{}, fmt.Errorf("share ticket: got %w", tensor.ErrNoTensor)
	}
	if r.serial == 0 {
		return Ticket{}, fmt.Errorf("share ticket: the tensor came inside the message, its bytes are this process's own: %w", tensor.ErrUnsupported)
	}
	answer, err := r.peer.question(ctx, kindTicket, func(b []byte) []byte { return le.AppendUint64(b, r.serial) })
	if err != nil {
		return Ticket{}, fmt.Errorf("share ticket: %w", err)
	}
	crashAt(43)
	return answer.ticket, nil
}

// Claim exchanges a ticket for its tensor. A ticket can be claimed once.
func (p *Peer) Claim(ctx context.Context, t Ticket) (*Received, error) {
	r, err := p.question(ctx, kindClaim, func(b []byte) []byte { return append(b, t[:]...) })
	if err != nil {
		return nil, fmt.Errorf("share claim: %w", err)
	}
	crashAt(45)
	return p.deliver(r.arrival)
}

// Cancel ends an unclaimed ticket.
func (p *Peer) Cancel(t Ticket) {
	if p.none() {
		return
	}
	p.reply(header{kind: kindCancel}, func(b []byte) []byte { return append(b, t[:]...) })
}

// Drop asks the peer to withdraw a tensor that it has published.
func (p *Peer) Drop(ctx context.Context, name string) error {
	if len(name) < 1 || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("share drop: got the name %q, want 1 to %d bytes of UTF-8", name, maxName)
	}
	if _, err := p.question(ctx, kindDrop, func(b []byte) []byte { return append(b, name...) }); err != nil {
		return fmt.Errorf("share drop %q: %w", name, err)
	}
	return nil
}
