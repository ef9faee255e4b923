package share_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// filled makes a tensor of n bytes in src, all of them v.
func filled(t *testing.T, src memory.Source, n int, v byte) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Make(src, dtype.U8, shape.MustOf(n))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tensor.Write[uint8](x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Data {
		w.Data[i] = v
	}
	w.Release()
	return x
}

func mustRelease(t *testing.T, xs ...*tensor.Tensor) {
	t.Helper()
	for _, x := range xs {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}

// consumer starts a process that dials the host, and returns the host's end.
func (h *host) consumer() (*child, *share.Peer) {
	h.t.Helper()
	c := startChild(h.t, "consumer", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TENURE_TEST_DIR="+h.dir) })
	if got := c.hear(); got != "connected" {
		h.t.Fatalf("got %q, want a child that has connected", got)
	}
	return c, <-h.accepted
}

// TestConsumerWithoutDescriptors: a consumer that cannot receive descriptors
// gets copies of small tensors, until it can.
func TestConsumerWithoutDescriptors(t *testing.T) {
	h := newHost(t)
	c, p := h.consumer()
	small, large := filled(t, h.o, 1000, 1), filled(t, h.o, 100_000, 2)
	defer mustRelease(t, small, large)
	c.want("full", "full")
	for range 2 {
		if err := p.Offer(within(t), small, share.Label("small")); err != nil {
			t.Errorf("small tensor: got %v, want a copy", err)
		}
		c.want("receive", "small: 1000 bytes, first 1, last 1, inline true")
		if err := p.Offer(within(t), large); !errors.Is(err, share.ErrRefused) || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("large tensor: got %v, want ErrRefused because of EMFILE", err)
		}
	}
	if err := p.Offer(within(t), small, share.WithoutCopy()); !errors.Is(err, share.ErrRefused) {
		t.Errorf("small tensor without a copy: got %v, want ErrRefused", err)
	}
	if n := h.leases(p); n != 0 {
		t.Errorf("got %d leases, want none", n)
	}
	h.serves()
	c.want("room", "room")
	if err := p.Offer(within(t), large, share.Label("large")); err != nil {
		t.Error(err)
	}
	c.want("receive", "large: 100000 bytes, first 2, last 2, inline false")
	c.kill()
	eventually(t, "the row is dropped", func() bool { return h.leases(p) == 0 })
}

// TestOwnerWithoutDescriptors: an arena that cannot be announced now can be
// later, and no call waits for an answer to a question that was not sent.
func TestOwnerWithoutDescriptors(t *testing.T) {
	c := startChild(t, "announcer", nil)
	if got := c.hear(); got != "done" {
		t.Errorf("got %q, want a child that is done", got)
	}
	<-c.ended
	if !c.cmd.ProcessState.Success() {
		t.Errorf("got a child that ended with %v", c.cmd.ProcessState)
	}
}

// full allocates tensors of 1 MiB until the owner says that there is no more.
func full(t *testing.T, o *share.Owner) (held []*tensor.Tensor) {
	t.Helper()
	for {
		x, err := tensor.Make(o, dtype.U8, shape.MustOf(1<<20))
		if err != nil {
			if !errors.Is(err, tensor.ErrLimit) {
				t.Errorf("at the limit: got %v, want ErrLimit", err)
			}
			return held
		}
		if held = append(held, x); len(held) > 1000 {
			t.Fatal("there is no limit")
		}
	}
}

// TestBudget: an owner at its limit, or at the process's, says so and goes on.
func TestBudget(t *testing.T) {
	t.Run("of the owner", func(t *testing.T) {
		h := newHost(t, share.WithLimit(8<<20))
		budget(t, h, filled(t, nil, 2<<20, 3))
	})
	t.Run("of the process", func(t *testing.T) {
		h := newHost(t)
		elsewhere := filled(t, nil, 2<<20, 3)
		defer memory.SetLimit(memory.SetLimit(memory.Stats().Total.Current + 4<<20))
		budget(t, h, elsewhere)
	})
}

func budget(t *testing.T, h *host, elsewhere *tensor.Tensor) {
	held := full(t, h.o)
	if len(held) < 3 || len(held) > 8 {
		t.Errorf("got %d MiB, want 3 to 8", len(held))
	}
	if err := h.side.Offer(within(t), elsewhere); !errors.Is(err, tensor.ErrLimit) {
		t.Errorf("offer of what must be copied: got %v, want ErrLimit", err)
	}
	h.serves()
	if err := h.side.Offer(within(t), held[0]); err != nil {
		t.Errorf("offer of what is in an arena: %v", err)
	}
	mustRelease(t, held[0])
	r, err := h.good.Receive(within(t))
	if err != nil {
		t.Fatal(err)
	}
	more := full(t, h.o)
	mustRelease(t, more...)
	if len(more) != 0 {
		t.Errorf("got room for %d MiB while it is in limbo, want none", len(more))
	}
	mustRelease(t, r.Tensor)
	eventually(t, "there is room for it again", func() bool {
		more := full(t, h.o)
		mustRelease(t, more...)
		return len(more) == 1
	})
	mustRelease(t, append(held[1:], elsewhere)...)
}

// TestLimitUntilUnmapped: an arena that is given back counts against the limit,
// and as memory of this process, until no peer has it mapped any more; an
// allocation waits for that.
func TestLimitUntilUnmapped(t *testing.T) {
	before, atFirst := figuresNow(t), memory.Stats().Total.Current
	o, err := share.NewOwner(share.WithLimit(8 << 20))
	if err != nil {
		t.Fatal(err)
	}
	r, p := attach(t, o)
	offered := make(chan error)
	x := filled(t, o, 3<<20, 1)
	go func() { offered <- p.Offer(within(t), x) }()
	lease := r.expect(mOffer)
	if err := <-offered; err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	r.send(message(mRelease, 1, 0, lease[:8]))

	// The owner gives the arena back when it has read the message.
	eventually(t, "an error that says that a peer has 4 of 8 MiB mapped", func() bool {
		_, err := o.Alloc(6 << 20)
		return errors.Is(err, tensor.ErrLimit) && strings.Contains(err.Error(), "got 4194304 bytes in arenas, 4194304 of them given back and still mapped by peers, and want 6291456 more")
	})
	id := r.expect(mRetire)
	s := o.State()
	if len(s.Arenas) != 1 || !s.Arenas[0].Retired || s.Arenas[0].Peers != 1 || s.Bytes.Arenas != 4<<20 {
		t.Errorf("got %+v, want one arena of 4 MiB that is given back and mapped by one peer", s)
	}
	if now := memory.Stats().Total.Current; now != atFirst+4<<20 {
		t.Errorf("got %d bytes more than at first, want the 4 MiB that the peer keeps there", now-atFirst)
	}
	beside, err := o.Alloc(3 << 20)
	if err != nil {
		t.Fatalf("in the 4 MiB that are left: %v", err)
	}
	if err := beside.Release(); err != nil {
		t.Error(err)
	}

	room := make(chan error)
	go func() {
		b, err := o.Alloc(8 << 20)
		if err == nil {
			err = b.Release()
		}
		room <- err
	}()
	r.send(message(mUnmapped, 0, 0, id))
	if err := <-room; err != nil {
		t.Errorf("all of it, when the peer has let go: %v", err)
	}
	r.close()
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	before.wantAgain(t)
	eventually(t, "the memory is given back", func() bool { return memory.Stats().Total.Current == atFirst })
}

// TestNoMemoryForASmallCopy: a tensor that must be put into order before it
// fits into a message, and for which there is no room.
func TestNoMemoryForASmallCopy(t *testing.T) {
	h := newHost(t)
	x := filled(t, nil, 20_000, 4)
	m, err := x.Reshape(100, 200)
	if err != nil {
		t.Fatal(err)
	}
	transposed, err := m.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	old := memory.SetLimit(memory.Stats().Total.Current)
	err = h.side.Offer(within(t), transposed)
	memory.SetLimit(old)
	if !errors.Is(err, tensor.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if err := h.side.Offer(within(t), transposed, share.Label("transposed")); err != nil {
		t.Errorf("with memory: got %v", err)
	}
	receiveOne(t, h.good, "transposed")
	h.serves()
	mustRelease(t, x, m, transposed)
}

const groupLimit = 128 << 20

// ownerChild joins a control group and listens. Commands: "fill" takes tensors
// until there is no more, "free" lets go of them.
func ownerChild(t *testing.T) {
	if err := os.WriteFile(os.Getenv("TENURE_TEST_GROUP")+"/cgroup.procs", fmt.Append(nil, os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	fmt.Println(h.dir)
	var held []*tensor.Tensor
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		switch s.Text() {
		case "fill":
			held = full(t, h.o)
			fmt.Println(len(held))
		case "free":
			mustRelease(t, held...)
			h.o.Collect()
			fmt.Println("free")
		}
	}
}

// TestLimitOfAControlGroup: an owner that takes all that its group may have is
// told so and not killed, and serves on.
func TestLimitOfAControlGroup(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector uses an unknown amount of memory of its own")
	}
	group := memoryGroup(t, groupLimit)
	c := startChild(t, "owner", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TENURE_TEST_GROUP="+group) })
	dir := c.hear()
	for range 3 {
		got, err := strconv.Atoi(c.tell("fill"))
		if err != nil || got < groupLimit>>21 || got > groupLimit>>20 {
			t.Errorf("got %d MiB (%v), want most of %d", got, err, groupLimit>>20)
		}
		p, err := share.Dial(within(t), "host", share.InDir(dir))
		if err != nil {
			t.Fatal(err)
		}
		getSteady(t, p)
		closePeer(t, p)
		c.want("free", "free")
	}
	_ = c.in.Close()
	<-c.ended
	if !c.cmd.ProcessState.Success() {
		t.Errorf("got a child that ended with %v", c.cmd.ProcessState)
	}
}

// TestStoppedConsumer: a process that is stopped is alive. The bytes that it
// can hold are bounded, and no other process waits for it.
func TestStoppedConsumer(t *testing.T) {
	h := newHost(t)
	c, p := h.consumer()
	x := filled(t, h.o, 100_000, 9)
	if err := p.Offer(within(t), x, share.Label("before")); err != nil {
		t.Fatal(err)
	}
	c.want("receive", "before: 100000 bytes, first 9, last 9, inline false")
	c.stop()
	sent := 0
	for ; ; sent++ {
		err := p.Offer(within(t), x, share.NoWait(), share.Label(strconv.Itoa(sent)))
		if errors.Is(err, share.ErrNoCredit) {
			break
		}
		if err != nil || sent > 1024 {
			t.Fatalf("offer %d to a stopped process: got %v, want ErrNoCredit in the end", sent, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.o.Offer(ctx, x, []*share.Peer{p, h.side}, share.Label("both")) }()
	receiveOne(t, h.good, "both") // the other one does not wait
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("offer to both: got %v, want it cancelled for the stopped one", err)
	}
	// The same in an arena that the stopped one has not mapped yet.
	large := filled(t, h.o, 33<<20, 8)
	ctx, cancel = context.WithCancel(context.Background())
	go func() { done <- h.o.Offer(ctx, large, []*share.Peer{p, h.side}, share.Label("large")) }()
	receiveOne(t, h.good, "large")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("offer of a new arena to both: got %v, want it cancelled for the stopped one", err)
	}
	h.serves()
	c.signal(syscall.SIGCONT)
	for i := range sent {
		c.want("receive", fmt.Sprintf("%d: 100000 bytes, first 9, last 9, inline false", i))
	}
	c.want("release", "released")
	eventually(t, "all leases are back", func() bool { return h.leases(p) == 0 })
	if err := p.Offer(within(t), large, share.Label("awake")); err != nil {
		t.Errorf("offer to a process that goes on: %v", err)
	}
	c.want("receive", fmt.Sprintf("awake: %d bytes, first 8, last 8, inline false", 33<<20))
	c.stop()
	mustRelease(t, x, large)
	if n, limbo := h.leases(p), h.o.State().Bytes.Limbo; n != 1 || limbo != 33<<20 {
		t.Errorf("while it is stopped: got %d leases and %d bytes in limbo, want 1 and %d", n, limbo, 33<<20)
	}
	c.signal(syscall.SIGKILL)
	eventually(t, "its row is dropped", func() bool { return h.leases(p) == 0 })
}

func receiveOne(t *testing.T, p *share.Peer, label string) {
	t.Helper()
	r, err := p.Receive(within(t))
	if err != nil {
		t.Fatalf("receive %s: %v", label, err)
	}
	if r.Label != label {
		t.Errorf("got %s, want %s", r.Label, label)
	}
	mustRelease(t, r.Tensor)
}

// TestSocketsThatAreInherited: a consumer's lease ends with its last process
// that has the socket. A child that is started in the ordinary way does not
// have it, one that is given it on purpose does: then the end comes late, and
// nothing is reused early.
func TestSocketsThatAreInherited(t *testing.T) {
	h := newHost(t)
	x := filled(t, h.o, 100_000, 5)
	defer mustRelease(t, x)

	c, p := h.consumer()
	if err := p.Offer(within(t), x, share.Label("x")); err != nil {
		t.Fatal(err)
	}
	c.want("receive", "x: 100000 bytes, first 5, last 5, inline false")
	ordinary := spawned(t, c)
	c.signal(syscall.SIGKILL)
	eventually(t, "the row is dropped, although a child lives", func() bool { return h.leases(p) == 0 })
	if err := syscall.Kill(ordinary, 0); err != nil {
		t.Errorf("the child: got %v, want it alive", err)
	}

	var ours, theirs *os.File
	c = startChild(t, "consumer", func(cmd *exec.Cmd) {
		var err error
		if ours, err = share.Command(cmd); err != nil {
			t.Fatal(err)
		}
		theirs = cmd.ExtraFiles[len(cmd.ExtraFiles)-1]
	})
	_ = theirs.Close()
	p, err := h.o.Attach(within(t), ours)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.hear(); got != "connected" {
		t.Fatalf("got %q, want a child that has connected", got)
	}
	if err := p.Offer(within(t), x, share.Label("y")); err != nil {
		t.Fatal(err)
	}
	c.want("receive", "y: 100000 bytes, first 5, last 5, inline false")
	heir := spawned(t, c)
	c.signal(syscall.SIGKILL)
	<-c.ended
	h.serves()
	if n := h.leases(p); n != 1 {
		t.Errorf("while a child has the socket: got %d leases, want 1", n)
	}
	if err := syscall.Kill(heir, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row is dropped with the last socket", func() bool { return h.leases(p) == 0 })
}

// spawned makes a child start one of its own and returns its number. It is
// killed at the end, even if its parent has ended.
func spawned(t *testing.T, c *child) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(c.tell("spawn")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}
