package dlpack

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/tensor"
)

// Fill describes t in dst, for a call that only reads the tensor and keeps
// nothing of it. It takes no export: dst is valid while t is, and the caller
// keeps t alive and unwritten until the call has returned. Shape and strides
// are in the Go heap and must not be written.
func Fill(dst *DLTensor, t *tensor.Tensor) error {
	if dst == nil {
		return fmt.Errorf("dlpack fill: got a NULL struct, want one to describe the tensor in: %w", tensor.ErrCorrupt)
	}
	if t == nil {
		return fmt.Errorf("dlpack fill: got %w", tensor.ErrNoTensor)
	}
	code, bits, lanes, ok := t.DType().DLPack()
	if !ok {
		return fmt.Errorf("dlpack fill: got %s, want an element type that DLPack has: %w", t.DType(), tensor.ErrDType)
	}
	if d := t.Device(); d != nil {
		return fmt.Errorf("dlpack fill: got a tensor on %s, want one in host memory: the call would have no stream to wait on: %w", d, tensor.ErrDevice)
	}
	data, first := t.UnsafeBytes()
	if data == nil && t.NumBytes() > 0 {
		return fmt.Errorf("dlpack fill: %w", t.WhyNotWritable())
	}
	sizes, strides := t.Shape().Sizes(), t.Layout().Strides()
	*dst = DLTensor{
		Device: Device{Type: CPU}, NDim: int32(len(sizes)), DType: DataType{TypeCode(code), bits, lanes},
		Shape: uintptr(unsafe.Pointer(unsafe.SliceData(sizes))), Strides: uintptr(unsafe.Pointer(unsafe.SliceData(strides))),
	}
	if len(data) > 0 {
		dst.Data = uintptr(unsafe.Pointer(&data[first]))
	}
	return nil
}
