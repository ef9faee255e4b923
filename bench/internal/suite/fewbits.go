package suite

import (
	"fmt"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// FewBits are the products of a decoder whose weights have few bits: layers of
// q, k, v and out, Width by Width, and of up and down, by 4 * Width, with
// residuals and normalisation, but without attention.
type FewBits struct{ Layers, Width, Rows, Bits, Block, AccuracyLevel int }

// WeightBytes is the size of the weights and scales of all products.
func (d FewBits) WeightBytes() int64 {
	count := int64(d.Layers) * 12 * int64(d.Width) * int64(d.Width)
	return count*int64(d.Bits)/8 + 4*count/int64(d.Block)
}

// Graph returns the products for x f32[rows,width].
func (d FewBits) Graph() *f.Graph {
	b := &builder{Graph: f.New(17)}
	b.Import("com.microsoft", 1)
	b.Input("x", f.F32, d.Rows, d.Width)
	x := "x"
	for i := range d.Layers {
		name := fmt.Sprintf("layer%d.", i)
		h := d.norm(b, x, name+"norm1")
		q, k, v := d.product(b, h, name+"q", 1, 1), d.product(b, h, name+"k", 1, 1), d.product(b, h, name+"v", 1, 1)
		h = b.do("Mul", []string{b.do("Sigmoid", []string{b.do("Add", []string{q, k})}), v})
		x = b.do("Add", []string{x, d.product(b, h, name+"out", 1, 1)})
		h = b.do("Relu", []string{d.product(b, d.norm(b, x, name+"norm2"), name+"up", 1, 4)})
		x = b.do("Add", []string{x, d.product(b, h, name+"down", 4, 1)})
	}
	b.finish(x, "y")
	return b.Graph
}

// product multiplies in widths by out widths.
func (d FewBits) product(b *builder, x, name string, in, out int) string {
	k, n := in*d.Width, out*d.Width
	b.Bytes(name+".w", f.Seed(name), n, k/d.Block, d.Block*d.Bits/8)
	b.Weight(name+".scales", f.Between(f.Seed(name+".scales"), 0.001, 0.002), n*k/d.Block)
	return b.do("com.microsoft::MatMulNBits", []string{x, name + ".w", name + ".scales"}, f.Int("K", int64(k)), f.Int("N", int64(n)),
		f.Int("bits", int64(d.Bits)), f.Int("block_size", int64(d.Block)), f.Int("accuracy_level", int64(d.AccuracyLevel)))
}

func (d FewBits) norm(b *builder, x, name string) string {
	scale := name + ".scale"
	b.Weight(scale, f.Between(f.Seed(name), 0.8, 1.2), d.Width)
	return b.do("LayerNormalization", []string{x, scale}, f.Int("axis", -1))
}
