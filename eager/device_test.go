package eager_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// Operations of the host refuse tensors of devices before anything is consumed,
// and results there.
func TestOperationsRefuseDevices(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	x, err := tensor.Of([]float32{1, 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	far, err := tensor.To(context.Background(), x, d.Device)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Release()
	if _, err := eager.Add(x, far.Reuse()); !errors.Is(err, tensor.ErrDevice) || !strings.Contains(err.Error(), "on away:0, want it in host memory") {
		t.Errorf("got %v, want ErrDevice with the device", err)
	}
	if !far.IsExclusive() {
		t.Fatal("the refused tensor is in use or dead")
	}
	scope := eager.NewScope(eager.From(d.Source(memory.IO), eager.HoldOpen))
	defer scope.Close()
	if scope.Add(x, x); !errors.Is(scope.Err(), tensor.ErrDevice) {
		t.Errorf("result on a device: got %v, want ErrDevice", scope.Err())
	}
	if f := d.Stats().Total; f.Buffers != 1 {
		t.Errorf("got %d buffers on the device, want the one of the test", f.Buffers)
	}
}
