package ref

import "math"

// Window is how a kernel moves over spatial axes; all lists have one entry per
// axis.
type Window struct {
	In, Kernel, Stride, Dilation, PadBegin, PadEnd, Out []int
}

// each calls f with every tap of the window of an output, and the input it
// reads, which may lie outside.
func (w Window) each(out []int, f func(tap, in []int)) {
	Each(w.Kernel, func(tap []int) {
		in := make([]int, len(tap))
		for i := range in {
			in[i] = out[i]*w.Stride[i] - w.PadBegin[i] + tap[i]*w.Dilation[i]
		}
		f(tap, in)
	})
}

// Conv is a convolution of [Batch, InChannels, In...] by [OutChannels,
// InChannels/Group, Kernel...] with its prologue and epilogue.
type Conv struct {
	Batch, Group, InChannels, OutChannels int
	Window
	Scale, Shift []float32 // per input channel; nil for none
	PrologueRelu bool
	Epilogue
}

// Run returns [Batch, OutChannels, Out...].
func (c Conv) Run(in, weights, bias, residual []float32) []float64 {
	var out []float64
	channels, filters := c.InChannels/c.Group, c.OutChannels/c.Group
	area, taps := Size(c.In), Size(c.Kernel)
	for n := range c.Batch {
		for m := range c.OutChannels {
			Each(c.Out, func(idx []int) {
				sum := 0.0
				for ch := range channels {
					from := m/filters*channels + ch
					c.each(idx, func(tap, at []int) {
						if !Inside(c.In, at) {
							return
						}
						x := float64(in[(n*c.InChannels+from)*area+At(c.In, at)])
						if c.Scale != nil {
							x = x*float64(c.Scale[from]) + float64(c.Shift[from])
						}
						if c.PrologueRelu {
							x = math.Max(x, 0)
						}
						sum += x * float64(weights[(m*channels+ch)*taps+At(c.Kernel, tap)])
					})
				}
				out = append(out, c.apply(sum, m, 0, 0, bias, residual, len(out)))
			})
		}
	}
	return out
}

// ConvTranspose spreads each element of x [Batch, InChannels, In...] over the
// window that it is the output of: the reverse of the convolution with weights
// [InChannels, OutChannels/Group, Kernel...] from Out to In.
func ConvTranspose(batch, group, inChannels, outChannels int, w Window, x, weights, bias []float32) []float64 {
	filters := outChannels / group
	inArea, outArea, taps := Size(w.In), Size(w.Out), Size(w.Kernel)
	out := make([]float64, batch*outChannels*outArea)
	for i := range out {
		if bias != nil {
			out[i] = float64(bias[i/outArea%outChannels])
		}
	}
	for n := range batch {
		for c := range inChannels {
			for f := range filters {
				m := c/(inChannels/group)*filters + f
				Each(w.In, func(in []int) {
					v := float64(x[(n*inChannels+c)*inArea+At(w.In, in)])
					w.each(in, func(tap, at []int) {
						if Inside(w.Out, at) {
							out[(n*outChannels+m)*outArea+At(w.Out, at)] += v * float64(weights[(c*filters+f)*taps+At(w.Kernel, tap)])
						}
					})
				})
			}
		}
	}
	return out
}

// Pool reduces the windows of planes: Kind is "max", "average", or
// "average_padded", which counts the taps in the padding.
type Pool struct {
	Kind   string
	Planes int
	Window
}

// Run returns the results, and for a maximum the number of its element in x.
func (p Pool) Run(x []float64) (out []float64, where []int64) {
	area := Size(p.In)
	padded := make([]int, len(p.In))
	for i := range padded {
		padded[i] = p.PadBegin[i] + p.In[i] + p.PadEnd[i]
	}
	for plane := range p.Planes {
		Each(p.Out, func(idx []int) {
			best, at, sum, inside, counted := math.Inf(-1), int64(0), 0.0, 0, 0
			p.each(idx, func(_, in []int) {
				shifted := make([]int, len(in))
				for i := range in {
					shifted[i] = in[i] + p.PadBegin[i]
				}
				if Inside(padded, shifted) {
					counted++
				}
				if !Inside(p.In, in) {
					return
				}
				k := plane*area + At(p.In, in)
				if inside == 0 || x[k] > best || math.IsNaN(x[k]) && !math.IsNaN(best) {
					best, at = x[k], int64(k)
				}
				sum += x[k]
				inside++
			})
			switch {
			case p.Kind == "max":
				out = append(out, best)
			case inside == 0:
				out = append(out, 0)
			case p.Kind == "average":
				out = append(out, sum/float64(inside))
			default:
				out = append(out, sum/float64(counted))
			}
			where = append(where, at)
		})
	}
	return out, where
}
