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

func TestHalfTranspose(t *testing.T) { kerneltest.EachVariant(t, testHalfTranspose) }

func testHalfTranspose(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(62)
	for i := range 150 {
		rank, group := 1+r.IntN(3), 1+r.IntN(3)
		c := conv.Transpose{Batch: 1 + r.IntN(2), Group: group, InChannels: group * (1 + r.IntN(4)), OutChannels: group * (1 + r.IntN(70))}
		c.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
		for range rank {
			k, d, stride := 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(3)
			size := 1 + r.IntN(map[int]int{1: 400, 2: 24, 3: 6}[rank])
			before, after, extra := r.IntN(k), r.IntN(k), r.IntN(stride+2)
			c.Axes = append(c.Axes, conv.TransposeAxis{
				In: size, Out: max(1, (size-1)*stride+(k-1)*d+1-before-after+extra), Kernel: k, Stride: stride, Dilation: d, PadBefore: before,
			})
		}
		halfTransposeCase(t, v, r, fmt.Sprint("random ", i), c)
	}
	// Outputs that no input reaches, and inputs that reach none.
	gaps := conv.TransposeAxis{In: 9, Out: 60, Kernel: 2, Stride: 7, Dilation: 1, PadBefore: -4}
	far := conv.TransposeAxis{In: 40, Out: 50, Kernel: 3, Stride: 2, Dilation: 2, PadBefore: 30}
	for _, a := range []conv.TransposeAxis{gaps, far} {
		halfTransposeCase(t, v, r, "gaps", conv.Transpose{Batch: 1, Group: 1, InChannels: 300, OutChannels: 30, Axes: []conv.TransposeAxis{a, gaps}})
	}
	halfTransposeCase(t, v, r, "empty", conv.Transpose{Batch: 1, Group: 1, InChannels: 0, OutChannels: 3, Axes: []conv.TransposeAxis{gaps}})
}

func halfTransposeCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Transpose) {
	t.Helper()
	dt := []dtype.DType{dtype.F16, dtype.BF16}[r.IntN(2)]
	var w ref.Window
	for _, a := range c.Axes {
		w.In, w.Out, w.Kernel = append(w.In, a.In), append(w.Out, a.Out), append(w.Kernel, a.Kernel)
		w.Stride, w.Dilation, w.PadBegin = append(w.Stride, a.Stride), append(w.Dilation, a.Dilation), append(w.PadBegin, a.PadBefore)
	}
	x, weights := kerneltest.Small(r, c.Batch*c.InChannels*ref.Size(w.In)), kerneltest.Small(r, c.InChannels*c.OutChannels/c.Group*ref.Size(w.Kernel))
	if r.IntN(4) == 0 && len(x) > 0 {
		x[r.IntN(len(x))] = float32(math.NaN())
	}
	var bias []float32
	if r.IntN(2) == 0 {
		bias = kerneltest.Small(r, c.OutChannels)
	}
	wanted := ref.ConvTranspose(c.Batch, c.Group, c.InChannels, c.OutChannels, w, x, weights, bias)
	s := kerneltest.NewSpace(t)
	halves := func(name string, x []float32) []uint16 {
		return kerneltest.In(s, name, ref.Map(x, func(f float32) uint16 { return kerneltest.ToHalf(dt, f) }))
	}
	var gaps [2][4]int
	if r.IntN(2) == 0 {
		gaps = [2][4]int{randomGaps(r), randomGaps(r)}
	}
	in, to := stepsWith(c.InChannels, w.In, gaps[0]), stepsWith(c.OutChannels, w.Out, gaps[1])
	c.InSteps, c.OutSteps = in, to
	args := conv.HalfTransposeArgs{In: halves("in", apart(x, c.Batch, c.InChannels, w.In, in)), Weights: halves("weights", weights)}
	if bias != nil {
		args.Bias = halves("bias", bias)
	}
	args.Out = kerneltest.InOut(s, "out", ref.Map(apart(make([]float32, len(wanted)), c.Batch, c.OutChannels, w.Out, to), func(f float32) uint16 { return kerneltest.ToHalf(dt, f) }))
	h := conv.HalfTranspose{Type: dt}
	problem := c
	h.Prepare(v, &problem)
	scratch := kerneltest.Out[float32](s, "scratch", h.ScratchBytes()/4)
	kerneltest.Backwards(h.Tiles(), func(k int) {
		kerneltest.Poison(scratch)
		h.Tile(k, scratch, &args)
	})
	s.Check()
	activated := ref.Map(wanted, func(x float64) float32 {
		if c.Act.Op != kernel.Identity {
			x = ref.Unary(c.Act.Op.String(), x, float64(c.Act.A), float64(c.Act.B))
		}
		return float32(x)
	})
	for i, want := range apart(activated, c.Batch, c.OutChannels, w.Out, to) {
		if !sameHalf(dt, args.Out[i], want, 0) {
			t.Fatalf("%s %s %+v: place %d: got %v, want %v", name, dt, c, i, kerneltest.FromHalf(dt, args.Out[i]), want)
		}
	}
}
