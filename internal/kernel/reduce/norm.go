package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Norm normalises rows: y = (x - mean) / sqrt(variance + Epsilon) * scale +
// bias, with the mean and the variance of each row of Len elements.
//
// LayerNorm has one scale and bias per element of a row (Channels 0).
// Instance and group normalisation have one per channel: a row holds
// Len/Area whole channels of Area elements each, and the channel of a row's
// first element is row*Len/Area modulo Channels. A row is read whole before
// it is overwritten, so that the output may be the operand's bytes.
type Norm struct {
	Rows, Len      int
	Channels, Area int // Channels 0: scale and bias lie along the row
	Epsilon        float64
}

// perTile returns the rows of one tile.
func (n *Norm) perTile() int { return rowsPerTile(n.Rows, n.Len) }

// Tiles returns the number of tiles.
func (n *Norm) Tiles() int { return (n.Rows + n.perTile() - 1) / n.perTile() }

// NormTile computes one tile. bias, mean and invStd may be nil; the last two
// receive a number per row.
func NormTile[T kernel.Float](v *kernel.Variant, n *Norm, tile int, dst, src, scale, bias, mean, invStd []T) {
	lo := tile * n.perTile()
	hi := min(lo+n.perTile(), n.Rows)
	if d, ok := any(dst).([]float32); ok && n.Channels == 0 && n.Len > 0 && bias != nil && v.Rows.NormBias != nil {
		x, k, b := any(src).([]float32), any(scale).([]float32), any(bias).([]float32)
		if rowsNorm(v, n, lo, hi, d, x, k, b, any(mean).([]float32), any(invStd).([]float32), false) {
			return
		}
	}
	for row := lo; row < hi; row++ {
		d, x := dst[row*n.Len:(row+1)*n.Len], src[row*n.Len:(row+1)*n.Len]
		m, inv := moments(v, x, n.Epsilon)
		if mean != nil {
			mean[row] = T(m)
		}
		if invStd != nil {
			invStd[row] = T(inv)
		}
		if n.Channels == 0 {
			normRow(v, d, x, scale, bias, T(m), T(inv))
			continue
		}
		for at := 0; at < n.Len; at += n.Area {
			c := (row*n.Len + at) / n.Area % n.Channels
			a := inv * float64(scale[c])
			b := -m * a
			if bias != nil {
				b += float64(bias[c])
			}
			affineRow(v, d[at:at+n.Area], x[at:at+n.Area], T(a), T(b))
		}
	}
}

// NormStream is NormTile for layer normalisation over rows of StreamRows
// elements at most, with a result that is written past the caches. dst is not
// src, and scratch takes a row.
func NormStream(v *kernel.Variant, n *Norm, tile int, scratch, dst, src, scale, bias []float32) {
	lo := tile * n.perTile()
	hi := min(lo+n.perTile(), n.Rows)
	if bias != nil && v.Rows.NormBias != nil && rowsNorm(v, n, lo, hi, dst, src, scale, bias, nil, nil, true) {
		elementwise.StreamEnd(v)
		return
	}
	part, row := Norm{Rows: 1, Len: n.Len, Epsilon: n.Epsilon}, scratch[:n.Len]
	for at := lo * n.Len; at < hi*n.Len; at += n.Len {
		NormTile(v, &part, 0, row, src[at:at+n.Len], scale, bias, nil, nil)
		elementwise.StreamRow(v, dst[at:at+n.Len], row)
	}
	elementwise.StreamEnd(v)
}

// moments returns the mean and 1/sqrt(variance + epsilon) of a row, NaN where
// it has no elements.
func moments[T kernel.Float](v *kernel.Variant, x []T, epsilon float64) (mean, inv float64) {
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	var variance float64
	if f, ok := any(x).([]float32); ok {
		mean, variance = rowMoments(v, f)
	} else {
		mean, variance = momentsOf(x)
	}
	return mean, 1 / math.Sqrt(variance+epsilon)
}

// momentsOf takes two passes: the variance of numbers far from zero would drown
// in one. The second pass is about the mean as it is in T, and what that
// rounding adds is taken out again.
func momentsOf[T kernel.Float](x []T) (mean, variance float64) {
	count := float64(len(x))
	mean = sumChains(x) / count
	off := mean - float64(T(mean))
	return mean, max(0, squareChains(x, T(mean))/count-off*off)
}

func normRow[T kernel.Float](v *kernel.Variant, dst, src, scale, bias []T, mean, inv T) {
	if d, ok := any(dst).([]float32); ok {
		rowNorm(v, d, any(src).([]float32), any(scale).([]float32), any(bias).([]float32), float32(mean), float32(inv))
		return
	}
	normOf(dst, src, scale, bias, mean, inv)
}

func normOf[T kernel.Float](dst, src, scale, bias []T, mean, inv T) {
	dst, scale = dst[:len(src)], scale[:len(src)]
	if bias == nil {
		for i, x := range src {
			dst[i] = (x - mean) * inv * scale[i]
		}
		return
	}
	bias = bias[:len(src)]
	for i, x := range src {
		dst[i] = (x-mean)*inv*scale[i] + bias[i]
	}
}

func affineRow[T kernel.Float](v *kernel.Variant, dst, src []T, a, b T) {
	dst = dst[:len(src)]
	if d, ok := any(dst).([]float32); ok {
		elementwise.UnaryRow(v, kernel.Affine, d, any(src).([]float32), float32(a), float32(b))
		return
	}
	for i, x := range src {
		dst[i] = x*a + b
	}
}

// RMSNormTile is Norm without the mean: y = x / sqrt(mean(x*x) + Epsilon) *
// scale. Channels is 0.
func RMSNormTile[T kernel.Float](v *kernel.Variant, n *Norm, tile int, dst, src, scale []T) {
	lo := tile * n.perTile()
	for row := lo; row < min(lo+n.perTile(), n.Rows); row++ {
		d, x := dst[row*n.Len:(row+1)*n.Len], src[row*n.Len:(row+1)*n.Len]
		inv := T(1 / math.Sqrt(squareRun(v, x, 0)/float64(n.Len)+n.Epsilon))
		normRow(v, d, x, scale, nil, 0, inv)
	}
}

// BatchNormTile is y = (x - mean) / sqrt(variance + epsilon) * scale + bias
// with numbers per channel, over planes [lo, hi) of area elements; plane p is
// of channel p modulo len(scale). The output may be the operand's bytes.
func BatchNormTile[T kernel.Float](v *kernel.Variant, lo, hi, area int, epsilon float64, dst, src, scale, bias, mean, variance []T) {
	for p := lo; p < hi; p++ {
		c := p % len(scale)
		a := float64(scale[c]) / math.Sqrt(float64(variance[c])+epsilon)
		b := float64(bias[c]) - float64(mean[c])*a
		affineRow(v, dst[p*area:(p+1)*area], src[p*area:(p+1)*area], T(a), T(b))
	}
}

// ChannelMoments computes mean and variance of each channel of src [batch,
// channels, area], over batch and area; of no elements both are not a number.
func ChannelMoments[T kernel.Float](v *kernel.Variant, batch, channels, area int, mean, variance, src []T) {
	count := float64(batch * area)
	for c := range channels {
		sum, squares := 0.0, 0.0
		for n := range batch {
			sum += sumRun(v, src[(n*channels+c)*area:][:area])
		}
		m := sum / count
		for n := range batch {
			for _, x := range src[(n*channels+c)*area:][:area] {
				squares += (float64(x) - m) * (float64(x) - m)
			}
		}
		mean[c], variance[c] = T(m), T(squares/count)
	}
}
