package npy

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// ReadTo is [Read] into the memory of a device; nil is the processor's. The
// host never has more than a window of the data, except for strings, which are
// converted on the host first. The caller owns the tensor. It returns when the
// last bytes are read, which the device may still be copying: later work of the
// device waits for them.
func ReadTo(ctx context.Context, r io.Reader, d *memory.Device) (*tensor.Tensor, error) {
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("npy: read: got no context, want one: %w", os.ErrInvalid)
	case r == nil:
		return nil, fmt.Errorf("npy: read: got no reader, want one: %w", os.ErrInvalid)
	}
	return readTo(ctx, r, unknown, d)
}

// ReadFileTo is [ReadFile] into the memory of a device, as [ReadTo] is [Read].
func ReadFileTo(ctx context.Context, path string, d *memory.Device) (*tensor.Tensor, error) {
	if ctx == nil {
		return nil, fmt.Errorf("npy: read: got no context, want one: %w", os.ErrInvalid)
	}
	return readFile(path, func(r io.Reader, size int64) (*tensor.Tensor, error) { return readTo(ctx, r, size, d) })
}

func readTo(ctx context.Context, r io.Reader, size int64, d *memory.Device) (*tensor.Tensor, error) {
	counted := &counter{r: r}
	a, err := begin(counted)
	if err != nil {
		return nil, err
	}
	if d == nil || a.text > 0 {
		x, err := a.read(counted, size)
		if err != nil || d == nil {
			return x, err
		}
		far, err := tensor.To(ctx, x.Reuse(), d)
		if err != nil {
			return nil, release(x, fmt.Errorf("npy: %w", err))
		}
		return far, nil
	}
	x, err := a.stream(ctx, counted, size, d)
	if err != nil || !a.fortran {
		return x, err
	}
	return toRowMajor(x, false)
}

// window is the most bytes of an array that are on the host at one time, a
// multiple of the bytes of every element.
const window = 1 << 20

// stream reads the data into a buffer of the device, window by window. Of a
// source of unknown size, which may be much shorter than its header says, the
// buffer grows with what has come, to at most twice of it, and is copied on the
// device.
func (a array) stream(ctx context.Context, r *counter, size int64, d *memory.Device) (*tensor.Tensor, error) {
	room := a.bytes
	if size == unknown {
		room = min(room, window)
	} else if left := size - r.n; left < int64(a.bytes) {
		return nil, shortData(a.dt, a.shape, a.bytes, int(left), io.ErrUnexpectedEOF)
	}
	buf, err := d.Source(memory.IO).Alloc(room)
	if err != nil {
		return nil, fmt.Errorf("npy: %s%s: %w", a.dt, a.shape, err)
	}
	defer func() { _ = buf.Release() }() // the tensor has a hold of its own
	data := make([]byte, min(a.bytes, window))
	for at := 0; at < a.bytes; at += len(data) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("npy: read: %w", err)
		}
		data = data[:min(len(data), a.bytes-at)]
		if n, err := io.ReadFull(r, data); err != nil {
			return nil, shortData(a.dt, a.shape, a.bytes, at+n, err)
		}
		if at+len(data) > buf.Len() {
			larger, err := grown(ctx, buf, at, min(2*buf.Len(), a.bytes), d)
			if err != nil {
				return nil, fmt.Errorf("npy: %s%s: %w", a.dt, a.shape, err)
			}
			_ = buf.Release()
			buf = larger
		}
		normalize(a.dt, a.swap, data)
		if err := d.Engine().Upload(ctx, buf, at, data); err != nil {
			return nil, fmt.Errorf("npy: %s%s: %w", a.dt, a.shape, err)
		}
	}
	x, err := tensor.FromBuffer(buf, 0, a.dt, shape.RowMajor(a.shape))
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return x, nil
}

// grown returns a larger buffer with the first bytes of one.
func grown(ctx context.Context, buf *memory.Buffer, bytes, room int, d *memory.Device) (*memory.Buffer, error) {
	larger, err := d.Source(memory.IO).Alloc(room)
	if err != nil {
		return nil, err
	}
	if err := d.Engine().Copy(ctx, larger, 0, buf, 0, bytes); err != nil {
		_ = larger.Release()
		return nil, err
	}
	return larger, nil
}
