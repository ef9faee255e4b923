package elementwise

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// StreamRow copies a row to where it will not be read soon, past the caches.
// The ends, which are no whole lines, are copied as usual.
func StreamRow(v *kernel.Variant, dst, src []float32) {
	stream := v.Rows.Stream
	if stream == nil {
		copy(dst, src)
		return
	}
	const align, step = 32, 32 // bytes, elements
	head := min(int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%align)/4, len(dst))
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	for len(dst) >= step {
		n := min(len(dst), kernel.AsmElements) / step * step
		_ = src[n-1]
		stream(n/step, &dst[0], &src[0])
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
}

// StreamEnd orders the copied bytes before all later writes.
func StreamEnd(v *kernel.Variant) {
	if v.Rows.Fence != nil {
		v.Rows.Fence()
	}
}

// StreamScratchFloats is what UnaryStream needs.
const StreamScratchFloats = chainPiece

// UnaryStream is UnaryF32 with a result that is written past the caches. dst is
// not src.
func UnaryStream(v *kernel.Variant, op kernel.UnaryOp, dst, src []float32, a, b float32, scratch []float32) {
	kernel.SameLen(op.String(), len(dst), len(src))
	if f := v.Rows.UnaryStream[op]; f != nil && kernel.IsWhole(v, dst, 0) {
		f.Run(dst, src)
		StreamEnd(v)
		return
	}
	for len(src) > 0 {
		n := min(len(src), StreamScratchFloats)
		UnaryRow(v, op, scratch[:n], src[:n], a, b)
		StreamRow(v, dst[:n], scratch[:n])
		dst, src = dst[n:], src[n:]
	}
	StreamEnd(v)
}

// Stream copies past the caches.
func Stream(v *kernel.Variant, dst, src []byte) {
	if kernel.IsAligned[float32](dst) && kernel.IsAligned[float32](src) {
		n := min(len(dst), len(src)) / 4 * 4
		StreamRow(v, kernel.View[float32](dst[:n]), kernel.View[float32](src[:n]))
		StreamEnd(v)
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
}
