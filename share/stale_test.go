//go:build !race

package share

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/tensor"
)

// TestStalePointer: the use of an old pointer, against the rule and at any
// moment, returns an error or a live tensor: all of it has one stamp, and no
// other while it is in use. The race detector would report it, as it should.
func TestStalePointer(t *testing.T) {
	a, b := twoEnds(t)
	const n = 5000
	var stale atomic.Pointer[tensor.Tensor]
	var used atomic.Int32
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Closed(stop) {
			x := stale.Load()
			if x == nil {
				continue
			}
			v, err := tensor.Read[uint8](x)
			if err != nil {
				if !errors.Is(err, tensor.ErrReleased) {
					t.Errorf("stale pointer: got %v, want ErrReleased", err)
				}
				continue
			}
			first := v.Data[0]
			for i, got := range v.Data {
				if got != first {
					t.Errorf("stale pointer: got %d at %d, want %d as before it", got, i, first)
					break
				}
			}
			v.Release()
			used.Add(1)
		}
	}()
	var r Received
	again := 0
	for i := 0; again < 1000 || used.Load() < 100; i++ {
		sendStamp(t, a, n, byte(i))
		before := r.Tensor
		receiveInto(t, b, &r)
		if r.Tensor == before {
			again++
		}
		stale.Store(r.Tensor)
		mustRelease(t, r.Tensor)
		if i%50 == 0 {
			a.o.Collect() // so that its memory is gone, and not only used for something else
		}
	}
	close(stop)
	<-done
	untilTrue(t, "nothing is held", func() bool { return len(a.o.Outstanding()) == 0 })
}
