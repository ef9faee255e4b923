package share

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/tensor"
)

// TestAllocationsOfHandOver counts the objects that a hand-over allocates when
// one like it was made before: none in the owner's process, in the consumer's
// the results of Receive, and none with ReceiveInto. Here both are this
// process. The consumer's credit of one makes each offer wait for the release
// of the tensor before, and read it.
func TestAllocationsOfHandOver(t *testing.T) {
	if invariant.Enabled {
		t.Skip("this build notes where buffers and handles are made")
	}
	skipElsewhere(t)
	// The Received, its Tensor, and of package memory the Buffer, its counters,
	// and two objects that the runtime makes when a cleanup is attached to the
	// Buffer. They are reused only where the caller asks for it, by
	// ReceiveInto: otherwise a pointer that the caller kept to one would refer
	// to another tensor.
	const received = 6
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name    string
		connect func(testing.TB, *Owner, *Owner) (*Peer, *Peer)
		ctx     context.Context
		opts    []OfferOption
	}{
		{"pair", connected, context.Background(), nil},
		{"context that can end", connected, ctx, nil},
		{"options", connected, ctx, []OfferOption{WithoutCopy(), Label("frame")}},
		{"socket with a name", byName, context.Background(), nil},
	} {
		for _, into := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, into %v", c.name, into), func(t *testing.T) {
				pa, pb := c.connect(t, ok(NewOwner())(t), ok(NewOwner(WithCredits(1, 1<<40)))(t))
				x := build(t, pa.o, 1<<10)
				defer mustRelease(t, x)
				r, want := new(Received), uint64(received)
				if into {
					want = 0
				}
				handOver := func() {
					if err := pa.Offer(c.ctx, x, c.opts...); err != nil {
						t.Fatal(err)
					}
					if !into {
						r = ok(pb.Receive(c.ctx))(t)
					} else if err := pb.ReceiveInto(c.ctx, r); err != nil {
						t.Fatal(err)
					}
					v := ok(tensor.Read[float32](r.Tensor))(t)
					if last := v.Data[1023]; last != 1023 {
						t.Fatalf("got %v at the end, want 1023", last)
					}
					v.Release()
					mustRelease(t, r.Tensor)
				}
				const runs, others = 5000, 20 // others in this process make some too: the runtime, when it starts a thread
				handOver()
				got := objects(runs, handOver)
				for tries := 0; got > runs*want+others && tries < 10; tries++ {
					got = min(got, objects(runs, handOver))
				}
				if got < runs*want || got > runs*want+others {
					t.Errorf("got %d objects in %d hand-overs, want %d", got, runs, runs*want)
				}
			})
		}
	}
}

// objects counts the objects that are made while f runs n times: all of them,
// where testing.AllocsPerRun rounds down to whole ones per run.
func objects(n int, f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// byName is connected for peers of which one listens and the other dials: then
// the socket of one has a name.
func byName(t testing.TB, oa, ob *Owner) (a, b *Peer) {
	t.Helper()
	dir := InDir(ok(os.MkdirTemp(t.TempDir(), ""))(t)) // a private folder
	l := ok(oa.Listen("frames", dir))(t)
	b = ok(ob.Dial(context.Background(), "frames", dir))(t)
	a = ok(l.Accept(context.Background()))(t)
	t.Cleanup(func() {
		oa.Close()
		ob.Close()
	})
	return a, b
}
