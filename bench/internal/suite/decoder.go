package suite

import (
	"fmt"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// Decoder are the sizes of a decoder: each group of keys serves Heads/Groups
// heads.
type Decoder struct{ Layers, Width, Heads, Groups, Inner, Vocabulary, Positions int }

// Size is the number of elements of a head.
func (d Decoder) Size() int { return d.Width / d.Heads }

// Graph returns the decoder for any number of tokens after any number of cached
// ones. Inputs are the tokens i64[1,n], their positions i64[1,n], and per layer
// past_key_values.N.key and past_key_values.N.value f32[1,groups,past,size];
// outputs the logits, and per layer present.N.key and present.N.value. The
// operator Attention of version 23 joins past and new keys.
func (d Decoder) Graph() *f.Graph {
	b := &builder{Graph: f.New(23)}
	b.Input("input_ids", f.I64, 1, f.Open)
	b.Input("position_ids", f.I64, 1, f.Open)
	b.Weight("tokens", f.Uniform(f.Seed("tokens"), 1), d.Vocabulary, d.Width)
	b.Weight("positions", f.Uniform(f.Seed("positions"), 0.1), d.Positions, d.Width)
	x := b.do("Add", []string{b.do("Gather", []string{"tokens", "input_ids"}), b.do("Gather", []string{"positions", "position_ids"})})
	for i := range d.Layers {
		name := fmt.Sprintf("layer%d.", i)
		x = b.do("Add", []string{x, d.attention(b, d.norm(b, x, name+"norm1"), i)})
		up := b.do("Relu", []string{d.product(b, d.norm(b, x, name+"norm2"), name+"up", d.Width, d.Inner)})
		x = b.do("Add", []string{x, d.product(b, up, name+"down", d.Inner, d.Width)})
	}
	b.finish(d.product(b, d.norm(b, x, "norm"), "head", d.Width, d.Vocabulary), "logits")
	for i := range d.Layers {
		b.Output(fmt.Sprintf("present.%d.key", i), f.F32)
		b.Output(fmt.Sprintf("present.%d.value", i), f.F32)
	}
	return b.Graph
}

func (d Decoder) product(b *builder, x, name string, in, out int) string {
	b.Weight(name, f.He(f.Seed(name), in), in, out)
	return b.do("MatMul", []string{x, name})
}

func (d Decoder) norm(b *builder, x, name string) string {
	b.Weight(name+".scale", f.Between(f.Seed(name), 0.8, 1.2), d.Width)
	b.Weight(name+".shift", f.Uniform(f.Seed(name+"s"), 0.1), d.Width)
	return b.do("LayerNormalization", []string{x, name + ".scale", name + ".shift"}, f.Int("axis", -1))
}

func (d Decoder) attention(b *builder, x string, layer int) string {
	name := fmt.Sprintf("layer%d.", layer)
	inner := d.Groups * d.Size()
	q, k, v := d.product(b, x, name+"q", d.Width, d.Width), d.product(b, x, name+"k", d.Width, inner), d.product(b, x, name+"v", d.Width, inner)
	var past, present []string
	for _, part := range []string{"key", "value"} {
		cache := fmt.Sprintf("past_key_values.%d.%s", layer, part)
		b.Input(cache, f.F32, 1, d.Groups, f.Open, d.Size())
		past, present = append(past, cache), append(present, fmt.Sprintf("present.%d.%s", layer, part))
	}
	y := name + "attended"
	b.Node("Attention", []string{q, k, v, "", past[0], past[1]}, []string{y, present[0], present[1]},
		f.Int("is_causal", 1), f.Int("q_num_heads", int64(d.Heads)), f.Int("kv_num_heads", int64(d.Groups)))
	return d.product(b, y, name+"out", d.Width, d.Width)
}
