package classic

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Distances sets dst [len(a)/features,len(b)/features] to the distances between
// each row of a and each row of b: their squares, or the roots of these. Each
// is a sum in the order of the features.
func Distances[T kernel.Float](dst, a, b []T, features int, root bool) {
	if len(dst) == 0 {
		return
	}
	if features == 0 {
		clear(dst)
		return
	}
	columns := len(b) / features
	for i := 0; i < len(a)/features; i++ {
		row, out := a[i*features:][:features], dst[i*columns:][:columns]
		j := 0
		for ; j+4 <= columns; j += 4 {
			distances4(out[j:][:4], row, b[j*features:][:4*features])
		}
		for ; j < columns; j++ {
			out[j] = distance(row, b[j*features:][:features])
		}
		if root {
			for j, v := range out {
				out[j] = T(math.Sqrt(float64(v)))
			}
		}
	}
}

// distance returns the square of the distance between two rows.
func distance[T kernel.Float](a, b []T) T {
	b = b[:len(a)]
	var sum T
	for i, v := range a {
		d := v - b[i]
		sum += T(d * d)
	}
	return sum
}

// distances4 is distance for four rows side by side: each sum waits for its
// last addition.
func distances4[T kernel.Float](dst, a, b []T) {
	f := len(a)
	b0, b1, b2, b3 := b[:f], b[f:][:f], b[2*f:][:f], b[3*f:][:f]
	var s0, s1, s2, s3 T
	for i, v := range a {
		d0, d1, d2, d3 := v-b0[i], v-b1[i], v-b2[i], v-b3[i]
		s0 += T(d0 * d0)
		s1 += T(d1 * d1)
		s2 += T(d2 * d2)
		s3 += T(d3 * d3)
	}
	dst[0], dst[1], dst[2], dst[3] = s0, s1, s2, s3
}
