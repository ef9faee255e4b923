package ref

// Size is the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// At is the row-major number of the element at idx.
func At(shape, idx []int) int {
	n := 0
	for k, i := range idx {
		n = n*shape[k] + i
	}
	return n
}

// Each calls f with every index of a shape in row-major order. f must not keep
// idx.
func Each(shape []int, f func(idx []int)) {
	idx := make([]int, len(shape))
	for range Size(shape) {
		f(idx)
		for k := len(shape) - 1; k >= 0; k-- {
			idx[k]++
			if idx[k] < shape[k] {
				break
			}
			idx[k] = 0
		}
	}
}

// Inside tells whether idx is an index of shape.
func Inside(shape, idx []int) bool {
	for k, i := range idx {
		if i < 0 || i >= shape[k] {
			return false
		}
	}
	return true
}

// Map applies f to every element.
func Map[T, R any](x []T, f func(T) R) []R {
	out := make([]R, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return out
}

// Broadcast returns the element of x at output index idx. The shape of x is
// aligned with the end of the output's.
func Broadcast[T any](x []T, shape, idx []int) T {
	at := make([]int, len(shape))
	for k := range shape {
		at[k] = idx[len(idx)-len(shape)+k]
		if shape[k] == 1 {
			at[k] = 0
		}
	}
	return x[At(shape, at)]
}

// BroadcastShape is numpy's rule for two shapes that fit.
func BroadcastShape(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		out[i] = 1
	}
	for _, s := range [][]int{a, b} {
		for k, d := range s {
			if d != 1 {
				out[len(out)-len(s)+k] = d
			}
		}
	}
	return out
}

// Zip applies f to the broadcast elements of two tensors.
func Zip[A, B, R any](a []A, aShape []int, b []B, bShape []int, f func(A, B) R) []R {
	var out []R
	Each(BroadcastShape(aShape, bShape), func(idx []int) {
		out = append(out, f(Broadcast(a, aShape, idx), Broadcast(b, bShape, idx)))
	})
	return out
}
