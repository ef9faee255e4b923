package kernel

// streamRow copies a row to where it will not be read soon, and streamEnd puts what was copied before whatever is written next. They are
// dispatch points: an assembly variant writes past the caches.
var (
	streamRow = portableStream
	streamEnd = func() {}

	// unaryStream has the functions that stream their results themselves; false: not to this place.
	unaryStream [numUnary]func(dst, src []float32) bool
)

func portableStream(dst, src []float32) { copy(dst, src) }

// StreamScratchFloats is what UnaryStream needs.
const StreamScratchFloats = chainPiece

// UnaryStream is UnaryF32 with a result that is written past the caches. dst is not src.
func UnaryStream(op UnaryOp, dst, src []float32, a, b float32, scratch []float32) {
	sameLen(op.String(), len(dst), len(src))
	if f := unaryStream[op]; f != nil && f(dst, src) {
		streamEnd()
		return
	}
	for len(src) > 0 {
		n := min(len(src), StreamScratchFloats)
		unaryRow[op](scratch[:n], src[:n], a, b)
		streamRow(dst[:n], scratch[:n])
		dst, src = dst[n:], src[n:]
	}
	streamEnd()
}

// Stream copies past the caches.
func Stream(dst, src []byte) {
	if isAligned[float32](dst) && isAligned[float32](src) {
		n := min(len(dst), len(src)) / 4 * 4
		streamRow(view[float32](dst[:n]), view[float32](src[:n]))
		streamEnd()
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
}
