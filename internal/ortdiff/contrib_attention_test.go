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
	ms("DecoderMaskedMultiHeadAttention", sums, func(d *drawer) {
		heads, size := d.between(1, 3), d.between(1, 4)
		if d.chance(0.3) { // over the keys of an encoder
			batch, keys := d.between(1, 3), d.between(1, 5)
			d.in(dtype.F32, batch, 1, heads*size)
			d.in(dtype.F32, batch, heads, keys, size)
			d.in(dtype.F32, batch, heads, keys, size)
			if d.chance(0.5) {
				d.with(dtype.I32, []int{batch, keys}, d.flags(batch*keys))
			} else {
				d.skip()
			}
			for range 6 {
				d.skip()
			}
			d.optional(0.4, dtype.F32, 3*heads*size)
			d.attr("num_heads", heads)
			d.decoderScores()
			return
		}
		b := d.drawBuffer()
		for range 3 {
			d.in(dtype.F32, b.batch, 1, heads*size)
		}
		if d.chance(0.4) {
			d.with(dtype.I32, []int{b.batch, b.past + 1}, d.flags(b.batch*(b.past+1)))
		} else {
			d.skip()
		}
		d.optional(0.4, dtype.F32, 1, pick(d, 1, heads), 1, b.past+1)
		d.in(dtype.F32, b.batch, heads, b.room, size)
		d.in(dtype.F32, b.batch, heads, b.room, size)
		d.with(dtype.I32, []int{1}, encodeInts(dtype.I32, int64(b.past)))
		if b.from != nil {
			d.with(dtype.I32, []int{1}, encodeInts(dtype.I32, int64(b.beams)))
			d.with(dtype.I32, []int{b.batch / b.beams, b.beams, b.room}, b.from)
		} else {
			d.skip()
			d.skip()
		}
		d.optional(0.4, dtype.F32, 3*heads*size)
		d.attr("num_heads", heads)
		d.attr("past_present_share_buffer", 1)
		d.decoderScores()
		d.outs(3)
		if d.chance(0.3) {
			d.attr("output_qk", 1)
			d.n.out = append(d.n.out, "scores")
			d.m.graph.outputs = append(d.m.graph.outputs, typed{name: "scores", dt: dtype.F32, dims: []int{b.batch, heads, 1, b.past + 1}})
		}
	})
	ms("MultiHeadAttention", sums, func(d *drawer) {
		if d.chance(0.2) {
			d.bufferedAttention()
			return
		}
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
		if outs == 3 && d.n.get("unidirectional") != int64(1) && d.chance(0.3) {
			d.n.out = append(d.n.out, "scores")
			d.m.graph.outputs = append(d.m.graph.outputs, typed{name: "scores", dt: dtype.F32, dims: []int{batch, heads, time, keys + past}})
		}
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

// buffer is how much a buffer of past keys holds, and perhaps from which beam
// of its sample each key is.
type buffer struct {
	batch, past, room, beams int
	from                     []byte
}

func (d *drawer) drawBuffer() buffer {
	b := buffer{batch: d.between(1, 3), past: d.between(1, 4), beams: 1}
	b.room = b.past + d.between(1, 3)
	if d.chance(0.5) {
		b.beams = d.between(1, 3)
		b.batch = b.beams * d.between(1, 2)
		list := make([]int64, b.batch*b.room)
		for i := range list {
			list[i] = int64(d.IntN(b.beams))
		}
		b.from = encodeInts(dtype.I32, list...)
	}
	return b
}

func (d *drawer) decoderScores() {
	if d.chance(0.3) {
		d.attr("scale", 0.7)
	}
	if d.chance(0.5) {
		d.attr("mask_filter_value", pick(d, -5.0, -1000))
	}
}

// bufferedAttention draws a MultiHeadAttention whose past keys are a part of
// their buffer.
func (d *drawer) bufferedAttention() {
	b, heads, size := d.drawBuffer(), d.between(1, 3), d.between(1, 4)
	time := d.between(1, b.room-b.past)
	if b.from != nil {
		time = 1
	}
	for range 3 {
		d.in(dtype.F32, b.batch, time, heads*size)
	}
	d.optional(0.3, dtype.F32, 3*heads*size)
	if d.chance(0.3) {
		d.with(dtype.I32, []int{b.batch, b.past + time}, d.flags(b.batch*(b.past+time)))
	} else {
		d.skip()
	}
	d.optional(0.3, dtype.F32, 1, pick(d, 1, heads), time, b.past+time)
	d.in(dtype.F32, b.batch, heads, b.room, size)
	d.in(dtype.F32, b.batch, heads, b.room, size)
	d.with(dtype.I32, []int{1}, encodeInts(dtype.I32, int64(b.past)))
	if b.from != nil {
		d.with(dtype.I32, []int{b.batch / b.beams, b.beams, b.room}, b.from)
	}
	d.attr("num_heads", heads)
	if d.chance(0.3) {
		d.attr("unidirectional", 1)
	}
	d.decoderScores()
	d.outs(3)
}
