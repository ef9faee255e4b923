package tensor

import (
	"runtime"
	"testing"
	"time"

	"github.com/tenure-go/tenure/memory"
)

//go:noinline
func dropTensors(t *testing.T, read bool) {
	x := ok(Of(make([]float64, 777), 777))(t)
	y := ok(x.Reshape(7, 111))(t)
	if read {
		ok(Read[float64](y))(t)
	}
}

func TestDroppedTensorIsReported(t *testing.T) {
	for _, read := range []bool{false, true} {
		found := make(chan memory.Leak, 100)
		old := memory.OnLeak(func(l memory.Leak) { found <- l })
		dropTensors(t, read)
		deadline := time.After(20 * time.Second)
		for waiting := true; waiting; {
			runtime.GC()
			select {
			case l := <-found:
				if l.Bytes != 777*8 {
					continue // another test's
				}
				waiting = false
				if l.Label != "f64" || l.Holders != 2 || l.Freed == read {
					t.Errorf("read %v: got %+v, want f64 with 2 holders, freed unless its data may be read", read, l)
				}
			case <-time.After(10 * time.Millisecond):
			case <-deadline:
				t.Fatalf("read %v: no report", read)
			}
		}
		memory.OnLeak(old)
	}
}

// A view of data keeps its tensor: the cleanup must not find bytes that a
// reader still holds.
func TestViewKeepsItsTensor(t *testing.T) {
	x := ok(Of([]float64{1, 2, 3}, 3))(t)
	v := ok(Read[float64](x))(t)
	before := memory.Stats().Leaks
	x = nil
	for range 3 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if got := memory.Stats().Leaks; got != before || v.Data[2] != 3 {
		t.Errorf("got %d leaks more and data %v, want none and 1 2 3", got-before, v.Data)
	}
	y := v.turn.t
	v.Release()
	release(t, y)
}
