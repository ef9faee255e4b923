package suite

import (
	"fmt"
	"math"
	"strings"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// builder adds nodes that are named by a number.
type builder struct {
	*f.Graph
	next int
}

func (b *builder) do(op string, in []string, attrs ...f.Attr) string {
	b.next++
	out := fmt.Sprintf("v%d", b.next)
	b.Node(op, in, []string{out}, attrs...)
	return out
}

func (b *builder) dense(x, name string, in, out int) string {
	b.Weight(name+".w", f.He(f.Seed(name), in), in, out)
	b.Weight(name+".b", f.Uniform(f.Seed(name+".b"), 0.1), out)
	return b.do("Add", []string{b.do("MatMul", []string{x, name + ".w"}), name + ".b"})
}

// finish makes a value an output by its name.
func (b *builder) finish(value, name string) {
	b.Node("Identity", []string{value}, []string{name})
	b.Output(name, f.F32)
}

// mlp is four dense layers of 1024 with ReLU, for 32 rows.
func mlp() *f.Graph {
	b := &builder{Graph: f.New(13)}
	b.Input("x", f.F32, 32, 1024)
	x := "x"
	for i := range 4 {
		x = b.do("Relu", []string{b.dense(x, fmt.Sprintf("layer%d", i), 1024, 1024)})
	}
	b.finish(x, "y")
	return b.Graph
}

// Sizes of the encoder: those of a small sentence encoder.
const (
	tokens, width, heads, inner = 128, 384, 12, 1536
	layers                      = 6
)

func encoder() *f.Graph { return encoderOf(tokens) }

// OpenEncoder returns the encoder of [Models] with an open number of tokens: x
// is f32[1,n,384].
func OpenEncoder() *f.Graph { return encoderOf(f.Open) }

// encoderOf is six layers of self-attention, written as exporters did before
// LayerNormalization and Gelu were operators: mean and variance by hand, GELU
// by Erf. The number of tokens may be open.
func encoderOf(tokens int) *f.Graph {
	b := &builder{Graph: f.New(13)}
	b.Input("x", f.F32, 1, tokens, width)
	rows := int64(max(tokens, 0)) // 0: that of the operand of the Reshape
	b.Sizes("apart", 1, rows, heads, width/heads)
	b.Sizes("together", 1, rows, width)
	b.constants()
	x := "x"
	for i := range layers {
		name := fmt.Sprintf("layer%d.", i)
		x = b.norm(b.do("Add", []string{x, b.attention(x, name)}), name+"norm1")
		h := b.gelu(b.dense(x, name+"up", width, inner))
		x = b.norm(b.do("Add", []string{x, b.dense(h, name+"down", inner, width)}), name+"norm2")
	}
	b.finish(x, "y")
	return b.Graph
}

// constants adds the numbers that attention, norm and gelu use.
func (b *builder) constants() {
	for _, c := range []struct {
		name string
		v    float64
	}{{"two", 2}, {"eps", 1e-12}, {"one", 1}, {"half", 0.5}, {"root", math.Sqrt2}, {"scale", math.Sqrt(width / heads)}} {
		b.Scalar(c.name, float32(c.v))
	}
}

func (b *builder) attention(x, name string) string {
	perm := map[string]f.Attr{"q": f.Ints("perm", 0, 2, 1, 3), "k": f.Ints("perm", 0, 2, 3, 1), "v": f.Ints("perm", 0, 2, 1, 3)}
	head := map[string]string{}
	for _, part := range []string{"q", "k", "v"} {
		rows := b.do("Reshape", []string{b.dense(x, name+part, width, width), "apart"})
		head[part] = b.do("Transpose", []string{rows}, perm[part])
	}
	scores := b.do("Div", []string{b.do("MatMul", []string{head["q"], head["k"]}), "scale"})
	mixed := b.do("MatMul", []string{b.do("Softmax", []string{scores}, f.Int("axis", -1)), head["v"]})
	rows := b.do("Reshape", []string{b.do("Transpose", []string{mixed}, perm["q"]), "together"})
	return b.dense(rows, name+"out", width, width)
}

func (b *builder) norm(x, name string) string {
	last := f.Ints("axes", -1)
	off := b.do("Sub", []string{x, b.do("ReduceMean", []string{x}, last)})
	variance := b.do("ReduceMean", []string{b.do("Pow", []string{off, "two"})}, last)
	deviation := b.do("Sqrt", []string{b.do("Add", []string{variance, "eps"})})
	b.Weight(name+".scale", f.Between(f.Seed(name), 0.8, 1.2), width)
	b.Weight(name+".shift", f.Uniform(f.Seed(name+"s"), 0.1), width)
	return b.do("Add", []string{b.do("Mul", []string{b.do("Div", []string{off, deviation}), name + ".scale"}), name + ".shift"})
}

func (b *builder) gelu(x string) string {
	erf := b.do("Erf", []string{b.do("Div", []string{x, "root"})})
	return b.do("Mul", []string{b.do("Mul", []string{x, b.do("Add", []string{erf, "one"})}), "half"})
}

// elementwise is a chain of twelve operators on 64 MiB.
func elementwise() *f.Graph {
	b := &builder{Graph: f.New(13)}
	b.Input("x", f.F32, 1, 16, 1024, 1024)
	b.Scalar("a", 1.25)
	b.Scalar("b", 0.5)
	x := "x"
	for _, op := range []string{"Mul a", "Add b", "Relu", "Sub b", "Tanh", "Mul a", "Sigmoid", "Add b", "Neg", "Exp", "Abs", "Sqrt"} {
		name, constant, two := strings.Cut(op, " ")
		in := []string{x}
		if two {
			in = append(in, constant)
		}
		x = b.do(name, in)
	}
	b.finish(x, "y")
	return b.Graph
}

// Sizes of the decode step.
const (
	past, depth, decodeHeads = 2047, 64, 8
)

// decode is one step of attention for one new token whose keys and values are
// joined to those of the tokens before.
func decode() *f.Graph {
	b := &builder{Graph: f.New(13)}
	const w = decodeHeads * depth
	b.Input("x", f.F32, 1, w)
	b.Input("past_k", f.F32, 1, decodeHeads, past, depth)
	b.Input("past_v", f.F32, 1, decodeHeads, past, depth)
	b.Sizes("apart", 1, decodeHeads, 1, depth)
	b.Sizes("together", 1, w)
	b.Scalar("scale", depth/8)
	head := map[string]string{}
	for _, part := range []string{"q", "k", "v"} {
		head[part] = b.do("Reshape", []string{b.dense("x", part, w, w), "apart"})
	}
	b.Node("Concat", []string{"past_k", head["k"]}, []string{"present_k"}, f.Int("axis", 2))
	b.Node("Concat", []string{"past_v", head["v"]}, []string{"present_v"}, f.Int("axis", 2))
	keys := b.do("Transpose", []string{"present_k"}, f.Ints("perm", 0, 1, 3, 2))
	scores := b.do("Div", []string{b.do("MatMul", []string{head["q"], keys}), "scale"})
	mixed := b.do("MatMul", []string{b.do("Softmax", []string{scores}, f.Int("axis", -1)), "present_v"})
	b.finish(b.dense(b.do("Reshape", []string{mixed, "together"}), "out", w, w), "y")
	b.Output("present_k", f.F32)
	b.Output("present_v", f.F32)
	return b.Graph
}

// scatter writes one row of a cache of 32 MiB.
func scatter() *f.Graph {
	b := f.New(16)
	b.Input("cache", f.F32, 2048, 4096)
	b.Input("at", f.I64, 1, 1)
	b.Input("row", f.F32, 1, 4096)
	b.Node("ScatterND", []string{"cache", "at", "row"}, []string{"next"})
	b.Output("next", f.F32)
	return b
}
