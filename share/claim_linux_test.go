package share_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/share"
)

// TestClaimKeepsItsArena: a ticket that is cancelled while the claimer maps the
// arena takes the block with it only when the claimer has answered, so the
// arena cannot be given back under it.
func TestClaimKeepsItsArena(t *testing.T) {
	memorytest.Check(t)
	o, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	minter, side := attach(t, o)
	claimer, _ := attach(t, o)
	x := filled(t, o, 100_000, 7)
	offered := make(chan error, 1)
	go func() { offered <- side.Offer(within(t), x) }()
	serial := minter.expect(mOffer)[:8]
	if err := <-offered; err != nil {
		t.Fatal(err)
	}
	minter.send(message(mTicket, 0, 1, serial))
	ticket := minter.expect(mTicketed)[:16]
	minter.send(message(mRelease, 1, 0, serial))
	mustRelease(t, x)

	claimer.send(message(mClaim, 0, 1, ticket))
	packet, fds := claimer.receive()
	if len(packet) == 0 || packet[0] != mArena || len(fds) != 1 {
		t.Fatalf("got %v with %d descriptors, want ARENA with one", packet, len(fds))
	}
	_ = unix.Close(fds[0])
	minter.send(message(mCancel, 0, 0, ticket))
	eventually(t, "the ticket is cancelled", func() bool { return len(o.Outstanding()) == 0 })
	if n := o.Collect(); n != 0 {
		t.Errorf("collect gave %d bytes back while a claimer maps them", n)
	}
	claimer.send(message(mMapped, 0, 0, packet[8:16]))
	if no := claimer.expect(mNo); no[0] != 2 {
		t.Errorf("got NO %d, want 2: the ticket is gone", no[0])
	}
	eventually(t, "the arena can go", func() bool { return o.Collect() > 0 })
	minter.close()
	claimer.close()
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
