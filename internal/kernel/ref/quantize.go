package ref

import "math"

// Quantize is x / scale + zero, rounded to even and held between lo and hi; the
// division is in float32.
func Quantize(x, scale float32, zero, lo, hi float64) float64 {
	v := math.RoundToEven(float64(x/scale)) + zero
	if v != v { // NaN is zero
		v = zero
	}
	return math.Min(math.Max(v, lo), hi)
}

// ScaleOf is which scale the element at idx has: that of its index on the axis,
// or where block is not 0 of its block there.
func ScaleOf(dims, idx []int, axis, block int) int {
	if block == 0 {
		return idx[axis]
	}
	groups, at := append([]int(nil), dims...), append([]int(nil), idx...)
	groups[axis], at[axis] = (dims[axis]+block-1)/block, idx[axis]/block
	return At(groups, at)
}

// IntMatMul is (a - zeroA) * (b - zeroB), with a zero per row of a and per
// column of b.
func IntMatMul(m, n, k int, a, b, zeroA, zeroB []int) []int {
	out := make([]int, 0, m*n)
	for i := range m {
		for j := range n {
			sum := 0
			for l := range k {
				sum += (a[i*k+l] - zeroA[i]) * (b[l*n+j] - zeroB[j])
			}
			out = append(out, sum)
		}
	}
	return out
}

// Lookup is the element of a table of 256 at each byte, -1 standing for the
// last one.
func Lookup(x, table []int) []int {
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = table[(v+256)%256]
	}
	return out
}

// QuantizedSum is the quantised sum of a and b, of which each has a scale and a
// zero, as the result has. All is in float32.
func QuantizedSum(a, b int, scaleA, scaleB, scaleY float32, zeroA, zeroB, zeroY int, lo, hi float64) float64 {
	ratioA, ratioB := scaleA/scaleY, scaleB/scaleY
	rest := float32(zeroY) - float32(float32(ratioA*float32(zeroA))+float32(ratioB*float32(zeroB)))
	sum := float32(float32(float32(a)*ratioA) + float32(float32(b)*ratioB))
	return Quantize(float32(sum+rest), 1, 0, lo, hi)
}

// QuantizedProduct is the quantised product.
func QuantizedProduct(a, b int, scaleA, scaleB, scaleY float32, zeroA, zeroB, zeroY int, lo, hi float64) float64 {
	product := float32(float32((a-zeroA)*(b-zeroB)) * float32(float32(scaleA*scaleB)/scaleY))
	return Quantize(float32(product+float32(zeroY)), 1, 0, lo, hi)
}
