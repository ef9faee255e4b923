package sequence_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func TestRotary(t *testing.T) {
	for _, r := range []sequence.Rotary{
		{Batch: 2, Length: 3, Heads: 2, Size: 8, Half: 4}, {Batch: 2, Length: 3, Heads: 2, Size: 9, Half: 3, Packed: true}, {Batch: 1, Length: 5, Heads: 3, Size: 6, Half: 3, Interleaved: true},
	} {
		rand := kerneltest.NewRand(81)
		r.Lay()
		n, places := r.Rows()*r.Size, r.Batch*r.Length
		x, cos, sin := kerneltest.Uniform(rand, n), kerneltest.Uniform(rand, places*r.Half), kerneltest.Uniform(rand, places*r.Half)
		positions := make([]int64, places)
		for i := range positions {
			positions[i] = int64(places - 1 - i)
		}
		s := kerneltest.NewSpace(t)
		src, dst, place := kerneltest.In(s, "x", x), kerneltest.Out[float32](s, "dst", n), kerneltest.InOut(s, "in place", x)
		c, si := kerneltest.In(s, "cos", cos), kerneltest.In(s, "sin", sin)
		kerneltest.InRanges(r.Rows(), func(lo, hi int) {
			sequence.RotaryRows(&r, lo, hi, dst, src, c, si, positions)
			sequence.RotaryRows(&r, lo, hi, place, place, c, si, positions)
		})
		s.Check()
		kerneltest.WantEqual(t, place, dst)
		dims := []int{r.Batch, r.Heads, r.Length}
		if r.Packed {
			dims = []int{r.Batch, r.Length, r.Heads}
		}
		row := 0
		ref.Each(dims, func(idx []int) {
			at := idx[2]
			if r.Packed {
				at = idx[1]
			}
			at = places - 1 - (idx[0]*r.Length + at)
			want := kerneltest.F64s(x[row*r.Size:][:r.Size])
			for i := range r.Half {
				a, b := i, i+r.Half
				if r.Interleaved {
					a, b = 2*i, 2*i+1
				}
				u, v, co, sn := want[a], want[b], float64(cos[at*r.Half+i]), float64(sin[at*r.Half+i])
				want[a], want[b] = co*u-sn*v, sn*u+co*v
			}
			kerneltest.WantClose(t, dst[row*r.Size:][:r.Size], want, 1e-6)
			row++
		})
	}
}
