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

// randomWindow moves a small kernel over a small input that it fits into.
func randomWindow(r *rand.Rand, rank int) conv.Window {
	var w conv.Window
	for range rank {
		k, d := 1+r.IntN(4), 1+r.IntN(2)
		before, after := r.IntN(k*d), r.IntN(k*d)
		least := max(1, (k-1)*d+1-before-after)
		w.Kernel, w.Dilation, w.Stride = append(w.Kernel, k), append(w.Dilation, d), append(w.Stride, 1+r.IntN(3))
		w.PadBegin, w.PadEnd = append(w.PadBegin, before), append(w.PadEnd, after)
		w.In = append(w.In, least+r.IntN(map[int]int{1: 40, 2: 14, 3: 5}[rank]))
	}
	return w
}

func refWindow(w *conv.Window) ref.Window {
	return ref.Window{In: w.In, Kernel: w.Kernel, Stride: w.Stride, Dilation: w.Dilation, PadBegin: w.PadBegin, PadEnd: w.PadEnd, Out: w.Out}
}

var poolNames = map[conv.PoolKind]string{conv.PoolMax: "max", conv.PoolAverage: "average", conv.PoolAveragePadded: "average_padded"}

func randomConv(r *rand.Rand) conv.Conv {
	c := conv.Conv{Batch: 1 + r.IntN(2), Group: 1 + r.IntN(3), Window: randomWindow(r, 1+r.IntN(3))}
	c.InChannels, c.OutChannels = c.Group*(1+r.IntN(4)), c.Group*(1+r.IntN(5))
	switch r.IntN(4) {
	case 0: // depthwise
		c.Group = c.InChannels
		c.OutChannels = c.Group * (1 + r.IntN(2))
	case 1: // pointwise
		for i := range c.Kernel {
			c.Kernel[i], c.Stride[i], c.PadBegin[i], c.PadEnd[i] = 1, 1, 0, 0
		}
	}
	c.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
	c.Bias = []gemm.BiasKind{gemm.NoBias, gemm.BiasRow}[r.IntN(2)]
	c.ScaleShift, c.PrologueRelu = r.IntN(3) == 0, r.IntN(3) == 0
	return c
}

func TestConv(t *testing.T) { kerneltest.EachVariant(t, testConv) }

func testConv(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(30)
	for i := range 500 {
		convCase(t, v, r, fmt.Sprint("random ", i), randomConv(r), kerneltest.ResidualMode(r.IntN(3)), r.IntN(3) == 0)
	}
	// Deeper than a block, wider than a tile, more channels than a tile.
	for i, c := range []conv.Conv{
		{Batch: 1, Group: 1, InChannels: 40, OutChannels: 5, Window: conv.Window{In: []int{9, 9}, Kernel: []int{3, 3}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}}},
		{Batch: 1, Group: 1, InChannels: 300, OutChannels: 150, Window: conv.Window{In: []int{5, 7}, Kernel: []int{1, 1}}},
		{Batch: 2, Group: 1, InChannels: 2, OutChannels: 3, Window: conv.Window{In: []int{30, 31}, Kernel: []int{3, 2}, PadBegin: []int{2, 0}}},
		{Batch: 1, Group: 3, InChannels: 3, OutChannels: 3, Window: conv.Window{In: []int{150, 130}, Kernel: []int{5, 5}, PadBegin: []int{2, 2}, PadEnd: []int{2, 2}}},
		{Batch: 1, Group: 2, InChannels: 2, OutChannels: 4, Window: conv.Window{In: []int{60, 61}, Kernel: []int{3, 3}, Stride: []int{2, 2}, PadBegin: []int{1, 1}}},
		{Batch: 1, Group: 1, InChannels: 512, OutChannels: 33, Window: conv.Window{In: []int{9, 8}, Kernel: []int{1, 1}}},
		{Batch: 1, Group: 2, InChannels: 2, OutChannels: 2, Window: conv.Window{In: []int{66, 68}, Kernel: []int{65, 66}}},
		{Batch: 1, Group: 1, InChannels: 3, OutChannels: 2, Window: conv.Window{In: []int{0, 4}, Kernel: []int{1, 1}}},
		{Batch: 0, Group: 1, InChannels: 3, OutChannels: 2, Window: conv.Window{In: []int{4}, Kernel: []int{2}}},
	} {
		c.Bias, c.Act = gemm.BiasRow, kerneltest.Activations[i%len(kerneltest.Activations)]
		convCase(t, v, r, fmt.Sprint("edge ", i), c, kerneltest.ResidualMode(i%3), false)
	}
	t.Run("prologue and padding", kerneltest.With(v, testConvPadding))
	t.Run("tails", kerneltest.With(v, testConvTails))
	t.Run("depthwise", kerneltest.With(v, testConvDepthwise))
	t.Run("packed", kerneltest.With(v, testConvPacked))
	t.Run("taps", kerneltest.With(v, testConvTaps))
}

// testConvTaps has dilated convolutions of so many channels that taps are
// computed one after the other: with taps that lie outside for some or all
// positions, rows of a few positions and of more than a tile, strides, groups,
// and depths of more than a block.
func testConvTaps(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(35)
	square := func(n int) []int { return []int{n, n} }
	for i, c := range []conv.Conv{
		{Group: 1, InChannels: 129, OutChannels: 31, Window: conv.Window{In: []int{9, 7}, Kernel: square(3), Dilation: square(6), PadBegin: square(6), PadEnd: square(6)}},
		{Group: 1, InChannels: 128, OutChannels: 64, Window: conv.Window{In: []int{10, 12}, Kernel: square(3), Dilation: square(9), PadBegin: square(9), PadEnd: square(9)}},
		{Group: 1, InChannels: 128, OutChannels: 32, Window: conv.Window{In: []int{4, 5}, Kernel: square(3), Dilation: square(30), PadBegin: square(30), PadEnd: square(30)}},
		{Group: 1, InChannels: 128, OutChannels: 62, Window: conv.Window{In: []int{3, 3}, Kernel: square(2), Dilation: square(9), PadBegin: square(10), PadEnd: square(10)}},
		{Group: 2, InChannels: 260, OutChannels: 62, Window: conv.Window{In: []int{11, 13}, Kernel: []int{3, 2}, Dilation: []int{1, 7}, Stride: []int{2, 2}, PadBegin: []int{1, 4}, PadEnd: []int{0, 3}}},
		{Group: 1, InChannels: 400, OutChannels: 32, Window: conv.Window{In: []int{5, 6}, Kernel: []int{3, 1}, Dilation: []int{6, 1}, PadBegin: []int{5, 0}, PadEnd: []int{8, 0}}},
		{Group: 1, InChannels: 130, OutChannels: 127, Window: conv.Window{In: []int{230}, Kernel: []int{3}, Dilation: []int{7}, PadBegin: []int{7}, PadEnd: []int{7}}},
		{Group: 1, InChannels: 128, OutChannels: 20, Window: conv.Window{In: []int{300}, Kernel: []int{5}, Dilation: []int{6}, Stride: []int{3}}},
		{Group: 1, InChannels: 128, OutChannels: 32, Window: conv.Window{In: []int{4, 5, 6}, Kernel: []int{2, 3, 3}, Dilation: []int{2, 6, 1}, PadBegin: []int{2, 6, 1}, PadEnd: []int{1, 6, 1}}},
		{Group: 1, InChannels: 128, OutChannels: 32, Window: conv.Window{In: []int{0, 4}, Kernel: square(2), PadBegin: square(6), PadEnd: square(2), Dilation: square(6)}},
		{Group: 1, InChannels: 128, OutChannels: 32, Window: conv.Window{In: []int{8, 1}, Kernel: []int{3, 1}, Dilation: square(6), PadBegin: []int{6, 0}, PadEnd: []int{6, 0}}},
	} {
		for mode := range 3 {
			c.Batch, c.Bias, c.Act = 1+mode%2, []gemm.BiasKind{gemm.NoBias, gemm.BiasRow}[i%2], kerneltest.Activations[(i+mode)%len(kerneltest.Activations)]
			c.ScaleShift, c.PrologueRelu = mode == 1 && i%4 == 0, false
			convCase(t, v, r, fmt.Sprint("taps ", i), c, kerneltest.ResidualMode(mode), mode == 2)
		}
	}
}

// Weights of dilated convolutions are packed by taps and unpacked again.
func TestTapPanels(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		c := conv.Conv{Group: 2, InChannels: 2 * 130, OutChannels: 128, Window: conv.Window{In: []int{9, 9}, Kernel: []int{3, 3}}}
		near, packed := c.WeightPanels(v)
		c.Window.Dilation = []int{1, 6}
		far, _ := c.WeightPanels(v)
		if packed && near.String() == far.String() {
			t.Errorf("got panels %q with and without dilation, want two orders", far)
		}
		weights := kerneltest.Small(kerneltest.NewRand(36), 128*130*9)
		for i := range weights {
			weights[i] = float32(i)
		}
		into, again := make([]float32, far.Floats()), make([]float32, len(weights))
		if packed {
			far.Pack(into, weights)
			far.Unpack(again, into)
			kerneltest.WantEqual(t, again, weights)
		}
	})
}

// testConvTails has every number of output channels, of input channels and of
// positions along a row up to 40.
func testConvTails(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(33)
	for n := 1; n <= 40; n++ {
		a, b := 1+(n*7)%40, 1+(n*11)%40
		for i, c := range []conv.Conv{
			{Group: 1, InChannels: a, OutChannels: n, Window: conv.Window{In: []int{3, b + 2}, Kernel: []int{2, 3}, PadBegin: []int{1, 1}}},
			{Group: 1, InChannels: n, OutChannels: b, Window: conv.Window{In: []int{5, a}, Kernel: []int{1, 1}, Stride: []int{2, 1}}},
			{Group: 1, InChannels: 3, OutChannels: 40 + a, Window: conv.Window{In: []int{3, n}, Kernel: []int{3, 1}, PadEnd: []int{1, 0}}},
			{Group: 1, InChannels: 2, OutChannels: a, Window: conv.Window{In: []int{n, 2*b + 1}, Kernel: []int{3, 3}, Stride: []int{2, 2}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}}},
			{Group: 1, InChannels: 4, OutChannels: b, Window: conv.Window{In: []int{n, 1}, Kernel: []int{min(n, 4), 1}}},
			{Group: 3, InChannels: 6, OutChannels: 3 * n, Window: conv.Window{In: []int{a}, Kernel: []int{min(a, 3)}}},
			{Group: 3, InChannels: 3, OutChannels: 3 * (1 + n%2), Window: conv.Window{In: []int{1 + n%9, a + 2}, Kernel: []int{1, 3}, Stride: []int{1, 1 + n%4}, PadEnd: []int{0, n % 3}}},
			{Group: 2, InChannels: 2, OutChannels: 2, Window: conv.Window{In: []int{n + 4, b + 4}, Kernel: []int{5, 5}, Stride: []int{1 + n%2, 1 + n%2}, PadBegin: []int{2, 2}, PadEnd: []int{2, 2}}},
			{Group: 1, InChannels: 2, OutChannels: 8, Window: conv.Window{In: []int{2, n, b}, Kernel: []int{2, 1, 2}, PadBegin: []int{1, 0, 1}, PadEnd: []int{0, 0, 1}}},
		} {
			c.Batch, c.Bias = 1+n%2, []gemm.BiasKind{gemm.NoBias, gemm.BiasRow}[i%2]
			c.Act = kerneltest.Activations[(i+n)%len(kerneltest.Activations)]
			c.ScaleShift, c.PrologueRelu = (i+n)%5 == 0, (i+n)%4 == 0
			convCase(t, v, r, fmt.Sprint("tails ", n, " ", i), c, kerneltest.ResidualMode(n%3), n%4 == 0)
		}
	}
}

// testConvPacked packs weights, unpacks them, and holds results of finite and
// other numbers to be those of the weights as they lie.
func testConvPacked(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(34)
	for i := range 62 {
		c := conv.Conv{Batch: 1, Group: 1 + r.IntN(3), Window: randomWindow(r, 2)}
		c.InChannels, c.OutChannels = c.Group*(1+r.IntN(6)), c.Group*(5+r.IntN(70))
		if i >= 60 { // copies of rows would be too large: the weights are unpacked
			c.Window = conv.Window{In: []int{2, 4000}, Kernel: []int{3, 1}, Dilation: []int{700, 1}, PadBegin: []int{700, 0}, PadEnd: []int{700, 0}}
		}
		if i == 61 {
			c.Pool = &conv.Pool{Window: conv.Window{Kernel: []int{1, 2}, Stride: []int{1, 2}}}
		}
		plain := c
		plain.Prepare(v)
		panels, ok := plain.WeightPanels(v)
		if !ok {
			continue
		}
		s := kerneltest.NewSpace(t)
		x := kerneltest.Small(r, c.InChannels*ref.Size(c.In))
		x[r.IntN(len(x))], x[r.IntN(len(x))] = float32(math.NaN()), float32(math.Inf(1))
		weights := kerneltest.In(s, "weights", kerneltest.Small(r, c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel)))
		packed, again := kerneltest.Out[float32](s, "packed", panels.Floats()), kerneltest.Out[float32](s, "unpacked", len(weights))
		panels.Pack(packed, weights)
		panels.Unpack(again, packed)
		kerneltest.WantEqual(t, again, weights)
		size := c.OutChannels * ref.Size(plain.Out)
		if c.Pool != nil {
			size = c.OutChannels * ref.Size(c.Pool.Out)
		}
		want := conv.Args{In: kerneltest.In(s, "in", x), Weights: weights, Out: kerneltest.Out[float32](s, "want", size)}
		got := conv.Args{In: want.In, Weights: packed, Out: kerneltest.Out[float32](s, "got", size)}
		runConv(v, s, &c, &want)
		c.PackedWeights = true
		runConv(v, s, &c, &got)
		s.Check()
		for k, v := range want.Out {
			if !kerneltest.SameValue(got.Out[k], float64(v), 0) {
				t.Fatalf("case %d %+v: element %d: got %v, want %v", i, c, k, got.Out[k], v)
			}
		}
	}
}

// testConvDepthwise has depthwise convolutions after others: of many channels
// and rows, cut into tiles whose rows overlap, of windows that are too large to
// copy their rows, and of three axes.
func testConvDepthwise(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(36)
	square := func(n int) []int { return []int{n, n} }
	for i, c := range []struct {
		inputs, outputs int
		in, kernel      []int
		pool            conv.Window
	}{
		{3, 33, square(70), square(1), conv.Window{Kernel: square(3), PadBegin: square(1), PadEnd: square(1)}},
		{6, 70, square(60), square(1), conv.Window{Kernel: square(5), Stride: square(2), PadBegin: square(2), PadEnd: square(1)}},
		{2, 20, []int{100, 60}, square(3), conv.Window{Kernel: []int{7, 3}, Stride: []int{1, 2}, PadBegin: []int{3, 0}, PadEnd: []int{3, 1}}},
		{20, 70, []int{7, 7}, square(1), conv.Window{Kernel: []int{3, 5}, Dilation: []int{1, 2}, PadBegin: []int{1, 4}, PadEnd: []int{1, 4}}},
		{2, 3, []int{66, 68}, square(1), conv.Window{Kernel: []int{65, 66}, PadBegin: square(2), PadEnd: square(2)}},
		{3, 17, []int{6, 9, 8}, []int{1, 1, 1}, conv.Window{Kernel: []int{3, 3, 3}, PadBegin: []int{1, 1, 1}, PadEnd: []int{1, 1, 1}}},
		{3, 17, []int{40}, []int{1}, conv.Window{Kernel: []int{3}, PadBegin: []int{1}, PadEnd: []int{1}}},
		{2, 33, []int{3, 1500}, square(1), conv.Window{Kernel: square(3), PadBegin: square(1), PadEnd: square(1)}},
		{1, 5, []int{70, 600}, square(1), conv.Window{Kernel: square(5), PadBegin: []int{2, 9}, PadEnd: []int{2, 70}}},
		{2, 40, []int{40, 700}, []int{1, 2}, conv.Window{Kernel: []int{2, 4}, Stride: []int{2, 3}, PadBegin: []int{0, 1}, PadEnd: []int{1, 0}}},
		{1, 3, []int{1, 2400}, square(1), conv.Window{Kernel: []int{1, 3}, Stride: square(2), PadBegin: []int{0, 1200}}},
	} {
		act := kerneltest.Activations[i%len(kerneltest.Activations)]
		of := conv.Conv{Batch: 1 + i%2, Group: 1, InChannels: c.inputs, OutChannels: c.outputs, Window: conv.Window{In: c.in, Kernel: c.kernel}}
		of.Bias, of.Act = gemm.BiasRow, act
		of.Pool = &conv.Pool{Kind: conv.PoolDepthwise, Window: c.pool, Act: act}
		convCase(t, v, r, fmt.Sprint("depthwise ", i), of, kerneltest.NoResidual, r.IntN(2) == 0)
	}
}

// However large or wide pictures are, tiles of a depthwise convolution after
// another take little scratch: less than its first result would in memory.
func TestDepthwiseScratch(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		if v.Conv.DepthTiles == nil {
			return
		}
		for _, in := range [][]int{{3, 100_000}, {1000, 1000}, {64, 20_000}, {100_000, 2}, {5000, 5000}} {
			for _, channels := range []int{16, 32, 500} {
				for _, inputs := range []int{3, 600, 3000} {
					c := conv.Conv{Batch: 1, Group: 1, InChannels: inputs, OutChannels: channels, PackedWeights: true, Window: conv.Window{In: in, Kernel: []int{1, 1}}}
					c.Pool = &conv.Pool{Kind: conv.PoolDepthwise, Window: conv.Window{Kernel: []int{5, 5}, PadBegin: []int{2, 2}, PadEnd: []int{2, 2}}}
					c.Prepare(v)
					if got, most := c.ScratchBytes(), 2<<20; got > most {
						t.Errorf("%d to %d channels of %v: got %d bytes of scratch, want at most %d", inputs, channels, in, got, most)
					}
				}
			}
		}
	})
}

// convCase runs one problem, with a pool after it every so often. sliced puts
// input and output into the middle of wider tensors.
func convCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Conv, res kerneltest.ResidualMode, sliced bool) {
	t.Helper()
	name = fmt.Sprintf("%s %+v residual %d sliced %v", name, c, res, sliced)
	c.Residual = res != kerneltest.NoResidual
	probe := c
	probe.Pool = nil
	probe.Prepare(v)
	if c.Pool == nil && r.IntN(3) == 0 {
		c.Pool = randomPool(r, probe.Window.Out)
		if res == kerneltest.InPlaceResidual { // the convolution has no bytes of its own
			res = kerneltest.OwnResidual
		}
	}
	want := ref.Conv{
		Batch: c.Batch, Group: c.Group, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&probe.Window),
		PrologueRelu: c.PrologueRelu, Epilogue: kerneltest.RefEpilogue(c.Epilogue, 1),
	}
	inArea, outArea := ref.Size(want.In), ref.Size(want.Out)
	in0, weights := kerneltest.Small(r, c.Batch*c.InChannels*inArea), kerneltest.Small(r, c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel))
	bias := kerneltest.Small(r, kerneltest.BiasSize(c.Bias, c.OutChannels, 0))
	if c.ScaleShift {
		want.Scale, want.Shift = kerneltest.Small(r, c.InChannels), kerneltest.Small(r, c.InChannels)
	}
	var residual []float32
	if c.Residual {
		residual = kerneltest.Small(r, c.Batch*c.OutChannels*outArea)
	}
	wanted := want.Run(in0, weights, bias, residual)

	s := kerneltest.NewSpace(t)
	args := conv.Args{Weights: kerneltest.In(s, "weights", weights), Bias: kerneltest.In(s, "bias", bias), Scale: kerneltest.In(s, "scale", want.Scale), Shift: kerneltest.In(s, "shift", want.Shift)}
	outSize := c.OutChannels * outArea
	if c.Pool != nil {
		wanted = pooledReference(v, r, s, &c, probe.Window.Out, wanted, &args)
		outSize = c.OutChannels * ref.Size(poolWindow(v, c.Pool, probe.Window.Out).Out)
	}
	var before, after int
	if sliced {
		before, after = 3, 5
		c.InSteps = stepsWith(c.InChannels, want.In, [4]int{8})
		if c.Pool != nil {
			c.Pool.OutSteps = stepsWith(c.OutChannels, poolWindow(v, c.Pool, probe.Window.Out).Out, [4]int{8})
		} else {
			c.OutSteps = stepsWith(c.OutChannels, want.Out, [4]int{8})
		}
		if res == kerneltest.InPlaceResidual {
			c.ResidualSteps = c.OutSteps
		}
	}
	const other = 77 // stands in the parts of wide tensors that are not ours
	args.In = kerneltest.In(s, "in", widened(in0, c.Batch, before, after, other))[before:]
	switch res {
	case kerneltest.InPlaceResidual:
		args.Out = kerneltest.InOut(s, "out", widened(residual, c.Batch, before, after, other))
		args.Residual = args.Out[before:]
	case kerneltest.OwnResidual:
		args.Residual = kerneltest.In(s, "residual", residual)
	}
	if args.Out == nil {
		args.Out = kerneltest.InOut(s, "out", widened(make([]float32, c.Batch*outSize), c.Batch, before, after, other))
	}
	whole := args.Out
	args.Out = args.Out[before:]
	if r.IntN(4) > 0 {
		packWeights(v, s, &c, &args)
	}
	runConv(v, s, &c, &args)
	s.Check()
	expect := widened(ref.Map(wanted, func(v float64) float32 { return float32(v) }), c.Batch, before, after, other)
	for i := range expect {
		if !kerneltest.SameValue(whole[i], float64(expect[i]), map[bool]float64{true: 4}[c.Pool != nil]) {
			t.Fatalf("%s pool %+v: element %d: got %v, want %v", name, c.Pool, i, whole[i], expect[i])
		}
	}
}

// widened puts each batch of x between before and after elements of something
// else.
func widened(x []float32, batches, before, after int, other float32) []float32 {
	var wide []float32
	for b := range batches {
		n := len(x) / batches
		for range before {
			wide = append(wide, other)
		}
		wide = append(wide, x[b*n:(b+1)*n]...)
		for range after {
			wide = append(wide, other)
		}
	}
	if wide == nil { // no batch at all
		wide = make([]float32, before)
	}
	return wide
}

func randomPool(r *rand.Rand, in []int) *conv.Pool {
	return randomPoolOf(r, in, []conv.PoolKind{conv.PoolMax, conv.PoolAverage, conv.PoolAveragePadded, conv.PoolDepthwise, conv.PoolDepthwise}[r.IntN(5)])
}

func randomPoolOf(r *rand.Rand, in []int, kind conv.PoolKind) *conv.Pool {
	p := &conv.Pool{Kind: kind}
	p.Ceil = r.IntN(2) == 0
	for _, n := range in {
		most := 3
		if kind == conv.PoolDepthwise {
			most = 7
		}
		k := 1 + r.IntN(min(most, max(1, n)))
		p.Kernel, p.Stride = append(p.Kernel, k), append(p.Stride, 1+r.IntN(3))
		pads := k
		if kind == conv.PoolDepthwise {
			pads += 3
		}
		p.PadBegin, p.PadEnd = append(p.PadBegin, r.IntN(pads)), append(p.PadEnd, r.IntN(pads))
	}
	if kind == conv.PoolDepthwise {
		p.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
	}
	return p
}

// pooledReference is what the pool of a convolution makes of its result. It
// draws the weights of a depthwise one.
func pooledReference(v *kernel.Variant, r *rand.Rand, s *kerneltest.Space, c *conv.Conv, in []int, x []float64, args *conv.Args) []float64 {
	window := poolWindow(v, c.Pool, in)
	if c.Pool.Kind != conv.PoolDepthwise {
		out, _ := ref.Pool{Kind: poolNames[c.Pool.Kind], Planes: c.Batch * c.OutChannels, Window: window}.Run(x)
		return out
	}
	weights, bias := drawDepthwise(r, s, c, args)
	e := gemm.Epilogue{Act: c.Pool.Act}
	if bias != nil {
		e.Bias = gemm.BiasRow
	}
	return ref.Conv{
		Batch: c.Batch, Group: c.OutChannels, InChannels: c.OutChannels, OutChannels: c.OutChannels, Window: window, Epilogue: kerneltest.RefEpilogue(e, 1),
	}.Run(ref.Map(x, func(v float64) float32 { return float32(v) }), weights, bias, nil)
}

// drawDepthwise draws the weights of a depthwise convolution in the place of a
// pool, and perhaps a bias.
func drawDepthwise(r *rand.Rand, s *kerneltest.Space, c *conv.Conv, args *conv.Args) (weights, bias []float32) {
	weights = kerneltest.Small(r, c.OutChannels*ref.Size(c.Pool.Kernel))
	args.PoolWeights = kerneltest.In(s, "pool weights", weights)
	if r.IntN(2) == 0 {
		bias = kerneltest.Small(r, c.OutChannels)
		args.PoolBias = kerneltest.In(s, "pool bias", bias)
	}
	return weights, bias
}

// poolWindow is the reference's window of a pool over a convolution.
func poolWindow(v *kernel.Variant, p *conv.Pool, in []int) ref.Window {
	q := *p
	q.Window.In = in
	q.Prepare(v)
	return refWindow(&q.Window)
}

// packWeights packs constant weights where the convolution wants that.
func packWeights(v *kernel.Variant, s *kerneltest.Space, c *conv.Conv, args *conv.Args) {
	panels, ok := c.WeightPanels(v)
	if !ok {
		return
	}
	packed := kerneltest.Out[float32](s, "packed weights", panels.Floats())
	panels.Pack(packed, args.Weights)
	args.Weights = kerneltest.In(s, "packed weights", packed)
	c.PackedWeights = true
}

func runConv(v *kernel.Variant, s *kerneltest.Space, c *conv.Conv, args *conv.Args) {
	c.Prepare(v)
	s.WithScratch(c.ScratchBytes()/4, func(scratch []float32) {
		kerneltest.Backwards(c.Tiles(), func(i int) {
			kerneltest.Poison(scratch)
			c.Tile(i, scratch, args)
		})
	})
}

// testConvPadding has a prologue that does not map 0 to 0, and an input full of
// NaN outside of the one window that is read.
func testConvPadding(t *testing.T, v *kernel.Variant) {
	for _, depthwise := range []bool{false, true} {
		c := conv.Conv{Batch: 1, Group: 1, InChannels: 1, OutChannels: 3, ScaleShift: true, PrologueRelu: true}
		if depthwise {
			c.OutChannels = 1
		}
		c.Window = conv.Window{In: []int{1, 1}, Kernel: []int{3, 3}, PadBegin: []int{1, 1}, PadEnd: []int{1, 1}}
		s := kerneltest.NewSpace(t)
		weights := make([]float32, 9*c.OutChannels)
		for i := range weights {
			weights[i] = 1
		}
		args := conv.Args{
			In: kerneltest.In(s, "in", []float32{2}), Weights: kerneltest.In(s, "weights", weights), Out: kerneltest.Out[float32](s, "out", c.OutChannels),
			Scale: kerneltest.In(s, "scale", []float32{10}), Shift: kerneltest.In(s, "shift", []float32{5}),
		}
		runConv(v, s, &c, &args)
		s.Check()
		for i, v := range args.Out {
			if v != 25 {
				t.Fatalf("depthwise %v: element %d: got %v, want 25: the padding must add nothing", depthwise, i, v)
			}
		}
	}
}

func TestPool(t *testing.T) { kerneltest.EachVariant(t, testPool) }

func testPool(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(31)
	for i := range 400 {
		w := randomWindow(r, 1+r.IntN(3))
		for k := range w.PadBegin { // a pool's padding is less than its kernel
			w.PadBegin[k], w.PadEnd[k] = min(w.PadBegin[k], w.Kernel[k]-1), min(w.PadEnd[k], w.Kernel[k]-1)
			w.In[k] = max(w.In[k], (w.Kernel[k]-1)*w.Dilation[k]+1)
		}
		p := conv.Pool{Kind: conv.PoolKind(r.IntN(3)), Planes: 1 + r.IntN(5), Window: w, ColumnMajor: r.IntN(2) == 0}
		p.Ceil = r.IntN(2) == 0
		poolCase(t, v, r, fmt.Sprintf("random %d %+v", i, p), p)
	}
	poolCase(t, v, r, "large", conv.Pool{Kind: conv.PoolMax, Planes: 2, Window: conv.Window{In: []int{300, 310}, Kernel: []int{2, 2}, Stride: []int{2, 2}}})
	for n := 1; n <= 40; n++ {
		for _, k := range []int{1, 2, 3, 5} {
			side, pad := max(k, (n*7)%40), (k-1)/2
			poolCase(t, v, r, fmt.Sprintf("tails %d %d", n, k), conv.Pool{Kind: conv.PoolKind(n % 3), Planes: 1 + n%3, Window: conv.Window{
				In: []int{side, max(k, n)}, Kernel: []int{k, k}, Stride: []int{1 + n%2, 1 + n%3}, PadBegin: []int{pad, pad}, PadEnd: []int{pad, pad},
			}})
		}
	}
	for kind := range conv.PoolKind(3) {
		poolCase(t, v, r, "many taps", conv.Pool{Kind: kind, Planes: 2, Window: conv.Window{In: []int{68, 70}, Kernel: []int{66, 67}, PadBegin: []int{1, 0}}})
	}
	poolCase(t, v, r, "no axes", conv.Pool{Kind: conv.PoolAverage, Planes: 3})
}

func poolCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, p conv.Pool) {
	t.Helper()
	p.Prepare(v)
	want := ref.Pool{Kind: poolNames[p.Kind], Planes: p.Planes, Window: refWindow(&p.Window)}
	x := kerneltest.Small(r, p.Planes*ref.Size(p.In))
	if p.Kind == conv.PoolMax && len(x) > 3 {
		x[len(x)/3], x[len(x)/2] = float32(math.NaN()), float32(math.Inf(1))
	}
	wanted, where := want.Run(kerneltest.F64s(x))
	s := kerneltest.NewSpace(t)
	src, dst := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", len(wanted))
	scratch := kerneltest.Out[float32](s, "scratch", p.ScratchBytes()/4)
	kerneltest.Backwards(p.Tiles(), func(i int) {
		kerneltest.Poison(scratch)
		p.Tile(i, scratch, dst, src)
	})
	s.Check()
	for i := range wanted {
		if !kerneltest.SameValue(dst[i], wanted[i], 4) {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, dst[i], wanted[i])
		}
	}
	if p.Kind != conv.PoolMax {
		return
	}
	again, numbers := kerneltest.Out[float32](s, "dst", len(wanted)), kerneltest.Out[int64](s, "indices", len(wanted))
	kerneltest.Backwards(p.Tiles(), func(i int) { p.TileIndices(i, again, numbers, src) })
	s.Check()
	kerneltest.WantEqual(t, again, dst)
	if p.ColumnMajor {
		area := ref.Size(p.In)
		for i, k := range where {
			where[i] = k/int64(area)*int64(area) + int64(columnMajor(p.In, int(k)%area))
		}
	}
	kerneltest.WantEqual(t, numbers, where)
}

// columnMajor is the number of row-major element k when the first axis counts
// fastest.
func columnMajor(shape []int, k int) int {
	n := 0
	for i := len(shape) - 1; i >= 0; i-- {
		n += k % shape[i] * ref.Size(shape[:i])
		k /= shape[i]
	}
	return n
}
