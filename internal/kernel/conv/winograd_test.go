package conv_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// winogradConv draws a convolution that is transformed: of few channels in one
// of two algorithms, of many in the other.
func winogradConv(r *rand.Rand, many bool) conv.Conv {
	c := conv.Conv{Batch: 1 + r.IntN(2), Group: 1 + r.IntN(2), Window: conv.Window{Kernel: []int{3, 3}}}
	inputs, outputs := 16+r.IntN(70), 16+r.IntN(70)
	if many {
		c.Batch, c.Group, inputs, outputs = 1, 1, 150+r.IntN(40), 130+r.IntN(40)
	}
	c.InChannels, c.OutChannels = c.Group*inputs, c.Group*outputs
	for range 2 {
		before, after := r.IntN(4), r.IntN(4)
		n := max(1, 3-before-after) + r.IntN(20)
		if !many && r.IntN(8) == 0 {
			n += r.IntN(150)
		}
		c.In, c.PadBegin, c.PadEnd = append(c.In, n), append(c.PadBegin, before), append(c.PadEnd, after)
	}
	c.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
	c.Bias = []gemm.BiasKind{gemm.NoBias, gemm.BiasRow}[r.IntN(2)]
	c.ScaleShift, c.PrologueRelu = r.IntN(3) == 0, r.IntN(3) == 0
	return c
}

// Convolutions with fewer multiplications compute the same as direct ones, but
// for rounding, and the same to the bit however images lie.
func TestWinograd(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		if v.Conv.Winograd[0].Input == nil {
			return
		}
		r := kerneltest.NewRand(40)
		for i := range 60 {
			c := winogradConv(r, i%6 == 0)
			winogradCase(t, v, r, fmt.Sprint("random ", i), c, kerneltest.ResidualMode(r.IntN(3)))
			convStepsCase(t, v, r, fmt.Sprint("steps ", i), winogradConv(r, i%6 == 0), kerneltest.ResidualMode(r.IntN(3)))
		}
	})
}

func winogradCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Conv, res kerneltest.ResidualMode) {
	t.Helper()
	c.Residual = res != kerneltest.NoResidual
	probe := c
	probe.Prepare(v)
	out := probe.Out
	if r.IntN(3) == 0 {
		c.Pool = randomPool(r, probe.Out)
		out = poolWindow(v, c.Pool, probe.Out).Out
	}
	name = fmt.Sprintf("%s %+v residual %d", name, c, res)
	s := kerneltest.NewSpace(t)
	uniform := func(what string, n int) []float32 { return kerneltest.In(s, what, kerneltest.Uniform(r, n)) }
	args := conv.Args{
		In: uniform("in", c.Batch*c.InChannels*ref.Size(c.In)), Weights: uniform("weights", 9*c.OutChannels*c.InChannels/c.Group),
		Bias: uniform("bias", kerneltest.BiasSize(c.Bias, c.OutChannels, 0)), Out: kerneltest.Out[float32](s, "out", c.Batch*c.OutChannels*ref.Size(out)),
	}
	if c.ScaleShift {
		args.Scale, args.Shift = uniform("scale", c.InChannels), uniform("shift", c.InChannels)
	}
	if c.Residual {
		args.Residual = uniform("residual", c.Batch*c.OutChannels*ref.Size(probe.Out))
	}
	if c.Pool != nil && c.Pool.Kind == conv.PoolDepthwise {
		args.PoolWeights = uniform("pool weights", c.OutChannels*ref.Size(c.Pool.Kernel))
	}
	direct, want := c, args
	direct.Direct = true
	if c.Pool != nil {
		again := *c.Pool
		direct.Pool = &again
	}
	want.Out = kerneltest.Out[float32](s, "want", len(args.Out))
	packWeights(v, s, &direct, &want)
	runConv(v, s, &direct, &want)
	packWeights(v, s, &c, &args)
	if panels, ok := c.WeightPanels(v); !ok || panels.Restores() {
		t.Fatalf("%s: got panels %v of weights that are not transformed", name, panels)
	}
	runConv(v, s, &c, &args)
	s.Check()
	bound := 2e-6 * math.Sqrt(float64(9*c.InChannels/c.Group)) * 9
	if args.PoolWeights != nil {
		bound *= math.Sqrt(float64(ref.Size(c.Pool.Kernel)))
	}
	for i, x := range want.Out {
		if got := args.Out[i]; !(math.Abs(float64(got)-float64(x)) <= bound*max(1, math.Abs(float64(x)))) {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, got, x)
		}
	}
}

// TestWinogradErrors holds errors of transformed convolutions to at most four
// times those of direct ones, in the mean of their squares, for sums of few
// products and of many.
func TestWinogradErrors(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		if v.Conv.Winograd[0].Input == nil {
			return
		}
		for _, sizes := range [][2]int{{16, 64}, {64, 64}, {512, 32}, {1024, 16}, {160, 130}, {512, 64}} {
			r := kerneltest.NewRand(41)
			c := conv.Conv{
				Batch: 1, Group: 1, InChannels: sizes[0], OutChannels: sizes[1],
				Window: conv.Window{In: []int{8, 8}, Kernel: []int{3, 3}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}},
			}
			s := kerneltest.NewSpace(t)
			in, weights := kerneltest.Uniform(r, c.InChannels*64), kerneltest.Uniform(r, 9*c.InChannels*c.OutChannels)
			probe := c
			probe.Prepare(v)
			exact := (&ref.Conv{Batch: 1, Group: 1, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&probe.Window)}).Run(in, weights, nil, nil)
			var errs [2]float64
			for i := range errs {
				c.Direct = i == 0
				args := conv.Args{In: kerneltest.In(s, "in", in), Weights: weights, Out: kerneltest.Out[float32](s, "out", len(exact))}
				packWeights(v, s, &c, &args)
				runConv(v, s, &c, &args)
				for k, x := range exact {
					errs[i] += (float64(args.Out[k]) - x) * (float64(args.Out[k]) - x)
				}
				errs[i] = math.Sqrt(errs[i] / float64(len(exact)))
			}
			if errs[1] > 4*errs[0] || errs[1] == errs[0] {
				t.Errorf("%v channels: got an error of %.3g, want one of transformed weights and at most four times that of a direct convolution, %.3g", sizes, errs[1], errs[0])
			}
			t.Logf("%v channels: %.2f times the error of a direct convolution", sizes, errs[1]/errs[0])
		}
	})
}
