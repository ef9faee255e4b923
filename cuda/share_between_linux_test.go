package cuda_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// between is two processes that share memory of a device: on the computer's
// driver, with tensors of the sizes that matter, or on that of tests, with
// small ones.
type between struct {
	*rig
	dir  string
	env  []string // of the other process
	big  int      // bytes of the large tensor
	real bool
}

func (b *between) device() *cuda.Device { return b.devices[0] }

// TestDeviceBetweenProcesses measures what only two processes on a device show,
// and logs what the driver does where its documentation does not say.
func TestDeviceBetweenProcesses(t *testing.T) {
	run := func(t *testing.T, start func(*testing.T) *between) {
		for _, c := range []struct {
			name string
			f    func(*testing.T, *between)
		}{{"hand-over", handOver}, {"owner dies", ownerDies}, {"consumer dies", consumerDies}, {"memory of a library", ofLibrary}, {"owner of a library dies", libraryDies}, {"work outlives socket", workOutlives},
			{"event of a dead owner", eventOfDead}, {"events", countEvents}} {
			t.Run(c.name, func(t *testing.T) {
				b := start(t)
				b.dir = filepath.Join(t.TempDir(), "s")
				c.f(t, b)
			})
		}
	}
	t.Run("fake", func(t *testing.T) {
		run(t, func(t *testing.T) *between { return &between{rig: newRig(t, fake.Config{}), big: 8 << 20} })
	})
	t.Run("real", func(t *testing.T) {
		run(t, func(t *testing.T) *between {
			return &between{rig: realRig(t, 1), big: 1 << 30, real: true, env: []string{"TENURE_CUDA_REAL=1"}}
		})
	})
}

// free logs the free bytes of the device, and returns them.
func (b *between) free(t *testing.T, when string) int64 {
	t.Helper()
	n := must(b.device().Free())(t)
	t.Logf("%s: %d MiB free", when, n>>20)
	return int64(n)
}

// readerRole receives tensors from "kill" and releases them, after the device
// has read their first elements if the label says "read". The first element
// must be the stamp.
func readerRole(s *side) error {
	o, err := share.NewOwner()
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := o.Dial(ctx, "kill")
	if err != nil {
		return err
	}
	on, err := s.d.NewStream()
	if err != nil {
		return err
	}
	defer on.Close()
	say("connected")
	for {
		r, err := p.Receive(ctx)
		if err != nil {
			break
		}
		if r.Label == "read" {
			v, err := r.Tensor.Slice(tensor.Range{Stop: 4})
			if err != nil {
				return err
			}
			y, err := on.Copy(v.Reuse())
			_ = r.Tensor.Release()
			if err != nil {
				return err
			}
			if err := compare(y, 7); err != nil {
				say("violation: %v", err)
			}
			_ = y.Release()
			continue
		}
		if r.Label == "hold" {
			say("holds")
			_ = must2(bufio.NewReader(os.Stdin).ReadString('\n'))
		}
		_ = r.Tensor.Release()
	}
	return o.Close()
}

func must2(s string, _ error) string { return s }

// handOver offers a small and the large tensor again and again.
func handOver(t *testing.T, b *between) {
	o := must(share.NewOwner(share.OnDevice(b.device().Memory())))(t)
	l := must(o.Listen("kill", share.InDir(b.dir)))(t)
	reader := startRole(t, "reader", b.dir, "reader", b.env...)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := must(l.Accept(ctx))(t)
	median := map[string]time.Duration{}
	for _, bytes := range []int{4 << 10, b.big} {
		begin := time.Now()
		x := must(tensor.Make(o, dtype.U32, shape.MustOf(bytes/4)))(t)
		made := time.Since(begin)
		x.Release()
		x = stamped(t, o, bytes/4, 7)
		for _, label := range []string{"", "read"} {
			var took []time.Duration
			before := b.synchronising()
			for i := range 200 {
				if i == 20 { // the arena is mapped, the event open
					took, before = nil, b.synchronising()
				}
				begin := time.Now()
				must(0, p.Offer(ctx, x, share.Label(label), share.WithoutCopy()))(t)
				for len(o.Outstanding()) > 0 && ctx.Err() == nil {
					runtime.Gosched()
				}
				took = append(took, time.Since(begin))
			}
			if n := b.synchronising() - before; n > 0 {
				t.Errorf("got %d synchronising calls in 180 hand-overs, want none", n)
			}
			slices.Sort(took)
			key := fmt.Sprintf("%d %s", bytes, label)
			median[key] = took[len(took)/2]
			t.Logf("%d bytes, %q: arena in %s, hand-over and release in %s (median; first %s, last %s)", bytes, label, made.Round(time.Microsecond), median[key], took[0], took[len(took)-1])
		}
		x.Release()
	}
	for _, label := range []string{"", "read"} {
		ratio := float64(median[fmt.Sprintf("%d %s", b.big, label)]) / float64(median[fmt.Sprintf("%d %s", 4<<10, label)])
		t.Logf("%q: %d bytes take %.2f times as long as 4 KiB", label, b.big, ratio)
		if b.real && ratio > 2 {
			t.Errorf("%q: the large tensor takes %.2f times as long as the small one, want about the same time", label, ratio)
		}
	}
	must(0, o.Close())(t)
	for _, w := range reader.finish(false) {
		t.Error(w)
	}
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

const spinText = `.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 out, .param .u64 cycles)
{
	.reg .u32 %r<3>;
	.reg .u64 %rd<6>;
	.reg .pred %p;
	ld.param.u64 %rd0, [out];
	ld.param.u64 %rd1, [cycles];
	mov.u64 %rd2, %clock64;
	mov.u32 %r0, 0;
LOOP:
	add.u32 %r0, %r0, 1;
	st.volatile.global.u32 [%rd0], %r0;
	mov.u64 %rd3, %clock64;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p, %rd4, %rd1;
	@%p bra LOOP;
	ret;
}
`

// makerRole offers a tensor of TENURE_CUDA_BYTES under the name "kill". If
// TENURE_CUDA_SPIN is 1, a kernel of some seconds counts in its first element
// from before the offer on; if it is 2, the offer does not know of that kernel.
func makerRole(s *side) error {
	o, err := share.NewOwner(share.OnDevice(s.d.Memory()), share.InPlace())
	if err != nil {
		return err
	}
	l, err := o.Listen("kill")
	if err != nil {
		return err
	}
	say("ready")
	p, err := l.Accept(context.Background())
	if err != nil {
		return err
	}
	if setting("FOREIGN", 0) > 0 {
		return s.lendLibrary(p)
	}
	n, how := setting("BYTES", 4096)/4, setting("SPIN", 0)
	x, err := tensor.Make(o, dtype.U32, shape.MustOf(n))
	if err != nil {
		return err
	}
	on, err := s.d.NewStream()
	if err != nil {
		return err
	}
	if err := s.stampTensor(on, x, 7); err != nil {
		return err
	}
	ctx := context.Background()
	if err := on.Sync(ctx); err != nil {
		return err
	}
	if how > 0 {
		warm, err := tensor.Make(o, dtype.U32, shape.MustOf(4)) // the peer opens the event
		if err == nil {
			err = s.stampTensor(on, warm, 7)
		}
		if err == nil {
			err = p.Offer(ctx, warm, share.Label("warm"), share.BeforeWork())
		}
		if err == nil {
			err = s.spin(on, x, how == 1)
		}
		if err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	opts := []share.OfferOption{}
	if how > 0 { // the kernel is not to be waited for
		opts = append(opts, share.BeforeWork(), share.NoWait())
	}
	if err := p.Offer(ctx, x, opts...); err != nil {
		say("no offer: %v", err)
	}
	say("offered")
	bufio.NewScanner(os.Stdin).Scan()
	return nil
}

// lendLibrary offers tensors of a library in place, and ends when it has them
// back.
func (s *side) lendLibrary(p *share.Peer) error {
	drv, err := s.driver()
	if err != nil {
		return err
	}
	lib, err := newLibrary(drv, 2)
	if err != nil {
		return err
	}
	for range 2 {
		x, err := lib.tensor(7, 1000)
		if err != nil {
			return err
		}
		if err := p.Offer(context.Background(), x, share.WithoutCopy()); err != nil {
			return err
		}
		_ = x.Release()
	}
	say("offered")
	bufio.NewScanner(os.Stdin).Scan()
	err = lib.close()
	return errors.Join(err, p.Owner().Close())
}

// driver returns the driver for code that is not Tenure's.
func (s *side) driver() (driver.Driver, error) {
	if s.m != nil {
		return s.m, nil
	}
	return driver.Open("")
}

// spin starts a kernel that counts in the first element of x for about five
// seconds. Unless known, it is not noted as work that writes x.
func (s *side) spin(on *cuda.Stream, x *tensor.Tensor, known bool) error {
	m, err := s.d.Compile(spinText)
	if err != nil {
		return err
	}
	f, err := m.Function("spin")
	if err != nil {
		return err
	}
	to := cuda.Out(x)
	if !known {
		buf, at, err := x.Hold()
		if err != nil {
			return err
		}
		defer buf.Release()
		to = cuda.Value(uint64(buf.Remote().Address) + uint64(at))
	}
	return on.Launch(f, cuda.Dim{}, cuda.Dim{}, 0, to, cuda.Value(uint64(8e9)))
}

// maker starts the other process as the owner and dials it.
func (b *between) maker(t *testing.T, env ...string) (*proc, *share.Owner, *share.Peer) {
	t.Helper()
	maker := startRole(t, "maker", b.dir, "maker", append(env, b.env...)...)
	if !maker.await("ready", nil) {
		t.Fatal(maker.finish(false))
	}
	o := must(share.NewOwner())(t)
	t.Cleanup(func() { _ = o.Close() })
	return maker, o, must(o.Dial(context.Background(), "kill", share.InDir(b.dir)))(t)
}

// ownerDies: what an owner has offered stays readable after its death, and its
// memory goes when this process lets go of it.
func ownerDies(t *testing.T, b *between) {
	before := b.free(t, "at first")
	maker, o, p := b.maker(t, fmt.Sprintf("TENURE_CUDA_BYTES=%d", b.big/4))
	got := must(p.Receive(context.Background()))(t)
	with := b.free(t, "with the tensor and its owner")
	_ = maker.cmd.Process.Kill()
	maker.finish(true)
	<-p.Done()
	b.free(t, "after the death of the owner")
	y := must(b.device().Main().Copy(got.Tensor))(t)
	if err := compare(y, 7); err != nil {
		t.Errorf("after the death of the owner: %v", err)
	}
	y.Release()
	t.Logf("the driver maps memory of others for reading only: %t", !cuda.ViewsAreWritable(b.device()))
	got.Tensor.Release()
	must(0, o.Close())(t)
	b.device().Arena().Trim()
	if !b.real {
		return
	}
	eventually(t, "the memory comes back", func() bool {
		b.device().Arena().Trim()
		return int64(must(b.device().Free())(t)) > with+int64(b.big)/8
	})
	b.free(t, fmt.Sprintf("at the end (%d at first)", before>>20))
}

// ofLibrary: a library's memory is received in place, and the library has it
// back before its process ends.
func ofLibrary(t *testing.T, b *between) {
	maker, o, p := b.maker(t, "TENURE_CUDA_FOREIGN=100")
	for range 2 {
		got := must(p.Receive(t.Context()))(t)
		y := must(b.device().Main().Copy(got.Tensor))(t)
		got.Tensor.Release()
		must(0, compare(y, 7))(t)
		y.Release()
	}
	maker.tell("end")
	for _, w := range maker.finish(false) {
		t.Error(w)
	}
	must(0, o.Close())(t)
}

// libraryDies: the tensors of a dead owner's library fail for new work, and can
// be released.
func libraryDies(t *testing.T, b *between) {
	maker, o, p := b.maker(t, "TENURE_CUDA_FOREIGN=100")
	got := must(p.Receive(t.Context()))(t)
	must(p.Receive(t.Context()))(t).Tensor.Release()
	y := must(b.device().Main().Copy(got.Tensor))(t)
	must(0, compare(y, 7))(t)
	y.Release()
	must(0, maker.cmd.Process.Kill())(t)
	maker.finish(true)
	<-p.Done()
	_, err := b.device().Main().Copy(got.Tensor)
	if !errors.Is(err, share.ErrClosed) || !strings.Contains(err.Error(), "the process has ended, and its memory with it") {
		t.Errorf("got %v, want ErrClosed and the reason", err)
	}
	if _, err := tensor.To(t.Context(), got.Tensor, nil); !errors.Is(err, share.ErrClosed) {
		t.Errorf("a copy to the host: got %v, want ErrClosed", err)
	}
	if _, err := dlpack.ExportOn(got.Tensor, dlpack.Stream(b.device().Main().Handle())); !errors.Is(err, share.ErrClosed) {
		t.Errorf("an export: got %v, want ErrClosed", err)
	}
	got.Tensor.Release()
	must(0, o.Close())(t)
}

// consumerDies: what a dead consumer held comes back to its owner.
func consumerDies(t *testing.T, b *between) {
	b.free(t, "at first")
	o := must(share.NewOwner(share.OnDevice(b.device().Memory())))(t)
	l := must(o.Listen("kill", share.InDir(b.dir)))(t)
	reader := startRole(t, "reader", b.dir, "reader", b.env...)
	p := must(l.Accept(context.Background()))(t)
	x := stamped(t, o, b.big/16, 7)
	must(0, p.Offer(context.Background(), x, share.Label("hold")))(t)
	x.Release()
	reader.await("holds", nil)
	b.free(t, "while the consumer holds the tensor")
	begin := time.Now()
	_ = reader.cmd.Process.Kill()
	<-p.Done()
	t.Logf("end of file after %s", time.Since(begin))
	eventually(t, "the lease ends", func() bool { return len(o.Outstanding()) == 0 })
	t.Logf("end of the lease after %s", time.Since(begin))
	reader.finish(true)
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
	b.free(t, "at the end")
}

// workOutlives looks whether work of a killed process still runs when the end
// of file has come, and when its process handle is readable.
func workOutlives(t *testing.T, b *between) {
	if !b.real {
		t.Skip("needs a kernel that runs for seconds, on a device")
	}
	maker, _, p := b.maker(t, "TENURE_CUDA_SPIN=2")
	ctx := context.Background()
	must(p.Receive(ctx))(t).Tensor.Release()
	got := must(p.Receive(ctx))(t)
	defer got.Tensor.Release()
	handle := must(unix.PidfdOpen(maker.cmd.Process.Pid, 0))(t)
	defer unix.Close(handle)
	on := b.stream(t, 0)
	count := func() uint32 {
		v := must(got.Tensor.Slice(tensor.Range{Stop: 1}))(t)
		y := must(on.Copy(v.Reuse()))(t)
		defer y.Release()
		back := must(tensor.To(ctx, y, nil))(t)
		defer back.Release()
		return must(tensor.At[uint32](back, 0))(t)
	}
	first := count()
	time.Sleep(50 * time.Millisecond)
	t.Logf("the kernel counts: %d, then %d", first, count())
	begin := time.Now()
	_ = maker.cmd.Process.Kill()
	<-p.Done()
	t.Logf("end of file after %s: %d", time.Since(begin), count())
	for n := 0; n == 0; {
		n, _ = unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 10000)
	}
	at := count()
	t.Logf("process handle after %s: %d", time.Since(begin), at)
	time.Sleep(500 * time.Millisecond)
	if later := count(); later != at {
		t.Errorf("the kernel counted from %d to %d after the process was gone", at, later)
	}
	maker.finish(true)
}

// waiterRole reads a tensor whose owner is killed before the work that writes
// it is complete.
func waiterRole(s *side) error {
	o, err := share.NewOwner()
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := o.Dial(ctx, "kill")
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var r *share.Received
	for range 2 {
		if r, err = p.Receive(soon); err != nil {
			say("result: the offer did not come: %v", err)
			return nil
		}
		if r.Label == "warm" {
			_ = r.Tensor.Release()
		}
	}
	on, err := s.d.NewStream()
	if err != nil {
		return err
	}
	y, err := on.Copy(r.Tensor)
	if err != nil {
		return err
	}
	say("waits")
	begin := time.Now()
	short, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	err = on.Sync(short)
	say("result: a stream that waits for a dead owner's event: %v after %s", err, time.Since(begin).Round(time.Millisecond))
	z, err := s.d.Main().Copy(r.Tensor)
	say("result: another read after the death: %v", err)
	_, _ = y.Release(), z.Release()
	os.Exit(0) // the device may be stuck
	return nil
}

func eventOfDead(t *testing.T, b *between) {
	if !b.real {
		t.Skip("needs a kernel that runs for seconds, on a device")
	}
	maker := startRole(t, "maker", b.dir, "maker", append(b.env, "TENURE_CUDA_SPIN=1")...)
	maker.await("ready", nil)
	waiter := startRole(t, "waiter", b.dir, "waiter", b.env...)
	log := func(line string) {
		if text, is := strings.CutPrefix(line, "result: "); is {
			t.Log(text)
		}
	}
	waiter.await("waits", log)
	_ = maker.cmd.Process.Kill()
	waiter.await("", log)
	maker.await("", func(line string) { t.Log("maker: " + line) })
	b.free(t, "at the end")
}

func countEvents(t *testing.T, b *between) {
	most := 4096
	if !b.real {
		most = 64
	}
	n, err := cuda.SharedEvents(b.device(), most)
	t.Logf("%d interprocess events, then %v", n, err)
}
