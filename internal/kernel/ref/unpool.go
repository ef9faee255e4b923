package ref

// Fold adds blocks [planes, Kernel..., Out...] at their places in planes of
// sizes In.
func Fold(w Window, planes int, x []float64) []float64 {
	area, taps, count := Size(w.In), Size(w.Kernel), Size(w.Out)
	out := make([]float64, planes*area)
	for p := range planes {
		Each(w.Out, func(o []int) {
			w.each(o, func(tap, at []int) {
				if Inside(w.In, at) {
					out[p*area+At(w.In, at)] += x[(p*taps+At(w.Kernel, tap))*count+At(w.Out, o)]
				}
			})
		})
	}
	return out
}

// Unpool puts x at places of a tensor of sizes in, and that into the corner of
// one of sizes out.
func Unpool(in, out []int, x []float64, indices []int64) []float64 {
	whole := make([]float64, Size(in))
	for i, at := range indices {
		whole[at] = x[i]
	}
	result := make([]float64, Size(out))
	Each(in, func(i []int) { result[At(out, i)] = whole[At(in, i)] })
	return result
}

// Det is a determinant by the first row and those of the matrices without it.
func Det(n int, x []float64) float64 {
	if n == 0 {
		return 1
	}
	sum, sign := 0.0, 1.0
	for k := range n {
		var rest []float64
		for i := 1; i < n; i++ {
			for j := range n {
				if j != k {
					rest = append(rest, x[i*n+j])
				}
			}
		}
		sum += sign * x[k] * Det(n-1, rest)
		sign = -sign
	}
	return sum
}

// Inverse is an inverse by the determinants of the matrices without a row and a
// column.
func Inverse(n int, x []float64) []float64 {
	out, det := make([]float64, n*n), Det(n, x)
	for i := range n {
		for j := range n {
			var rest []float64
			for at, v := range x {
				if at/n != i && at%n != j {
					rest = append(rest, v)
				}
			}
			sign := float64(1 - 2*((i+j)%2))
			out[j*n+i] = sign * Det(n-1, rest) / det
		}
	}
	return out
}

// Reverse turns round the first elements of each sequence of x [time, batch,
// inner], or [batch, time, inner].
func Reverse[T any](x []T, time, batch, inner int, lengths []int64, batchFirst bool) []T {
	var out []T
	shape := []int{time, batch, inner}
	if batchFirst {
		shape = []int{batch, time, inner}
	}
	Each(shape, func(i []int) {
		t, b := 0, 1
		if batchFirst {
			t, b = 1, 0
		}
		from := append([]int(nil), i...)
		if n := int(lengths[i[b]]); i[t] < n {
			from[t] = n - 1 - i[t]
		}
		out = append(out, x[At(shape, from)])
	})
	return out
}

// AffineGrid2D is where theta, of 2 rows and 3 columns, moves the middle of
// element (i, j) of an image [h, w]: x, then y.
func AffineGrid2D(theta []float64, i, j, h, w int, align bool) (x, y float64) {
	place := func(k, n int) float64 {
		first, last := -1+1/float64(n), 1-1/float64(n)
		if align {
			first, last = -1, 1
		}
		if n == 1 {
			return 0
		}
		return first + (last-first)*float64(k)/float64(n-1)
	}
	u, v := place(j, w), place(i, h)
	return theta[0]*u + theta[1]*v + theta[2], theta[3]*u + theta[4]*v + theta[5]
}
