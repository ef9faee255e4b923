package tensor_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
)

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// iota32 returns a host tensor of 0, 1, 2, ...
func iota32(t *testing.T, dims ...int) *tensor.Tensor {
	t.Helper()
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	x := must(tensor.Of(data, dims...))(t)
	t.Cleanup(func() { _ = x.Release() })
	return x
}

func TestToAndBack(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	host := iota32(t, 2, 3)
	x := must(tensor.To(ctx, host, d.Device))(t)
	defer x.Release()
	if x.Device() != d.Device || host.Device() != nil || x.String() != "f32[2,3] on away:0" {
		t.Errorf("got %s on %s", x, x.Device())
	}
	column := must(x.Slice(tensor.All, tensor.Only(1)))(t)
	defer column.Release()
	turned := must(x.Transpose())(t)
	defer turned.Release()
	repeated := must(column.Broadcast(2, 4))(t)
	defer repeated.Release()
	for _, c := range []struct {
		x    *tensor.Tensor
		want []float32
	}{
		{x, []float32{0, 1, 2, 3, 4, 5}},
		{column, []float32{1, 4}},
		{turned, []float32{0, 3, 1, 4, 2, 5}},
		{repeated, []float32{1, 1, 1, 1, 4, 4, 4, 4}},
	} {
		back := must(tensor.To(ctx, c.x, nil))(t)
		if got := must(tensor.Values[float32](back))(t); !slices.Equal(got, c.want) || !back.Layout().IsContiguous() {
			t.Errorf("%s: got %v, want %v", c.x, got, c.want)
		}
		back.Release()
		copied := must(c.x.Copy(memory.IO))(t)
		if copied.Device() != d.Device || !copied.IsExclusive() {
			t.Errorf("copy of %s: got it on %s, exclusive %v", c.x, copied.Device(), copied.IsExclusive())
		}
		again := must(tensor.To(ctx, copied.Reuse(), nil))(t)
		if got := must(tensor.Values[float32](again))(t); !slices.Equal(got, c.want) {
			t.Errorf("copy of %s: got %v, want %v", c.x, got, c.want)
		}
		if copied.Alive() {
			t.Error("the operand that was given up is alive")
		}
		again.Release()
	}
}

func TestToWhereItIs(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	x := must(tensor.To(ctx, iota32(t, 4), d.Device))(t)
	copies := d.Copies()
	view := must(tensor.To(ctx, x, d.Device))(t)
	if x.Holders() != 2 || d.Copies() != copies {
		t.Errorf("got %d holders and %d copies, want a view", x.Holders(), d.Copies()-copies)
	}
	view.Release()
	moved := must(tensor.To(ctx, x.Donate(), d.Device))(t)
	if x.Alive() || !moved.IsExclusive() || d.Copies() != copies {
		t.Error("a donated tensor on its own device did not move")
	}
	if _, err := tensor.To(ctx, moved.Donate(), nil); !errors.Is(err, tensor.ErrNotReusable) || !moved.Alive() {
		t.Errorf("strict donation to another device: got %v, alive %v", err, moved.Alive())
	}
	other := memorytest.NewDevice(t, "away:1")
	far := must(tensor.To(ctx, moved.Reuse(), other.Device))(t)
	if far.Device() != other.Device || moved.Alive() {
		t.Error("the tensor did not go from one device to the other")
	}
	far.Release()
}

func TestToFails(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	ctx := context.Background()
	x := must(tensor.To(ctx, iota32(t, 4), d.Device))(t)
	defer x.Release()
	broken := errors.New("broken")
	d.Fail(broken)
	for _, operand := range []tensor.Operand{x, x.Reuse()} {
		if _, err := tensor.To(ctx, operand, nil); !errors.Is(err, broken) || !x.Alive() {
			t.Errorf("got %v, want the engine's error and a living operand", err)
		}
	}
	if _, err := tensor.To(ctx, iota32(t, 1), d.Device); !errors.Is(err, broken) {
		t.Errorf("got %v, want the engine's error", err)
	}
	d.Fail(nil)
	var none context.Context
	if _, err := tensor.To(none, x, nil); err == nil {
		t.Error("no context: got a tensor")
	}
	if _, err := tensor.To(ctx, (*tensor.Tensor)(nil), nil); !errors.Is(err, tensor.ErrNoTensor) {
		t.Errorf("no tensor: got %v", err)
	}
}

// Whatever reads or writes with the processor refuses a tensor of a device,
// names the device and says what helps.
func TestHostCallsRefuseDevices(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	x := must(tensor.To(context.Background(), iota32(t, 2, 2), d.Device))(t)
	defer x.Release()
	second := func(_ any, err error) error { return err }
	calls := map[string]error{
		"read":     func() error { v, err := tensor.Read[float32](x); v.Release(); return err }(),
		"write":    func() error { v, err := tensor.Write[float32](x); v.Release(); return err }(),
		"use":      func() error { v, err := x.Use(); v.Release(); return err }(),
		"lock":     func() error { v, err := x.Lock(); v.Release(); return err }(),
		"values":   second(tensor.Values[float32](x)),
		"at":       second(tensor.At[float32](x, 0, 0)),
		"float32s": second(tensor.Float32s(x)),
		"float64s": second(tensor.Float64s(x)),
		"nested":   second(tensor.Nested[[][]float32](x)),
		"npy":      npy.Write(new(bytes.Buffer), x),
		"take":     second(tensor.Take("relu", x)),
	}
	for name, err := range calls {
		if !errors.Is(err, tensor.ErrDevice) || !strings.Contains(err.Error(), "f32[2,2] on away:0, want it in host memory (tensor.To copies it)") {
			t.Errorf("%s: got %v, want ErrDevice with the device", name, err)
		}
	}
	if data, _ := x.UnsafeBytes(); data != nil {
		t.Errorf("unsafe bytes: got %d, want none", len(data))
	}
	if !x.IsExclusive() {
		t.Error("a refused call kept a use")
	}
}

func TestOperationOnDevices(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "away:0")
	x := must(tensor.Make(d.Source(memory.IO), dtype.I4, must(shape.Of(3))(t)))(t)
	op := tensor.NewOperation("increment").OnDevices()
	var k tensor.Taken
	if err := k.Begin(op, x.Donate()); err != nil {
		t.Fatal(err)
	}
	r, offset := k.Remote(0)
	if data, _ := k.Bytes(0); data != nil || r == nil || r.Device != d.Device || offset != 0 || !k.InPlace(0) {
		t.Errorf("got bytes %v, remote %v at %d, in place %v", data, r, offset, k.InPlace(0))
	}
	y := must(k.Keep(0, x.DType(), x.Layout()))(t)
	k.Commit()
	if x.Alive() || !y.IsExclusive() || y.Device() != d.Device {
		t.Error("the donation did not move the bytes")
	}
	y.Release()
}
