package dlpack

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Export lends t to foreign code, read-only. The struct is made at the first
// export and reused by all later ones, so the consumer must not write into it.
// Its deleter ends one export, on any thread, at any time, also after t's
// release. The bytes and the struct stay until all exports have ended and t is
// released.
//
// While an export is out t cannot be donated and is not exclusive.
//
// For a tensor on a device, work that is submitted to the device's default
// stream afterwards sees the bytes. [ExportOn] names another stream.
func Export(t *tensor.Tensor) (*DLManagedTensorVersioned, error) { return export(t, unspecified) }

// ExportOn is [Export] of a tensor on a device to a consumer whose work is on
// that stream, a value that [Stream.Check] accepts: work that is submitted to
// it afterwards sees the bytes. With NoSync nothing waits.
func ExportOn(t *tensor.Tensor, s Stream) (*DLManagedTensorVersioned, error) {
	place, err := DeviceOf(t)
	if err == nil {
		err = s.Check(place.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	return export(t, s)
}

func export(t *tensor.Tensor, to Stream) (*DLManagedTensorVersioned, error) {
	if t != nil {
		if shown := t.TryExport(); shown != nil {
			m := &(*block)(shown).readOnly
			if m.Tensor.Device.Type == CPU {
				return m, nil
			}
			if err := lend(t, to, false); err != nil {
				t.EndExport(tensor.ReadOnlyExport)
				return nil, fmt.Errorf("dlpack export: %w", err)
			}
			return m, nil
		}
	}
	return exporting{to: to}.readOnly(t)
}

// ExportWritable lends t to foreign code that may write into it. It requires an
// exclusive tensor, and until the deleter is called every other access to t
// fails with ErrWriting.
func ExportWritable(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	return exporting{}.writable(t)
}

// ExportLegacy is [ExportWritable] with the struct of DLPack before 1.0. That
// struct cannot mark memory as read-only, so a tensor that is not exclusive can
// only be copied.
func ExportLegacy(t *tensor.Tensor) (*DLManagedTensor, error) { return exporting{}.legacy(t) }

// ExportCopy exports a copy of t, of which the consumer is the only holder, and
// which it may write. The copy is on the same device.
func ExportCopy(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	return exporting{}.copied(t.Copy(memory.Exports))
}

// ExportLegacyCopy is [ExportCopy] with the struct of DLPack before 1.0.
func ExportLegacyCopy(t *tensor.Tensor) (*DLManagedTensor, error) {
	return exporting{}.copiedLegacy(t.Copy(memory.Exports))
}

// block is the description of a tensor for foreign code: a struct for each kind
// of export. It is in a buffer of its own outside the Go heap, before the sizes
// and strides that all structs point to. If the place of the bytes is one that
// some consumers do not know, a second block with the plain one follows.
type block struct {
	readOnly DLManagedTensorVersioned
	writable DLManagedTensorVersioned
	legacy   DLManagedTensor // writable too
}

const blockBytes = int(unsafe.Sizeof(block{}))

// plain returns the place that all consumers of such memory know: memory that
// is both the host's and a device's counts as that of one of them.
func (d Device) plain() Device {
	switch d.Type {
	case CUDAHost:
		return Device{Type: CPU}
	case CUDAManaged:
		return Device{CUDA, d.ID}
	}
	return d
}

// exporting is how a tensor is exported.
type exporting struct {
	to    Stream // the consumer's, for a tensor on a device
	plain bool   // as of its plain place
	flags Flags  // of the writable struct
}

func (x exporting) readOnly(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	b, err := x.take(t, tensor.ReadOnlyExport)
	if err != nil {
		return nil, err
	}
	return &b.readOnly, nil
}

func (x exporting) writable(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	b, err := x.take(t, tensor.WritableExport)
	if err != nil {
		return nil, err
	}
	return &b.writable, nil
}

func (x exporting) legacy(t *tensor.Tensor) (*DLManagedTensor, error) {
	b, err := x.take(t, tensor.WritableExport)
	if err != nil {
		return nil, err
	}
	return &b.legacy, nil
}

// copied exports a copy that was made for this exchange and releases it, so
// only the export keeps it.
func (x exporting) copied(c *tensor.Tensor, err error) (*DLManagedTensorVersioned, error) {
	if err != nil {
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	defer c.Release()
	x.flags = FlagCopied
	return x.writable(c)
}

func (x exporting) copiedLegacy(c *tensor.Tensor, err error) (*DLManagedTensor, error) {
	if err != nil {
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	defer c.Release()
	return x.legacy(c)
}

// take takes an export of t and returns the block that describes it.
func (x exporting) take(t *tensor.Tensor, kind tensor.ExportKind) (*block, error) {
	shown, err := t.Export(kind)
	if err != nil {
		return nil, fmt.Errorf("dlpack: %w", err)
	}
	if shown == nil {
		shown, err = t.Show(func(e tensor.Exported) (*memory.Buffer, error) { return build(t, x.flags, e) })
	}
	if err == nil {
		err = lend(t, x.to, kind == tensor.WritableExport)
	}
	if err != nil {
		t.EndExport(kind)
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	if b := (*block)(shown); !x.plain || b.readOnly.Tensor.Device == b.readOnly.Tensor.Device.plain() {
		return b, nil
	}
	return (*block)(unsafe.Add(shown, blockBytes)), nil
}

// build describes t; flags are those of its writable struct. The data pointer
// is that of the first element and byte_offset is 0, on devices too: torch does
// not read byte_offset.
func build(t *tensor.Tensor, flags Flags, e tensor.Exported) (*memory.Buffer, error) {
	dt, layout := t.DType(), t.Layout()
	code, bits, lanes, ok := dt.DLPack()
	if !ok {
		return nil, fmt.Errorf("got %s, want an element type that DLPack has: %w", dt, tensor.ErrDType)
	}
	if deleters.readOnly == 0 {
		return nil, fmt.Errorf("got a program for %s, want one of amd64 or arm64, which have the deleter: %w", arch, tensor.ErrUnsupported)
	}
	d := DLTensor{Device: hostPlace(e.Data), NDim: int32(layout.Shape().Rank()), DType: DataType{TypeCode(code), bits, lanes}}
	switch {
	case e.Away != nil:
		x, err := exchanger(e.Away.Device)
		if err != nil {
			return nil, err
		}
		d.Device = x.Place(e.Away)
		if layout.Shape().NumElements() > 0 {
			d.Data = e.Away.Address + uintptr(e.At)
		}
	case len(e.Data) > 0:
		d.Data = uintptr(unsafe.Pointer(&e.Data[e.First]))
	}
	atomic.StoreUintptr(&deadList, e.End.Dead)
	return d.describe(layout, flags, e.End.Record)
}

// describe makes the buffer with the structs of a tensor.
func (d DLTensor) describe(layout *shape.Layout, flags Flags, record uintptr) (*memory.Buffer, error) {
	places := []Device{d.Device, d.Device.plain()}
	if places[0] == places[1] {
		places = places[:1]
	}
	rank, blocks := int(d.NDim), len(places)*blockBytes
	buf, err := memory.Alloc(blocks+16*rank, memory.Exports)
	if err != nil {
		return nil, err
	}
	buf.SetLabel("dlpack")
	at := unsafe.Pointer(unsafe.SliceData(buf.Bytes()))
	if rank > 0 {
		sizes := unsafe.Slice((*int64)(unsafe.Add(at, blocks)), rank)
		strides := unsafe.Slice((*int64)(unsafe.Add(at, blocks+8*rank)), rank)
		d.Shape, d.Strides = uintptr(unsafe.Pointer(&sizes[0])), uintptr(unsafe.Pointer(&strides[0]))
		writeLayout(sizes, strides, layout.Shape().Sizes(), layout.Strides())
	}
	for i, place := range places {
		d.Device = place
		b := (*block)(unsafe.Add(at, i*blockBytes))
		b.readOnly = DLManagedTensorVersioned{
			Version: Version{MajorVersion, MinorVersion}, ManagerCtx: record, Deleter: deleters.readOnly, Flags: FlagReadOnly, Tensor: d,
		}
		b.writable = b.readOnly
		b.writable.Deleter, b.writable.Flags = deleters.writable, flags
		b.legacy = DLManagedTensor{Tensor: d, ManagerCtx: record, Deleter: deleters.legacy}
	}
	return buf, nil
}

// writeLayout writes sizes and strides. A stride that has no effect, of a
// dimension of size 1 or of an empty tensor, may have any value in a layout,
// but some consumers check it, so writeLayout writes that of a contiguous
// tensor.
func writeLayout(toSizes, toStrides []int64, sizes, strides []int) {
	empty := false
	for _, n := range sizes {
		empty = empty || n == 0
	}
	compact := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		toSizes[i], toStrides[i] = int64(sizes[i]), int64(strides[i])
		if empty || sizes[i] == 1 {
			toStrides[i] = compact
		}
		if !empty {
			compact = toStrides[i] * toSizes[i]
		} else {
			compact *= max(toSizes[i], 1)
		}
	}
}
