package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// scenario uses a device in most ways, and ends all that it began. It returns
// the first error.
func scenario(c *cuda.Driver, x *tensor.Tensor) (err error) {
	ctx := context.Background()
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	d, e := c.Device(0)
	if e != nil {
		return e
	}
	defer func() {
		if e := d.Close(); e != nil {
			keep(e)
			_ = d.Close() // a call that failed changed nothing, or the rest was done
		}
	}()
	a, e := d.NewStream()
	if e != nil {
		return e
	}
	defer func() {
		if e := a.Close(); e != nil {
			keep(e)
			_ = a.Close()
		}
	}()
	m, e := d.Compile(drivertest.PTX)
	if e != nil {
		return e
	}
	defer func() { keep(m.Close()) }()
	sum, e := m.Function("sum")
	if e != nil {
		return e
	}
	far, e := tensor.To(ctx, x, d.Memory())
	if e != nil {
		return e
	}
	defer far.Release()
	y, e := a.Copy(far)
	if e != nil {
		return e
	}
	defer y.Release()
	z, e := a.Zeros(x.DType(), x.Shape())
	if e != nil {
		return e
	}
	defer z.Release()
	n := x.NumElements()
	if e := a.Launch(sum, cuda.Dim{X: n}, cuda.Dim{X: 1}, 0, cuda.In(far), cuda.In(y), cuda.Out(z), cuda.Value(uint32(n))); e != nil {
		return e
	}
	turned, e := z.Broadcast(3, n)
	if e != nil {
		return e
	}
	defer turned.Release()
	many, e := tensor.To(ctx, turned, nil)
	if e != nil {
		return e
	}
	defer many.Release()
	d.Arena().Trim()
	return nil
}

// ends are the calls that end an object, which lives on if they fail.
var ends = []string{"Destroy", "Release", "Free", "Unmap", "Unload"}

// Each call of the driver fails once. The error says which, nothing is lost and
// nothing is left.
func TestEachCallFails(t *testing.T) {
	x := host(t, 5, 1)
	probe := fake.New(fake.Config{NoRaces: true})
	if err := scenario(must(cuda.New(probe))(t), x); err != nil {
		t.Fatal(err)
	}
	total := probe.CallCount()
	for _, result := range []driver.Result{driver.OutOfMemory, driver.InvalidValue, driver.Unknown} {
		for n := 1; n <= total; n++ {
			handles, bytes := memory.Stats().Handles, memory.Stats().Total.Current
			failed := ""
			m := fake.New(fake.Config{NoRaces: true, Fail: func(call string, at int) driver.Result {
				if at != n {
					return driver.Success
				}
				failed = call
				return result
			}})
			c, err := cuda.New(m)
			if err == nil {
				err = scenario(c, x)
			}
			name := fmt.Sprintf("call %d (%s) gives %v", n, failed, result)
			if err != nil && !strings.Contains(err.Error(), failed) {
				t.Errorf("%s: got %v, want the call's name", name, err)
			}
			if errors.Is(err, cuda.ErrLost) != (result == driver.Unknown) && err != nil && !errors.Is(err, cuda.ErrNone) && !strings.Contains(err.Error(), "cuda: device 0: ") {
				t.Errorf("%s: got %v", name, err)
			}
			if now := memory.Stats(); now.Handles != handles || now.Total.Current != bytes {
				t.Errorf("%s: got %d handles and %d bytes more than before", name, now.Handles-handles, now.Total.Current-bytes)
			}
			if len(memory.Devices()) > 0 {
				t.Fatalf("%s: device %v is still there: %v", name, memory.Devices(), err)
			}
			if live := m.Live(); len(live) > 0 && !slices.ContainsFunc(ends, func(e string) bool { return strings.Contains(failed, e) }) {
				t.Errorf("%s: got objects %v, want none", name, live)
			}
		}
	}
	if _, err := cuda.New(nil); !errors.Is(err, cuda.ErrNone) {
		t.Errorf("no driver: got %v", err)
	}
}

func TestLaunchMisuse(t *testing.T) {
	r := newRig(t, fake.Config{Devices: 2})
	s := r.stream(t, 0)
	m := must(r.devices[0].Compile(drivertest.PTX))(t)
	defer m.Close()
	sum := must(m.Function("sum"))(t)
	x := must(s.Zeros(host(t, 4, 0).DType(), host(t, 4, 0).Shape()))(t)
	defer x.Release()
	view := must(x.View())(t)
	far := must(tensor.To(context.Background(), host(t, 4, 0), r.devices[1].Memory()))(t)
	defer far.Release()
	one := cuda.Dim{X: 1}
	for _, c := range []struct {
		err  error
		is   error
		want string
	}{
		{s.Launch(nil, one, one, 0), tensor.ErrDevice, "got a function of another device or none"},
		{s.Launch(sum, cuda.Dim{X: -1}, one, 0), tensor.ErrShape, "got a grid of -1 x 0 x 0"},
		{s.Launch(sum, one, one, -1), tensor.ErrShape, "got -1 bytes of shared memory"},
		{s.Launch(sum, one, one, 0, cuda.Value("text")), tensor.ErrDType, "argument 0: got a value of type string"},
		{s.Launch(sum, one, one, 0, cuda.In(nil)), tensor.ErrNoTensor, "operand 0"},
		{s.Launch(sum, one, one, 0, cuda.Out(nil)), tensor.ErrNoTensor, "operand 0"},
		{s.Launch(sum, one, one, 0, cuda.In(host(t, 4, 0))), tensor.ErrDevice, "got f32[4] on host, want it on cuda:0"},
		{s.Launch(sum, one, one, 0, cuda.In(far)), tensor.ErrDevice, "on cuda:1, want it on cuda:0"},
		{s.Launch(sum, one, one, 0, cuda.Out(x)), tensor.ErrShared, "the buffer has 2 holders"},
		{s.Launch(sum, one, one, 0, cuda.In(x), cuda.Out(x)), tensor.ErrShared, "listed"},
		{func() error { _, err := m.Function("none"); return err }(), nil, "none"},
		{func() error { _, err := r.devices[0].Compile("nonsense"); return err }(), nil, "compile"},
		{func() error { _, err := r.c.Device(7); return err }(), nil, "got number 7, want it below 2"},
	} {
		if c.err == nil || c.is != nil && !errors.Is(c.err, c.is) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want %v with %q", c.err, c.is, c.want)
		}
	}
	view.Release()
	if !x.IsExclusive() || !far.IsExclusive() {
		t.Error("a refused call kept a use")
	}
}
