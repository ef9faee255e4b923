package conv_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestConvTranspose(t *testing.T) { kerneltest.EachVariant(t, testConvTranspose) }

func testConvTranspose(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(61)
	for i := range 200 {
		rank, group := 1+r.IntN(3), 1+r.IntN(3)
		c := conv.Transpose{Batch: 1 + r.IntN(2), Group: group, InChannels: group * (1 + r.IntN(4)), OutChannels: group * (1 + r.IntN(5))}
		c.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
		for range rank {
			k, d, stride := 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(3)
			size := 1 + r.IntN(map[int]int{1: 200, 2: 14, 3: 5}[rank])
			before, after, extra := r.IntN(k), r.IntN(k), r.IntN(stride)
			c.Axes = append(c.Axes, conv.TransposeAxis{
				In: size, Out: max(1, (size-1)*stride+(k-1)*d+1-before-after+extra), Kernel: k, Stride: stride, Dilation: d, PadBefore: before,
			})
		}
		convTransposeCase(t, v, r, fmt.Sprint("random ", i), c)
	}
	// Deeper than a block, more taps than a tile, and nothing to add up.
	axis := conv.TransposeAxis{In: 5, Out: 10, Kernel: 2, Stride: 2, Dilation: 1}
	wide := conv.TransposeAxis{In: 3, Out: 14, Kernel: 12, Stride: 1, Dilation: 1}
	convTransposeCase(t, v, r, "deep", conv.Transpose{Batch: 1, Group: 1, InChannels: 300, OutChannels: 70, Axes: []conv.TransposeAxis{axis}})
	convTransposeCase(t, v, r, "wide", conv.Transpose{Batch: 1, Group: 1, InChannels: 2, OutChannels: 3, Axes: []conv.TransposeAxis{wide, wide}})
	convTransposeCase(t, v, r, "empty", conv.Transpose{Batch: 1, Group: 1, InChannels: 0, OutChannels: 3, Axes: []conv.TransposeAxis{axis}})
}

func convTransposeCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, c conv.Transpose) {
	t.Helper()
	var w ref.Window
	for _, a := range c.Axes {
		w.In, w.Out, w.Kernel = append(w.In, a.In), append(w.Out, a.Out), append(w.Kernel, a.Kernel)
		w.Stride, w.Dilation, w.PadBegin = append(w.Stride, a.Stride), append(w.Dilation, a.Dilation), append(w.PadBegin, a.PadBefore)
	}
	s := kerneltest.NewSpace(t)
	args := conv.TransposeArgs{
		In:      kerneltest.In(s, "in", kerneltest.Small(r, c.Batch*c.InChannels*ref.Size(w.In))),
		Weights: kerneltest.In(s, "weights", kerneltest.Small(r, c.InChannels*c.OutChannels/c.Group*ref.Size(w.Kernel))),
	}
	if r.IntN(2) == 0 {
		args.Bias = kerneltest.In(s, "bias", kerneltest.Small(r, c.OutChannels))
	}
	wanted := ref.ConvTranspose(c.Batch, c.Group, c.InChannels, c.OutChannels, w, args.In, args.Weights, args.Bias)
	args.Out = kerneltest.Out[float32](s, "out", len(wanted))
	c.Prepare(v)
	scratch := kerneltest.Out[float32](s, "scratch", c.ScratchBytes()/4)
	kerneltest.Backwards(c.Tiles(), func(k int) {
		kerneltest.Poison(scratch)
		c.Tile(k, scratch, &args)
	})
	plain := conv.PlainTranspose{Batch: c.Batch, Channels: c.InChannels, Out: c.OutChannels, Groups: c.Group, Axes: c.Axes}
	wide := make([]float64, len(wanted))
	var bias []float64
	if args.Bias != nil {
		bias = kerneltest.F64s(args.Bias)
	}
	kerneltest.Backwards(plain.Tiles(), func(k int) {
		conv.PlainTransposeTile(&plain, k, wide, kerneltest.F64s(args.In), kerneltest.F64s(args.Weights), bias)
	})
	s.Check()
	for k, v := range wanted {
		activated := v
		if c.Act.Op != kernel.Identity {
			activated = ref.Unary(c.Act.Op.String(), v, float64(c.Act.A), float64(c.Act.B))
		}
		if float64(args.Out[k]) != activated || wide[k] != v {
			t.Fatalf("%s %+v: element %d: got %v and plain %v, want %v and %v", name, c, k, args.Out[k], wide[k], activated, v)
		}
	}
}
