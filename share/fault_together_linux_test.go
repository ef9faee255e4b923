package share_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// crowd is an owner whose every method is called at once, by producers,
// consumers that come and go, and claimers.
type crowd struct {
	t       *testing.T
	h       *host
	mu      sync.Mutex
	peers   []*share.Peer // the owner's ends
	tickets chan share.Ticket
}

func (c *crowd) expected(what string, err error, kinds ...error) bool {
	if err == nil {
		return true
	}
	for _, k := range append(kinds, share.ErrClosed, io.EOF) {
		if errors.Is(err, k) {
			return false
		}
	}
	c.t.Errorf("%s: got %v", what, err)
	return false
}

// produce makes tensors of one value each and offers them to the present peers.
func (c *crowd) produce(ctx context.Context, n int, random *rand.Rand) {
	for i := range n {
		size := []int{100, 10_000, 300_000}[random.IntN(3)]
		x, err := tensor.Make(c.h.o, dtype.U8, shape.MustOf(size))
		if !c.expected("make", err, tensor.ErrLimit) {
			continue
		}
		w, err := tensor.Write[uint8](x)
		if err != nil {
			c.t.Error(err)
			return
		}
		for j := range w.Data {
			w.Data[j] = byte(i)
		}
		w.Release()
		c.mu.Lock()
		peers := slices.Clone(c.peers)
		c.mu.Unlock()
		options := []share.OfferOption{share.Label(strconv.Itoa(i & 255))}
		if random.IntN(2) == 0 {
			options = append(options, share.NoWait())
		}
		c.expected("offer", c.h.o.Offer(ctx, x, peers, options...), share.ErrNoCredit, tensor.ErrLimit, context.Canceled)
		if err := x.Release(); err != nil {
			c.t.Error(err)
		}
		if random.IntN(10) == 0 {
			c.h.o.Collect()
			_ = c.h.o.State()
		}
	}
}

// consume connects, receives a while, passes some on, and leaves.
func (c *crowd) consume(lives, each int, random *rand.Rand) {
	for range lives {
		// More credit than it keeps tensors and tickets: producers wait for it.
		o, err := share.NewOwner(share.WithCredits(32, 32<<20))
		if err != nil {
			c.t.Error(err)
			return
		}
		p, err := o.Dial(within(c.t), "host", share.InDir(c.h.dir))
		if err != nil {
			c.t.Error(err)
			return
		}
		var held []*tensor.Tensor
		for range each {
			r, err := p.Receive(within(c.t))
			if !c.expected("receive", err) {
				break
			}
			c.check(r)
			held = append(held, r.Tensor)
			switch random.IntN(6) {
			case 0:
				ticket, err := r.Ticket(within(c.t))
				if c.expected("ticket", err, share.ErrNoCredit, tensor.ErrUnsupported) {
					select {
					case c.tickets <- ticket:
					default:
						p.Cancel(ticket)
					}
				}
			case 1:
				select {
				case ticket := <-c.tickets:
					got, err := p.Claim(within(c.t), ticket)
					if c.expected("claim", err, share.ErrNoCredit, share.ErrNotFound) {
						c.check(got)
						held = append(held, got.Tensor)
					}
				default:
				}
			}
			for len(held) > random.IntN(6) {
				mustRelease(c.t, held[0])
				held = held[1:]
			}
		}
		mustRelease(c.t, held...)
		closePeer(c.t, p)
	}
}

func isOver(p *share.Peer) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

func (c *crowd) check(r *share.Received) {
	want, err := strconv.Atoi(r.Label)
	data, _ := r.Tensor.UnsafeBytes()
	for i, b := range data {
		if err != nil || int(b) != want {
			c.t.Errorf("got byte %d at %d, want %s (%v)", b, i, r.Label, err)
			return
		}
	}
}

// TestManyAtOnce: no two of the calls wait for each other for ever, no bytes
// change under a reader, and nothing is left.
func TestManyAtOnce(t *testing.T) {
	h := newHost(t, share.WithLimit(32<<20))
	c := &crowd{t: t, h: h, tickets: make(chan share.Ticket, 4)}
	joined := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	var members, consumers, producers sync.WaitGroup
	members.Go(func() {
		for {
			select {
			case p := <-h.accepted:
				c.mu.Lock()
				c.peers = append(slices.DeleteFunc(c.peers, isOver), p)
				c.mu.Unlock()
			case <-joined:
				return
			}
		}
	})
	for i := range uint64(4) {
		consumers.Go(func() { c.consume(15, 20, rand.New(rand.NewPCG(1, i))) })
	}
	for i := range uint64(3) {
		producers.Go(func() {
			random := rand.New(rand.NewPCG(2, i))
			for ctx.Err() == nil {
				c.produce(ctx, 20, random)
			}
		})
	}
	consumers.Wait()
	cancel()
	producers.Wait()
	close(joined)
	members.Wait()
}
