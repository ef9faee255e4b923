package ortdiff_test

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
)

func contribAttention(ms func(string, tolerance, func(*drawer)), sums tolerance) {
	ms("RotaryEmbedding", tolerance{4, 4, 0, "products are added with one rounding or two"}, func(d *drawer) {
		batch, heads, time, size, most := d.between(1, 2), d.between(1, 3), d.between(1, 4), 2*d.between(1, 4), 8
		if d.chance(0.5) {
			d.in(dtype.F32, batch, heads, time, size)
		} else {
			d.in(dtype.F32, batch, time, heads*size)
		}
		if d.chance(0.5) {
			d.with(dtype.I64, []int{1}, encodeInts(dtype.I64, int64(d.IntN(most-time+1))))
		} else {
			list := make([]int64, batch*time)
			for i := range list {
				list[i] = int64(d.IntN(most))
			}
			d.with(dtype.I64, []int{batch, time}, encodeInts(dtype.I64, list...))
		}
		turned := size
		if d.chance(0.3) {
			turned = 2 * d.between(1, size/2)
			d.attr("rotary_embedding_dim", turned)
		}
		if turned != size || d.chance(0.5) {
			d.attr("num_heads", heads)
		}
		d.in(dtype.F32, most, turned/2)
		d.in(dtype.F32, most, turned/2)
		d.maybe("interleaved", d.chance(0.5))
		if d.chance(0.2) {
			d.attr("scale", pick(d, 1.0, 0.5))
		}
		if d.chance(0.2) {
			d.attr("is_packed_batching", d.IntN(2))
		}
	})
	// scores draws the attributes that scores depend on; past keys count among
	// the keys.
	scores := func(d *drawer) {
		if d.chance(0.3) {
			d.attr("scale", 0.7)
		}
		if d.chance(0.5) {
			d.attr("mask_filter_value", pick(d, -5.0, -1000, -math.MaxFloat32))
		}
		d.maybe("unidirectional", d.chance(0.4))
	}
	ms("MultiHeadAttention", sums, func(d *drawer) {
		batch, heads, time, size, vsize := d.between(1, 3), d.between(1, 3), d.between(1, 4), d.between(1, 4), d.between(1, 4)
		keys := pick(d, time, time, d.between(1, 4))
		past, outs := 0, pick(d, 1, 1, 3)
		if d.chance(0.4) {
			past, outs, vsize = d.between(1, 3), 3, size
		}
		d.in(dtype.F32, batch, time, heads*size)
		if past == 0 && d.chance(0.25) {
			vsize = size
			d.in(dtype.F32, batch, heads, keys, size)
			d.in(dtype.F32, batch, heads, keys, size)
		} else {
			d.in(dtype.F32, batch, keys, heads*size)
			d.in(dtype.F32, batch, keys, heads*vsize)
		}
		d.optional(0.4, dtype.F32, heads*(2*size+vsize))
		d.keyMask(batch, time, keys+past, false)
		d.optional(0.4, dtype.F32, pick(d, 1, batch), pick(d, 1, heads), time, keys+past)
		if past > 0 {
			d.in(dtype.F32, batch, heads, past, size)
			d.in(dtype.F32, batch, heads, past, size)
		}
		d.attr("num_heads", heads)
		scores(d)
		d.outs(outs)
	})
	ms("Attention", sums, func(d *drawer) {
		batch, time, heads, in := d.between(1, 3), d.between(1, 4), d.between(1, 3), d.between(1, 5)
		size, past := d.between(1, 4), 0
		if d.chance(0.3) {
			past = d.between(1, 3)
		}
		hidden := heads * size
		values := hidden
		if past == 0 && d.chance(0.3) {
			values = heads * d.between(1, 4)
			d.attr("qkv_hidden_sizes", []int{hidden, hidden, values})
		}
		d.in(dtype.F32, batch, time, in)
		d.in(dtype.F32, in, 2*hidden+values)
		d.optional(0.8, dtype.F32, 2*hidden+values)
		d.keyMask(batch, time, time+past, true)
		if past > 0 {
			d.in(dtype.F32, 2, batch, heads, past, size)
		} else {
			d.skip()
		}
		d.optional(0.3, dtype.F32, pick(d, 1, batch), pick(d, 1, heads), time, time+past)
		d.attr("num_heads", heads)
		scores(d)
		if past > 0 || values == hidden && d.chance(0.2) {
			d.outs(2)
		}
	})
}

// flags draws so many numbers of which 0 means no, and now and then a negative
// one too.
func (d *drawer) flags(n int) []byte {
	list := make([]int64, n)
	for i := range list {
		list[i] = pick[int64](d, 0, 1, 1, 1, 0, 1, 2, -1)
	}
	return encodeInts(dtype.I32, list...)
}

// keyMask adds a mask of keys in one of its forms, or leaves it out. A sample
// may have no key that counts.
func (d *drawer) keyMask(batch, queries, keys int, pairs bool) {
	limits := func(n int) []byte {
		list := make([]int64, n)
		for i := range list {
			list[i] = int64(d.between(0, keys+1))
		}
		return encodeInts(dtype.I32, list...)
	}
	switch form := d.IntN(9); {
	case form == 0:
		d.with(dtype.I32, []int{batch}, limits(batch))
	case form == 1 && pairs:
		d.with(dtype.I32, []int{2 * batch}, limits(2*batch))
	case form == 2:
		d.with(dtype.I32, []int{3*batch + 2}, limits(3*batch+2))
	case form == 3:
		d.with(dtype.I32, []int{batch, queries, keys}, d.flags(batch*queries*keys))
	case form < 6:
		d.with(dtype.I32, []int{batch, keys}, d.flags(batch*keys))
	default:
		d.skip()
	}
}
