package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["Attention"] = drawAttention
	tolerances["Attention"] = tolerance{64, 64, 0, "sums in another order, exponentials of their own on both sides"}
	generators["RotaryEmbedding"] = func(d *drawer) {
		d.node("RotaryEmbedding")
		dt := pick(d, dtype.F32, dtype.F32, dtype.F16)
		batch, heads, time, size := d.between(1, 2), d.between(1, 3), d.between(1, 4), 2*d.between(1, 4)
		partial := d.chance(0.3)
		turned := size
		if partial {
			turned = 2 * d.between(1, size/2)
		}
		if d.chance(0.5) {
			d.in(dt, batch, heads, time, size)
		} else {
			d.in(dt, batch, time, heads*size)
			d.attr("num_heads", heads)
		}
		if d.chance(0.6) {
			most := d.between(time, 8)
			d.in(dt, most, turned/2)
			d.in(dt, most, turned/2)
			list := make([]int64, batch*time)
			for i := range list {
				list[i] = int64(d.IntN(most))
			}
			d.with(dtype.I64, []int{batch, time}, encodeInts(dtype.I64, list...))
		} else {
			d.in(dt, batch, time, turned/2)
			d.in(dt, batch, time, turned/2)
		}
		d.maybe("interleaved", d.chance(0.5))
		if partial {
			d.attr("rotary_embedding_dim", turned)
			if d.n.get("num_heads") == nil {
				d.attr("num_heads", heads)
			}
		}
		d.outs(1)
	}
	tolerances["RotaryEmbedding"] = tolerance{4, 4, 0, "products are added with one rounding or two"}
}

func drawAttention(d *drawer) {
	d.node("Attention")
	dt := pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F16)
	batch, kvHeads, time, keys := d.between(1, 2), d.between(1, 2), d.between(1, 4), d.between(1, 5)
	heads, size, vsize := kvHeads*d.between(1, 2), d.between(1, 5), d.between(1, 5)
	past := 0
	if d.chance(0.3) {
		past = d.between(1, 4)
	}
	if flat := d.chance(0.5); flat {
		d.in(dt, batch, time, heads*size)
		d.in(dt, batch, keys, kvHeads*size)
		d.in(dt, batch, keys, kvHeads*vsize)
		d.attr("q_num_heads", heads)
		d.attr("kv_num_heads", kvHeads)
	} else {
		d.in(dt, batch, heads, time, size)
		d.in(dt, batch, kvHeads, keys, size)
		d.in(dt, batch, kvHeads, keys, vsize)
	}
	if d.chance(0.5) {
		mask := []int{batch, heads, time, keys + past}
		for i := range 2 {
			if d.chance(0.4) {
				mask[i] = 1
			}
		}
		mask = mask[d.IntN(3):]
		if d.chance(0.5) {
			bits := make([]byte, elements(mask))
			for i := range bits {
				if d.chance(0.8) || i%(keys+past) == 0 && d.chance(0.9) {
					bits[i] = 1
				}
			}
			d.with(dtype.Bool, mask, bits)
		} else {
			d.in(dt, mask...)
		}
	} else {
		d.skip()
	}
	if past > 0 {
		d.in(dt, batch, kvHeads, past, size)
		d.in(dt, batch, kvHeads, past, vsize)
	} else {
		d.skip()
		d.skip()
	}
	if d.m.opset >= 24 && past == 0 && d.chance(0.3) {
		list := make([]int64, batch)
		for i := range list {
			list[i] = int64(d.between(1, keys))
		}
		d.with(dtype.I64, []int{batch}, encodeInts(dtype.I64, list...))
	}
	d.maybe("is_causal", d.chance(0.5))
	if d.chance(0.3) {
		d.attr("scale", pick(d, 0.5, 1, 0.1))
	}
	if d.chance(0.3) {
		d.attr("softcap", pick(d, 0.5, 2, 30))
	}
	if d.m.opset >= 25 && d.chance(0.4) {
		d.maybe("left_window_size", d.between(-1, 3))
		d.maybe("right_window_size", d.between(-1, 3))
	}
	if d.chance(0.2) {
		d.attr("softmax_precision", int(pick(d, dtype.F32, dt).ONNX()))
	}
	outs := 1
	if past > 0 || d.chance(0.3) {
		outs = 3
	}
	if d.chance(0.3) {
		outs = 4
		d.attr("qk_matmul_output_mode", d.IntN(4))
	}
	if outs > 1 && past == 0 { // without past keys there are no present ones
		n := outs
		d.outs(n)
		if n == 4 {
			d.drop(1)
			d.drop(2)
		} else {
			d.drop(2)
			d.drop(1)
			d.n.out = d.n.out[:1]
		}
		return
	}
	d.outs(outs)
}

// drop leaves output i of the last node out.
func (d *drawer) drop(i int) {
	g, name := &d.m.graph, d.n.out[i]
	d.n.out[i] = ""
	for k := range g.outputs {
		if g.outputs[k].name == name {
			g.outputs = append(g.outputs[:k], g.outputs[k+1:]...)
			break
		}
	}
}
