package sample

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// GridMode is how numbers between elements are made.
type GridMode uint8

const (
	GridLinear GridMode = iota
	GridNearest
	GridCubic
)

func (m GridMode) taps() int { return [...]int{2, 1, 4}[m] }

// GridSample reads x [Batch, Channels, In...] at Places places per sample, each
// of as many coordinates as In has axes.
type GridSample struct {
	Batch, Channels, Places int
	In                      []int
	Mode                    GridMode
	Border, Reflect         bool // the elements outside; else they are 0
	Align                   bool // -1 and 1 are the middles of the first and last element, else their outer edges
}

const gridAxes, gridTaps = 3, 4

// GridSampleRows computes places [lo, hi) of all samples, for all channels.
func GridSampleRows[T kernel.Float](g *GridSample, lo, hi int, dst, x, grid []T) {
	axes, area, taps := len(g.In), kernel.Product(g.In), g.Mode.taps()
	combos := 1
	for range axes {
		combos *= taps
	}
	for p := lo; p < hi; p++ {
		var at [gridAxes][gridTaps]int
		var weight [gridAxes][gridTaps]float64
		for a, n := range g.In {
			g.axis(position(g, grid[p*axes+axes-1-a], n), n, &at[a], &weight[a])
		}
		batch, place := p/g.Places, p%g.Places
		for c := range g.Channels {
			plane, sum := x[(batch*g.Channels+c)*area:][:area], 0.0
			for combo := range combos {
				w, pos, rest, step := 1.0, 0, combo, 1
				for a := axes - 1; a >= 0; a-- {
					tap := rest % taps
					rest /= taps
					w *= weight[a][tap]
					pos += at[a][tap] * step
					step *= g.In[a]
				}
				if w != 0 {
					sum += w * float64(plane[pos])
				}
			}
			dst[(batch*g.Channels+c)*g.Places+place] = T(sum)
		}
	}
}

// position returns where on an axis of size n a coordinate lies, in elements.
// For the nearest element it rounds to the type of the grid: 0.2 of five
// elements is half-way between two in float32, as exporters and other runtimes
// have it, and not in float64. The conversion of the product keeps a compiler
// from joining it with the difference.
func position[T kernel.Float](g *GridSample, coordinate T, n int) float64 {
	exact := float64(coordinate) + 1
	switch nearest := g.Mode == GridNearest; {
	case nearest && g.Align:
		return float64((coordinate + 1) / 2 * T(n-1))
	case nearest:
		return float64((T((coordinate+1)*T(n)) - 1) / 2)
	case g.Align:
		return exact / 2 * float64(n-1)
	}
	return (exact*float64(n) - 1) / 2
}

// axis works out which elements of an axis of size n a position reads, and how
// much of each.
func (g *GridSample) axis(v float64, n int, at *[gridTaps]int, weight *[gridTaps]float64) {
	if v != v {
		v = -1
	}
	v = min(max(v, -1<<40), 1<<40)
	first, f := math.Floor(v), v-math.Floor(v)
	switch g.Mode {
	case GridNearest:
		first, weight[0] = math.RoundToEven(v), 1
	case GridLinear:
		weight[0], weight[1] = 1-f, f
	case GridCubic:
		first--
		for i, d := range [gridTaps]float64{1 + f, f, 1 - f, 2 - f} {
			weight[i] = cubicWeight(d)
		}
	}
	for i := range g.Mode.taps() {
		k := int(first) + i
		switch {
		case k >= 0 && k < n:
		case g.Border:
			k = min(max(k, 0), n-1)
		case g.Reflect:
			k = reflect(k, n, g.Align)
		default:
			k, weight[i] = 0, 0
		}
		at[i] = k
	}
}

// cubicWeight is the weight of an element at distance d.
func cubicWeight(d float64) float64 {
	const a = -0.75
	if d <= 1 {
		return ((a+2)*d-(a+3))*d*d + 1
	}
	return ((a*d-5*a)*d+8*a)*d - 4*a
}

// reflect mirrors an index at the middles of the outer elements, or at their
// outer edges.
func reflect(k, n int, middles bool) int {
	period, last := 2*n, 2*n-1
	if middles {
		if n == 1 {
			return 0
		}
		period, last = 2*n-2, 2*n-2
	}
	if k %= period; k < 0 {
		k += period
	}
	if k >= n {
		k = last - k
	}
	return k
}

// AffineGrid computes the place to which each of Batch matrices moves every
// place of an image of sizes Out.
type AffineGrid struct {
	Batch int
	Out   []int
	Align bool // -1 and 1 are the middles of the first and last element, else their outer edges
}

// AffineGridRows computes places [lo, hi) of all images.
func AffineGridRows[T kernel.Float](g *AffineGrid, lo, hi int, dst, theta []T) {
	axes, places := len(g.Out), kernel.Product(g.Out)
	for p := lo; p < hi; p++ {
		var at [gridAxes]float64 // the last axis first
		rest := p % places
		for a := range axes {
			n := g.Out[axes-1-a]
			at[a] = g.coordinate(rest%n, n)
			rest /= n
		}
		m := theta[p/places*axes*(axes+1):]
		for i := range axes {
			sum := float64(m[i*(axes+1)+axes])
			for j := range axes {
				sum += float64(m[i*(axes+1)+j]) * at[j]
			}
			dst[p*axes+i] = T(sum)
		}
	}
}

// coordinate is where element i of n lies; a single one lies in the middle.
func (g *AffineGrid) coordinate(i, n int) float64 {
	if !g.Align {
		return (2*float64(i)+1)/float64(n) - 1
	}
	if n == 1 {
		return 0
	}
	return 2*float64(i)/float64(n-1) - 1
}
