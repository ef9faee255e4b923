package conv_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// Convolutions of 16 bits with fewer multiplications compute the same as direct
// ones, but for rounding, under pools and with residuals too.
func TestHalfWinograd(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		if v.Conv.Winograd[0].Input == nil {
			return
		}
		r := kerneltest.NewRand(45)
		for i := range 40 {
			c := winogradConv(r, i%8 == 0)
			c.Act, c.Bias = []gemm.Activation{{}, {Op: kernel.Relu}}[r.IntN(2)], gemm.BiasRow
			probe := c
			probe.Prepare(v)
			out := probe.Out
			if c.Residual = r.IntN(3) == 0; r.IntN(3) == 0 {
				c.Pool = randomPoolOf(r, probe.Out, conv.PoolMax)
				out = poolWindow(v, c.Pool, probe.Out).Out
			}
			dt := []dtype.DType{dtype.F16, dtype.BF16}[r.IntN(2)]
			halfWinogradCase(t, v, r, fmt.Sprintf("random %d %s %+v", i, dt, c), dt, c, probe.Out, out)
		}
	})
}

func halfWinogradCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, dt dtype.DType, c conv.Conv, between, out []int) {
	t.Helper()
	s := kerneltest.NewSpace(t)
	halves := func(what string, n int) []uint16 {
		return kerneltest.In(s, what, ref.Map(kerneltest.Uniform(r, n), func(f float32) uint16 { return kerneltest.ToHalf(dt, f) }))
	}
	args := conv.HalfArgs{In: halves("in", c.Batch*c.InChannels*ref.Size(c.In)), Bias: halves("bias", c.OutChannels)}
	if c.ScaleShift {
		args.Scale, args.Shift = kerneltest.In(s, "scale", kerneltest.Uniform(r, c.InChannels)), kerneltest.In(s, "shift", kerneltest.Uniform(r, c.InChannels))
	}
	if c.Residual {
		args.Residual = halves("residual", c.Batch*c.OutChannels*ref.Size(between))
	}
	weights := halves("weights", 9*c.OutChannels*c.InChannels/c.Group)
	var got [2][]uint16
	for i := range got {
		got[i] = runHalfForm(t, v, s, dt, c, args, weights, c.Batch*c.OutChannels*ref.Size(out), i == 0)
	}
	s.Check()
	epsilon := map[dtype.DType]float64{dtype.F16: 0x1p-11, dtype.BF16: 0x1p-8}[dt]
	bound := 6 * epsilon * math.Sqrt(float64(9*c.InChannels/c.Group))
	for i, b := range got[0] {
		want, x := float64(kerneltest.FromHalf(dt, b)), float64(kerneltest.FromHalf(dt, got[1][i]))
		if !(math.Abs(x-want) <= bound+2*epsilon*math.Abs(want)) {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, x, want)
		}
	}
}

// runHalfForm packs weights in the direct form or the transformed one, and
// runs.
func runHalfForm(t *testing.T, v *kernel.Variant, s *kerneltest.Space, dt dtype.DType, c conv.Conv, args conv.HalfArgs, weights []uint16, size int, direct bool) []uint16 {
	t.Helper()
	c.Direct, c.WeightType, c.PackedWeights = direct, dt, true
	if c.Pool != nil {
		again := *c.Pool
		c.Pool = &again
	}
	panels, ok := c.WeightPanels(v)
	if !ok || panels.Restores() != direct {
		t.Fatalf("got panels %v, want transformed ones %v", panels, !direct)
	}
	packed := kerneltest.Out[uint16](s, "packed weights", panels.Floats())
	panels.PackHalf(packed, weights)
	args.Weights, args.Out = kerneltest.In(s, "packed weights", packed), kerneltest.Out[uint16](s, "out", size)
	runHalf(v, s, dt, &c, &args)
	return args.Out
}

// TestHalfWinogradErrors holds errors of transformed weights of 16 bits, which
// are rounded once more, to at most four times those of a direct convolution of
// 16 bits. Weights so large that transformed ones are infinite are divided.
func TestHalfWinogradErrors(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		if v.Conv.Winograd[0].Input == nil {
			return
		}
		for _, largest := range []float32{1, 60000} {
			for _, sizes := range [][2]int{{16, 64}, {64, 64}, {512, 32}, {160, 130}} {
				for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
					halfErrors(t, v, fmt.Sprintf("%v channels of %s, weights up to %v", sizes, dt, largest), sizes, dt, largest)
				}
			}
		}
	})
}

func halfErrors(t *testing.T, v *kernel.Variant, name string, sizes [2]int, dt dtype.DType, largest float32) {
	t.Helper()
	r := kerneltest.NewRand(46)
	c := conv.Conv{
		Batch: 1, Group: 1, InChannels: sizes[0], OutChannels: sizes[1],
		Window: conv.Window{In: []int{8, 8}, Kernel: []int{3, 3}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}},
	}
	s := kerneltest.NewSpace(t)
	halves := func(n int, times float32) []uint16 {
		return ref.Map(kerneltest.Uniform(r, n), func(f float32) uint16 { return kerneltest.ToHalf(dt, f*times) })
	}
	wide := func(list []uint16) []float32 {
		return ref.Map(list, func(b uint16) float32 { return kerneltest.FromHalf(dt, b) })
	}
	in, weights := halves(c.InChannels*64, 1/largest), halves(9*c.InChannels*c.OutChannels, largest)
	probe := c
	probe.Prepare(v)
	exact := (&ref.Conv{Batch: 1, Group: 1, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&probe.Window)}).Run(wide(in), wide(weights), nil, nil)
	var errs [2]float64
	for i := range errs {
		out := runHalfForm(t, v, s, dt, c, conv.HalfArgs{In: kerneltest.In(s, "in", in)}, weights, len(exact), i == 0)
		for k, x := range exact {
			d := float64(kerneltest.FromHalf(dt, out[k])) - x
			errs[i] += d * d
		}
		errs[i] = math.Sqrt(errs[i] / float64(len(exact)))
	}
	if !(errs[1] <= 4*errs[0]) || errs[1] == errs[0] {
		t.Errorf("%s: got an error of %.3g, want one of transformed weights and at most four times that of a direct convolution, %.3g", name, errs[1], errs[0])
	}
	t.Logf("%s: %.2f times the error of a direct convolution", name, errs[1]/errs[0])
}
