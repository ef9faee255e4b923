package ref

import "math"

// GridSample2D is one plane [h, w] at one place (x, y), each from -1 to 1
// between the middles of the outer elements. Every element of the plane,
// mirrored at its middles as often as it takes if reflect, counts by its
// distance.
func GridSample2D(plane []float64, h, w int, x, y float64, cubic, reflect bool) float64 {
	weight := func(d float64) float64 {
		d = math.Abs(d)
		switch {
		case !cubic:
			return math.Max(0, 1-d)
		case d <= 1:
			return 1.25*d*d*d - 2.25*d*d + 1
		case d < 2:
			return -0.75*d*d*d + 3.75*d*d - 6*d + 3
		}
		return 0
	}
	fold := func(i, n int) int {
		for i < 0 || i >= n {
			if i < 0 {
				i = -i
			} else {
				i = 2*(n-1) - i
			}
		}
		return i
	}
	v, u := (y+1)/2*float64(h-1), (x+1)/2*float64(w-1)
	sum := 0.0
	for i := -3 * h; i < 4*h; i++ {
		for j := -3 * w; j < 4*w; j++ {
			k := weight(v-float64(i)) * weight(u-float64(j))
			inside := i >= 0 && i < h && j >= 0 && j < w
			if k != 0 && (inside || reflect) {
				sum += k * plane[fold(i, h)*w+fold(j, w)]
			}
		}
	}
	return sum
}
