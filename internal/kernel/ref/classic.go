package ref

import "math"

// Distances returns the distances between each row of a and each row of b, or
// their squares.
func Distances(a, b []float64, features int, root bool) []float64 {
	var out []float64
	for ; len(a) > 0; a = a[features:] {
		for at := 0; at < len(b); at += features {
			sum := 0.0
			for i := range features {
				sum += (a[i] - b[at+i]) * (a[i] - b[at+i])
			}
			if root {
				sum = math.Sqrt(sum)
			}
			out = append(out, sum)
		}
	}
	return out
}

// CouplePairs returns the probabilities of classes that minimise the sum over
// i != j of (r_ji*p_i - r_ij*p_j)^2, where r_ij is the probability of class i
// against class j: it solves the linear equations of the minimum.
func CouplePairs(pairs []float64, classes int) []float64 {
	r := make([][]float64, classes)
	for i := range r {
		r[i] = make([]float64, classes)
	}
	for i := range classes {
		for j := i + 1; j < classes; j++ {
			r[i][j], r[j][i] = pairs[0], 1-pairs[0]
			pairs = pairs[1:]
		}
	}
	n := classes + 1 // with the multiplier of the condition that the sum is 1
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n+1)
		for j := range classes {
			switch {
			case i == classes:
				m[i][j] = 1
			case i == j:
				for s := range classes {
					if s != i {
						m[i][i] += r[s][i] * r[s][i]
					}
				}
			default:
				m[i][j] = -r[j][i] * r[i][j]
			}
		}
		if i < classes {
			m[i][classes] = 1
		}
	}
	m[classes][n] = 1
	return solve(m)[:classes]
}

// solve returns the solution of linear equations, each a row of coefficients
// and the right-hand side, by Gauss's elimination.
func solve(m [][]float64) []float64 {
	n := len(m)
	for i := range n {
		best := i
		for r := i; r < n; r++ {
			if math.Abs(m[r][i]) > math.Abs(m[best][i]) {
				best = r
			}
		}
		m[i], m[best] = m[best], m[i]
		for r := range n {
			if r == i {
				continue
			}
			f := m[r][i] / m[i][i]
			for c := i; c <= n; c++ {
				m[r][c] -= f * m[i][c]
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = m[i][n] / m[i][i]
	}
	return x
}
