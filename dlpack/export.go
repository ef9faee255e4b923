package dlpack

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Export lends t to foreign code, read-only. The struct is made at the first
// export and reused by all later ones, so the consumer must not write into it.
// Its deleter ends one export, on any thread, at any time, also after t's
// release. The bytes and the struct stay until all exports have ended and t is
// released.
//
// While an export is out t cannot be donated and is not exclusive.
func Export(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	if t != nil {
		if shown := t.TryExport(); shown != nil {
			return &(*block)(shown).readOnly, nil
		}
	}
	return firstExport(t)
}

// firstExport is Export for a tensor that has no block yet, or that is being
// changed.
func firstExport(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	shown, err := t.Export(tensor.ReadOnlyExport)
	if shown != nil {
		return &(*block)(shown).readOnly, nil
	}
	b, err := show(t, tensor.ReadOnlyExport, 0, err)
	if err != nil {
		return nil, err
	}
	return &b.readOnly, nil
}

// ExportWritable lends t to foreign code that may write into it. It requires an
// exclusive tensor, and until the deleter is called every other access to t
// fails with ErrWriting.
func ExportWritable(t *tensor.Tensor) (*DLManagedTensorVersioned, error) {
	shown, err := t.Export(tensor.WritableExport)
	if shown != nil {
		return &(*block)(shown).writable, nil
	}
	return writable(show(t, tensor.WritableExport, 0, err))
}

// ExportLegacy is [ExportWritable] with the struct of DLPack before 1.0. That
// struct cannot mark memory as read-only, so a tensor that is not exclusive can
// only be copied.
func ExportLegacy(t *tensor.Tensor) (*DLManagedTensor, error) {
	shown, err := t.Export(tensor.WritableExport)
	if shown != nil {
		return &(*block)(shown).legacy, nil
	}
	return legacy(show(t, tensor.WritableExport, 0, err))
}

// ExportCopy exports a copy of t, of which the consumer is the only holder, and
// which it may write.
func ExportCopy(t *tensor.Tensor) (*DLManagedTensorVersioned, error) { return writable(showCopy(t)) }

// ExportLegacyCopy is [ExportCopy] with the struct of DLPack before 1.0.
func ExportLegacyCopy(t *tensor.Tensor) (*DLManagedTensor, error) { return legacy(showCopy(t)) }

// block is the description of a tensor for foreign code: a struct for each kind
// of export, followed by the sizes and strides that all of them point to. It is
// in a buffer of its own outside the Go heap.
type block struct {
	readOnly DLManagedTensorVersioned
	writable DLManagedTensorVersioned
	legacy   DLManagedTensor // writable too
}

const blockBytes = int(unsafe.Sizeof(block{}))

func writable(b *block, err error) (*DLManagedTensorVersioned, error) {
	if err != nil {
		return nil, err
	}
	return &b.writable, nil
}

func legacy(b *block, err error) (*DLManagedTensor, error) {
	if err != nil {
		return nil, err
	}
	return &b.legacy, nil
}

// show makes the block of a tensor that has none yet. refused is the error of
// the caller's attempt to take an export.
func show(t *tensor.Tensor, kind tensor.ExportKind, flags Flags, refused error) (*block, error) {
	if refused != nil {
		return nil, fmt.Errorf("dlpack: %w", refused)
	}
	shown, err := t.Show(func(e tensor.Exported) (*memory.Buffer, error) { return build(t, flags, e) })
	if err != nil {
		t.EndExport(kind)
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	return (*block)(shown), nil
}

// showCopy exports a copy and releases it, so only the export keeps it.
func showCopy(t *tensor.Tensor) (*block, error) {
	c, err := t.Copy(memory.Exports)
	if err != nil {
		return nil, fmt.Errorf("dlpack export: %w", err)
	}
	_, err = c.Export(tensor.WritableExport)
	b, err := show(c, tensor.WritableExport, FlagCopied, err)
	if released := c.Release(); err == nil {
		err = released
	}
	return b, err
}

// build writes the block of t; flags are those of its writable struct.
func build(t *tensor.Tensor, flags Flags, e tensor.Exported) (*memory.Buffer, error) {
	dt, layout := t.DType(), t.Layout()
	code, bits, lanes, ok := dt.DLPack()
	if !ok {
		return nil, fmt.Errorf("got %s, want an element type that DLPack has: %w", dt, tensor.ErrDType)
	}
	if deleters.readOnly == 0 {
		return nil, fmt.Errorf("got a program for %s, want one of amd64 or arm64, which have the deleter: %w", arch, tensor.ErrUnsupported)
	}
	rank := layout.Shape().Rank()
	buf, err := memory.Alloc(blockBytes+16*rank, memory.Exports)
	if err != nil {
		return nil, err
	}
	buf.SetLabel("dlpack")
	at := unsafe.Pointer(unsafe.SliceData(buf.Bytes()))
	b := (*block)(at)
	d := DLTensor{Device: Device{Type: CPU}, NDim: int32(rank), DType: DataType{TypeCode(code), bits, lanes}}
	if len(e.Data) > 0 {
		d.Data = uintptr(unsafe.Pointer(&e.Data[e.First]))
	}
	if rank > 0 {
		sizes := unsafe.Slice((*int64)(unsafe.Add(at, blockBytes)), rank)
		strides := unsafe.Slice((*int64)(unsafe.Add(at, blockBytes+8*rank)), rank)
		d.Shape, d.Strides = uintptr(unsafe.Pointer(&sizes[0])), uintptr(unsafe.Pointer(&strides[0]))
		writeLayout(sizes, strides, layout.Shape().Sizes(), layout.Strides())
	}
	atomic.StoreUintptr(&deadList, e.End.Dead)
	b.readOnly = DLManagedTensorVersioned{
		Version: Version{MajorVersion, MinorVersion}, ManagerCtx: e.End.Record, Deleter: deleters.readOnly, Flags: FlagReadOnly, Tensor: d,
	}
	b.writable = b.readOnly
	b.writable.Deleter, b.writable.Flags = deleters.writable, flags
	b.legacy = DLManagedTensor{Tensor: d, ManagerCtx: e.End.Record, Deleter: deleters.legacy}
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
