package tenure_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// Runs refuse tensors of devices before anything is consumed, and say what
// helps.
func TestRunsRefuseDevices(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	s := wide(t)
	x, ctx := wideInputs(t, 3), context.Background()
	far, err := tensor.To(ctx, x[0], d.Device)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Release()
	with := func(a tensor.Operand) tenure.Inputs {
		return tenure.Inputs{"a": a, "b": x[1], "c": x[2], "d": x[3], "state": x[4]}
	}
	out := make([]*tensor.Tensor, len(s.Model().Outputs()))
	calls := map[string]func() error{
		"run":        func() error { _, err := s.Run(ctx, with(far)); return err },
		"run reused": func() error { _, err := s.Run(ctx, with(far.Reuse())); return err },
		"run into": func() error {
			return s.RunInto(ctx, []tensor.Operand{far, x[1], x[2], x[3], x[4]}, out)
		},
		"into": func() error {
			_, err := s.Run(ctx, with(x[0]), tenure.Into(s.Model().Outputs()[0].Name, far))
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, tensor.ErrDevice) || !strings.Contains(err.Error(), "on away:0, want it in host memory") {
			t.Errorf("%s: got %v, want ErrDevice with the device", name, err)
		}
		if !far.IsExclusive() {
			t.Fatalf("%s: the refused tensor is in use or dead", name)
		}
	}
	there := wide(t, tenure.WithOutputsFrom(d.Source(memory.IO)))
	if got, err := there.Run(ctx, with(x[0])); err == nil {
		got.Release()
		t.Error("outputs on a device: got them, want an error")
	} else if !errors.Is(err, tensor.ErrDevice) {
		t.Errorf("outputs on a device: got %v, want ErrDevice", err)
	}
	if f := d.Stats().Total; f.Buffers != 1 {
		t.Errorf("got %d buffers on the device, want the one of the test", f.Buffers)
	}
}
