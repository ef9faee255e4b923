package safetensors

import (
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
	at, ok := f.byName[name]
	if !ok {
		return nil, fmt.Errorf("safetensors: got no tensor %q among the %d of the file: %w", name, len(f.infos), ErrName)
	}
	i := &f.infos[at]
	if i.DType == dtype.Invalid || i.DType.Bits() > 4 && i.DType.Bits() < 8 {
		return nil, fmt.Errorf("safetensors: tensor %q: got elements of %s, want a type that tensors have: %w", name, i.Type, tensor.ErrUnsupported)
	}
	data := f.buf.Bytes()[f.data+int(i.begin) : f.data+int(i.end)]
	if i.DType == dtype.Bool {
		if k := slices.IndexFunc(data, func(b byte) bool { return b > 1 }); k >= 0 {
			return nil, corrupt("tensor %q: got %d as element %d of type BOOL, want 0 or 1", name, data[k], k)
		}
	}
	var t *tensor.Tensor
	var err error
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
