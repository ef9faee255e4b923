package share

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/tensor"
)

func init() {
	roles["soak honest"], roles["soak keep"], roles["soak flood"], roles["soak stall"], roles["soak burn"] = honestRole, keepRole, floodRole, stallRole, burnRole
}

const soakName = "soak"

// honestRole receives, looks at every element and lets go, until the owner
// ends.
func honestRole() error {
	p, err := Dial(context.Background(), soakName)
	if err != nil {
		return err
	}
	var r Received
	for n := 0; ; n++ {
		err := p.ReceiveInto(context.Background(), &r)
		if errors.Is(err, io.EOF) {
			say("received %d", n)
			return p.Owner().Close()
		}
		if err != nil {
			return err
		}
		check(&r, "honest")
		if err := r.Tensor.Release(); err != nil {
			return err
		}
	}
}

// keepRole holds up to twenty tensors, each of which it looks at before it lets
// go.
func keepRole() error {
	random := rand.New(rand.NewPCG(3, uint64(os.Getpid())))
	for {
		p, err := Dial(context.Background(), soakName)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		var held []*Received
		for {
			r, err := p.Receive(context.Background())
			if err != nil {
				break
			}
			if held = append(held, r); len(held) > 20 {
				i := random.IntN(len(held))
				check(held[i], "kept")
				_ = held[i].Tensor.Release()
				held = append(held[:i], held[i+1:]...)
			}
		}
		for _, r := range held { // tensors that were sent before a disconnection are unchanged
			check(r, "kept after the end")
			_ = r.Tensor.Release()
		}
		_ = p.Owner().Close()
	}
}

// bareSocket connects without a client. greet says HELLO.
func bareSocket(greet bool) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(os.Getenv("TENURE_SHARE_DIR"), soakName+".sock")})
	if err == nil && greet {
		greeting := hello{version: version, maxLeases: 1 << 20, maxBytes: 1 << 40}
		err = unix.Send(fd, greeting.append(header{kind: kindHello}.append(nil)), unix.MSG_NOSIGNAL)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// floodRole says all that costs its hearer something, over many connections,
// and reads nothing.
func floodRole() error {
	s, err := osmem.NewShared("soak flood", 4096)
	if err != nil {
		return err
	}
	x, err := tensor.Of(make([]uint8, 60000), 60000)
	if err != nil {
		return err
	}
	m := offer{dt: x.DType(), layout: x.Layout(), bytes: 60000}
	inline := append(m.append(header{kind: kindOffer, count: 1}.append(nil)), make([]byte, 60000)...)
	for round := uint32(1); ; round++ {
		var fds []int
		for len(fds) < 8 {
			fd, err := bareSocket(true)
			if err != nil {
				time.Sleep(time.Millisecond)
				break
			}
			fds = append(fds, fd)
		}
		for i := range uint32(300) {
			for _, fd := range fds {
				note := arenaNote{id: uint64(i + 1), size: 4096}
				_ = unix.Sendmsg(fd, note.append(header{kind: kindArena}.append(nil)), unix.UnixRights(s.Fd()), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
				for _, packet := range [][]byte{
					append(header{kind: kindGet, request: i + 1}.append(nil), "steady"...),
					header{kind: kindList, request: i + 1000}.append(nil),
					append(header{kind: kindCancel}.append(nil), make([]byte, ticketBytes)...),
					inline,
				} {
					_ = unix.Send(fd, packet, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
				}
			}
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// stallRole receives and never sends again, and keeps connections open on which
// it never sent.
func stallRole() error {
	for {
		var silent []int
		for range 40 {
			if fd, err := bareSocket(false); err == nil {
				silent = append(silent, fd)
			}
		}
		if fd, err := bareSocket(true); err == nil {
			stallOn(fd)
			unix.Close(fd)
		}
		for _, fd := range silent {
			unix.Close(fd)
		}
	}
}

// stallOn maps announced arenas, so that offers come, and then reads nothing
// until the other end closes the connection.
func stallOn(fd int) {
	packet, oob := make([]byte, maxPacket), make([]byte, 64)
	for kind(packet[0]) != kindOffer {
		n, oobn, _, _, err := unix.Recvmsg(fd, packet, oob, unix.MSG_CMSG_CLOEXEC)
		if err != nil || n == 0 {
			return
		}
		if kind(packet[0]) == kindArena {
			arena, _ := oneDescriptor(oob[:oobn])
			closeDescriptor(arena)
			_ = unix.Send(fd, append(header{kind: kindMapped}.append(nil), packet[headBytes:headBytes+8]...), unix.MSG_NOSIGNAL)
		}
	}
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if sideIsOver(uintptr(fd)) {
			return
		}
	}
}

// burnRole takes a part of a processor, TENURE_SHARE_BURN in thousandths, and
// does nothing with it.
func burnRole() error {
	share, err := strconv.Atoi(os.Getenv("TENURE_SHARE_BURN"))
	if err != nil {
		return err
	}
	const period = 10 * time.Millisecond
	for {
		begin := time.Now()
		for time.Since(begin) < period*time.Duration(share)/1000 {
		}
		if rest := period - time.Since(begin); rest > 0 {
			time.Sleep(rest)
		}
	}
}
