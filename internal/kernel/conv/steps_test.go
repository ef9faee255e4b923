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

// stepsWith are those of images with so many elements of others between
// samples, channels, planes and rows, but for rows of one element.
func stepsWith(channels int, sizes []int, gaps [4]int) conv.Steps {
	of := [conv.MaxSpatial]int{1, 1, 1}
	copy(of[conv.MaxSpatial-len(sizes):], sizes)
	if of[2] == 1 {
		if gaps[3] = 0; of[1] == 1 {
			gaps[2] = 0
		}
	}
	row := of[2] + gaps[3]
	plane := of[1]*row + gaps[2]
	channel := of[0]*plane + gaps[1]
	return conv.Steps{Batch: channels*channel + gaps[0], Channel: channel, Plane: plane, Row: row}
}

// apart puts images into a buffer in which NaN lies between them.
func apart(x []float32, batch, channels int, sizes []int, s conv.Steps) []float32 {
	wide := make([]float32, batch*s.Batch)
	for i := range wide {
		wide[i] = float32(math.NaN())
	}
	eachPlace(batch, channels, sizes, s, func(k, at int) { wide[at] = x[k] })
	return wide
}

// eachPlace calls f with the number of each element, and where it lies.
func eachPlace(batch, channels int, sizes []int, s conv.Steps, f func(k, at int)) {
	of := [conv.MaxSpatial]int{1, 1, 1}
	copy(of[conv.MaxSpatial-len(sizes):], sizes)
	k := 0
	ref.Each([]int{batch, channels, of[0], of[1], of[2]}, func(i []int) {
		f(k, i[0]*s.Batch+i[1]*s.Channel+i[2]*s.Plane+i[3]*s.Row+i[4])
		k++
	})
}

// wantApart compares results that lie apart with those that follow each other,
// bit by bit, and sees that nothing between them was written.
func wantApart(t *testing.T, name string, got, want []float32, batch, channels int, sizes []int, s conv.Steps) {
	t.Helper()
	expect := apart(want, batch, channels, sizes, s)
	for i := range expect {
		if a, b := math.Float32bits(got[i]), math.Float32bits(expect[i]); a != b {
			t.Fatalf("%s: place %d: got %v (%#x), want %v (%#x)", name, i, got[i], a, expect[i], b)
		}
	}
}

func randomGaps(r *rand.Rand) (gaps [4]int) {
	for i := range gaps {
		gaps[i] = r.IntN(2) * r.IntN(5)
	}
	return gaps
}

func TestConvSteps(t *testing.T) { kerneltest.EachVariant(t, testConvSteps) }

// Convolutions compute the same, to the bit, however images lie.
func testConvSteps(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(35)
	for i := range 400 {
		c := randomConv(r)
		if i%4 == 0 { // more channels than a tile, deeper than a block
			c.InChannels, c.OutChannels = c.Group*(20+r.IntN(100)), c.Group*(1+r.IntN(80))
		}
		if i%50 == 1 { // wider than a tile
			c.Window = conv.Window{In: []int{3, 40 + r.IntN(300)}, Kernel: []int{1 + 2*r.IntN(2), 1 + 2*r.IntN(2)}}
			c.InChannels, c.OutChannels, c.Group = 5, 7, 1
		}
		convStepsCase(t, v, r, fmt.Sprint("random ", i), c, kerneltest.ResidualMode(r.IntN(3)))
	}
	for i := range 12 { // an activation of the last result that is no clamp
		c := randomConv(r)
		probe := c
		probe.Prepare(v)
		c.Pool = randomPoolOf(r, probe.Out, conv.PoolDepthwise)
		c.Pool.Act = gemm.Activation{Op: kernel.LeakyRelu, A: 0.5}
		convStepsCase(t, v, r, fmt.Sprint("depthwise ", i), c, kerneltest.NoResidual)
	}
	for i := range 40 { // rows that are a little longer than a vector, and hardly a tap
		c := conv.Conv{Batch: 1, Group: 1, InChannels: 3, OutChannels: 20 + r.IntN(30), Window: conv.Window{In: []int{2 + r.IntN(20), 1 + v.Conv.Lanes + r.IntN(3)}, Kernel: []int{1, 1}}}
		c.Pool = &conv.Pool{Kind: conv.PoolDepthwise, Window: conv.Window{Kernel: []int{1, 1 + r.IntN(2)}}}
		convStepsCase(t, v, r, fmt.Sprint("few taps ", i), c, kerneltest.NoResidual)
	}
}

func convStepsCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Conv, res kerneltest.ResidualMode) {
	t.Helper()
	name = fmt.Sprintf("%s %+v residual %d", name, c, res)
	c.Residual = res != kerneltest.NoResidual
	probe := c
	probe.Pool = nil
	probe.Prepare(v)
	out := probe.Out
	pooled := c.Pool != nil || r.IntN(4) == 0
	if pooled && c.Pool == nil {
		c.Pool = randomPool(r, probe.Out)
	}
	if pooled {
		out = poolWindow(v, c.Pool, probe.Out).Out
	}
	uniform := func(n int) []float32 { return kerneltest.Uniform(r, n) }
	s := kerneltest.NewSpace(t)
	x, residual := uniform(c.Batch*c.InChannels*ref.Size(c.In)), uniform(c.Batch*c.OutChannels*ref.Size(probe.Out))
	args := conv.Args{
		In: kerneltest.In(s, "in", x), Weights: kerneltest.In(s, "weights", uniform(c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel))),
		Bias: kerneltest.In(s, "bias", uniform(kerneltest.BiasSize(c.Bias, c.OutChannels, 0))),
		Out:  kerneltest.Out[float32](s, "out", c.Batch*c.OutChannels*ref.Size(out)),
	}
	if c.ScaleShift {
		args.Scale, args.Shift = kerneltest.In(s, "scale", uniform(c.InChannels)), kerneltest.In(s, "shift", uniform(c.InChannels))
	}
	if c.Residual {
		args.Residual = kerneltest.In(s, "residual", residual)
	}
	if pooled && c.Pool.Kind == conv.PoolDepthwise {
		drawDepthwise(r, s, &c, &args)
	}
	if r.IntN(4) > 0 {
		packWeights(v, s, &c, &args)
	}
	gapped := c
	if pooled {
		again := *c.Pool
		gapped.Pool = &again
	}
	runConv(v, s, &c, &args)

	gapped.InSteps = stepsWith(c.InChannels, c.In, randomGaps(r))
	to := stepsWith(c.OutChannels, out, randomGaps(r))
	apartArgs := args
	apartArgs.In = kerneltest.In(s, "in apart", apart(x, c.Batch, c.InChannels, c.In, gapped.InSteps))
	nothing := make([]float32, len(args.Out))
	for i := range nothing {
		nothing[i] = 5
	}
	switch {
	case pooled:
		gapped.Pool.OutSteps = to
		if gaps := randomGaps(r); c.Residual { // planes of a residual lie in one piece
			gapped.ResidualSteps = stepsWith(c.OutChannels, probe.Out, [4]int{gaps[0], gaps[1]})
			apartArgs.Residual = kerneltest.In(s, "residual apart", apart(residual, c.Batch, c.OutChannels, probe.Out, gapped.ResidualSteps))
		}
	case res == kerneltest.InPlaceResidual:
		gapped.OutSteps, gapped.ResidualSteps, nothing = to, to, residual
	default:
		if gapped.OutSteps = to; c.Residual {
			gapped.ResidualSteps = stepsWith(c.OutChannels, probe.Out, randomGaps(r))
			apartArgs.Residual = kerneltest.In(s, "residual apart", apart(residual, c.Batch, c.OutChannels, probe.Out, gapped.ResidualSteps))
		}
	}
	apartArgs.Out = kerneltest.InOut(s, "out apart", apart(nothing, c.Batch, c.OutChannels, out, to))
	if res == kerneltest.InPlaceResidual && !pooled {
		apartArgs.Residual = apartArgs.Out
	}
	runConv(v, s, &gapped, &apartArgs)
	s.Check()
	wantApart(t, name, apartArgs.Out, args.Out, c.Batch, c.OutChannels, out, to)
}

func TestPoolSteps(t *testing.T) { kerneltest.EachVariant(t, testPoolSteps) }

// Pools compute the same, to the bit, however images lie.
func testPoolSteps(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(36)
	for i := range 300 {
		w := randomWindow(r, r.IntN(4))
		if i%50 == 0 { // more taps than are copied
			w = conv.Window{In: []int{68, 70}, Kernel: []int{66, 67}, PadBegin: []int{1, 0}}
		}
		p := conv.Pool{Kind: conv.PoolKind(r.IntN(3)), Channels: 1 + r.IntN(4), Window: w}
		batch := 1 + r.IntN(3)
		p.Planes = batch * p.Channels
		gapped := p
		p.Prepare(v)
		x := kerneltest.Uniform(r, p.Planes*ref.Size(p.In))
		gapped.InSteps, gapped.OutSteps = stepsWith(p.Channels, p.In, randomGaps(r)), stepsWith(p.Channels, p.Out, randomGaps(r))
		gapped.Prepare(v)
		s := kerneltest.NewSpace(t)
		src, dst := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "dst", p.Planes*ref.Size(p.Out))
		from := kerneltest.In(s, "src apart", apart(x, batch, p.Channels, p.In, gapped.InSteps))
		to := kerneltest.InOut(s, "dst apart", apart(dst, batch, p.Channels, p.Out, gapped.OutSteps))
		scratch := kerneltest.Out[float32](s, "scratch", max(p.ScratchBytes(), gapped.ScratchBytes())/4)
		kerneltest.Backwards(p.Tiles(), func(i int) { p.Tile(i, scratch, dst, src) })
		kerneltest.Backwards(gapped.Tiles(), func(i int) { gapped.Tile(i, scratch, to, from) })
		s.Check()
		wantApart(t, fmt.Sprintf("case %d %+v", i, gapped), to, dst, batch, p.Channels, p.Out, gapped.OutSteps)
	}
}

func TestConvTransposeSteps(t *testing.T) { kerneltest.EachVariant(t, testConvTransposeSteps) }

// Transposed convolutions compute the same, to the bit, however images lie.
func testConvTransposeSteps(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(62)
	for i := range 200 {
		rank, group := 1+r.IntN(3), 1+r.IntN(3)
		c := conv.Transpose{Batch: 1 + r.IntN(3), Group: group, InChannels: group * (1 + r.IntN(40)), OutChannels: group * (1 + r.IntN(30))}
		c.Act = gemm.Activation{Op: []kernel.UnaryOp{kernel.Identity, kernel.Relu}[r.IntN(2)]}
		var in, out []int
		taps := 1
		for range rank {
			k, d, stride := 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(3)
			size, before := 1+r.IntN(map[int]int{1: 300, 2: 20, 3: 6}[rank]), r.IntN(k)
			a := conv.TransposeAxis{In: size, Out: max(1, (size-1)*stride+(k-1)*d+1-before), Kernel: k, Stride: stride, Dilation: d, PadBefore: before}
			c.Axes = append(c.Axes, a)
			in, out, taps = append(in, a.In), append(out, a.Out), taps*k
		}
		gapped := c
		gapped.InSteps, gapped.OutSteps = stepsWith(c.InChannels, in, randomGaps(r)), stepsWith(c.OutChannels, out, randomGaps(r))
		s := kerneltest.NewSpace(t)
		x := kerneltest.Uniform(r, c.Batch*c.InChannels*ref.Size(in))
		args := conv.TransposeArgs{
			In: kerneltest.In(s, "in", x), Weights: kerneltest.In(s, "weights", kerneltest.Uniform(r, c.InChannels*c.OutChannels/group*taps)),
			Bias: kerneltest.In(s, "bias", kerneltest.Uniform(r, c.OutChannels)), Out: kerneltest.Out[float32](s, "out", c.Batch*c.OutChannels*ref.Size(out)),
		}
		wide := args
		wide.In = kerneltest.In(s, "in apart", apart(x, c.Batch, c.InChannels, in, gapped.InSteps))
		wide.Out = kerneltest.InOut(s, "out apart", apart(args.Out, c.Batch, c.OutChannels, out, gapped.OutSteps))
		c.Prepare(v)
		gapped.Prepare(v)
		scratch := kerneltest.Out[float32](s, "scratch", c.ScratchBytes()/4)
		kerneltest.Backwards(c.Tiles(), func(k int) { c.Tile(k, scratch, &args) })
		kerneltest.Backwards(gapped.Tiles(), func(k int) {
			kerneltest.Poison(scratch)
			gapped.Tile(k, scratch, &wide)
		})
		s.Check()
		wantApart(t, fmt.Sprintf("case %d %+v", i, gapped), wide.Out, args.Out, c.Batch, c.OutChannels, out, gapped.OutSteps)
	}
}
