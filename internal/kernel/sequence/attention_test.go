package sequence_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func TestAttention(t *testing.T) { kerneltest.EachVariant(t, testAttention) }

func testAttention(t *testing.T, v *kernel.Variant) {
	base := sequence.Attention{Batch: 2, Heads: 4, Groups: 2, Queries: 3, Past: 5, Keys: 4, Size: 7, ValueSize: 9, Scale: 0.3, Left: -1, Right: -1}
	packed, masked, causal, window, alone := base, base, base, base, base
	packed.Packed = true
	masked.MaskKeys, masked.Mask, masked.Softcap = 8, [3]int{4 * 3 * 8, 3 * 8, 8}, 0.5
	causal.Causal, causal.Packed = true, true
	window.Left, window.Right, window.Causal = 2, 1, false
	alone.Past, alone.Queries, alone.Keys, alone.Size = 0, 40, 37, 33
	for _, a := range []sequence.Attention{base, packed, masked, causal, window, alone} {
		attention(t, v, a, nil)
	}
	behind, narrow := causal, causal
	behind.Past, behind.Keys, narrow.Packed, narrow.Left = 0, 9, false, 2
	for _, a := range []sequence.Attention{base, behind, narrow, masked} {
		attention(t, v, a, []int64{8, 3})
		attention(t, v, a, []int64{0, 9})
	}
	t.Run("rotary", testRotary)
}

// attention compares a call with the reference. Keys behind the lengths, if
// there are some, are NaN: they must not be read.
func attention(t *testing.T, v *kernel.Variant, a sequence.Attention, lengths []int64) {
	t.Helper()
	r := kerneltest.NewRand(80)
	q, k, val := kerneltest.Uniform(r, a.Batch*a.Heads*a.Queries*a.Size), kerneltest.Uniform(r, a.Batch*a.Groups*a.Keys*a.Size), kerneltest.Uniform(r, a.Batch*a.Groups*a.Keys*a.ValueSize)
	pk, pv := kerneltest.Uniform(r, a.Batch*a.Groups*a.Past*a.Size), kerneltest.Uniform(r, a.Batch*a.Groups*a.Past*a.ValueSize)
	total := a.Past + a.Keys
	s := kerneltest.NewSpace(t)
	args := sequence.AttentionArgs[float32]{
		Q: kerneltest.In(s, "q", q), K: kerneltest.In(s, "k", spoilt(a, k, lengths, a.Past)), V: kerneltest.In(s, "v", spoilt(a, val, lengths, a.Past)), Lengths: lengths,
		PastK: kerneltest.In(s, "past k", spoilt(a, pk, lengths, 0)), PastV: kerneltest.In(s, "past v", spoilt(a, pv, lengths, 0)),
		Y: kerneltest.Out[float32](s, "y", a.Batch*a.Heads*a.Queries*a.ValueSize),
	}
	var bias []float32
	if a.MaskKeys > 0 {
		bias = kerneltest.Uniform(r, a.Batch*a.Heads*a.Queries*a.MaskKeys)
		for i := range a.MaskKeys { // one query without a key
			bias[i] = float32(math.Inf(-1))
		}
		args.Bias = kerneltest.In(s, "bias", bias)
	}
	scratch := kerneltest.Out[float32](s, "scratch", a.ScratchElements())
	a.Lay()
	kerneltest.Backwards(a.Tiles(), func(i int) { sequence.AttentionTile(v, &a, i, &args, scratch) })
	s.Check()
	row := func(x []float32, batch, heads, head, length, at, size int) []float64 {
		if a.Packed {
			return kerneltest.F64s(x[((batch*length+at)*heads+head)*size:][:size])
		}
		return kerneltest.F64s(x[((batch*heads+head)*length+at)*size:][:size])
	}
	ref.Each([]int{a.Batch, a.Heads, a.Queries}, func(idx []int) {
		b, h, i := idx[0], idx[1], idx[2]
		g := h / (a.Heads / a.Groups)
		var keys, values [][]float64
		biases := make([]float64, total)
		for j := range total {
			if j < a.Past {
				keys, values = append(keys, kerneltest.F64s(pk[((b*a.Groups+g)*a.Past+j)*a.Size:][:a.Size])), append(values, kerneltest.F64s(pv[((b*a.Groups+g)*a.Past+j)*a.ValueSize:][:a.ValueSize]))
			} else {
				keys, values = append(keys, row(k, b, a.Groups, g, a.Keys, j-a.Past, a.Size)), append(values, row(val, b, a.Groups, g, a.Keys, j-a.Past, a.ValueSize))
			}
			place, length := i+a.Past, total
			if lengths != nil {
				length = int(lengths[b])
				place = i + length - a.Queries
			}
			hidden := j >= length || a.Causal && j > place || a.Left >= 0 && j < place-a.Left || a.Right >= 0 && j > place+a.Right || bias != nil && j >= a.MaskKeys
			if hidden {
				biases[j] = math.Inf(-1)
			} else if bias != nil {
				biases[j] = float64(bias[((b*a.Heads+h)*a.Queries+i)*a.MaskKeys+j])
			}
		}
		want := ref.Attend(row(q, b, a.Heads, h, a.Queries, i, a.Size), keys, values, biases, a.Scale, a.Softcap)
		got := row(args.Y, b, a.Heads, h, a.Queries, i, a.ValueSize)
		for j := range want {
			if !(math.Abs(got[j]-want[j]) <= 2e-6) {
				t.Fatalf("%+v: sample %d head %d query %d: got %v, want %v", a, b, h, i, got, want)
			}
		}
	})
}

// spoilt is keys or values whose first place is the given one, 0 for past ones,
// with NaN behind the lengths.
func spoilt(a sequence.Attention, x []float32, lengths []int64, first int) []float32 {
	x = slices.Clone(x)
	rows, packed := a.Keys, a.Packed
	if first == 0 && a.Past > 0 {
		rows, packed = a.Past, false
	}
	for at := range x {
		sample := at / (len(x) / a.Batch)
		row := at / (len(x) / a.Batch / a.Groups / rows)
		place := first + row%rows
		if packed {
			place = first + row/a.Groups%rows
		}
		if lengths != nil && place >= int(lengths[sample]) {
			x[at] = float32(math.NaN())
		}
	}
	return x
}

func testRotary(t *testing.T) {
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
