package conv

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Deform is a convolution of x [Batch, InChannels, In...] by weights
// [OutChannels, InChannels/Group, Kernel...] whose taps are moved by offsets
// [Batch, OffsetGroup, Kernel..., axes, Out...] and may be scaled by factors
// [Batch, OffsetGroup, Kernel..., Out...].
type Deform struct {
	Batch, Group, OffsetGroup, InChannels, OutChannels int
	Window
}

// Prepare works out the window.
func (d *Deform) Prepare() { d.Resolve() }

// Places is how many places all results have together, and ScratchNumbers how
// many numbers each worker needs.
func (d *Deform) Places() int         { return d.Batch * d.outArea }
func (d *Deform) ScratchNumbers() int { return d.InChannels * d.taps }

// DeformPlaces computes places [lo, hi) of all channels. bias and factors may
// be nil.
func DeformPlaces[T kernel.Float](d *Deform, lo, hi int, dst, x, weights, offsets, bias, factors []T, scratch []float64) {
	each := d.InChannels / d.Group * d.taps
	for p := lo; p < hi; p++ {
		batch, place := p/d.outArea, p%d.outArea
		sampleTaps(d, batch, place, x, offsets, factors, scratch)
		for m := range d.OutChannels {
			sum := 0.0
			if bias != nil {
				sum = float64(bias[m])
			}
			column := scratch[m/(d.OutChannels/d.Group)*each:][:each]
			for i, w := range weights[m*each:][:each] {
				sum += float64(w) * column[i]
			}
			dst[(batch*d.OutChannels+m)*d.outArea+place] = T(sum)
		}
	}
}

// sampleTaps reads the samples of the taps of one place: [InChannels,
// Kernel...].
func sampleTaps[T kernel.Float](d *Deform, batch, place int, x, offsets, factors []T, column []float64) {
	axes, perGroup := len(d.In), d.InChannels/d.OffsetGroup
	z, y, w := place/d.out[2]/d.out[1], place/d.out[2]%d.out[1], place%d.out[2]
	out := [MaxSpatial]int{z, y, w}
	for g := range d.OffsetGroup {
		for k := range d.taps {
			tap := [MaxSpatial]int{k / d.kernel[2] / d.kernel[1], k / d.kernel[2] % d.kernel[1], k % d.kernel[2]}
			from := (batch*d.OffsetGroup+g)*d.taps + k
			var at [MaxSpatial]float64
			for a := range MaxSpatial {
				at[a] = float64(out[a]*d.stride[a] - d.padBegin[a] + tap[a]*d.dilation[a])
				if own := a - (MaxSpatial - axes); own >= 0 {
					at[a] += float64(offsets[(from*axes+own)*d.outArea+place])
				}
			}
			factor := 1.0
			if factors != nil {
				factor = float64(factors[from*d.outArea+place])
			}
			for c := g * perGroup; c < (g+1)*perGroup; c++ {
				column[c*d.taps+k] = factor * interpolate(d, x[(batch*d.InChannels+c)*d.inArea:][:d.inArea], at)
			}
		}
	}
}

// interpolate reads a plane between its elements; those outside are 0.
func interpolate[T kernel.Float](d *Deform, plane []T, at [MaxSpatial]float64) float64 {
	var first [MaxSpatial]int
	var f [MaxSpatial]float64
	for a := range MaxSpatial {
		if !(at[a] > -1 && at[a] < float64(d.in[a])) {
			return 0
		}
		v := math.Floor(at[a])
		first[a], f[a] = int(v), at[a]-v
	}
	sum := 0.0
	for corner := range 1 << MaxSpatial {
		weight, pos, inside := 1.0, 0, true
		for a := range MaxSpatial {
			i := first[a]
			if corner>>a&1 != 0 {
				i++
				weight *= f[a]
			} else {
				weight *= 1 - f[a]
			}
			inside = inside && i >= 0 && i < d.in[a]
			pos = pos*d.in[a] + i
		}
		if inside && weight != 0 {
			sum += weight * float64(plane[pos])
		}
	}
	return sum
}
