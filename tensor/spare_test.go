package tensor

import (
	"errors"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// A failed operation leaves what its caller spared, whichever way the operand
// was to come back; one that succeeds consumes it all the same.
func TestSpare(t *testing.T) {
	memorytest.Check(t)
	for name, place := range map[string]func(k *Taken) error{
		"no result": func(*Taken) error { return nil },
		"stay":      func(k *Taken) error { return k.Stay(0) },
		"keep":      func(k *Taken) error { return second(k.Keep(0, k.Tensor(0).DType(), k.Tensor(0).Layout())) },
	} {
		x, z := vector(t, 1, 2), vector(t, 3, 4)
		k, err := Take("f", x.Donate(), z.Reuse())
		if err == nil {
			err = place(k)
		}
		if err != nil {
			t.Fatal(err)
		}
		k.Spare(0)
		if err := k.Fail("here", errors.New("no")); !errors.Is(err, ErrPartlyWritten) || !x.Alive() || z.Alive() {
			t.Errorf("%s: got error %v, the spared operand alive %v, the other %v, want the first alone", name, err, x.Alive(), z.Alive())
		}
		wantValues[int32](t, x, 1, 2)
		if k, err = Take("g", x.Donate()); err != nil {
			t.Fatal(err)
		}
		k.Spare(0)
		k.Commit()
		if x.Alive() {
			t.Errorf("%s: a spared operand outlives an operation that succeeded", name)
		}
	}
}
