package reduce_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestNorm(t *testing.T) { kerneltest.EachVariant(t, testNorm) }

func testNorm(t *testing.T, v *kernel.Variant) {
	for _, dims := range [][2]int{{1, 1}, {3, 7}, {5, 64}, {5, 769}, {40, 304}, {40, 300}, {0, 4}} {
		for mode := range 4 {
			normRows(t, v, dims[0], dims[1], mode&1 != 0, mode&2 != 0)
		}
		rmsRows(t, v, dims[0], dims[1])
	}
	normLarge(t, v)
	for _, c := range []struct{ batch, channels, groups, area int }{{2, 3, 3, 20}, {1, 4, 2, 9}, {3, 6, 1, 1}, {2, 8, 4, 33}} {
		normChannels(t, v, c.batch, c.channels, c.groups, c.area)
		batchNorm(t, v, c.batch, c.channels, c.area)
	}
}

// offset numbers lie far from zero, where a one-pass variance drowns.
func offset(x []float32) []float32 { return ref.Map(x, func(v float32) float32 { return v + 100 }) }

func normRows(t *testing.T, v *kernel.Variant, rows, n int, withBias, withMoments bool) {
	t.Helper()
	r := kerneltest.NewRand(50)
	x, scale := offset(kerneltest.Uniform(r, rows*n)), kerneltest.Uniform(r, n)
	if n >= 300 && rows > 0 { // a number that lies far from the others of its row, where a kernel may look first
		x[n/4] = 200
	}
	spec := reduce.Norm{Rows: rows, Len: n, Epsilon: 1e-5}
	s := kerneltest.NewSpace(t)
	src, dst, place, k := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x), kerneltest.In(s, "scale", scale)
	var bias, mean, inv []float32
	if withBias {
		bias = kerneltest.In(s, "bias", kerneltest.Uniform(r, n))
	}
	if withMoments {
		mean, inv = kerneltest.Out[float32](s, "mean", rows), kerneltest.Out[float32](s, "inv", rows)
	}
	kerneltest.Backwards(spec.Tiles(), func(i int) {
		reduce.NormTile(v, &spec, i, dst, src, k, bias, mean, inv)
		reduce.NormTile(v, &spec, i, place, place, k, bias, nil, nil)
	})
	if n <= reduce.StreamRows {
		row := kerneltest.Out[float32](s, "row", n)
		for _, past := range [][]float32{kerneltest.Out[float32](s, "streamed", len(x)), kerneltest.OutAligned[float32](s, "streamed by vectors", len(x))} {
			kerneltest.Backwards(spec.Tiles(), func(i int) { reduce.NormStream(v, &spec, i, row, past, src, k, bias) })
			kerneltest.WantEqual(t, past, dst)
		}
	}
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	for row := range rows {
		y, m, i := ref.Norm(kerneltest.F64s(x[row*n:(row+1)*n]), spec.Epsilon, false)
		for j := range y {
			y[j] *= float64(scale[j])
			if withBias {
				y[j] += float64(bias[j])
			}
		}
		// The mean itself, rounded to float32, is off by up to 4e-6 at 100.
		kerneltest.WantClose(t, dst[row*n:(row+1)*n], y, 3e-5*math.Min(i, 300))
		if withMoments {
			kerneltest.WantClose(t, mean[row:row+1], []float64{m}, 1e-5)
			kerneltest.WantClose(t, inv[row:row+1], []float64{i}, 2e-5*i)
		}
	}
}

// normLarge holds rows of a tensor that no cache takes, for which kernels go
// other ways, against the same rows alone.
func normLarge(t *testing.T, v *kernel.Variant) {
	t.Helper()
	const rows, n = 8 << 10, 1 << 10
	r := kerneltest.NewRand(52)
	x, scale, bias := offset(kerneltest.Uniform(r, rows*n)), kerneltest.Uniform(r, n), kerneltest.Uniform(r, n)
	spec, one := reduce.Norm{Rows: rows, Len: n, Epsilon: 1e-5}, reduce.Norm{Rows: 1, Len: n, Epsilon: 1e-5}
	place, past, scratch, want := append([]float32(nil), x...), make([]float32, len(x)), make([]float32, n), make([]float32, n)
	mean, inv, wantMean, wantInv := make([]float32, rows), make([]float32, rows), make([]float32, 1), make([]float32, 1)
	for i := range spec.Tiles() {
		reduce.NormTile(v, &spec, i, place, place, scale, bias, mean, inv)
		reduce.NormStream(v, &spec, i, scratch, past, x, scale, bias)
	}
	for row := 0; row < rows; row += 97 {
		reduce.NormTile(v, &one, 0, want, x[row*n:][:n], scale, bias, wantMean, wantInv)
		kerneltest.WantEqual(t, place[row*n:][:n], want)
		kerneltest.WantEqual(t, past[row*n:][:n], want)
		kerneltest.WantEqual(t, []float32{mean[row], inv[row]}, []float32{wantMean[0], wantInv[0]})
	}
}

func rmsRows(t *testing.T, v *kernel.Variant, rows, n int) {
	t.Helper()
	r := kerneltest.NewRand(51)
	x, scale := kerneltest.Uniform(r, rows*n), kerneltest.Uniform(r, n)
	spec := reduce.Norm{Rows: rows, Len: n, Epsilon: 1e-6}
	s := kerneltest.NewSpace(t)
	src, dst, place, k := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x), kerneltest.In(s, "scale", scale)
	kerneltest.Backwards(spec.Tiles(), func(i int) {
		reduce.RMSNormTile(v, &spec, i, dst, src, k)
		reduce.RMSNormTile(v, &spec, i, place, place, k)
	})
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	for row := range rows {
		y, _, _ := ref.Norm(kerneltest.F64s(x[row*n:(row+1)*n]), spec.Epsilon, true)
		for j := range y {
			y[j] *= float64(scale[j])
		}
		kerneltest.WantClose(t, dst[row*n:(row+1)*n], y, 1e-6)
	}
}

// normChannels normalises groups of channels, with a scale and a bias per
// channel.
func normChannels(t *testing.T, v *kernel.Variant, batch, channels, groups, area int) {
	t.Helper()
	r := kerneltest.NewRand(52)
	n := channels / groups * area
	spec := reduce.Norm{Rows: batch * groups, Len: n, Channels: channels, Area: area, Epsilon: 1e-5}
	x := kerneltest.Uniform(r, batch*channels*area)
	s := kerneltest.NewSpace(t)
	src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
	scale, bias := kerneltest.In(s, "scale", kerneltest.Uniform(r, channels)), kerneltest.In(s, "bias", kerneltest.Uniform(r, channels))
	kerneltest.Backwards(spec.Tiles(), func(i int) {
		reduce.NormTile(v, &spec, i, dst, src, scale, bias, nil, nil)
		reduce.NormTile(v, &spec, i, place, place, scale, bias, nil, nil)
	})
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	for row := range spec.Rows {
		y, _, inv := ref.Norm(kerneltest.F64s(x[row*n:(row+1)*n]), spec.Epsilon, false)
		for j := range y {
			c := (row*n + j) / area % channels
			y[j] = y[j]*float64(scale[c]) + float64(bias[c])
		}
		kerneltest.WantClose(t, dst[row*n:(row+1)*n], y, 1e-6*math.Max(1, inv))
	}
}

func batchNorm(t *testing.T, v *kernel.Variant, batch, channels, area int) {
	t.Helper()
	r := kerneltest.NewRand(53)
	x := kerneltest.Uniform(r, batch*channels*area)
	s := kerneltest.NewSpace(t)
	src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
	scale, bias, mean := kerneltest.In(s, "scale", kerneltest.Uniform(r, channels)), kerneltest.In(s, "bias", kerneltest.Uniform(r, channels)), kerneltest.In(s, "mean", kerneltest.Uniform(r, channels))
	variance := kerneltest.In(s, "variance", ref.Map(kerneltest.Uniform(r, channels), func(v float32) float32 { return v + 1.5 }))
	kerneltest.InRanges(batch*channels, func(lo, hi int) {
		reduce.BatchNormTile(v, lo, hi, area, 1e-5, dst, src, scale, bias, mean, variance)
		reduce.BatchNormTile(v, lo, hi, area, 1e-5, place, place, scale, bias, mean, variance)
	})
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	for i, v := range x {
		c := i / area % channels
		want := (float64(v)-float64(mean[c]))/math.Sqrt(float64(variance[c])+1e-5)*float64(scale[c]) + float64(bias[c])
		kerneltest.WantClose(t, dst[i:i+1], []float64{want}, 1e-6)
	}
}
