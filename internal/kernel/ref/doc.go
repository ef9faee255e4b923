// Package ref is the reference of every kernel: slow, obvious, written straight
// from the definition, in float64.
//
// The tests of the kernels compare with it, and those of other packages may
// compute an expected result with it. It knows nothing of tiles, scratch,
// strides or places: functions take whole contiguous tensors in row-major order
// with their shapes, and return fresh ones. Nothing here is safe against wrong
// arguments, and nothing is fast. All functions are pure, so any number of
// goroutines may call them.
//
//	y := ref.Map(x, func(v float64) float64 { return ref.Unary("gelu", v, 0, 0) })
package ref
