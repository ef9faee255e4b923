package sample

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// RoiAlign samples regions of x [N, Channels, Height, Width], which lie between
// two corners, into grids of OutHeight by OutWidth bins.
type RoiAlign struct {
	Channels, Height, Width, OutHeight, OutWidth int
	Ratio                                        int // samples along each side of a bin, 0 for about one per element
	Scale                                        float64
	HalfPixel                                    bool // elements lie between whole numbers
	Max                                          bool // of the terms of the samples, else the mean of the samples
}

// roiSample is where a sample lies: four elements and how much of each.
type roiSample struct {
	at     [4]int
	weight [4]float64
}

// maxRoiSamples bounds the samples of a bin along each side: a region that is
// larger takes that many.
const maxRoiSamples = 1 << 10

// RoiAlignRegion computes one region; image is that which it lies in.
func RoiAlignRegion[T kernel.Float](r *RoiAlign, dst, image, corners []T) {
	half := 0.0
	if r.HalfPixel {
		half = 0.5
	}
	left, top := float64(corners[0])*r.Scale-half, float64(corners[1])*r.Scale-half
	width, height := float64(corners[2])*r.Scale-half-left, float64(corners[3])*r.Scale-half-top
	if !r.HalfPixel {
		width, height = math.Max(width, 1), math.Max(height, 1)
	}
	binH, binW := height/float64(r.OutHeight), width/float64(r.OutWidth)
	rows, cols := r.samples(binH), r.samples(binW)
	area := r.Height * r.Width
	for oy := range r.OutHeight {
		for ox := range r.OutWidth {
			to := dst[oy*r.OutWidth+ox:]
			for c := range r.Channels {
				to[c*r.OutHeight*r.OutWidth] = 0
			}
			for iy := range rows {
				y := top + float64(oy)*binH + (float64(iy)+0.5)*binH/float64(rows)
				for ix := range cols {
					x := left + float64(ox)*binW + (float64(ix)+0.5)*binW/float64(cols)
					s := r.sample(y, x)
					for c := range r.Channels {
						p, plane := &to[c*r.OutHeight*r.OutWidth], image[c*area:(c+1)*area]
						if r.Max {
							best := s.weight[0] * float64(plane[s.at[0]])
							for k := 1; k < 4; k++ {
								best = math.Max(best, s.weight[k]*float64(plane[s.at[k]]))
							}
							if iy+ix == 0 || T(best) > *p {
								*p = T(best)
							}
							continue
						}
						sum := 0.0
						for k := range 4 {
							sum += s.weight[k] * float64(plane[s.at[k]])
						}
						*p += T(sum / float64(rows*cols))
					}
				}
			}
		}
	}
}

// samples is how many there are along a side of a bin.
func (r *RoiAlign) samples(bin float64) int {
	if r.Ratio > 0 {
		return r.Ratio
	}
	n := math.Ceil(bin)
	if !(n >= 1) {
		return 0
	}
	return int(math.Min(n, maxRoiSamples))
}

// sample finds the elements around a place; outside of the image there is
// nothing.
func (r *RoiAlign) sample(y, x float64) (s roiSample) {
	if !(y >= -1 && y <= float64(r.Height) && x >= -1 && x <= float64(r.Width)) {
		return s
	}
	y0, y1, fy := between(y, r.Height)
	x0, x1, fx := between(x, r.Width)
	s.at = [4]int{y0*r.Width + x0, y0*r.Width + x1, y1*r.Width + x0, y1*r.Width + x1}
	s.weight = [4]float64{(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx}
	return s
}

// between returns the elements beside a coordinate, held inside, and how much
// of the second one counts.
func between(v float64, n int) (lo, hi int, f float64) {
	v = math.Max(v, 0)
	if lo = int(v); lo >= n-1 {
		return n - 1, n - 1, 0
	}
	return lo, lo + 1, v - float64(lo)
}

// MaxRoi pools regions of x [N, Channels, Height, Width] into grids.
type MaxRoi struct {
	Channels, Height, Width, OutHeight, OutWidth int
	Scale                                        float64
}

// MaxRoiRegion computes one region: corners are whole elements, both inside. A
// bin without elements is 0.
func MaxRoiRegion[T kernel.Float](r *MaxRoi, dst, image, corners []T) {
	whole := func(v T) float64 { return math.Min(math.Max(math.Round(float64(v)*r.Scale), -1<<30), 1<<30) }
	left, top := whole(corners[0]), whole(corners[1])
	width, height := math.Max(whole(corners[2])-left+1, 1), math.Max(whole(corners[3])-top+1, 1)
	for oy := range r.OutHeight {
		y0, y1 := bin(oy, r.OutHeight, top, height, r.Height)
		for ox := range r.OutWidth {
			x0, x1 := bin(ox, r.OutWidth, left, width, r.Width)
			for c := range r.Channels {
				best, some := T(0), false
				for y := y0; y < y1; y++ {
					for _, v := range image[(c*r.Height+y)*r.Width:][x0:max(x0, x1)] {
						if !some || v > best {
							best, some = v, true
						}
					}
				}
				dst[(c*r.OutHeight+oy)*r.OutWidth+ox] = best
			}
		}
	}
}

// bin returns the elements of bin i of n over size elements from start, as far
// as they lie inside.
func bin(i, n int, start, size float64, inside int) (lo, hi int) {
	each := size / float64(n)
	hold := func(v float64) int { return int(math.Min(math.Max(v+start, 0), float64(inside))) }
	return hold(math.Floor(float64(i) * each)), hold(math.Ceil(float64(i+1) * each))
}
