package suite

import (
	"fmt"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// OpenResNet50 returns ResNet-50 for pictures of any size: x is f32[1,3,h,w].
// Batch normalisations are nodes of their own, as in the file of a training
// framework.
func OpenResNet50() *f.Graph {
	b := &builder{Graph: f.New(13)}
	b.Input("x", f.F32, 1, 3, f.Open, f.Open)
	x := b.do("Relu", []string{b.convolution("x", "stem", 3, 64, 7, 2)})
	x = b.do("MaxPool", []string{x}, f.Ints("kernel_shape", 3, 3), f.Ints("strides", 2, 2), f.Ints("pads", 1, 1, 1, 1))
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		inner := 64 << stage
		for block := range blocks {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			x = b.bottleneck(x, fmt.Sprintf("stage%d.%d.", stage, block), in, inner, stride)
			in = 4 * inner
		}
	}
	x = b.do("Flatten", []string{b.do("GlobalAveragePool", []string{x})})
	b.finish(b.dense(x, "classes", in, 1000), "y")
	return b.Graph
}

// bottleneck is a residual block: three convolutions to four times the inner
// channels, and a fourth one beside them where the size or the channels change.
func (b *builder) bottleneck(x, name string, in, inner, stride int) string {
	y := b.do("Relu", []string{b.convolution(x, name+"a", in, inner, 1, 1)})
	y = b.do("Relu", []string{b.convolution(y, name+"b", inner, inner, 3, stride)})
	y = b.convolution(y, name+"c", inner, 4*inner, 1, 1)
	if in != 4*inner || stride != 1 {
		x = b.convolution(x, name+"beside", in, 4*inner, 1, stride)
	}
	return b.do("Relu", []string{b.do("Add", []string{y, x})})
}

// convolution is a convolution of a square kernel, padded to keep the size at
// stride 1, and the normalisation after it.
func (b *builder) convolution(x, name string, in, out, kernel, stride int) string {
	k, s, pad := int64(kernel), int64(stride), int64(kernel/2)
	b.Weight(name+".w", f.He(f.Seed(name), in*kernel*kernel), out, in, kernel, kernel)
	y := b.do("Conv", []string{x, name + ".w"}, f.Ints("kernel_shape", k, k), f.Ints("strides", s, s), f.Ints("pads", pad, pad, pad, pad))
	operands := []string{y}
	for _, part := range []string{"scale", "shift", "mean", "variance"} {
		source := f.Uniform(f.Seed(name+part), 0.1)
		if part == "scale" || part == "variance" {
			source = f.Between(f.Seed(name+part), 0.8, 1.2)
		}
		b.Weight(name+"."+part, source, out)
		operands = append(operands, name+"."+part)
	}
	return b.do("BatchNormalization", operands)
}

// OpenDeep returns a narrow encoder of 27 layers and an open number of tokens,
// whose program has some 300 steps that take little time each: x is f32[n,32].
func OpenDeep() *f.Graph {
	const layers, width, heads = 27, 32, 4
	b := &builder{Graph: f.New(13)}
	b.Input("x", f.F32, f.Open, width)
	b.Sizes("apart", 0, heads, width/heads)
	b.Sizes("together", 0, width)
	x := b.do("Relu", []string{"x"})
	product := func(x, name string, in, out int) string {
		b.Weight(name, f.He(f.Seed(name), in), in, out)
		return b.do("MatMul", []string{x, name})
	}
	for i := range layers {
		name := fmt.Sprintf("layer%d.", i)
		head := func(part string, perm ...int64) string {
			rows := b.do("Reshape", []string{product(x, name+part, width, width), "apart"})
			return b.do("Transpose", []string{rows}, f.Ints("perm", perm...))
		}
		seen := b.do("Softmax", []string{b.do("MatMul", []string{head("q", 1, 0, 2), head("k", 1, 2, 0)})}, f.Int("axis", -1))
		mixed := b.do("Transpose", []string{b.do("MatMul", []string{seen, head("v", 1, 0, 2)})}, f.Ints("perm", 1, 0, 2))
		x = b.do("Add", []string{x, product(b.do("Reshape", []string{mixed, "together"}), name+"out", width, width)})
		x = b.do("Add", []string{x, product(b.do("Relu", []string{product(x, name+"up", width, 4*width)}), name+"down", 4*width, width)})
	}
	b.finish(x, "y")
	return b.Graph
}
