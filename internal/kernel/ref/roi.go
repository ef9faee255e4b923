package ref

import "math"

// Tent reads a plane [h, w] at a place: every element counts by its distance in
// rows and columns, below 1.
func Tent(plane []float64, h, w int, y, x float64) float64 {
	sum := 0.0
	for i := range h {
		for j := range w {
			sum += math.Max(0, 1-math.Abs(y-float64(i))) * math.Max(0, 1-math.Abs(x-float64(j))) * plane[i*w+j]
		}
	}
	return sum
}

// RoiAlign is the mean of ratio by ratio samples in the bin at (oy, ox) of a
// grid of gh by gw over a region of a plane.
func RoiAlign(plane []float64, h, w int, corners [4]float64, oy, ox, gh, gw, ratio int) float64 {
	sum := 0.0
	for i := range ratio {
		for j := range ratio {
			y := corners[1] + (corners[3]-corners[1])*(float64(oy*ratio+i)+0.5)/float64(gh*ratio)
			x := corners[0] + (corners[2]-corners[0])*(float64(ox*ratio+j)+0.5)/float64(gw*ratio)
			if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
				continue
			}
			y, x = math.Min(math.Max(y, 0), float64(h-1)), math.Min(math.Max(x, 0), float64(w-1))
			sum += Tent(plane, h, w, y, x)
		}
	}
	return sum / float64(ratio*ratio)
}

// Deform2D is one result of a deformable convolution: x [channels, h, w] at
// places that are given per offset group and tap.
func Deform2D(x []float64, channels, h, w, offsetGroups, taps int, weights []float64, place func(group, tap int) (y, x, factor float64)) float64 {
	sum := 0.0
	for c := range channels {
		for k := range taps {
			y, u, f := place(c/(channels/offsetGroups), k)
			sum += f * weights[c*taps+k] * Tent(x[c*h*w:(c+1)*h*w], h, w, y, u)
		}
	}
	return sum
}

// LinearAttention goes through the tokens of one head: q, k and v are
// [length][size], decay is [length][keys], rate [length]. The state is
// [keys][values], changed as it goes.
func LinearAttention(state, q, k, v, decay [][]float64, rate []float64, delta bool, scale float64) [][]float64 {
	var out [][]float64
	for t := range q {
		for i := range state {
			for j := range state[i] {
				state[i][j] *= math.Exp(decay[t][i])
			}
		}
		add := append([]float64(nil), v[t]...)
		for j := range add {
			if delta {
				for i := range state {
					add[j] -= state[i][j] * k[t][i]
				}
				add[j] *= rate[t]
			}
		}
		row := make([]float64, len(v[t]))
		for i := range state {
			for j := range state[i] {
				state[i][j] += k[t][i] * add[j]
				row[j] += scale * q[t][i] * state[i][j]
			}
		}
		out = append(out, row)
	}
	return out
}
