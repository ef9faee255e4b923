package share

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// filledWith makes a tensor of n bytes in the owner's arenas, each of them
// stamp.
func filledWith(t testing.TB, o *Owner, n int, stamp byte) *tensor.Tensor {
	t.Helper()
	x := ok(tensor.Make(o, dtype.U8, shape.MustOf(n)))(t)
	w := ok(tensor.Write[uint8](x))(t)
	for i := range w.Data {
		w.Data[i] = stamp
	}
	w.Release()
	return x
}

func wantStamp(t testing.TB, what string, x *tensor.Tensor, n int, stamp byte) {
	t.Helper()
	if got := ok(tensor.Values[uint8](x))(t); !bytes.Equal(got, bytes.Repeat([]byte{stamp}, n)) {
		t.Errorf("%s: got %d bytes of %d, want %d of %d", what, len(got), got[0], n, stamp)
	}
}

// sendStamp offers a tensor that its owner lets go of at once: its memory is
// used again as soon as the consumer has.
func sendStamp(t testing.TB, p *Peer, n int, stamp byte) {
	t.Helper()
	x := filledWith(t, p.o, n, stamp)
	if err := p.Offer(context.Background(), x, Label(string('a'+rune(stamp%26)))); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, x)
}

func receiveInto(t testing.TB, p *Peer, r *Received) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.ReceiveInto(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// TestReceiveInto: the tensor that was released serves again, for tensors like
// it, with all that belongs to it.
func TestReceiveInto(t *testing.T) {
	a, b := twoEnds(t)
	var r Received
	var first *tensor.Tensor
	for i := range byte(20) {
		sendStamp(t, a, 5000, i)
		receiveInto(t, b, &r)
		if i == 0 {
			first = r.Tensor
		}
		if r.Tensor != first {
			t.Fatalf("round %d: got another tensor", i)
		}
		wantStamp(t, "received", r.Tensor, 5000, i)
		if want := string('a' + rune(i)); r.Label != want || labels(t) != want {
			t.Errorf("got label %q, in the list of buffers %q, want %q", r.Label, labels(t), want)
		}
		ticket := ok(r.Ticket(t.Context()))(t)
		mustRelease(t, r.Tensor)
		claimed := ok(b.Claim(t.Context(), ticket))(t) // of this hand-over, not of the one before
		wantStamp(t, "claimed", claimed.Tensor, 5000, i)
		mustRelease(t, claimed.Tensor)
	}
	if err := r.Tensor.Release(); !errors.Is(err, tensor.ErrReleased) {
		t.Errorf("released twice: got %v, want ErrReleased", err)
	}
	untilTrue(t, "nothing is held", func() bool { return len(a.o.Outstanding()) == 0 })
}

// labels returns those of imported buffers.
func labels(t testing.TB) string {
	t.Helper()
	var all []string
	for _, b := range memory.Live() {
		if b.Flags&memory.Imported != 0 {
			all = append(all, b.Label)
		}
	}
	return strings.Join(all, " ")
}

// TestReceiveIntoKeepsWhatIsHeld: held tensors do not change, however they are
// held, and their leases stay.
func TestReceiveIntoKeepsWhatIsHeld(t *testing.T) {
	a, b := twoEnds(t)
	const n = 5000
	for name, hold := range map[string]func(x *tensor.Tensor) (see func() byte, end func()){
		"the tensor": func(x *tensor.Tensor) (func() byte, func()) {
			return func() byte { return ok(tensor.At[uint8](x, n-1))(t) }, func() { mustRelease(t, x) }
		},
		"a view": func(x *tensor.Tensor) (func() byte, func()) {
			v := ok(x.Slice(tensor.Range{Start: n - 10, Stop: n}))(t)
			mustRelease(t, x)
			return func() byte { return ok(tensor.At[uint8](v, 9))(t) }, func() { mustRelease(t, v) }
		},
		"a view that the tensor was given up to": func(x *tensor.Tensor) (func() byte, func()) {
			v := ok(x.Reuse().Reshape(10, n/10))(t)
			return func() byte { return ok(tensor.At[uint8](v, -1, -1))(t) }, func() { mustRelease(t, v) }
		},
		"a view of its elements": func(x *tensor.Tensor) (func() byte, func()) {
			v := ok(tensor.Read[uint8](x))(t)
			mustRelease(t, x)
			return func() byte { return v.Data[n-1] }, v.Release
		},
		"a hold on the buffer": func(x *tensor.Tensor) (func() byte, func()) {
			buf, _, err := x.Hold()
			if err != nil {
				t.Fatal(err)
			}
			mustRelease(t, x)
			return func() byte { return buf.Bytes()[n-1] }, func() { _ = buf.Release() }
		},
		"an export": func(x *tensor.Tensor) (func() byte, func()) {
			data, _ := x.UnsafeBytes()
			if _, err := x.Export(tensor.ReadOnlyExport); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, x)
			return func() byte { return data[n-1] }, func() { x.EndExport(tensor.ReadOnlyExport) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r Received
			sendStamp(t, a, n, 1)
			receiveInto(t, b, &r)
			held := r.Tensor
			see, end := hold(held)
			for i := range byte(5) {
				sendStamp(t, a, n, 2+i)
				receiveInto(t, b, &r)
				if r.Tensor == held {
					t.Fatal("the tensor that is held was used again")
				}
				wantStamp(t, "received", r.Tensor, n, 2+i)
				if got := see(); got != 1 {
					t.Fatalf("what is held became %d, want 1", got)
				}
				mustRelease(t, r.Tensor)
			}
			untilTrue(t, "the lease of what is held is left", func() bool { return len(a.o.Outstanding()) == 1 })
			end()
			untilTrue(t, "nothing is held", func() bool { return len(a.o.Outstanding()) == 0 })
		})
	}
}

// TestReceiveIntoOfAllKinds: tensors that are unlike, or came inside the
// message, get objects of their own.
func TestReceiveIntoOfAllKinds(t *testing.T) {
	a, b := twoEnds(t)
	var r Received
	seen := map[*tensor.Tensor]bool{}
	next := func() {
		t.Helper()
		receiveInto(t, b, &r)
		if seen[r.Tensor] {
			t.Error("a tensor was used again that is unlike")
		}
		seen[r.Tensor] = true
	}
	for _, n := range []int{5000, 6000} {
		sendStamp(t, a, n, 7)
		next()
		wantStamp(t, "received", r.Tensor, n, 7)
		mustRelease(t, r.Tensor)
	}
	small := ok(tensor.Of([]uint8{3, 3}, 2))(t)
	for range 2 {
		if err := a.Offer(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		next()
		wantStamp(t, "inside the message", r.Tensor, 2, 3)
		if _, err := r.Ticket(t.Context()); !errors.Is(err, tensor.ErrUnsupported) {
			t.Errorf("ticket of a tensor inside the message: got %v, want ErrUnsupported", err)
		}
		mustRelease(t, r.Tensor)
	}
	mustRelease(t, small)
	x := build(t, a.o, 10, 500)
	transposed := ok(x.Transpose())(t)
	for _, o := range []*tensor.Tensor{x, transposed} {
		if err := a.Offer(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		next()
		if got := ok(tensor.At[float32](r.Tensor, 1, 2))(t); got != ok(tensor.At[float32](o, 1, 2))(t) {
			t.Errorf("%s: got %v at [1,2], want what was offered", r.Tensor.Layout(), got)
		}
		mustRelease(t, r.Tensor)
	}
	mustRelease(t, x, transposed)
}

// TestReceiveIntoErrors: after an error the tensor that was received before is
// unchanged.
func TestReceiveIntoErrors(t *testing.T) {
	a, b := twoEnds(t)
	if err := b.ReceiveInto(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no Received") {
		t.Errorf("into nil: got %v, want an error that says so", err)
	}
	sendStamp(t, a, 5000, 9)
	r := *receive(t, b) // of Receive
	before := r
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.ReceiveInto(ctx, &r); !errors.Is(err, context.Canceled) || r != before {
		t.Errorf("got %v and %+v, want the context's end and %+v", err, r, before)
	}
	a.Close()
	if err := b.ReceiveInto(t.Context(), &r); err != io.EOF || r != before {
		t.Errorf("got %v and %+v, want io.EOF and %+v", err, r, before)
	}
	wantStamp(t, "from before", r.Tensor, 5000, 9)
	mustRelease(t, r.Tensor)
}

// TestReceiveIntoOutlivesTheConnection: a Received serves one connection after
// the other.
func TestReceiveIntoOutlivesTheConnection(t *testing.T) {
	var r Received
	var first *tensor.Tensor
	for i := range byte(3) {
		t.Run(string('1'+rune(i)), func(t *testing.T) {
			a, b := twoEnds(t)
			sendStamp(t, a, 5000, i)
			receiveInto(t, b, &r)
			if i == 0 {
				first = r.Tensor
			}
			if r.Tensor != first {
				t.Error("got another tensor")
			}
			a.Close()
			b.Close()
			wantStamp(t, "of a closed connection", r.Tensor, 5000, i)
			mustRelease(t, r.Tensor)
			runtime.GC()
			if _, err := first.Use(); !errors.Is(err, tensor.ErrReleased) {
				t.Errorf("after the release: got %v, want ErrReleased", err)
			}
		})
	}
}
