package ref

import "math"

// Resize samples a tensor at another size, as ONNX defines it. Lists have one
// entry per axis.
type Resize struct {
	In, Out       []int
	Scale         []float64 // results per element
	Lo, Hi        []float64 // region of interest, for tf_crop_and_resize
	Mode          string    // "nearest", "linear" or "cubic"
	Transform     string
	Nearest       string // rounding of nearest
	CubicA        float64
	Exclude       bool // elements outside count for nothing
	Antialias     bool // stretch the filter when shrinking
	Extrapolation float64
}

// coordinate is where result i of an axis lies between the elements.
func (r Resize) coordinate(axis, i int) float64 {
	x, scale, in, out := float64(i), r.Scale[axis], float64(r.In[axis]), float64(r.Out[axis])
	switch r.Transform {
	case "align_corners": // the first and the last element keep their places
		if out == 1 {
			return 0
		}
		return x / (out - 1) * (in - 1)
	case "asymmetric":
		return x / scale
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / scale
	case "pytorch_half_pixel":
		if out <= 1 {
			return 0
		}
		return (x+0.5)/scale - 0.5
	case "half_pixel_symmetric":
		length := scale * in // the size that the scale asks for; out is its integer part
		return in/2*(1-out/length) + (x+0.5)/scale - 0.5
	case "tf_crop_and_resize":
		if out > 1 {
			return r.Lo[axis]*(in-1) + x*(r.Hi[axis]-r.Lo[axis])*(in-1)/(out-1)
		}
		return 0.5 * (r.Lo[axis] + r.Hi[axis]) * (in - 1)
	}
	return (x+0.5)/scale - 0.5
}

// taps is the weight of each element of an axis in its result i.
func (r Resize) taps(axis, i int) map[int]float64 {
	x, n := r.coordinate(axis, i), r.In[axis]
	clamp := func(k int) int { return max(0, min(n-1, k)) }
	if r.Mode == "nearest" {
		x = float64(float32(x)) // a scale that has been rounded may miss a tie
		return map[int]float64{clamp(r.round(x, r.Scale[axis])): 1}
	}
	stretch := 1.0
	if r.Antialias && r.Scale[axis] < 1 {
		stretch = r.Scale[axis]
	}
	taps, sum := map[int]float64{}, 0.0
	reach := int(math.Ceil(2/stretch)) + 1
	for k := int(math.Floor(x)) - reach; k <= int(math.Floor(x))+reach; k++ {
		w := r.filter((float64(k) - x) * stretch)
		if r.Exclude && (k < 0 || k >= n) {
			w = 0
		}
		taps[clamp(k)] += w
		sum += w
	}
	for k := range taps {
		taps[k] /= sum
	}
	return taps
}

func (r Resize) round(x, scale float64) int {
	rounding := r.Nearest
	if rounding == "inward" { // as before opset 11
		rounding = "floor"
		if scale < 1 {
			rounding = "ceil"
		}
	}
	switch rounding {
	case "floor":
		return int(math.Floor(x))
	case "ceil":
		return int(math.Ceil(x))
	case "round_prefer_ceil":
		return int(math.Floor(x + 0.5))
	}
	return int(math.Ceil(x - 0.5))
}

func (r Resize) filter(d float64) float64 {
	d = math.Abs(d)
	a := r.CubicA
	switch {
	case r.Mode == "linear":
		return math.Max(0, 1-d)
	case d <= 1:
		return (a+2)*d*d*d - (a+3)*d*d + 1
	case d < 2:
		return a*d*d*d - 5*a*d*d + 8*a*d - 4*a
	}
	return 0
}

// Run returns the samples.
func (r Resize) Run(x []float64) []float64 {
	var out []float64
	Each(r.Out, func(idx []int) {
		outside := false
		for axis, i := range idx {
			c := r.coordinate(axis, i)
			outside = outside || r.Transform == "tf_crop_and_resize" && (c < 0 || c > float64(r.In[axis]-1))
		}
		if outside {
			out = append(out, r.Extrapolation)
			return
		}
		out = append(out, r.sample(x, idx, make([]int, len(idx)), 0))
	})
	return out
}

func (r Resize) sample(x []float64, idx, at []int, axis int) float64 {
	if axis == len(idx) {
		return x[At(r.In, at)]
	}
	sum := 0.0
	for k, w := range r.taps(axis, idx[axis]) {
		at[axis] = k
		if w != 0 {
			sum += w * r.sample(x, idx, at, axis+1)
		}
	}
	return sum
}
