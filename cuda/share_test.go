package cuda_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

func needsLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("sharing with other processes needs Linux")
	}
}

// pair is an owner on a device and a consumer, both in this process. The driver
// opens no events of its own process, so offers wait for work.
type pair struct {
	owner, consumer *share.Owner
	out, in         *share.Peer
}

func newPair(t *testing.T, d *memory.Device, opts ...share.OwnerOption) *pair {
	t.Helper()
	p := &pair{owner: must(share.NewOwner(append(opts, share.OnDevice(d))...))(t), consumer: must(share.NewOwner())(t)}
	p.attach(t)
	t.Cleanup(func() { p.close(t) })
	return p
}

func (p *pair) attach(t testing.TB) {
	t.Helper()
	ours, theirs, err := share.Pair()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		p.in, err = p.consumer.Attach(context.Background(), theirs)
		done <- err
	}()
	p.out = must(p.owner.Attach(context.Background(), ours))(t)
	must(0, <-done)(t)
}

// close ends both and waits until the peers have let go of everything.
func (p *pair) close(t testing.TB) {
	t.Helper()
	must(0, p.consumer.Close())(t)
	must(0, p.owner.Close())(t)
	eventually(t, "the arenas of the owner go", func() bool { return len(p.owner.State().Arenas) == 0 })
}

// numbers makes a tensor in the owner's arena from host numbers.
func (p *pair) numbers(t *testing.T, n int, first float32) *tensor.Tensor {
	t.Helper()
	return must(host(t, n, first).CopyTo(p.owner))(t)
}

func wantReceived(t *testing.T, x *tensor.Tensor, n int, first float32) {
	t.Helper()
	back := must(tensor.To(context.Background(), x, nil))(t)
	defer back.Release()
	got := must(tensor.Values[float32](back))(t)
	want := must(tensor.Values[float32](host(t, n, first)))(t)
	if !slices.Equal(got, want) {
		t.Errorf("got %d numbers from %v on, want %d from %v on", len(got), got[:min(len(got), 1)], n, first)
	}
}

func TestShareOnDevice(t *testing.T) {
	needsLinux(t)
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		p := newPair(t, r.devices[0].Memory())
		for _, n := range []int{1, 1000, 1 << 18, 9 << 20} {
			x := p.numbers(t, n, 3)
			must(0, p.out.Offer(ctx, x, share.Label("numbers"), share.WithoutCopy()))(t)
			x.Release()
			got := must(p.in.Receive(ctx))(t)
			if got.Label != "numbers" || got.Tensor.Device() != r.devices[0].Memory() || got.Tensor.IsExclusive() {
				t.Errorf("got %q on %s, exclusive %t, want numbers on %s, not exclusive", got.Label, got.Tensor.Device(), got.Tensor.IsExclusive(), r.devices[0])
			}
			if _, err := r.devices[0].Main().Fill(got.Tensor.Donate(), float32(0)); !errors.Is(err, tensor.ErrShared) {
				t.Error("a received tensor was written")
			}
			wantReceived(t, got.Tensor, n, 3)
			if s := p.owner.State(); len(s.Leases) != 1 || s.Bytes.Limbo != int64(4*n) {
				t.Errorf("got %d leases and %d bytes in limbo, want 1 and %d", len(s.Leases), s.Bytes.Limbo, 4*n)
			}
			got.Tensor.Release()
			eventually(t, "the lease ends", func() bool { return len(p.owner.Outstanding()) == 0 && p.owner.State().Bytes.Used == 0 })
		}
	})
}

// A tensor of the host, and one of the device's own arena, are copied.
func TestShareCopiesToDevice(t *testing.T) {
	needsLinux(t)
	onEach(t, fake.Config{}, func(t *testing.T, r *rig) {
		ctx := context.Background()
		p := newPair(t, r.devices[0].Memory())
		h := host(t, 500, 7)
		far := must(tensor.To(ctx, h, r.devices[0].Memory()))(t)
		empty := must(tensor.Of([]float32{}, 0))(t)
		for _, x := range []*tensor.Tensor{h, far, empty} {
			if err := p.out.Offer(ctx, x, share.WithoutCopy()); x != empty && !errors.Is(err, share.ErrCopy) {
				t.Errorf("got %v, want ErrCopy", err)
			} else if err == nil {
				must(must(p.in.Receive(ctx))(t).Tensor, nil)(t).Release()
			}
			must(0, p.out.Offer(ctx, x))(t)
			got := must(p.in.Receive(ctx))(t)
			if got.Tensor.Device() != r.devices[0].Memory() {
				t.Errorf("got it on %s", got.Tensor.Device())
			}
			wantReceived(t, got.Tensor, x.NumElements(), 7)
			got.Tensor.Release()
			x.Release()
		}
		// The other way round: an owner on the host copies what is on a device.
		back := must(tensor.To(ctx, host(t, 20000, 1), r.devices[0].Memory()))(t)
		must(0, p.in.Offer(ctx, back))(t)
		back.Release()
		got := must(p.out.Receive(ctx))(t)
		if got.Tensor.Device() != nil {
			t.Errorf("got it on %s, want the host", got.Tensor.Device())
		}
		wantReceived(t, got.Tensor, 20000, 1)
		got.Tensor.Release()
	})
}

func TestShareNamesAndTicketsOnDevice(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{})
	ctx := context.Background()
	p := newPair(t, r.devices[0].Memory())
	x := p.numbers(t, 300, 2)
	must(0, p.owner.Publish("weights", x))(t)
	x.Release()
	got := must(p.in.Get(ctx, "weights"))(t)
	ticket := must(got.Ticket(ctx))(t)
	got.Tensor.Release()
	second := must(p.in.Claim(ctx, ticket))(t)
	wantReceived(t, second.Tensor, 300, 2)
	second.Tensor.Release()
	if !p.owner.Withdraw("weights") {
		t.Error("the name is gone")
	}
}

// The lease ends after the work that reads the tensor, and a block that was let
// go of is not taken again before its work has ended.
func TestShareWaitsForWork(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{Mode: fake.Lazy, Queries: 1 << 30, Idle: time.Hour})
	ctx := context.Background()
	p := newPair(t, r.devices[0].Memory())
	s := r.stream(t, 0)
	x := p.numbers(t, 1000, 1)
	r.finish(t, r.devices[0].Main())
	must(0, p.out.Offer(ctx, x))(t)
	x.Release()
	got := must(p.in.Receive(ctx))(t)
	y := must(s.Copy(got.Tensor))(t)
	got.Tensor.Release()
	time.Sleep(20 * time.Millisecond)
	if n := len(p.owner.Outstanding()); n != 1 {
		t.Errorf("got %d leases while the consumer's work has not run, want 1", n)
	}
	r.finish(t, s)
	eventually(t, "the lease ends", func() bool { return len(p.owner.Outstanding()) == 0 })
	y.Release()

	z := p.numbers(t, 1000, 1) // an upload that does not run
	z.Release()
	time.Sleep(5 * time.Millisecond)
	if n := p.owner.State().Bytes.Used; n != 4000 {
		t.Errorf("got %d bytes in use while work writes them, want 4000", n)
	}
	r.finish(t, r.devices[0].Main())
	eventually(t, "the block is free", func() bool { return p.owner.State().Bytes.Used == 0 })
}

// contextOf returns the context of the first device.
func contextOf(r *rig) driver.Context {
	c, err := r.DevicePrimaryCtxRetain(0)
	if err != nil {
		panic(err)
	}
	_ = r.DevicePrimaryCtxRelease(0)
	return c
}

// finish runs the work of a stream of a lazy machine until it is known to be
// complete.
func (r *rig) finish(t *testing.T, s *cuda.Stream) {
	t.Helper()
	eventually(t, "the stream has no work", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		err := s.Sync(ctx)
		must(0, r.StreamSynchronize(contextOf(r), driver.Stream(s.Handle())))(t)
		return err == nil
	})
}

func TestShareLimitOnDevice(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{})
	ctx := context.Background()
	p := newPair(t, r.devices[0].Memory(), share.WithLimit(4<<20))
	x := p.numbers(t, 700_000, 0)
	must(0, p.out.Offer(ctx, x))(t)
	x.Release()
	got := must(p.in.Receive(ctx))(t)
	if _, err := tensor.Make(p.owner, dtype.F32, shape.MustOf(700_000)); !errors.Is(err, tensor.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if f := r.devices[0].Memory().Stats().Of(memory.Shared); f.Current != 4<<20 {
		t.Errorf("got %d bytes of arenas in the device's statistics, want 4 MiB", f.Current)
	}
	got.Tensor.Release()
	must(tensor.Make(p.owner, dtype.F32, shape.MustOf(700_000)))(t).Release()
	eventually(t, "the arena goes", func() bool { p.owner.Collect(); return len(p.owner.State().Arenas) == 0 })
	if f := r.devices[0].Memory().Stats().Total; f.Current != 0 {
		t.Errorf("got %d bytes in use, want none", f.Current)
	}
}

func TestShareRefusals(t *testing.T) {
	needsLinux(t)
	if _, err := share.NewOwner(share.OnDevice(nil)); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("no device: got %v", err)
	}
	none := newRig(t, fake.Config{NoExport: true})
	if _, err := share.NewOwner(share.OnDevice(none.devices[0].Memory())); !errors.Is(err, tensor.ErrUnsupported) || !strings.Contains(err.Error(), "descriptors") {
		t.Errorf("no descriptors: got %v", err)
	}
	full := newRig(t, fake.Config{Bytes: 8 << 20})
	o := must(share.NewOwner(share.OnDevice(full.devices[0].Memory())))(t)
	defer o.Close()
	if _, err := tensor.Make(o, dtype.U8, shape.MustOf(16<<20)); !errors.Is(err, tensor.ErrLimit) || !strings.Contains(err.Error(), "cuMemCreate") {
		t.Errorf("no memory: got %v", err)
	}
}

// An arena is mapped once, however many connections a process has.
func TestShareMapsArenasOnce(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{})
	ctx := context.Background()
	p := newPair(t, r.devices[0].Memory())
	in, out := p.in, p.out
	p.attach(t)
	x := p.numbers(t, 100, 1)
	must(0, p.owner.Offer(ctx, x, []*share.Peer{out, p.out}))(t)
	x.Release()
	for _, peer := range []*share.Peer{in, p.in} {
		got := must(peer.Receive(ctx))(t)
		wantReceived(t, got.Tensor, 100, 1)
		got.Tensor.Release()
	}
	if n := r.Calls()["MemImportFromShareableHandle"]; n != 1 {
		t.Errorf("got %d imports of one arena by one process, want 1", n)
	}
}

// A call of the driver that fails is an error of the offer, or is done without.
func TestShareDriverFailures(t *testing.T) {
	needsLinux(t)
	for _, c := range []struct {
		call   string
		result driver.Result
		want   error
	}{
		{"MemImportFromShareableHandle", driver.NotPermitted, share.ErrRefused},
		{"MemExportToShareableHandle", driver.NotSupported, errors.New("cuMemExportToShareableHandle")},
		{"IpcGetEventHandle", driver.OutOfMemory, nil},
		{"IpcOpenEventHandle", driver.PeerAccessUnsupp, nil},
	} {
		t.Run(c.call, func(t *testing.T) {
			r := newRig(t, fake.Config{Mode: fake.Lazy, Fail: failing(c.call, c.result)})
			ctx := context.Background()
			p := newPair(t, r.devices[0].Memory())
			x := p.numbers(t, 100, 1)
			defer x.Release()
			err := p.out.Offer(ctx, x, share.BeforeWork())
			if c.want != nil {
				if !errors.Is(err, c.want) && (err == nil || !strings.Contains(err.Error(), c.want.Error())) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				return
			}
			must(0, err)(t)
			got := must(p.in.Receive(ctx))(t)
			wantReceived(t, got.Tensor, 100, 1)
			got.Tensor.Release()
			if c.call == "IpcOpenEventHandle" && p.owner.State().Waits == 0 {
				t.Error("got no offer that waited for work, want one")
			}
		})
	}
}

// An offer that may not wait fails while work writes the tensor.
func TestShareNoWaitForWork(t *testing.T) {
	needsLinux(t)
	r := newRig(t, fake.Config{Mode: fake.Lazy, Queries: 1 << 30, Idle: time.Hour})
	ctx := context.Background()
	p := newPair(t, r.devices[0].Memory())
	x := p.numbers(t, 100, 1)
	defer x.Release()
	eventually(t, "the arena is mapped", func() bool {
		err := p.out.Offer(ctx, x, share.NoWait())
		return errors.Is(err, share.ErrNoCredit) && strings.Contains(err.Error(), "work")
	})
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := p.out.Offer(short, x); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	r.finish(t, r.devices[0].Main())
	must(0, p.out.Offer(ctx, x, share.NoWait()))(t)
	must(p.in.Receive(ctx))(t).Tensor.Release()
}

// closing is a driver during whose calls about events of other processes the
// device is closed.
type closing struct {
	driver.Driver
	d      *cuda.Device
	opened driver.Event
	got    []error
}

func (c *closing) IpcOpenEventHandle(ctx driver.Context, h driver.IPCHandle) (driver.Event, error) {
	c.got = append(c.got, c.d.Close())
	e, err := c.Driver.IpcOpenEventHandle(ctx, h)
	c.opened = e
	return e, err
}

func (c *closing) EventDestroy(ctx driver.Context, e driver.Event) error {
	if e == c.opened {
		c.got = append(c.got, c.d.Close())
	}
	return c.Driver.EventDestroy(ctx, e)
}

// A device is not closed while an event of another process is being opened or
// closed.
func TestCloseBesideEvents(t *testing.T) {
	needsLinux(t)
	other := newRig(t, fake.Config{})
	e := must(other.EventCreate(contextOf(other), driver.EventDisableTiming|driver.EventInterprocess))(t)
	h := must(other.IpcGetEventHandle(contextOf(other), e))(t)
	m := fake.New(fake.Config{})
	fake.CheckLeaks(t, m)
	c := &closing{Driver: m}
	c.d = must(must(cuda.New(c))(t).Device(0))(t)
	engine := c.d.Memory().Engine().(share.Device)
	event := must(engine.OpenEvent(h, func() bool { return true }))(t)
	must(0, event.Close())(t)
	for _, err := range c.got {
		if !errors.Is(err, memory.ErrShared) {
			t.Errorf("got %v, want ErrShared", err)
		}
	}
	if len(c.got) != 2 {
		t.Errorf("got %d calls of the driver, want 2", len(c.got))
	}
	must(0, c.d.Close())(t)
	if _, err := engine.OpenEvent(h, func() bool { return true }); !errors.Is(err, memory.ErrReleased) {
		t.Errorf("on a closed device: got %v, want ErrReleased", err)
	}
	must(0, other.EventDestroy(contextOf(other), e))(t)
}
