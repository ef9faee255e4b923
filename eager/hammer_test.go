package eager_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestHammer lets goroutines borrow, donate, reuse, view and release a few
// shared tensors at once. Every tensor holds equal numbers, so a result of
// unequal ones has met freed bytes, half-written ones, or the next owner's.
func TestHammer(t *testing.T) {
	memorytest.Check(t)
	const size, goroutines, steps = 300, 8, 1500
	var shared [3]atomic.Pointer[tensor.Tensor]
	fill := func(v float32) *tensor.Tensor {
		data := make([]float32, size)
		for i := range data {
			data[i] = v
		}
		return of(t, data, size)
	}
	for i := range shared {
		shared[i].Store(fill(float32(i + 1)))
	}
	var given atomic.Int64
	var donated sync.Map // the tensors whose donation succeeded
	step := func(r *rand.Rand) {
		slot := &shared[r.IntN(len(shared))]
		x, other := slot.Load(), shared[r.IntN(len(shared))].Load()
		var y *tensor.Tensor
		var err error
		kind := r.IntN(7)
		switch kind {
		case 0:
			y, err = eager.Add(x, other)
		case 1:
			y, err = eager.Neg(x.Donate())
		case 2:
			y, err = eager.Add(x.Reuse(), other)
		case 3:
			y, err = eager.Sub(other, x.Reuse())
		case 4:
			y, err = x.View()
		case 5:
			y, err = x.Donate().Reshape(size)
		case 6:
			y = fill(r.Float32())
			err = x.Release()
		}
		if err != nil {
			for _, kind := range []error{tensor.ErrDonated, tensor.ErrReleased, tensor.ErrShared, tensor.ErrWriting} {
				if errors.Is(err, kind) {
					err = nil
				}
			}
			if err != nil {
				t.Error(err)
			}
			if kind != 6 {
				return
			}
			release(t, y)
			return
		}
		v, err := tensor.Read[float32](y)
		if err != nil {
			t.Errorf("a result of one's own: %v", err)
			release(t, y)
			return
		}
		for _, e := range v.Data {
			if e != v.Data[0] {
				t.Errorf("step %d: got %v among %v", kind, e, v.Data[0])
				break
			}
		}
		v.Release()
		if kind == 0 || kind == 4 {
			release(t, y)
			return
		}
		given.Add(1)
		if kind == 1 || kind == 5 {
			if _, twice := donated.LoadOrStore(x, kind); twice { //tenure:ignore: it stands for itself
				t.Errorf("step %d: one tensor was donated twice", kind)
			}
		}
		if !slot.CompareAndSwap(x, y) { // released while it was donated, or reused by two at once into fresh bytes
			release(t, y)
		}
	}
	var group sync.WaitGroup
	for g := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range steps {
				step(r)
			}
		}()
	}
	group.Wait()
	for i := range shared {
		release(t, shared[i].Load())
	}
	if given.Load() < goroutines*steps/20 {
		t.Errorf("got %d tensors given up in %d steps: this test tests little", given.Load(), goroutines*steps)
	}
}
