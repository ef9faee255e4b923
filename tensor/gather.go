package tensor

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

// Contiguous returns a tensor with the same elements whose layout is
// contiguous: a view of the same bytes if t is contiguous, otherwise a copy in
// a buffer of its own. copied reports which. The result is a separate tensor;
// the caller keeps t.
func (t *Tensor) Contiguous() (c *Tensor, copied bool, err error) {
	const op = "contiguous"
	if t == nil || t.buf == nil {
		return nil, false, errNil(op, t)
	}
	if t.layout.IsContiguous() {
		c, err = t.derive(op, Borrow, same)
		return c, false, err
	}
	c, err = t.Copy(t.purpose())
	return c, err == nil, err
}

// Copy returns a tensor with the same elements in a buffer of its own,
// contiguous, counted under p, on the same device.
func (t *Tensor) Copy(p memory.Purpose) (*Tensor, error) {
	return t.copied(func() (*Tensor, error) { return allocFrom("copy", t.Device().Source(p), t.dt, t.Shape()) })
}

// CopyTo is [Tensor.Copy] into a buffer of src, such as an arena.
func (t *Tensor) CopyTo(src memory.Source) (*Tensor, error) {
	return t.copied(func() (*Tensor, error) { return Make(src, t.dt, t.Shape()) })
}

func (t *Tensor) copied(make func() (*Tensor, error)) (*Tensor, error) {
	const op = "copy"
	if t == nil || t.buf == nil {
		return nil, errNil(op, t)
	}
	if err := t.use(); err != nil {
		return nil, t.refusal(op, err)
	}
	defer t.endUse()
	c, err := make()
	if err != nil {
		return nil, err
	}
	if t.Device() != nil || c.Device() != nil {
		if err := c.fill(context.Background(), t); err != nil {
			_ = c.Release()
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		return c, nil
	}
	gather(c.bytes(), t)
	return c, nil
}

// purpose returns the purpose of a copy of t; imported bytes have none of their
// own.
func (t *Tensor) purpose() memory.Purpose {
	if t.buf.Flags() != 0 {
		return memory.IO
	}
	return t.buf.Purpose()
}

// gather copies the elements of x in row-major order into dst. The caller has a
// use of x.
func gather(dst []byte, x *Tensor) {
	src := x.bytes()
	if x.layout.IsContiguous() {
		copy(dst, src)
		return
	}
	g := gatherer{dst: dst, src: src, sizes: x.Shape().Sizes(), strides: x.layout.Strides(), each: x.dt.Size()}
	g.dim(0, x.first)
}

type gatherer struct {
	dst, src       []byte // the copied part is cut off the front of dst
	sizes, strides []int
	each           int
}

// dim copies the elements below dimension d, the first of which is at byte at
// of src. A layout that is not contiguous has elements and a dimension.
func (g *gatherer) dim(d, at int) {
	n, step := g.sizes[d], g.strides[d]*g.each
	if d < len(g.sizes)-1 {
		for range n {
			g.dim(d+1, at)
			at += step
		}
		return
	}
	if step == g.each {
		g.dst = g.dst[copy(g.dst, g.src[at:at+n*g.each]):]
		return
	}
	for range n {
		g.dst = g.dst[copy(g.dst, g.src[at:at+g.each]):]
		at += step
	}
}
