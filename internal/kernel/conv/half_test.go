package conv_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestHalf(t *testing.T) { kerneltest.EachVariant(t, testHalf) }

// Convolutions of 16-bit floats are compared with the definition, computed from
// the same numbers and rounded once.
func testHalf(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(40)
	for i := range 80 {
		c := randomConv(r)
		switch {
		case i%4 == 0: // more channels than a tile, deeper than a block
			c.InChannels, c.OutChannels = c.Group*(20+r.IntN(40)), c.Group*(1+r.IntN(50))
		case i%10 == 1: // several boxes along two axes
			c.Window.In = append(c.Window.In[:0], ref.Map(c.Window.Kernel, func(int) int { return map[int]int{1: 900, 2: 24, 3: 10}[len(c.Window.Kernel)] + r.IntN(4) })...)
			c.Batch, c.OutChannels = 1, c.Group*(1+r.IntN(20))
		case i%20 == 3: // wider than a box
			c.Window = conv.Window{In: []int{3, 400 + r.IntN(600)}, Kernel: []int{1 + 2*r.IntN(2), 1 + 2*r.IntN(2)}}
			c.InChannels, c.OutChannels, c.Group = 24, 40, 1
		case i%20 == 5: // taps one after the other
			c.Window = conv.Window{In: []int{17, 19}, Kernel: []int{3, 3}, Dilation: []int{6, 7}, PadBegin: []int{6, 7}, PadEnd: []int{6, 7}}
			c.InChannels, c.OutChannels, c.Group, c.ScaleShift, c.PrologueRelu = 130, 33, 1, false, false
		case i%40 == 9: // nothing is copied
			c.Window = conv.Window{In: []int{1, 70}, Kernel: []int{3, 1}, Dilation: []int{20000, 1}, PadBegin: []int{20000, 0}, PadEnd: []int{20000, 0}}
			c.InChannels, c.OutChannels, c.Group = 3, 20, 1
		case i%20 == 7: // parts of the channels
			c.Window = conv.Window{In: []int{7, 7}, Kernel: []int{1 + 2*r.IntN(2), 3}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}}
			c.InChannels, c.OutChannels, c.Group = 40, 190+r.IntN(100), 1
		}
		halfCase(t, v, r, fmt.Sprint("random ", i), c, kerneltest.ResidualMode(r.IntN(3)))
	}
}

func halfCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Conv, res kerneltest.ResidualMode) {
	t.Helper()
	dt := []dtype.DType{dtype.F16, dtype.BF16}[r.IntN(2)]
	probe := c
	probe.Prepare(v)
	convSizes := probe.Out
	out := convSizes
	if r.IntN(3) == 0 {
		c.Pool = randomPoolOf(r, convSizes, conv.PoolKind(r.IntN(3)))
		if out = poolWindow(v, c.Pool, convSizes).Out; res == kerneltest.InPlaceResidual {
			res = kerneltest.OwnResidual
		}
	}
	c.Residual = res != kerneltest.NoResidual
	name = fmt.Sprintf("%s %s %+v pool %+v residual %d", name, dt, c, c.Pool, res)
	want := ref.Conv{
		Batch: c.Batch, Group: c.Group, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&probe.Window),
		PrologueRelu: c.PrologueRelu, Epilogue: kerneltest.RefEpilogue(c.Epilogue, 1),
	}
	x, weights := kerneltest.Small(r, c.Batch*c.InChannels*ref.Size(c.In)), kerneltest.Small(r, c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel))
	if r.IntN(4) == 0 && len(x) > 0 {
		x[r.IntN(len(x))] = float32(math.NaN())
	}
	bias := kerneltest.Small(r, kerneltest.BiasSize(c.Bias, c.OutChannels, 0))
	if c.ScaleShift {
		want.Scale, want.Shift = kerneltest.Small(r, c.InChannels), kerneltest.Small(r, c.InChannels)
	}
	var residual []float32
	if c.Residual {
		residual = kerneltest.Small(r, c.Batch*c.OutChannels*ref.Size(convSizes))
	}
	wanted := want.Run(x, weights, bias, residual)
	if c.Pool != nil {
		wanted, _ = ref.Pool{Kind: poolNames[c.Pool.Kind], Planes: c.Batch * c.OutChannels, Window: poolWindow(v, c.Pool, convSizes)}.Run(wanted)
	}

	s := kerneltest.NewSpace(t)
	halves := func(name string, x []float32) []uint16 {
		return kerneltest.In(s, name, ref.Map(x, func(f float32) uint16 { return kerneltest.ToHalf(dt, f) }))
	}
	gaps := func() [4]int {
		if r.IntN(2) == 0 {
			return [4]int{}
		}
		return randomGaps(r)
	}
	c.InSteps = stepsWith(c.InChannels, c.In, gaps())
	to := stepsWith(c.OutChannels, out, gaps())
	args := conv.HalfArgs{
		In: halves("in", apart(x, c.Batch, c.InChannels, c.In, c.InSteps)), Weights: halves("weights", weights), Bias: halves("bias", bias),
	}
	if c.ScaleShift {
		args.Scale, args.Shift = kerneltest.In(s, "scale", want.Scale), kerneltest.In(s, "shift", want.Shift)
	}
	before := make([]float32, len(wanted))
	if res == kerneltest.InPlaceResidual {
		before, c.ResidualSteps = residual, to
	} else if c.Residual {
		c.ResidualSteps = stepsWith(c.OutChannels, convSizes, gaps())
		args.Residual = halves("residual", apart(residual, c.Batch, c.OutChannels, convSizes, c.ResidualSteps))
	}
	args.Out = kerneltest.InOut(s, "out", ref.Map(apart(before, c.Batch, c.OutChannels, out, to), func(f float32) uint16 { return kerneltest.ToHalf(dt, f) }))
	if res == kerneltest.InPlaceResidual {
		args.Residual = args.Out
	}
	if c.OutSteps = to; c.Pool != nil {
		c.OutSteps, c.Pool.OutSteps = conv.Steps{}, to
	}
	c.Direct = true
	if panels, ok := c.WeightPanels(v); ok && r.IntN(4) > 0 {
		packed := kerneltest.Out[uint16](s, "packed weights", panels.Floats())
		panels.PackHalf(packed, args.Weights)
		again := make([]uint16, len(args.Weights))
		panels.UnpackHalf(again, packed)
		kerneltest.WantEqual(t, again, args.Weights)
		args.Weights, c.PackedWeights = kerneltest.In(s, "packed weights", packed), true
	}
	runHalf(v, s, dt, &c, &args)
	s.Check()
	expect := apart(ref.Map(wanted, func(f float64) float32 { return float32(f) }), c.Batch, c.OutChannels, out, to)
	slack := 0
	if c.Pool != nil && c.Pool.Kind != conv.PoolMax {
		slack = 1
	}
	for i := range expect {
		if got := args.Out[i]; !sameHalf(dt, got, expect[i], slack) {
			t.Fatalf("%s: place %d: got %v, want %v", name, i, kerneltest.FromHalf(dt, got), expect[i])
		}
	}
}

// sameHalf reports whether got is want, rounded, give or take some units in the
// last place. NaN equals NaN.
func sameHalf(dt dtype.DType, got uint16, want float32, ulps int) bool {
	a, b := kerneltest.FromHalf(dt, got), kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, want))
	if a != a || b != b || a == b {
		return a == b || a != a && b != b
	}
	d := int(got) - int(kerneltest.ToHalf(dt, want))
	return max(d, -d) <= ulps
}

func runHalf(v *kernel.Variant, s *kerneltest.Space, dt dtype.DType, c *conv.Conv, args *conv.HalfArgs) {
	h := conv.Half{Type: dt}
	h.Prepare(v, c)
	s.WithScratch(h.ScratchBytes()/4, func(scratch []float32) {
		kerneltest.Backwards(h.Tiles(), func(i int) {
			kerneltest.Poison(scratch)
			h.Tile(i, scratch, args)
		})
	})
}
