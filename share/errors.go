package share

import (
	"errors"
	"fmt"
)

// The errors of this package, besides those of package tensor. Test for them
// with errors.Is.
var (
	// ErrClosed: the connection, listener or owner was closed, by this end or
	// by the other.
	ErrClosed = errors.New("closed")
	// ErrPeer: the other end broke the protocol. Its connection is lost; no
	// other connection is affected.
	ErrPeer = errors.New("broken peer")
	// ErrNoCredit: the other end holds as much as it announced.
	ErrNoCredit = errors.New("no credit")
	// ErrStalled: the other end is stalled while something waits for it
	// ([WithStall]).
	ErrStalled = errors.New("stalled peer")
	// ErrRefused: the other end cannot take part, or refused.
	ErrRefused = errors.New("refused")
	// ErrNotFound: no listener, tensor or ticket by that name.
	ErrNotFound = errors.New("not found")
	// ErrCopy: the tensor lies outside the owner's arenas, and the caller asked
	// for no copy.
	ErrCopy = errors.New("would be copied")

	errArenaKind = errors.New("unknown kind of arena")

	errNilContext = errors.New("got a nil context, want one (context.Background(), if nothing ends the call)")
	errNoOwner    = fmt.Errorf("got no owner, want one of NewOwner: it is %w", ErrClosed)
	errNoPeer     = fmt.Errorf("got no peer, want one that is connected: it is %w", ErrClosed)
)

func errNilOption(i int) error {
	return fmt.Errorf("option %d is nil, want one of the package's", i)
}

// none reports whether an owner, peer or listener is nil or zero, which counts
// as closed.
func (o *Owner) none() bool    { return o == nil || o.peers == nil }
func (p *Peer) none() bool     { return p == nil || p.o == nil }
func (l *Listener) none() bool { return l == nil || l.o == nil }

// over is the result of Done for a nil peer.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
