package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// inPlace is an owner on one machine and a consumer on another one, which both
// are in this process, and a library beside the owner.
type inPlace struct {
	*pair
	owns, uses *rig
	lib        *library
}

func newInPlace(t *testing.T, owns, uses fake.Config, each int) *inPlace {
	t.Helper()
	needsLinux(t)
	x := &inPlace{uses: newRig(t, uses)} // first, so that the consumer finds it
	x.owns = newRig(t, owns)
	x.lib = newTestLibrary(t, x.owns.Machine, each)
	x.pair = newPair(t, x.owns.devices[0].Memory(), share.InPlace())
	return x
}

// newTestLibrary makes a library that must have everything back at the end.
func newTestLibrary(t *testing.T, d driver.Driver, each int) *library {
	t.Helper()
	l := must(newLibrary(d, each))(t)
	t.Cleanup(func() { must(0, l.close())(t) })
	return l
}

func wantStamp(t *testing.T, x *tensor.Tensor, v uint32) {
	t.Helper()
	if why := wantNumbers(numbers(t, x), v); why != "" {
		t.Error(why)
	}
}

// A library's tensors are received in place, wherever in a segment they are. It
// gets each back after its last lease, and the last one of a segment when the
// consumer has closed that.
func TestShareInPlace(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			p := newInPlace(t, fake.Config{Mode: mode}, fake.Config{Mode: mode, Seed: 2}, 3)
			var got []*share.Received
			for i := range 5 {
				x := must(p.lib.tensor(uint32(i), 100*(i+1)))(t)
				must(0, p.out.Offer(ctx, x, share.WithoutCopy(), share.Label(fmt.Sprint(i))))(t)
				must(0, p.out.Offer(ctx, x, share.WithoutCopy(), share.BeforeWork()))(t)
				x.Release()
				got = append(got, must(p.in.Receive(ctx))(t))
				must(p.in.Receive(ctx))(t).Tensor.Release()
			}
			for i, r := range got {
				if r.Label != fmt.Sprint(i) || r.Tensor.IsExclusive() {
					t.Errorf("got %q, exclusive %t, want %d, not exclusive", r.Label, r.Tensor.IsExclusive(), i)
				}
				wantStamp(t, r.Tensor, uint32(i))
			}
			s := p.owner.State()
			if s.Bytes.Copied != 0 || s.Bytes.Arenas != 0 || len(s.Arenas) != 2 || !s.Arenas[0].Foreign || s.Bytes.Limbo == 0 {
				t.Errorf("got %+v in %+v, want two segments of others, bytes in limbo and no copy", s.Bytes, s.Arenas)
			}
			if n := p.uses.Calls()["IpcOpenMemHandle"]; n != 2 {
				t.Errorf("got %d allocations opened, want 2", n)
			}
			if n := p.lib.deletions(); n != 0 {
				t.Errorf("got %d tensors back while the consumer holds all, want none", n)
			}
			got[1].Tensor.Release() // others of its segment are out
			eventually(t, "a tensor comes back", func() bool { return p.lib.deletions() == 1 })
			for _, i := range []int{0, 2, 3, 4} {
				wantStamp(t, got[i].Tensor, uint32(i))
				got[i].Tensor.Release()
			}
			eventually(t, "all come back", func() bool { return p.lib.deletions() == 5 })
			if n := p.uses.Calls()["IpcCloseMemHandle"]; n != 2 {
				t.Errorf("got %d allocations closed, want 2", n)
			}
		})
	}
}

// An allocation is opened once for all connections of a process and all
// announcements, and not again while its owner has a tensor of it.
func TestShareInPlaceOpensOnce(t *testing.T) {
	ctx := context.Background()
	p := newInPlace(t, fake.Config{}, fake.Config{}, 64)
	in, out := p.in, p.out
	p.attach(t)
	kept := must(p.lib.tensor(1, 10))(t)
	for i := range 20 {
		x := must(p.lib.tensor(uint32(i), 50))(t)
		must(0, p.owner.Offer(ctx, x, []*share.Peer{out, p.out}, share.WithoutCopy()))(t)
		must(0, p.out.Offer(ctx, kept, share.WithoutCopy()))(t)
		x.Release()
		for _, peer := range []*share.Peer{in, p.in} {
			got := must(peer.Receive(ctx))(t)
			wantStamp(t, got.Tensor, uint32(i))
			got.Tensor.Release()
		}
		must(p.in.Receive(ctx))(t).Tensor.Release()
	}
	if n := p.uses.Calls()["IpcOpenMemHandle"]; n != 1 {
		t.Errorf("got an allocation opened %d times, want once", n)
	}
	kept.Release()
	eventually(t, "all come back", func() bool { return p.lib.deletions() == 21 })
}

// Two owners of one process lend tensors of one allocation, and one tensor
// both. The consumer opens the allocation once, and the library gets a tensor
// back when both owners have let go of it.
func TestShareInPlaceTwoOwners(t *testing.T) {
	ctx := context.Background()
	p := newInPlace(t, fake.Config{}, fake.Config{}, 4)
	q := newPair(t, p.owns.devices[0].Memory(), share.InPlace())
	x, y := must(p.lib.tensor(7, 10))(t), must(p.lib.tensor(8, 10))(t)
	must(0, p.out.Offer(ctx, x))(t)
	must(0, q.out.Offer(ctx, x))(t)
	must(0, q.out.Offer(ctx, y))(t)
	x.Release()
	y.Release()
	first, second, third := must(p.in.Receive(ctx))(t), must(q.in.Receive(ctx))(t), must(q.in.Receive(ctx))(t)
	first.Tensor.Release()
	eventually(t, "the lease ends", func() bool { return len(p.owner.Outstanding()) == 0 })
	wantStamp(t, second.Tensor, 7)
	if n := p.lib.deletions(); n != 0 {
		t.Errorf("got %d tensors back while an owner lends them, want none", n)
	}
	second.Tensor.Release()
	eventually(t, "the tensor comes back", func() bool { return p.lib.deletions() == 1 })
	wantStamp(t, third.Tensor, 8)
	third.Tensor.Release()
	eventually(t, "the other one comes back", func() bool { return p.lib.deletions() == 2 })
	if opens, closes := p.uses.Calls()["IpcOpenMemHandle"], p.uses.Calls()["IpcCloseMemHandle"]; opens != 1 || closes != 1 {
		t.Errorf("got the allocation opened %d times and closed %d times, want once", opens, closes)
	}
	if n := p.owns.Calls()["IpcGetMemHandle"]; n != 1 {
		t.Errorf("got %d handles of one allocation, want 1", n)
	}
}

// In the owner's process, whose driver does not open its own handles, the
// tensor is over the library's bytes directly.
func TestShareInPlaceHere(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{})
	lib := newTestLibrary(t, r.Machine, 2)
	p := newPair(t, r.devices[0].Memory(), share.InPlace())
	ctx := context.Background()
	x := must(lib.tensor(5, 30))(t)
	must(0, p.owner.Publish("weights", x))(t)
	x.Release()
	got := must(p.in.Get(ctx, "weights"))(t)
	ticket := must(got.Ticket(ctx))(t)
	got.Tensor.Release()
	got = must(p.in.Claim(ctx, ticket))(t)
	wantStamp(t, got.Tensor, 5)
	if s := p.owner.State(); s.Bytes.Copied != 0 {
		t.Errorf("got %d bytes copied, want none", s.Bytes.Copied)
	}
	p.owner.Withdraw("weights")
	got.Tensor.Release()
	eventually(t, "the tensor comes back", func() bool { return lib.deletions() == 1 })
	if n := r.Calls()["IpcOpenMemHandle"]; n != 0 {
		t.Errorf("got %d handles opened in the process that has them, want none", n)
	}
}

// The library gets nothing back before work of the consumer or of the owner is
// complete.
func TestShareInPlaceWaitsForWork(t *testing.T) {
	lazy := fake.Config{Mode: fake.Lazy, Queries: 1 << 30, Idle: time.Hour}
	ctx := context.Background()
	p := newInPlace(t, lazy, lazy, 1)
	x := must(p.lib.tensor(5, 1000))(t)
	must(0, p.owns.StreamSynchronize(contextOf(p.owns), p.lib.stream))(t)
	p.owns.finish(t, p.owns.devices[0].Main())
	must(0, p.out.Offer(ctx, x, share.WithoutCopy()))(t)
	mine, theirs := p.owns.stream(t, 0), p.uses.stream(t, 0)
	z := must(mine.Copy(x))(t)
	x.Release()
	got := must(p.in.Receive(ctx))(t)
	y := must(theirs.Copy(got.Tensor))(t)
	got.Tensor.Release()
	time.Sleep(20 * time.Millisecond)
	if n, leases := p.lib.deletions(), len(p.owner.Outstanding()); n != 0 || leases != 1 {
		t.Errorf("got %d tensors back and %d leases while the consumer's work has not run, want none and 1", n, leases)
	}
	p.uses.finish(t, theirs)
	eventually(t, "the lease ends", func() bool { return len(p.owner.Outstanding()) == 0 })
	time.Sleep(20 * time.Millisecond)
	if n := p.lib.deletions(); n != 0 {
		t.Errorf("got %d tensors back while the owner's work has not run, want none", n)
	}
	p.owns.finish(t, mine)
	eventually(t, "the tensor comes back", func() bool { return p.lib.deletions() == 1 })
	y.Release()
	z.Release()
}

// Memory that the driver has no handle for, and what is not a library's, is
// copied, or refused with the reason.
func TestShareInPlaceCopies(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{Peer: func(int, int) bool { return true }})
	d := r.devices[0]
	ctx := context.Background()
	p := newPair(t, d.Memory(), share.InPlace())
	c := contextOf(r)
	pooled := must(r.MemAllocAsync(c, 400, driver.LegacyStream))(t)
	must(0, r.MemsetD32Async(c, pooled, 9, 100, driver.LegacyStream))(t)
	managed := must(r.MemAllocManaged(c, 400))(t)
	must(0, r.MemsetD32Async(c, managed, 9, 100, driver.LegacyStream))(t)
	nine := func(m *dlpack.DLManagedTensorVersioned) *tensor.Tensor {
		return must(dlpack.Import(m, func(_, _ uintptr) {}, dlpack.OnDevice(d.Memory())))(t)
	}
	list := map[string]*tensor.Tensor{
		"of a pool": nine(describeAt(dlpack.Device{Type: dlpack.CUDA}, uintptr(pooled), 100)),
		"managed":   nine(describeAt(dlpack.Device{Type: dlpack.CUDAManaged}, uintptr(managed), 100)),
		"Tenure's":  must(d.Main().Fill(must(d.Main().Make(dtype.U32, host(t, 100, 0).Shape()))(t).Donate(), uint32(9)))(t),
	}
	for name, x := range list {
		err := p.out.Offer(ctx, x, share.WithoutCopy())
		if !errors.Is(err, share.ErrCopy) || !strings.Contains(err.Error(), "not shared in place (cuda: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want ErrCopy and one line that says why", name, err)
		}
		must(0, p.out.Offer(ctx, x))(t)
		x.Release()
		got := must(p.in.Receive(ctx))(t)
		wantStamp(t, got.Tensor, 9)
		got.Tensor.Release()
	}
	if n := p.owner.State().Bytes.Copied; n != 1200 {
		t.Errorf("got %d bytes copied, want 1200", n)
	}
	if _, err := share.NewOwner(share.InPlace()); !errors.Is(err, tensor.ErrUnsupported) || !strings.Contains(err.Error(), "OnDevice") {
		t.Errorf("on the host: got %v, want ErrUnsupported", err)
	}
	must(0, d.Main().Sync(ctx))(t)
	must(0, r.MemFree(c, pooled))(t)
	must(0, r.MemFree(c, managed))(t)
}

// A call of the driver that fails is done without: the tensor is copied.
// Nothing is lost.
func TestShareInPlaceDriverFailures(t *testing.T) {
	for _, c := range []struct {
		call   string
		owns   bool
		result driver.Result
		copied bool
	}{
		{"IpcGetMemHandle", true, driver.OutOfMemory, true},
		{"MemGetAddressRange", true, driver.NotFound, true},
		{"IpcOpenMemHandle", false, driver.PeerAccessUnsupp, true},
		{"IpcOpenMemHandle", false, driver.OutOfMemory, true},
		{"MemGetAddressRange", false, driver.NotFound, false},
		{"IpcGetEventHandle", true, driver.OutOfMemory, false},
	} {
		t.Run(fmt.Sprint(c.call, c.owns), func(t *testing.T) {
			var owns, uses fake.Config
			owns.Mode, uses.Mode = fake.Lazy, fake.Lazy
			to := &uses
			if c.owns {
				to = &owns
			}
			to.Fail = failing(c.call, c.result)
			ctx := context.Background()
			p := newInPlace(t, owns, uses, 2)
			x := must(p.lib.tensor(3, 40))(t)
			defer x.Release()
			err := p.out.Offer(ctx, x, share.WithoutCopy())
			if c.copied && (!errors.Is(err, share.ErrCopy) || !strings.Contains(err.Error(), "cu"+c.call)) {
				t.Errorf("got %v, want ErrCopy and the call", err)
			} else if !c.copied && err != nil {
				t.Error(err)
			}
			must(0, p.out.Offer(ctx, x, share.BeforeWork()))(t)
			if !c.copied {
				must(p.in.Receive(ctx))(t).Tensor.Release()
			}
			got := must(p.in.Receive(ctx))(t)
			wantStamp(t, got.Tensor, 3)
			got.Tensor.Release()
			if n := p.owner.State().Bytes.Copied; (n > 0) != c.copied {
				t.Errorf("got %d bytes copied", n)
			}
		})
	}
}

// A peer that does not know such memory, and one whose death the kernel does
// not report, get copies.
func TestShareInPlacePeers(t *testing.T) {
	r := newRig(t, fake.Config{})
	lib := newTestLibrary(t, r.Machine, 2)
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory()), share.InPlace()))(t)
	ours, theirs, err := share.Pair()
	if err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, 72)
	hello[0] = 1
	copy(hello[8:], "TNUR\x02\x00")
	hello[48], hello[56], hello[57], hello[64] = 10, 0xff, 0xff, 1 // version 2 without the ability
	must(theirs.Write(hello))(t)
	old := must(o.Attach(t.Context(), ours))(t)

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=liar", "TENURE_CUDA_STAMP=7", "TENURE_CUDA_LIE=0")
	end := must(share.Command(cmd))(t)
	child := startProc(t, "child", cmd)
	cmd.ExtraFiles[0].Close()
	p := must(o.Attach(t.Context(), end))(t)

	x := must(lib.tensor(7, 20))(t)
	for peer, want := range map[*share.Peer]string{old: "takes no memory of other allocators (it speaks an older form", p: "the kernel does not say when it has died"} {
		if err := peer.Offer(t.Context(), x, share.WithoutCopy()); !errors.Is(err, share.ErrCopy) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want ErrCopy and one line with %q", err, want)
		}
	}
	must(0, p.Offer(t.Context(), x))(t)
	x.Release()
	eventually(t, "the tensor comes back", func() bool { return lib.deletions() == 1 })
	if !child.await("holds", nil) {
		t.Fatal(child.finish(false))
	}
	child.tell("look")
	child.await("looked", nil)
	must(0, child.cmd.Process.Kill())(t)
	for _, wrong := range child.finish(true) {
		t.Error(wrong)
	}
	theirs.Close()
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

// TestQuarantineInPlace: the library gets nothing back at the end of file of a
// process that goes on, whether it holds a lease or has the memory open only.
func TestQuarantineInPlace(t *testing.T) {
	for _, release := range []int{0, 1} {
		r := newRig(t, fake.Config{})
		lib := newTestLibrary(t, r.Machine, 1)
		dir := filepath.Join(t.TempDir(), "s")
		o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory()), share.InPlace()))(t)
		l := must(o.Listen("kill", share.InDir(dir)))(t)
		liar := startRole(t, "liar", dir, "liar", "TENURE_CUDA_STAMP=7", fmt.Sprint("TENURE_CUDA_RELEASE=", release))
		p := must(l.Accept(t.Context()))(t)
		x := must(lib.tensor(7, 100))(t)
		must(0, p.Offer(t.Context(), x, share.WithoutCopy()))(t)
		if !liar.await("holds", nil) {
			t.Fatal(liar.finish(false))
		}
		<-p.Done()
		x.Release()
		time.Sleep(50 * time.Millisecond)
		if n := lib.deletions(); n != 0 {
			t.Errorf("release %d: got %d tensors back while another process has them open, want none", release, n)
		}
		must(0, liar.cmd.Process.Kill())(t)
		for _, wrong := range liar.finish(true) {
			t.Error(wrong)
		}
		eventually(t, "the tensor comes back with the end of the process", func() bool { return lib.deletions() == 1 })
		must(0, o.Close())(t)
	}
}

// A consumer that ends its side in order closes what it has open before, so
// that the library need not wait for the end of its process.
func TestShareInPlaceEndsInOrder(t *testing.T) {
	r := newRig(t, fake.Config{})
	lib := newTestLibrary(t, r.Machine, 1)
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory()), share.InPlace()))(t)
	l := must(o.Listen("kill", share.InDir(dir)))(t)
	c := startRole(t, "consumer", dir, "liar", "TENURE_CUDA_LIE=0", "TENURE_CUDA_RELEASE=1", "TENURE_CUDA_CLOSE=1")
	p := must(l.Accept(t.Context()))(t)
	x := must(lib.tensor(7, 100))(t)
	must(0, p.Offer(t.Context(), x, share.WithoutCopy()))(t)
	if !c.await("holds", nil) {
		t.Fatal(c.finish(false))
	}
	<-p.Done()
	x.Release()
	eventually(t, "the tensor comes back", func() bool { return lib.deletions() == 1 })
	must(0, c.cmd.Process.Kill())(t)
	for _, wrong := range c.finish(true) {
		t.Error(wrong)
	}
	must(0, o.Close())(t)
}

// ending is a driver during whose opening of memory the connection is closed.
type ending struct {
	driver.Driver
	once  sync.Once
	close func()
}

func (e *ending) IpcOpenMemHandle(ctx driver.Context, h driver.IPCHandle) (driver.Pointer, error) {
	p, err := e.Driver.IpcOpenMemHandle(ctx, h)
	e.once.Do(e.close)
	return p, err
}

// A consumer that ends while it opens an allocation closes it, too.
func TestShareInPlaceEnds(t *testing.T) {
	needsLinux(t)
	m := fake.New(fake.Config{})
	fake.CheckLeaks(t, m)
	fake.CheckReports(t, m)
	e := &ending{Driver: m}
	d := must(must(cuda.New(e))(t).Device(0))(t)
	t.Cleanup(func() { closeSoon(t, d) })
	r := newRig(t, fake.Config{})
	lib := newTestLibrary(t, r.Machine, 1)
	p := newPair(t, r.devices[0].Memory(), share.InPlace())
	x := must(lib.tensor(7, 100))(t)
	e.close = func() {
		must(0, p.in.Close())(t)
		time.Sleep(50 * time.Millisecond)
		if n := lib.deletions(); n != 0 {
			t.Errorf("got %d tensors back while the consumer is about to have them open, want none", n)
		}
	}
	if err := p.out.Offer(t.Context(), x); err != nil && !errors.Is(err, share.ErrClosed) {
		t.Errorf("got %v, want nothing or ErrClosed", err)
	}
	x.Release()
	eventually(t, "the tensor comes back", func() bool { return lib.deletions() == 1 })
	if n := m.Calls()["IpcCloseMemHandle"]; n != 1 {
		t.Errorf("got %d allocations closed, want 1", n)
	}
}

// A device is not closed while another process has memory of a library open.
func TestCloseBesideInPlace(t *testing.T) {
	p := newInPlace(t, fake.Config{}, fake.Config{}, 1)
	x := must(p.lib.tensor(7, 100))(t)
	must(0, p.out.Offer(t.Context(), x))(t)
	x.Release()
	got := must(p.in.Receive(t.Context()))(t)
	for _, d := range []*cuda.Device{p.owns.devices[0], p.uses.devices[0]} {
		if err := d.Close(); !errors.Is(err, memory.ErrShared) {
			t.Errorf("got %v, want ErrShared", err)
		}
	}
	got.Tensor.Release()
}
