package tensor

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

var opTo = NewOperation("to").OnDevices()

// To returns a tensor with the elements of x in the memory of a device; nil is
// the processor's. Where x is there already, the result is a view of it, and
// otherwise a copy in row-major order. x is borrowed, or given up by
// [Tensor.Reuse]; a strict donation to another device fails with
// [ErrNotReusable], because its bytes cannot be moved.
//
// A copy to a device returns when x may change, not when the copy is complete:
// later work of the device waits for it. A copy to the host returns when the
// elements are there, or with the error of ctx.
func To(ctx context.Context, x Operand, d *memory.Device) (*Tensor, error) {
	if ctx == nil {
		return nil, fmt.Errorf("to %s: got no context, want one", d)
	}
	var k Taken
	if err := k.Begin(opTo, x); err != nil {
		return nil, err
	}
	defer k.Rollback()
	c := &k.claims[0]
	if c.t.Device() == d {
		if c.t.layout.Shape() == nil {
			return nil, errNil("to", c.t)
		}
		v, err := k.View(0, 0, c.t.dt, c.t.layout)
		if err != nil {
			return nil, err
		}
		k.Commit()
		return v, nil
	}
	if c.sem == DonateInput {
		return nil, fmt.Errorf("to %s: %s is on %s, so its bytes cannot become those of the result (reuse it, or borrow it): %w", d, c.t.describe(), c.t.Device(), ErrNotReusable)
	}
	made, err := allocFrom("to", d.Source(memory.IO), c.t.dt, c.t.Shape())
	if err != nil {
		return nil, err
	}
	if err := made.fill(ctx, c.t); err != nil {
		_ = made.Release()
		return nil, fmt.Errorf("to %s: %w", d, err)
	}
	k.Commit()
	return made, nil
}

// fill copies the elements of x, of which the caller has a use, into t, which
// is contiguous, has the same type and shape, and is not known to others. One
// of them is on a device.
func (t *Tensor) fill(ctx context.Context, x *Tensor) error {
	if x.size == 0 || t.size == 0 {
		return nil
	}
	from, to := x.Device(), t.Device()
	switch {
	case from == nil:
		return t.upload(ctx, x)
	case to == nil:
		return t.download(ctx, x)
	case x.layout.IsContiguous():
		return to.Engine().Copy(ctx, t.buf, t.start, x.buf, x.start, x.size)
	case from == to:
		return to.Engine().Gather(ctx, t.buf, t.start, x.spread())
	}
	return throughCopy(x, from, func(c *Tensor) error { return t.fill(ctx, c) })
}

// spread describes the elements of a tensor of whole bytes for a device.
func (t *Tensor) spread() memory.Spread {
	return memory.Spread{Buffer: t.buf, At: t.start + t.first, Element: t.dt.Size(), Sizes: t.Shape().Sizes(), Strides: t.layout.Strides()}
}

func (t *Tensor) upload(ctx context.Context, x *Tensor) error {
	data := x.bytes()
	if !x.layout.IsContiguous() {
		buf, err := memory.Process(memory.Scratch).Alloc(t.size)
		if err != nil {
			return err
		}
		defer buf.Release()
		data = buf.Bytes()
		gather(data, x)
	}
	return t.Device().Engine().Upload(ctx, t.buf, t.start, data)
}

func (t *Tensor) download(ctx context.Context, x *Tensor) error {
	if x.layout.IsContiguous() {
		return x.Device().Engine().Download(ctx, t.bytes(), x.buf, x.start)
	}
	return throughCopy(x, x.Device(), func(c *Tensor) error { return t.download(ctx, c) })
}

// throughCopy calls use with a contiguous copy of x on its own device.
func throughCopy(x *Tensor, d *memory.Device, use func(*Tensor) error) error {
	bytes, err := shape.Bytes(x.dt, x.Shape())
	if err != nil {
		return err
	}
	buf, err := d.Source(memory.Scratch).Alloc(bytes)
	if err != nil {
		return err
	}
	c, err := own("copy", buf, x.dt, shape.RowMajor(x.Shape()))
	if err != nil {
		return err
	}
	defer c.Release()
	if err := c.fill(context.Background(), x); err != nil {
		return err
	}
	return use(c)
}
