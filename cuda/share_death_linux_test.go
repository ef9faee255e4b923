package cuda_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// liarRole receives a tensor and shuts its socket down, as no honest process
// does, while it goes on reading the tensor.
func liarRole(s *side) error {
	o, err := share.NewOwner()
	if err != nil {
		return err
	}
	var p *share.Peer
	if os.Getenv("TENURE_SHARE_FD") != "" {
		p, err = o.Parent(context.Background())
	} else {
		p, err = o.Dial(context.Background(), "kill")
	}
	if err != nil {
		return err
	}
	r, err := p.Receive(context.Background())
	if err != nil {
		return err
	}
	if setting("RELEASE", 0) > 0 {
		_ = r.Tensor.Release()
	}
	if setting("CLOSE", 0) > 0 {
		_ = o.Close()
	}
	if setting("LIE", 1) > 0 {
		shutSockets()
	}
	say("holds")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		y, err := s.d.Main().Copy(r.Tensor)
		if err == nil {
			err = compare(y, uint32(setting("STAMP", 0)))
			_ = y.Release()
		}
		if err != nil {
			say("violation: %v", err)
		}
		say("looked")
	}
	return nil
}

// shutSockets shuts all sockets of this process down.
func shutSockets() {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, "socket:") {
			fd, _ := strconv.Atoi(e.Name())
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
	}
}

// stamped returns a tensor of n numbers in the owner's arena.
func stamped(t *testing.T, o *share.Owner, n int, stamp uint32) *tensor.Tensor {
	t.Helper()
	data := make([]uint32, n)
	for i := range data {
		data[i] = stamp
	}
	h := must(tensor.Of(data, n))(t)
	defer h.Release()
	return must(h.CopyTo(o))(t)
}

// TestQuarantineOnDevice: the end of file is no death. What a process may still
// read on its device is not written before the process is gone.
func TestQuarantineOnDevice(t *testing.T) {
	r := newRig(t, fake.Config{})
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	l := must(o.Listen("kill", share.InDir(dir)))(t)
	liar := startRole(t, "liar", dir, "liar", "TENURE_CUDA_STAMP=7")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := must(l.Accept(ctx))(t)
	x := stamped(t, o, 1000, 7)
	must(0, p.Offer(ctx, x))(t)
	x.Release()
	if !liar.await("holds", nil) {
		t.Fatal(liar.finish(false))
	}
	<-p.Done()
	eventually(t, "the lease is in quarantine", func() bool {
		s := o.State()
		return len(s.Leases) == 1 && s.Leases[0].State == "quarantined"
	})
	for range 20 { // takes the bytes if they are free
		stamped(t, o, 1000, 99).Release()
	}
	liar.tell("look")
	liar.await("looked", nil)
	_ = liar.cmd.Process.Kill()
	for _, wrong := range liar.finish(true) {
		t.Error(wrong)
	}
	eventually(t, "the lease ends with the process", func() bool { return len(o.Outstanding()) == 0 })
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

// TestDeathWithoutHandle: where the kernel does not tell which process the peer
// is, as over a socket pair, an arena that the dead process may still read is
// freed and not used again.
func TestDeathWithoutHandle(t *testing.T) {
	r := newRig(t, fake.Config{})
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=liar", "TENURE_CUDA_STAMP=7")
	end := must(share.Command(cmd))(t)
	liar := startProc(t, "liar", cmd)
	cmd.ExtraFiles[0].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := must(o.Attach(ctx, end))(t)
	x := stamped(t, o, 1000, 7)
	must(0, p.Offer(ctx, x))(t)
	if !liar.await("holds", nil) {
		t.Fatal(liar.finish(false))
	}
	eventually(t, "the lease ends with the end of file", func() bool { return len(o.Outstanding()) == 0 })
	y := stamped(t, o, 1000, 99)
	if n := len(o.State().Arenas); n != 2 {
		t.Errorf("got %d arenas after the death, want another one beside that of the tensor", n)
	}
	x.Release()
	eventually(t, "the arena is freed", func() bool { return len(o.State().Arenas) == 1 })
	liar.tell("look")
	liar.await("looked", nil)
	_ = liar.cmd.Process.Kill()
	for _, wrong := range liar.finish(true) {
		t.Error(wrong)
	}
	y.Release()
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

// TestOldPeersGetNoDeviceMemory: a peer of version 1 of the protocol, such as
// an older Go or Python one, is not told of what it does not know.
func TestOldPeersGetNoDeviceMemory(t *testing.T) {
	r := newRig(t, fake.Config{})
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	ours, theirs, err := share.Pair()
	if err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, 72)
	hello[0] = 1
	copy(hello[8:], "TNUR\x01\x00")
	hello[48], hello[56] = 10, 0xff
	must(theirs.Write(hello))(t)
	p := must(o.Attach(t.Context(), ours))(t)
	x := stamped(t, o, 100, 7)
	if err := p.Offer(t.Context(), x); !errors.Is(err, share.ErrRefused) || !strings.Contains(err.Error(), "takes no memory of devices (it speaks version 1") {
		t.Errorf("got %v, want ErrRefused with the version", err)
	}
	x.Release()
	theirs.Close()
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

// TestShareLeavesNoDescriptors: connections, arenas and events take none that
// outlives them.
func TestShareLeavesNoDescriptors(t *testing.T) {
	r := newRig(t, fake.Config{})
	count := func() int { return len(must(os.ReadDir("/proc/self/fd"))(t)) }
	round := func(t *testing.T) {
		p := newPair(t, r.devices[0].Memory())
		for range 5 {
			x := p.numbers(t, 10<<20, 1) // an arena of its own
			must(0, p.out.Offer(t.Context(), x))(t)
			x.Release()
			must(p.in.Receive(t.Context()))(t).Tensor.Release()
		}
	}
	t.Run("first", round)
	var before int
	eventually(t, "the first round is over", func() bool { before = count(); time.Sleep(20 * time.Millisecond); return count() == before })
	for range 3 {
		t.Run("round", round)
	}
	eventually(t, "no descriptor is left", func() bool { return count() <= before })
}
