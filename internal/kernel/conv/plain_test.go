package conv_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestPlainConv(t *testing.T) {
	r := kerneltest.NewRand(32)
	for i := range 150 {
		w := randomWindow(r, 1+r.IntN(3))
		c := conv.Plain{Batch: r.IntN(3), Group: 1 + r.IntN(3), Window: w}
		c.InChannels, c.OutChannels = c.Group*(1+r.IntN(3)), c.Group*(1+r.IntN(3))
		c.Prepare()
		want := ref.Conv{Batch: c.Batch, Group: c.Group, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&c.Window)}
		x := kerneltest.Small(r, c.Batch*c.InChannels*ref.Size(c.In))
		weights, bias := kerneltest.Small(r, c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel)), kerneltest.Small(r, c.OutChannels)
		if i%2 == 0 {
			want.Bias, want.Beta = "row", 1
		}
		wanted := want.Run(x, weights, bias, nil)
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[float64](s, "out", len(wanted))
		px, pw, pb := kerneltest.In(s, "in", kerneltest.F64s(x)), kerneltest.In(s, "weights", kerneltest.F64s(weights)), kerneltest.In(s, "bias", kerneltest.F64s(bias))
		if want.Bias == "" {
			pb = nil
		}
		kerneltest.Backwards(c.Tiles(), func(t int) { conv.PlainTile(&c, t, dst, px, pw, pb) })
		s.Check()
		kerneltest.WantEqual(t, dst, wanted)
	}
}

func plainPools[T float64 | int8](t *testing.T) {
	r := kerneltest.NewRand(33)
	for i := range 150 {
		p := conv.PlainPool{Kind: conv.PoolKind(r.IntN(3)), Planes: r.IntN(4), Window: randomWindow(r, 1+r.IntN(3)), ColumnMajor: false}
		p.Ceil = r.IntN(2) == 0
		p.Prepare()
		want := ref.Pool{Kind: poolNames[p.Kind], Planes: p.Planes, Window: refWindow(&p.Window)}
		x := kerneltest.F64s(kerneltest.Small(r, p.Planes*ref.Size(p.In)))
		values, where := want.Run(x)
		data := make([]T, len(x))
		for j, v := range x {
			data[j] = T(v)
		}
		s := kerneltest.NewSpace(t)
		src, dst := kerneltest.In(s, "src", data), kerneltest.Out[T](s, "dst", len(values))
		var indices []int64
		if p.Kind == conv.PoolMax {
			indices = kerneltest.Out[int64](s, "indices", len(values))
		}
		kerneltest.Backwards(p.Tiles(), func(t int) { conv.PlainPoolTile(&p, t, dst, indices, src) })
		s.Check()
		for j, v := range values {
			if v == math.Inf(-1) && dst[j] <= -100 {
				continue // no element: the smallest number of the type
			}
			if dst[j] != T(v) || indices != nil && indices[j] != where[j] {
				t.Fatalf("case %d %+v: element %d: got %v, want %v", i, p, j, dst[j], v)
			}
		}
	}
}

func TestPlainPool(t *testing.T) {
	t.Run("float64", plainPools[float64])
	t.Run("int8", plainPools[int8])
}
