package ref

// Transpose makes axis i of the result axis perm[i] of x.
func Transpose[T any](x []T, shape, perm []int) []T {
	outShape := make([]int, len(perm))
	for i, p := range perm {
		outShape[i] = shape[p]
	}
	var out []T
	Each(outShape, func(idx []int) {
		at := make([]int, len(shape))
		for i, p := range perm {
			at[p] = idx[i]
		}
		out = append(out, x[At(shape, at)])
	})
	return out
}

// Slice takes count[i] elements of axis i from start[i] on, step[i] apart.
func Slice[T any](x []T, shape, start, step, count []int) []T {
	var out []T
	Each(count, func(idx []int) {
		at := make([]int, len(shape))
		for i := range at {
			at[i] = start[i] + idx[i]*step[i]
		}
		out = append(out, x[At(shape, at)])
	})
	return out
}

// Expand broadcasts x to a shape.
func Expand[T any](x []T, shape, to []int) []T {
	var out []T
	Each(to, func(idx []int) { out = append(out, Broadcast(x, shape, idx)) })
	return out
}

// Tile lays repeats[i] copies side by side along axis i.
func Tile[T any](x []T, shape, repeats []int) []T {
	outShape := make([]int, len(shape))
	for i := range shape {
		outShape[i] = shape[i] * repeats[i]
	}
	var out []T
	Each(outShape, func(idx []int) {
		at := make([]int, len(shape))
		for i := range at {
			at[i] = idx[i] % shape[i]
		}
		out = append(out, x[At(shape, at)])
	})
	return out
}

// Concat joins tensors of equal shape but for the axis, where the sizes are
// given.
func Concat[T any](parts [][]T, shape []int, axis int, sizes []int) []T {
	outShape := append([]int(nil), shape...)
	outShape[axis] = 0
	for _, n := range sizes {
		outShape[axis] += n
	}
	var out []T
	Each(outShape, func(idx []int) {
		at := append([]int(nil), idx...)
		k := 0
		for at[axis] >= sizes[k] {
			at[axis] -= sizes[k]
			k++
		}
		partShape := append([]int(nil), shape...)
		partShape[axis] = sizes[k]
		out = append(out, parts[k][At(partShape, at)])
	})
	return out
}

func wrap(i int64, n int) int {
	if i < 0 {
		return int(i) + n
	}
	return int(i)
}

// Gather looks up along an axis: the result has the indices' shape in place of
// that axis.
func Gather[T any](x []T, shape []int, indices []int64, indexShape []int, axis int) []T {
	outShape := append(append(append([]int(nil), shape[:axis]...), indexShape...), shape[axis+1:]...)
	var out []T
	Each(outShape, func(idx []int) {
		at := append([]int(nil), idx[:axis]...)
		at = append(at, wrap(indices[At(indexShape, idx[axis:axis+len(indexShape)])], shape[axis]))
		at = append(at, idx[axis+len(indexShape):]...)
		out = append(out, x[At(shape, at)])
	})
	return out
}

// GatherElements takes each element of the result from its own place in x but
// for the axis, where the index says.
func GatherElements[T any](x []T, shape []int, indices []int64, indexShape []int, axis int) []T {
	var out []T
	Each(indexShape, func(idx []int) {
		at := append([]int(nil), idx...)
		at[axis] = wrap(indices[At(indexShape, idx)], shape[axis])
		out = append(out, x[At(shape, at)])
	})
	return out
}

// ScatterElements returns x with every update combined into the place that its
// index says.
func ScatterElements[T any](x []T, shape []int, indices []int64, indexShape []int, updates []T, axis int, combine func(old, update T) T) []T {
	out := append([]T(nil), x...)
	Each(indexShape, func(idx []int) {
		at := append([]int(nil), idx...)
		at[axis] = wrap(indices[At(indexShape, idx)], shape[axis])
		o := &out[At(shape, at)]
		*o = combine(*o, updates[At(indexShape, idx)])
	})
	return out
}

// tuple turns the tuple of indices at idx (all but its last axis) into an index
// of the leading axes of shape.
func tuple(shape []int, indices []int64, indexShape, idx []int, batchDims int) []int {
	k := indexShape[len(indexShape)-1]
	at := append([]int(nil), idx[:batchDims]...)
	for j := range k {
		full := append(append([]int(nil), idx...), j)
		at = append(at, wrap(indices[At(indexShape, full)], shape[batchDims+j]))
	}
	return at
}

// GatherND looks up the slice that each tuple of indices means.
func GatherND[T any](x []T, shape []int, indices []int64, indexShape []int, batchDims int) []T {
	var out []T
	last := len(indexShape) - 1
	Each(indexShape[:last], func(idx []int) {
		at := tuple(shape, indices, indexShape, idx, batchDims)
		Each(shape[len(at):], func(rest []int) {
			out = append(out, x[At(shape, append(append([]int(nil), at...), rest...))])
		})
	})
	return out
}

// ScatterND returns x with every slice of updates combined into the slice that
// its tuple of indices means.
func ScatterND[T any](x []T, shape []int, indices []int64, indexShape []int, updates []T, combine func(old, update T) T) []T {
	out := append([]T(nil), x...)
	last := len(indexShape) - 1
	k := 0
	Each(indexShape[:last], func(idx []int) {
		at := tuple(shape, indices, indexShape, idx, 0)
		Each(shape[len(at):], func(rest []int) {
			o := &out[At(shape, append(append([]int(nil), at...), rest...))]
			*o = combine(*o, updates[k])
			k++
		})
	})
	return out
}

// Pad surrounds x; a negative pad crops, and the mode applies to the cropped
// data.
func Pad[T any](x []T, shape, before, after []int, mode string, constant T) []T {
	outShape := make([]int, len(shape))
	for i, n := range shape {
		outShape[i] = before[i] + n + after[i]
	}
	var out []T
	Each(outShape, func(idx []int) {
		at, inside := make([]int, len(shape)), true
		for i := range shape {
			first := max(0, -before[i])
			n := shape[i] - first - max(0, -after[i])
			at[i] = idx[i] - max(0, before[i])
			for mode == "wrap" && at[i] < 0 {
				at[i] += n
			}
			for mode == "wrap" && at[i] >= n {
				at[i] -= n
			}
			if mode == "edge" {
				at[i] = max(0, min(n-1, at[i]))
			}
			for mode == "reflect" && n > 1 && (at[i] < 0 || at[i] >= n) {
				if at[i] < 0 {
					at[i] = -at[i]
				} else {
					at[i] = 2*(n-1) - at[i]
				}
			}
			if mode == "reflect" && n == 1 {
				at[i] = 0
			}
			inside = inside && at[i] >= 0 && at[i] < n
			at[i] += first
		}
		if inside {
			out = append(out, x[At(shape, at)])
		} else {
			out = append(out, constant)
		}
	})
	return out
}

// Trilu keeps the part of a matrix above (upper) or below the k-th diagonal.
func Trilu[T any](x []T, rows, cols, k int, upper bool) []T {
	out := make([]T, len(x))
	for r := range rows {
		for c := range cols {
			if upper && c-r >= k || !upper && c-r <= k {
				out[r*cols+c] = x[r*cols+c]
			}
		}
	}
	return out
}

// Scan is the running sum or product along an axis.
func Scan(x []float64, shape []int, axis int, product, exclusive, reverse bool) []float64 {
	var out []float64
	Each(shape, func(idx []int) {
		all := 0.0
		if product {
			all = 1
		}
		for j := range shape[axis] {
			at := append([]int(nil), idx...)
			at[axis] = j
			before := j < idx[axis] || j == idx[axis] && !exclusive
			if reverse {
				before = j > idx[axis] || j == idx[axis] && !exclusive
			}
			switch {
			case before && product:
				all *= x[At(shape, at)]
			case before:
				all += x[At(shape, at)]
			}
		}
		out = append(out, all)
	})
	return out
}

// OneHot sets position indices[o, i] of [o, depth, i] to on, all others to off.
func OneHot[T any](indices []int64, outer, depth, inner int, off, on T) []T {
	var out []T
	Each([]int{outer, depth, inner}, func(idx []int) {
		v := off
		if wrap(indices[idx[0]*inner+idx[2]], depth) == idx[1] {
			v = on
		}
		out = append(out, v)
	})
	return out
}
