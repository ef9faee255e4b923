package share

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeviceMessagesOfPeers: a peer that offers memory of a device that is not
// here is refused, and one that breaks the rules of events loses its
// connection.
func TestDeviceMessagesOfPeers(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	note := arenaNote{id: 5, size: 2 << 20, kind: cudaArena, uuid: UUID{1}, pages: 2 << 20}
	allocation := arenaNote{id: 5, size: 1000, kind: allocationArena, uuid: UUID{1}}.append(header{kind: kindArena}.append(nil))
	event := eventNote{slot: 1, kind: cudaArena}.append(header{kind: kindEvent}.append(nil))
	for name, c := range map[string]struct {
		sent   []byte
		answer kind // 0: the end of the connection
		bare   bool // without a descriptor
	}{
		"an arena":            {note.append(header{kind: kindArena}.append(nil)), kindRefused, false},
		"an allocation":       {allocation, kindRefused, true},
		"a descriptor more":   {allocation, 0, false},
		"a descriptor less":   {note.append(header{kind: kindArena}.append(nil)), 0, true},
		"no arena to end":     {le.AppendUint64(header{kind: kindUnmapped}.append(nil), 5), 0, true},
		"an event":            {event, kindOpened, true},
		"an answer unasked":   {append(header{kind: kindOpened}.append(nil), 1, 0, 0, 0, 0, 0, 0, 0), 0, true},
		"an event of no slot": {eventNote{kind: cudaArena}.append(header{kind: kindEvent}.append(nil)), 0, true},
		"an event of no kind": {eventNote{slot: 1}.append(header{kind: kindEvent}.append(nil)), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := ok(NewOwner())(t)
			defer o.Close()
			p, fd := bareEnd(t, o)
			null := ok(unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0))(t)
			defer unix.Close(null)
			rights := []byte(nil)
			if !c.bare {
				rights = unix.UnixRights(null)
			}
			if err := unix.Sendmsg(fd, c.sent, rights, nil, 0); err != nil {
				t.Fatal(err)
			}
			if c.answer == 0 {
				<-p.Done()
				if !errors.Is(p.Err(), ErrPeer) {
					t.Errorf("got %v, want ErrPeer", p.Err())
				}
				unix.Shutdown(fd, unix.SHUT_RDWR)
				return
			}
			buf := make([]byte, maxPacket)
			if n := ok(unix.Read(fd, buf))(t); n == 0 || kind(buf[0]) != c.answer {
				t.Errorf("got %s, want %s", kind(buf[0]), c.answer)
			}
			if c.answer == kindOpened { // a second one under the same number
				_ = unix.Send(fd, c.sent, 0)
				<-p.Done()
				if !errors.Is(p.Err(), ErrPeer) {
					t.Errorf("got %v, want ErrPeer", p.Err())
				}
			}
			unix.Shutdown(fd, unix.SHUT_RDWR)
		})
	}
}
