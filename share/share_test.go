package share

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func ok[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func skipElsewhere(t testing.TB) {
	t.Helper()
	if !supported {
		if _, err := NewOwner(); !errors.Is(err, tensor.ErrUnsupported) {
			t.Errorf("new owner on %s: got %v, want ErrUnsupported", runtime.GOOS, err)
		}
		t.Skip("sharing needs Linux")
	}
}

// twoEnds returns two owners in this process and the peers that they are to
// each other.
func twoEnds(t testing.TB, opts ...OwnerOption) (a, b *Peer) {
	t.Helper()
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	oa, ob := ok(NewOwner(opts...))(t), ok(NewOwner(opts...))(t)
	return connected(t, oa, ob)
}

func connected(t testing.TB, oa, ob *Owner) (a, b *Peer) {
	t.Helper()
	fa, fb, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan *Peer)
	go func() {
		p, err := ob.Attach(context.Background(), fb)
		if err != nil {
			t.Error(err)
		}
		made <- p
	}()
	a = ok(oa.Attach(context.Background(), fa))(t)
	b = <-made
	t.Cleanup(func() {
		oa.Close()
		ob.Close()
	})
	return a, b
}

// checkDescriptors fails the test if it leaves descriptors, sooner or later, or
// maps of arenas.
func checkDescriptors(t testing.TB) {
	t.Helper()
	before := len(ownDescriptors())
	t.Cleanup(func() {
		untilTrue(t, "descriptors and maps of arenas are gone", func() bool { return len(ownDescriptors()) <= before && arenaMaps() == 0 })
	})
}

// ownDescriptors lists the sockets and arenas that this process has open.
func ownDescriptors() (list []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && (strings.HasPrefix(to, "socket:") || strings.Contains(to, "memfd:")) {
			list = append(list, to)
		}
	}
	return list
}

// arenaMaps counts the arenas that this process has mapped.
func arenaMaps() int {
	text, _ := os.ReadFile("/proc/self/maps")
	return strings.Count(string(text), "memfd:tenure")
}

func untilTrue(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// build makes a tensor of 0, 1, 2, ... in the owner's arenas.
func build(t testing.TB, o *Owner, dims ...int) *tensor.Tensor {
	t.Helper()
	x := ok(tensor.Make(o, dtype.F32, ok(shape.Of(dims...))(t)))(t)
	w := ok(tensor.Write[float32](x))(t)
	for i := range w.Data {
		w.Data[i] = float32(i)
	}
	w.Release()
	return x
}

func counting(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return v
}

func sum(t testing.TB, x *tensor.Tensor) (s float32) {
	t.Helper()
	for _, v := range ok(tensor.Float32s(x))(t) {
		s += v
	}
	return s
}

func receive(t testing.TB, p *Peer) *Received {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return ok(p.Receive(ctx))(t)
}

func mustRelease(t testing.TB, xs ...*tensor.Tensor) {
	t.Helper()
	for _, x := range xs {
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOfferReceiveRelease(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 8, 16)
	if err := a.Offer(t.Context(), x, Label("first"), WithoutCopy()); err != nil {
		t.Fatal(err)
	}
	r := receive(t, b)
	if r.Label != "first" || r.Tensor.Shape() != x.Shape() || r.Tensor.DType() != dtype.F32 || sum(t, r.Tensor) != 128*127/2 {
		t.Errorf("got %q %s, want the tensor that was offered", r.Label, r.Tensor)
	}
	if r.Tensor.IsExclusive() || x.IsExclusive() || x.IsDonatable() {
		t.Error("a shared tensor is exclusive")
	}
	if _, err := tensor.Write[float32](r.Tensor); !errors.Is(err, tensor.ErrShared) {
		t.Errorf("write into a received tensor: got %v, want ErrShared", err)
	}
	mustRelease(t, x)
	if s := a.o.State(); s.Bytes.Limbo != 512 || len(s.Leases) != 1 || s.Leases[0].Label != "first" || s.Blocks[0].State != "limbo" {
		t.Errorf("after the owner's release: got %+v, want one lease on a block of 512 bytes in limbo", s)
	}
	if n := a.o.Collect(); n != 0 {
		t.Errorf("collect gave %d bytes back that a peer reads", n)
	}
	view := ok(r.Tensor.Slice(tensor.Range{Start: 1, Stop: 2, Step: 1}))(t)
	mustRelease(t, r.Tensor)
	if got := ok(tensor.Float32s(view))(t); got[0] != 16 {
		t.Errorf("a view of a released tensor: got %v, want 16", got[0])
	}
	if n := len(a.o.Outstanding()); n != 1 {
		t.Errorf("with a view out: got %d leases, want 1", n)
	}
	mustRelease(t, view)
	untilTrue(t, "the lease is back", func() bool { return len(a.o.Outstanding()) == 0 })
	untilTrue(t, "the block is free", func() bool { return a.o.State().Bytes.Used == 0 })
	if n := a.o.Collect(); n != firstArena {
		t.Errorf("collect: got %d bytes, want the arena of %d", n, firstArena)
	}
	untilTrue(t, "the peer has unmapped", func() bool { return len(a.o.State().Arenas) == 0 })
	if c := a.o.State().Bytes.Copied; c != 0 {
		t.Errorf("%d bytes were copied, want 0", c)
	}
}

// TestBytesAreTheSame: the consumer reads the pages that the owner writes, at
// the place where they were written.
func TestBytesAreTheSame(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 4)
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	r := receive(t, b)
	data, _ := x.UnsafeBytes()
	data[0] = 0xEE // forbidden for programs; it shows that there is one copy
	if got, _ := r.Tensor.UnsafeBytes(); got[0] != 0xEE {
		t.Error("the consumer reads other bytes than the owner's")
	}
	mustRelease(t, x, r.Tensor)
}

func TestCopyOnce(t *testing.T) {
	a, b := twoEnds(t)
	a2, b2 := connected(t, a.o, ok(NewOwner())(t))
	large := ok(tensor.Of(counting(50000), 50, 1000))(t)
	if err := a.Offer(t.Context(), large, WithoutCopy()); !errors.Is(err, ErrCopy) {
		t.Errorf("without copy: got %v, want ErrCopy", err)
	}
	if err := a.o.Offer(t.Context(), large, []*Peer{a, a2}); err != nil {
		t.Fatal(err)
	}
	if c := a.o.State().Bytes.Copied; c != 200000 {
		t.Errorf("to two peers: %d bytes were copied, want 200000 once", c)
	}
	small := ok(tensor.Of([]int16{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	transposed := ok(small.Transpose())(t)
	if err := a.Offer(t.Context(), transposed, Label("small")); err != nil {
		t.Fatal(err)
	}
	if n := len(a.o.Outstanding()); n != 2 {
		t.Errorf("got %d leases, want 2: a small tensor takes none", n)
	}
	first, second, third := receive(t, b), receive(t, b2), receive(t, b)
	if got := ok(tensor.Values[int16](third.Tensor))(t); !slices.Equal(got, []int16{1, 4, 2, 5, 3, 6}) || third.Label != "small" {
		t.Errorf("inline: got %v, want the transposed elements", got)
	}
	if _, err := third.Ticket(t.Context()); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("ticket of an inline tensor: got %v, want ErrUnsupported", err)
	}
	// A view that is copied is packed on the way, wherever it began.
	view := ok(large.Slice(tensor.Range{Start: 3, Stop: 50, Step: 1}, tensor.Range{Start: 1, Stop: 999, Step: 2}))(t)
	mustRelease(t, first.Tensor, second.Tensor)
	if err := a.Offer(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	fourth := receive(t, b)
	if got, want := ok(tensor.Float32s(fourth.Tensor))(t), ok(tensor.Float32s(view))(t); !slices.Equal(got, want) {
		t.Error("a view that was copied arrived with other elements")
	}
	mustRelease(t, large, small, transposed, view, third.Tensor, fourth.Tensor)
}

func TestViewsAndStrides(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 6, 10)
	for _, v := range []*tensor.Tensor{
		ok(x.Transpose())(t),
		ok(x.Slice(tensor.Range{Start: 1, Stop: 6, Step: 2}, tensor.Range{Start: 1, Stop: 9, Step: 3}))(t),
		ok(x.Slice(tensor.Range{Start: 2, Stop: 2, Step: 1}))(t),
	} {
		want := ok(tensor.Float32s(v))(t)
		if err := a.Offer(t.Context(), v, WithoutCopy()); err != nil {
			t.Fatal(err)
		}
		r := receive(t, b)
		if got := ok(tensor.Float32s(r.Tensor))(t); !slices.Equal(got, want) || r.Tensor.Layout() != v.Layout() {
			t.Errorf("got %v %s, want %v %s", got, r.Tensor.Layout(), want, v.Layout())
		}
		mustRelease(t, v, r.Tensor)
	}
	mustRelease(t, x)
}

// TestEmptyTensors: tensors without bytes have no place, and go through like
// others.
func TestEmptyTensors(t *testing.T) {
	a, b := twoEnds(t)
	taken := build(t, a.o, 100) // so that the next one is not the arena's first
	x := build(t, a.o, 0, 7)
	if err := a.Offer(t.Context(), x, WithoutCopy()); err != nil {
		t.Fatal(err)
	}
	if err := a.o.Publish("nothing", x); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Received{receive(t, b), ok(b.Get(t.Context(), "nothing"))(t)} {
		if r.Tensor.Shape() != x.Shape() {
			t.Errorf("got %s, want %s", r.Tensor.Shape(), x.Shape())
		}
		mustRelease(t, r.Tensor)
	}
	if n := len(a.o.Outstanding()); n != 0 {
		t.Errorf("%d leases are out on no bytes", n)
	}
	mustRelease(t, x, taken)
}

// TestArenas: tensors share arenas that quadruple what there is, within the
// limit, large ones have their own, and both are used again.
func TestArenas(t *testing.T) {
	skipElsewhere(t)
	memorytest.Check(t)
	o := ok(NewOwner(WithLimit(200 << 20)))(t)
	defer o.Close()
	sizes := func() (s []int) {
		for _, a := range o.State().Arenas {
			s = append(s, a.Bytes>>20)
		}
		slices.Sort(s)
		return s
	}
	var xs []*tensor.Tensor
	for range 5 {
		xs = append(xs, build(t, o, 1<<20/4))
	}
	if got := sizes(); !slices.Equal(got, []int{4, 12}) {
		t.Errorf("five tensors of 1 MiB: got arenas of %v MiB, want 4 and 12", got)
	}
	large := build(t, o, 40<<20/4)
	if got := sizes(); !slices.Equal(got, []int{4, 12, 40}) {
		t.Errorf("and one of 40 MiB: got arenas of %v MiB, want one more of 40", got)
	}
	at, _ := large.UnsafeBytes()
	mustRelease(t, large)
	large = build(t, o, 36<<20/4)
	if again, _ := large.UnsafeBytes(); &again[0] != &at[0] || len(sizes()) != 3 {
		t.Error("a free large arena is not used again")
	}
	if _, err := o.Alloc(170 << 20); !errors.Is(err, tensor.ErrLimit) {
		t.Errorf("over the limit: got %v, want ErrLimit", err)
	}
	mustRelease(t, large)
	huge := build(t, o, 180<<20/4) // the arena of 40 MiB goes back for it
	if got := sizes(); !slices.Equal(got, []int{4, 12, 180}) {
		t.Errorf("under pressure: got arenas of %v MiB, want 4, 12 and 180", got)
	}
	mustRelease(t, append(xs, huge)...)
	if n := o.Collect(); n != 196<<20 {
		t.Errorf("collect: got %d bytes, want 196 MiB", n)
	}
}

// TestArenasAtTheLimit: the last arena has the bytes that the limit leaves, and
// arenas that peers have mapped are freed when needed.
func TestArenasAtTheLimit(t *testing.T) {
	skipElsewhere(t)
	memorytest.Check(t)
	checkDescriptors(t)
	a, b := twoEnds(t, WithLimit(20<<20))
	// lend makes a tensor, as soon as the bytes of the last one are back, and
	// lends it for a moment.
	lend := func(bytes int) *tensor.Tensor {
		var x *tensor.Tensor
		untilTrue(t, "there is room", func() bool {
			var err error
			x, err = tensor.Make(a.o, dtype.U8, shape.MustOf(bytes))
			if err != nil && !errors.Is(err, tensor.ErrLimit) {
				t.Fatal(err)
			}
			return err == nil
		})
		if err := a.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, receive(t, b).Tensor)
		return x
	}
	for round := range 3 {
		var xs []*tensor.Tensor
		for range 20 {
			xs = append(xs, lend(1<<20))
		}
		want := 3 // of 4, 12 and 4 MiB
		if round > 0 {
			want = 1 // that of the tensor before
		}
		if s := a.o.State(); len(s.Arenas) != want || s.Bytes.Arenas != 20<<20 {
			t.Errorf("20 tensors of 1 MiB, round %d: got %+v, want %d of 20 MiB together", round, s.Arenas, want)
		}
		mustRelease(t, xs...)
		whole := lend(20 << 20)
		if s := a.o.State(); len(s.Arenas) != 1 || s.Arenas[0].Bytes != 20<<20 {
			t.Errorf("got %+v, want one arena of 20 MiB", s.Arenas)
		}
		mustRelease(t, whole)
	}
}

func TestCredits(t *testing.T) {
	a, b := twoEnds(t, WithCredits(3, 4096))
	x := build(t, a.o, 256) // 1024 bytes
	for range 3 {
		if err := a.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Offer(t.Context(), x, NoWait()); !errors.Is(err, ErrNoCredit) {
		t.Errorf("a fourth offer: got %v, want ErrNoCredit", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := a.Offer(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for credit: got %v, want DeadlineExceeded", err)
	}
	done := make(chan error)
	go func() { done <- a.Offer(context.Background(), x, Label("fourth")) }()
	r := receive(t, b)
	mustRelease(t, r.Tensor)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r = receive(t, b)
		mustRelease(t, r.Tensor)
	}
	if r.Label != "fourth" {
		t.Errorf("the last one is %q, want fourth", r.Label)
	}
	big := build(t, a.o, 2000)
	if err := a.Offer(t.Context(), big); !errors.Is(err, ErrNoCredit) {
		t.Errorf("a tensor over the peer's bytes: got %v, want ErrNoCredit at once", err)
	}
	mustRelease(t, x, big)
}

func TestTickets(t *testing.T) {
	a, b := twoEnds(t)
	a2, c := connected(t, a.o, ok(NewOwner(WithCredits(1, 1<<20)))(t))
	x := build(t, a.o, 32)
	if err := a.Offer(t.Context(), x, Label("to forward")); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	r := receive(t, b)
	ticket := ok(r.Ticket(t.Context()))(t)
	spare := ok(r.Ticket(t.Context()))(t)
	mustRelease(t, r.Tensor)
	untilTrue(t, "only tickets are left", func() bool { return len(a.o.Outstanding()) == 2 && a.o.Outstanding()[0].State == "ticket" })
	got := ok(c.Claim(t.Context(), ok(ParseTicket(ticket.String()))(t)))(t)
	if got.Label != "to forward" || sum(t, got.Tensor) != 31*32/2 {
		t.Errorf("claimed %q %s, want what was offered first", got.Label, got.Tensor)
	}
	if _, err := c.Claim(t.Context(), ticket); !errors.Is(err, ErrNotFound) {
		t.Errorf("a ticket twice: got %v, want ErrNotFound", err)
	}
	if _, err := c.Claim(t.Context(), spare); !errors.Is(err, ErrNoCredit) {
		t.Errorf("over the claimer's credit: got %v, want ErrNoCredit", err)
	}
	mustRelease(t, got.Tensor)
	b.Cancel(spare)
	b.Cancel(spare)
	untilTrue(t, "nothing is left", func() bool { return a.o.State().Bytes.Used == 0 })
	if _, err := c.Claim(t.Context(), spare); !errors.Is(err, ErrNotFound) {
		t.Errorf("a cancelled ticket: got %v, want ErrNotFound", err)
	}
	if a2.Info().Connection == a.Info().Connection {
		t.Error("two connections have one number")
	}
}

func TestTicketsEndWithWhoAskedForThem(t *testing.T) {
	a, b := twoEnds(t)
	_, c := connected(t, a.o, ok(NewOwner())(t))
	x := build(t, a.o, 32)
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
	r := receive(t, b)
	ticket := ok(r.Ticket(t.Context()))(t)
	mustRelease(t, r.Tensor)
	b.Close()
	untilTrue(t, "the row is dropped", func() bool { return a.o.State().Bytes.Used == 0 })
	if _, err := c.Claim(t.Context(), ticket); !errors.Is(err, ErrNotFound) {
		t.Errorf("the ticket of a peer that is gone: got %v, want ErrNotFound", err)
	}
}

func TestPublish(t *testing.T) {
	a, b := twoEnds(t, AllowDrop())
	x := build(t, a.o, 3, 5)
	y := ok(tensor.Of([]uint8{1, 2, 3}, 3))(t)
	for name, v := range map[string]*tensor.Tensor{"x": x, "a y of a long name, longer than what a label can hold, much longer": y} {
		if err := a.o.Publish(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.o.Publish("x", y); !errors.Is(err, ErrRefused) {
		t.Errorf("a name twice: got %v, want ErrRefused", err)
	}
	mustRelease(t, x, y)
	s := ok(b.State(t.Context()))(t)
	if len(s.Names) != 2 || s.Names[1].Name != "x" || s.Names[1].DType != "f32" || !slices.Equal(s.Names[1].Shape, []int{3, 5}) || s.PID != os.Getpid() {
		t.Errorf("state: got %+v, want two names", s)
	}
	r := ok(b.Get(t.Context(), "x"))(t)
	if sum(t, r.Tensor) != 14*15/2 || r.Label != "x" {
		t.Errorf("got %q %s, want x", r.Label, r.Tensor)
	}
	if _, err := b.Get(t.Context(), "z"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown name: got %v, want ErrNotFound", err)
	}
	if err := b.Drop(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := b.Drop(t.Context(), "x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("dropped twice: got %v, want ErrNotFound", err)
	}
	if sum(t, r.Tensor) != 14*15/2 {
		t.Error("a withdrawn tensor changed")
	}
	mustRelease(t, r.Tensor)
	a2, b2 := connected(t, ok(NewOwner())(t), ok(NewOwner())(t))
	if err := b2.Drop(t.Context(), "x"); !errors.Is(err, ErrRefused) {
		t.Errorf("drop where it is not allowed: got %v, want ErrRefused", err)
	}
	_ = a2
}

// TestStateInParts: an answer larger than a message.
func TestStateInParts(t *testing.T) {
	a, b := twoEnds(t)
	var xs []*tensor.Tensor
	for range 2000 {
		xs = append(xs, build(t, a.o, 1))
	}
	if s := ok(b.State(t.Context()))(t); len(s.Blocks) != 2000 || s.Blocks[0].State != "owned" {
		t.Errorf("got %d blocks, want 2000", len(s.Blocks))
	}
	mustRelease(t, xs...)
}

func TestBothWays(t *testing.T) {
	a, b := twoEnds(t)
	x, y := build(t, a.o, 10), build(t, b.o, 20)
	for i, offer := range []error{a.Offer(t.Context(), x), b.Offer(t.Context(), y)} {
		if offer != nil {
			t.Fatal(i, offer)
		}
	}
	ry, rx := receive(t, a), receive(t, b)
	if sum(t, ry.Tensor) != 190 || sum(t, rx.Tensor) != 45 {
		t.Error("the tensors went astray")
	}
	// Both ends are closed while each holds the other's tensor: the bytes stay.
	a.Close()
	b.Close()
	mustRelease(t, x, y)
	if sum(t, ry.Tensor) != 190 || sum(t, rx.Tensor) != 45 {
		t.Error("closing changed what was received")
	}
	if a.o.State().Bytes.Limbo != 40 || b.o.State().Bytes.Limbo != 80 {
		t.Errorf("limbo: got %d and %d bytes, want 40 and 80", a.o.State().Bytes.Limbo, b.o.State().Bytes.Limbo)
	}
	mustRelease(t, ry.Tensor)
	untilTrue(t, "b's block is free", func() bool { return b.o.State().Bytes.Used == 0 })
	if a.o.State().Bytes.Limbo != 40 {
		t.Error("a's block went while b reads it")
	}
	mustRelease(t, rx.Tensor)
	untilTrue(t, "a's block is free", func() bool { return a.o.State().Bytes.Used == 0 })
}

func TestEndAfterOffers(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 4)
	for range 2 {
		if err := a.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	a.o.Close()
	mustRelease(t, x)
	r := receive(t, b)
	r2 := receive(t, b)
	if _, err := b.Receive(t.Context()); err != io.EOF {
		t.Errorf("after the last: got %v, want io.EOF", err)
	}
	if err := b.Offer(t.Context(), r.Tensor); !errors.Is(err, ErrClosed) {
		t.Errorf("offer to a peer that ended: got %v, want ErrClosed", err)
	}
	if _, err := a.o.Alloc(1); !errors.Is(err, ErrClosed) {
		t.Errorf("alloc of a closed owner: got %v, want ErrClosed", err)
	}
	mustRelease(t, r.Tensor, r2.Tensor)
}

// TestNoOfferBehindEnd: an offer whose lease is recorded when another goroutine
// says END is not sent any more.
func TestNoOfferBehindEnd(t *testing.T) {
	a, b := twoEnds(t)
	x := build(t, a.o, 4)
	if err := a.Offer(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	a.sendEnd()
	if err := a.Offer(t.Context(), x); !errors.Is(err, ErrClosed) {
		t.Errorf("an offer behind END: got %v, want ErrClosed", err)
	}
	if n := len(a.o.Outstanding()); n != 1 {
		t.Errorf("got %d leases, want the one from before END", n)
	}
	r := receive(t, b)
	if _, err := b.Receive(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("behind END: got %v, want io.EOF", err)
	}
	mustRelease(t, x, r.Tensor)
}
