package tensor

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// hammer lets goroutines do random things to a few shared slots of tensors.
// Every tensor holds eight equal numbers whenever it may be read: a read that
// sees a mix has met a write, and one that sees a number of another tensor has
// met freed bytes.
type hammer struct {
	t     *testing.T
	slots [4]atomic.Pointer[Tensor]
	wins  atomic.Int64 // donations and reuses that succeeded
}

func eight(n int32) []int32 { return []int32{n, n, n, n, n, n, n, n} }

// expected are the errors that meeting others brings.
func (h *hammer) expected(err error) bool {
	return errors.Is(err, ErrDonated) || errors.Is(err, ErrReleased) || errors.Is(err, ErrShared) || errors.Is(err, ErrWriting)
}

func (h *hammer) fail(what string, err error) {
	if err != nil && !h.expected(err) {
		h.t.Errorf("%s: %v", what, err)
	}
}

func (h *hammer) step(r *rand.Rand) {
	slot := &h.slots[r.IntN(len(h.slots))]
	x := slot.Load()
	switch r.IntN(8) {
	case 0: // replace: the old one is released while others may be using it
		y, err := Of(eight(r.Int32N(1000)), 8)
		if err != nil {
			h.t.Error(err)
			return
		}
		h.fail("release", slot.Swap(y).Release())
	case 1, 2:
		v, err := Read[int32](x)
		if err != nil {
			h.fail("read", err)
			return
		}
		for _, n := range v.Data[1:] {
			if n != v.Data[0] {
				h.t.Errorf("read: got %v, want equal numbers", v.Data)
				break
			}
		}
		v.Release()
	case 3:
		v, err := Write[int32](x)
		if err != nil {
			h.fail("write", err)
			return
		}
		for i := range v.Data {
			v.Data[i]++
		}
		v.Release()
	case 4: // a view that comes and goes
		v, err := x.Reshape(2, 4)
		if err != nil {
			h.fail("view", err)
			return
		}
		if _, err := Values[int32](v); err != nil {
			h.t.Errorf("values of a view of one's own: %v", err)
		}
		if err := v.Release(); err != nil {
			h.t.Errorf("release of a view of one's own: %v", err)
		}
	case 5:
		h.replace(slot, x, x.Donate())
	case 6:
		h.replace(slot, x, x.Reuse())
	case 7:
		y, err := x.Donate().Reshape(8)
		if err != nil {
			h.fail("donated view", err)
			return
		}
		h.put(slot, x, y)
	}
}

// replace computes a tensor in x's place. Only one goroutine can give up x and
// succeed.
func (h *hammer) replace(slot *atomic.Pointer[Tensor], x *Tensor, o Operand) {
	y, err := negate(o)
	if err != nil {
		h.fail("negate", err)
		return
	}
	h.wins.Add(1)
	h.put(slot, x, y)
}

// put stores y if the slot still has x, and releases the other one.
func (h *hammer) put(slot *atomic.Pointer[Tensor], x, y *Tensor) {
	if err := x.Release(); !errors.Is(err, ErrDonated) && !errors.Is(err, ErrReleased) {
		h.t.Errorf("a tensor that was given up: got %v, want ErrDonated", err)
	}
	if !slot.CompareAndSwap(x, y) {
		h.fail("release", y.Release())
	}
}

func TestHammer(t *testing.T) {
	memorytest.Check(t)
	h := &hammer{t: t}
	for i := range h.slots {
		h.slots[i].Store(ok(Of(eight(int32(i)), 8))(t))
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 3000 {
				h.step(r)
				if i%3 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	for i := range h.slots {
		h.fail("last release", h.slots[i].Load().Release())
	}
	if h.wins.Load() == 0 {
		t.Error("no donation ever succeeded: this test tests nothing")
	}
}

// TestOneDonorWins lets many give up the same tensor at once, strictly: exactly
// one may succeed, and the others must learn why they did not.
func TestOneDonorWins(t *testing.T) {
	memorytest.Check(t)
	for range 200 {
		x := vector(t, 1, 2, 3)
		var wins atomic.Int64
		var start, done sync.WaitGroup
		start.Add(1)
		for range 4 {
			done.Go(func() {
				start.Wait()
				y, err := negate(x.Donate())
				if err == nil {
					wins.Add(1)
					wantValues[int32](t, y, -1, -2, -3)
					err = y.Release()
				} else if !errors.Is(err, ErrDonated) && !errors.Is(err, ErrWriting) {
					t.Errorf("got %v, want ErrDonated or ErrWriting", err)
					err = nil
				} else {
					err = nil
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		start.Done()
		done.Wait()
		if wins.Load() != 1 {
			t.Fatalf("got %d successful donations of one tensor, want 1", wins.Load())
		}
	}
}
