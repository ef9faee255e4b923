package safetensors

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// Every tensor of a file has the same bytes on a device, and the host makes no
// buffer for them.
func TestTensorTo(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	reference, err := os.ReadFile("testdata/reference.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	unaligned := file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"none":{"dtype":"F32","shape":[0],"data_offsets":[5,5]}}`, 9, 0, 0, 0x80, 0x3f)
	for _, data := range [][]byte{reference, unaligned} {
		f, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Tensors() {
			x, err := f.Tensor(i.Name)
			if err != nil {
				continue // a type that tensors do not have
			}
			before := memory.Stats().Total.Current
			far, err := f.TensorTo(ctx, i.Name, d.Device)
			if err != nil {
				t.Fatal(err)
			}
			if n := memory.Stats().Total.Current - before; n != 0 {
				t.Errorf("%s: got %d bytes more on the host, want none", i.Name, n)
			}
			if far.Device() != d.Device || !far.IsExclusive() || far.DType() != x.DType() || far.Shape() != x.Shape() {
				t.Errorf("%s: got %s on %s, exclusive %t", i.Name, far, far.Device(), far.IsExclusive())
			}
			if n := d.Stats().Of(memory.Weights).Current; n != i.Bytes() {
				t.Errorf("%s: got %d bytes of weights on the device, want %d", i.Name, n, i.Bytes())
			}
			back, err := tensor.To(ctx, far.Reuse(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := back.UnsafeBytes()
			want, _ := x.UnsafeBytes()
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", i.Name, back, x)
			}
			back.Release()
			x.Release()
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTensorToFails(t *testing.T) {
	memorytest.Check(t)
	ctx := context.Background()
	d := memorytest.NewDevice(t, "away:0")
	f, err := Parse(file(`{"x":{"dtype":"U7","shape":[9],"data_offsets":[0,1]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]},"y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	lost := errors.New("lost")
	for _, c := range []struct {
		ctx  context.Context
		name string
		d    *memory.Device
		fail error
		want error
	}{
		{ctx, "x", d.Device, nil, tensor.ErrUnsupported},
		{ctx, "b", d.Device, nil, tensor.ErrCorrupt},
		{ctx, "z", d.Device, nil, ErrName},
		{ctx, "z", nil, nil, ErrName},
		{ctx, "y", d.Device, lost, lost},
		{cancelled, "y", d.Device, nil, context.Canceled},
	} {
		d.Fail(c.fail)
		if _, err := f.TensorTo(c.ctx, c.name, c.d); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if y, err := f.TensorTo(ctx, "y", nil); err != nil || y.Device() != nil {
		t.Errorf("got %v, %v, want a tensor of the host", y, err)
	} else {
		y.Release()
	}
	if n := d.Stats().Total.Buffers; n != 0 {
		t.Errorf("got %d buffers on the device, want none", n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.TensorTo(ctx, "y", d.Device); !errors.Is(err, tensor.ErrReleased) {
		t.Errorf("closed: got %v, want ErrReleased", err)
	}
	if _, err := f.TensorTo(ctx, "y", &memory.Device{}); err == nil {
		t.Error("closed, and no device: got no error")
	}
}
