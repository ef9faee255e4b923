package safetensors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// File is an open file. It holds the mapping until Close; tensors hold it too.
// A nil or zero File is one that is closed.
type File struct {
	buf      *memory.Buffer
	data     int // where the data begins
	infos    []Info
	byName   map[string]int
	metadata map[string]string
}

// Open maps a file and reads its header. The caller closes it.
func Open(path string) (*File, error) {
	buf, err := memory.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := newFile(buf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Parse reads a file that is in memory, such as one that a program embeds. The
// bytes stay the caller's: they must not change while the file or a tensor of
// it is there, and are never written.
func Parse(file []byte) (*File, error) { return newFile(memory.Import(file, nil)) }

// newFile takes over the hold on the buffer.
func newFile(buf *memory.Buffer) (*File, error) {
	infos, metadata, data, err := parse(buf.Bytes())
	if err != nil {
		_ = buf.Release() // ours alone
		return nil, err
	}
	f := &File{buf: buf, data: int(data), infos: infos, metadata: metadata, byName: make(map[string]int, len(infos))}
	for i := range infos {
		f.byName[infos[i].Name] = i
	}
	return f, nil
}

// Tensors describes the tensors of the file, in the order of their bytes.
func (f *File) Tensors() []Info {
	if f == nil {
		return nil
	}
	return slices.Clone(f.infos)
}

// Metadata returns the text that the file carries, nil for none.
func (f *File) Metadata() map[string]string {
	if f == nil {
		return nil
	}
	return maps.Clone(f.metadata)
}

// hold takes a hold on the mapping, which is gone once the file is closed and
// its tensors are released.
func (f *File) hold() error {
	if f == nil || f.buf == nil || f.buf.Retain() != nil {
		return fmt.Errorf("the file is closed: %w", tensor.ErrReleased)
	}
	return nil
}

// Tensor returns a tensor of the file, over the file's bytes where they are
// aligned for its elements. It is read-only, holds the mapping, and is the
// caller's to release.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	if err := f.hold(); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	defer f.buf.Release()
	i, data, err := f.find(name)
	if err != nil {
		return nil, err
	}
	var t *tensor.Tensor
	if isAligned(data, i.DType) {
		t, err = tensor.FromBuffer(f.buf, f.data+int(i.begin), i.DType, shape.RowMajor(i.Shape))
	} else {
		t, err = tensor.FromBytes(i.DType, i.Shape, data)
	}
	if err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	return t, nil
}

// find returns a tensor's description and bytes. The caller has a hold.
func (f *File) find(name string) (*Info, []byte, error) {
	at, ok := f.byName[name]
	if !ok {
		return nil, nil, fmt.Errorf("safetensors: got no tensor %q among the %d of the file: %w", name, len(f.infos), ErrName)
	}
	i := &f.infos[at]
	if i.DType == dtype.Invalid || i.DType.Bits() > 4 && i.DType.Bits() < 8 {
		return nil, nil, fmt.Errorf("safetensors: tensor %q: got elements of %s, want a type that tensors have: %w", name, i.Type, tensor.ErrUnsupported)
	}
	data := f.buf.Bytes()[f.data+int(i.begin) : f.data+int(i.end)]
	if i.DType == dtype.Bool {
		if k := slices.IndexFunc(data, func(b byte) bool { return b > 1 }); k >= 0 {
			return nil, nil, corrupt("tensor %q: got %d as element %d of type BOOL, want 0 or 1", name, data[k], k)
		}
	}
	return i, data, nil
}

// TensorTo returns a tensor of the file in the memory of a device, exclusive
// and the caller's to release; nil is the processor's, as [File.Tensor]. The
// bytes are copied from the mapped file, aligned or not, and the host has no
// other copy of them. It returns when the file is read, which the device may
// still be copying: later work of the device waits for it.
func (f *File) TensorTo(ctx context.Context, name string, d *memory.Device) (*tensor.Tensor, error) {
	if ctx == nil {
		return nil, fmt.Errorf("safetensors: tensor %q: got no context, want one", name)
	}
	if d == nil {
		return f.Tensor(name)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	if err := f.hold(); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	defer f.buf.Release()
	i, data, err := f.find(name)
	if err != nil {
		return nil, err
	}
	buf, err := d.Source(memory.Weights).Alloc(len(data))
	if err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	defer func() { _ = buf.Release() }() // the tensor has a hold of its own
	if err := d.Engine().Upload(ctx, buf, 0, data); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	t, err := tensor.FromBuffer(buf, 0, i.DType, shape.RowMajor(i.Shape))
	if err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	return t, nil
}

// isAligned reports whether elements of the type may lie where data begins.
func isAligned(data []byte, dt dtype.DType) bool {
	size := uintptr(max(dt.Size(), 1))
	if dt.IsComplex() {
		size /= 2
	}
	return len(data) == 0 || uintptr(unsafe.Pointer(&data[0]))%size == 0
}

// Close releases the file's own hold on the mapping; tensors keep theirs.
func (f *File) Close() error {
	if f == nil || f.buf == nil {
		return fmt.Errorf("safetensors: close: got no file: %w", tensor.ErrReleased)
	}
	if err := f.buf.Release(); err != nil {
		return fmt.Errorf("safetensors: close: %w", err)
	}
	return nil
}
