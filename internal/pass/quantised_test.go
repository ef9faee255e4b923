package pass_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// quantisedBodies are bodies of programs over %x: u8[2,4,6,6] and
// %f: f32[2,4,6,6], the operators on floats that stay, and by how much an
// integer may differ.
var quantisedBodies = []struct {
	name, results, body, stay string
	quanta                    int
}{
	{"convolution", "u8[...]", `
		%c = conv(%d, %wf, %bias) {strides = [2, 1], pads = [1, 0, 1, 1]}
		%y = quantize_linear(%c, @sy, @zy)
		return %y`, "", 1},
	{"convolution of a group, each filter its scale", "u8[...]", `
		%v = dequantize_linear(@each, @sf, @zf) {axis = 0}
		%c = conv(%d, %v, @fb) {group = 4}
		%y = quantize_linear(%c, @sy, @zy)
		return %y`, "", 1},
	{"convolution and clip", "u8[...]", `
		%c = conv(%d, %wf)
		%r = clip(%c, @low, @high)
		%y = quantize_linear(%r, @sy, @zy)
		return %y`, "", 1},
	{"convolution and relu to i8", "i8[...]", `
		%c = conv(%d, %wf)
		%r = relu(%c)
		%y = quantize_linear(%r, @sy, @zi)
		return %y`, "", 1},
	{"product", "u8[...]", `
		%r = reshape(%d, @matrix)
		%mm = dequantize_linear(@m, @s9) {axis = 1}
		%p = matmul(%r, %mm)
		%a = add(%p, @b9)
		%y = quantize_linear(%a, @sy, @zy)
		return %y`, "", 1},
	{"product and a bias of more dimensions", "u8[...]", `
		%r = reshape(%d, @matrix)
		%mm = dequantize_linear(@m, @s9) {axis = 1}
		%p = matmul(%r, %mm)
		%a = add(@deep, %p)
		%y = quantize_linear(%a, @sy, @zy)
		return %y`, "dequantize_linear dequantize_linear matmul add quantize_linear", 0},
	{"linear layer", "i8[...]", `
		%r = flatten(%d)
		%gg = dequantize_linear(@g, @s5) {axis = 0}
		%p = gemm(%r, %gg, @b5) {transB = 1}
		%y = quantize_linear(%p, @sy, @zi)
		return %y`, "", 1},
	{"product of activations", "u8[...]", `
		%t = transpose(%d) {perm = [0, 1, 3, 2]}
		%p = matmul(%d, %t)
		%y = quantize_linear(%p, @sy, @zy)
		return %y`, "", 1},
	{"sum, and relu", "i8[...]", `
		%c = conv(%d, %wf, %bias) {pads = [1, 1, 1, 1]}
		%q = quantize_linear(%c, @sy, @zi)
		%e = dequantize_linear(%q, @sy, @zi)
		%k = slice(%d, @begin, @three)
		%a = add(%k, %e)
		%r = relu(%a)
		%y = quantize_linear(%r, @sy, @zi)
		return %y`, "", 1},
	{"difference", "u8[...]", `
		%k = dequantize_linear(@zf, @sw)
		%h = reshape(%k, @column)
		%a = sub(%d, %h)
		%y = quantize_linear(%a, @sy, @zy)
		return %y`, "", 1},
	{"product of each element", "i8[...]", `
		%t = dequantize_linear(%x, @sy)
		%a = mul(%d, %t)
		%y = quantize_linear(%a, @sy, @zi)
		return %y`, "", 1},
	{"scales far apart", "u8[...]", `
		%t = dequantize_linear(%x, @huge)
		%a = add(%d, %t)
		%y = quantize_linear(%a, @sy, @zy)
		return %y`, "dequantize_linear dequantize_linear add quantize_linear", 0},
	{"movement", "u8[...], i8[...]", `
		%t = transpose(%d) {perm = [0, 2, 3, 1]}
		%p = max_pool(%t) {kernel_shape = [2, 2], pads = [1, 1, 0, 0]}
		%s, %u = split(%p) {axis = 1, num_outputs = 2}
		%e = pad(%s, @pads)
		%y = quantize_linear(%e, @sx, @zx)
		%z = quantize_linear(%u, @sy, @zi)
		return %y, %z`, "", 0},
	{"maxima with dilation and pads", "u8[...]", `
		%p = max_pool(%d) {kernel_shape = [2, 2], dilations = [1, 2], pads = [0, 1, 0, 1]}
		%y = quantize_linear(%p, @sy, @zy)
		return %y`, "dequantize_linear max_pool quantize_linear", 0},
	{"movement that floats read", "f32[...]", `
		%t = transpose(%d)
		%y = softmax(%t)
		return %y`, "dequantize_linear softmax", 0},
	{"concat of other scales", "i8[...]", `
		%e = dequantize_linear(%x, @sy, @zy)
		%k = concat(%d, %e, %d) {axis = 1}
		%y = quantize_linear(%k, @sy, @zi)
		return %y`, "", 0},
	{"functions", "i8[...]", `
		%s = sigmoid(%d)
		%mm = mul(%d, %s)
		%a = add(%mm, @high)
		%h = hard_swish(%a)
		%y = quantize_linear(%h, @sy, @zi)
		return %y`, "", 0},
	{"resize", "u8[...]", `
		%r = resize(%d, _, @scales) {mode = "nearest"}
		%y = quantize_linear(%r, @sx, @zx)
		return %y`, "", 0},
	{"read as floats, too", "u8[...], f32[...]", `
		%c = conv(%d, %wf)
		%y = quantize_linear(%c, @sy, @zy)
		%t = tanh(%c)
		return %y, %t`, "dequantize_linear dequantize_linear conv quantize_linear tanh", 0},
	{"two results alike", "u8[...], u8[...]", `
		%c = conv(%d, %wf)
		%y = quantize_linear(%c, @sy, @zy)
		%z = quantize_linear(%c, @sy, @zy)
		%t = lookup(%z, @tab)
		return %y, %t`, "", 1},
	{"operand of floats", "u8[...]", `
		%c = conv(%f, %wf)
		%y = quantize_linear(%c, @sy, @zy)
		return %y`, "dequantize_linear conv quantize_linear", 0},
	{"no kernel on integers", "u8[...]", `
		%c = softmax(%d)
		%y = quantize_linear(%c, @sy, @zy)
		return %y`, "dequantize_linear softmax quantize_linear", 0},
	{"scales that are computed", "u8[...]", `
		%s = reduce_max(%f) {keepdims = 0}
		%e = dequantize_linear(%x, %s, @zx)
		%c = conv(%e, %wf)
		%y = quantize_linear(%c, @sy, @zy)
		return %y`, "dequantize_linear reduce_max dequantize_linear conv quantize_linear", 0},
	{"in a branch", "u8[...]", `
		%k = shape(%d)
		%n = reduce_prod(%k) {keepdims = 0}
		%h = greater(%n, %n)
		%y = if(%h) {
			%c = conv(%d, %wf)
			%a = quantize_linear(%c, @sy, @zy)
			return %a
		} {
			%r = relu(%d)
			%q = resize(%r, _, @fours) {mode = "nearest"}
			%bb = quantize_linear(%q, @sy, @zy)
			%e = slice(%bb, @begin, @end)
			return %e
		}
		return %y`, "*", 1},
}

const quantisedHead = `func @main(%x: u8[2,4,6,6], %f: f32[2,4,6,6]) -> (RESULTS) {
	weight @sx: f32[]
	weight @zx: u8[]
	weight @sw: f32[1]
	weight @w: i8[3,4,3,3]
	weight @b: i32[3]
	weight @sb: f32[]
	weight @each: u8[4,1,3,3]
	weight @sf: f32[4]
	weight @zf: u8[4]
	weight @fb: f32[4]
	weight @sy: f32[]
	weight @zy: u8[]
	weight @zi: i8[]
	weight @low: f32[]
	weight @high: f32[]
	weight @matrix: i64[2]
	weight @m: i8[6,9]
	weight @s9: f32[9]
	weight @b9: f32[9]
	weight @g: i8[5,144]
	weight @s5: f32[5]
	weight @b5: f32[5]
	weight @pads: i64[8]
	weight @scales: f32[4]
	weight @fours: f32[4]
	weight @begin: i64[4]
	weight @end: i64[4]
	weight @tab: u8[256]
	weight @three: i64[4]
	weight @column: i64[4]
	weight @huge: f32[]
	weight @deep: f32[1,1,9]
	%d = dequantize_linear(%x, @sx, @zx)
	%wf = dequantize_linear(@w, @sw)
	%bias = dequantize_linear(@b, @sb)
`

// A program that computes on integers gives integers within the quanta of those
// that floats give.
func TestQuantised(t *testing.T) {
	for _, f := range quantisedBodies {
		t.Run(f.name, func(t *testing.T) {
			p, table := quantisedProgram(t, f.results, f.body)
			plain := p.Clone()
			ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: table}}
			verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }
			if err := pass.Run(ctx, []pass.Pass{pass.Quantised, pass.DCE, pass.Fold}, verify); err != nil {
				t.Fatal(err)
			}
			if got := floatCalls(p); f.stay != "*" && got != f.stay {
				t.Errorf("got calls on floats %q, want %q\n%s", got, f.stay, p)
			}
			for i, d := range quantaApart(t, plain, p, ctx.Constants) {
				if d > f.quanta {
					t.Errorf("result %d: got integers that are %d apart, want at most %d\n%s", i, d, f.quanta, p)
				}
			}
		})
	}
}

// floatCalls names the calls of a program that read or make floats.
func floatCalls(p *ir.Program) string {
	var names []string
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for i, a := range c.Args {
			if a.Value != nil && a.Value.Type.DType == dtype.F32 && (a.Value.Kind != ir.Weight || i == 0) || c.Results[0].Type.DType == dtype.F32 {
				names = append(names, c.Op.Name)
				return
			}
		}
	})
	return strings.Join(names, " ")
}

func quantisedProgram(t *testing.T, results, body string) (*ir.Program, ir.WeightMap) {
	t.Helper()
	p, err := ir.Parse(strings.Replace(quantisedHead, "RESULTS", results, 1)+body+"\n}", op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	table, r := ir.WeightMap{}, rand.New(rand.NewPCG(1, 2))
	for _, w := range p.Weights {
		data := make([]byte, must(w.Type.Bytes()))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if w.Type.DType == dtype.F32 {
			for i := 0; i < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], math.Float32bits(0.01+0.05*r.Float32()))
			}
		}
		table[w.Name] = data
	}
	for name, list := range map[string][]float32{"sb": {0.02 * 0.03}, "sx": {0.02}, "huge": {4096}, "sw": {0.03}, "sy": {0.25}, "low": {-3}, "high": {2.5}, "scales": {1, 1, 2, 2}, "fours": {1, 1, 1, 1}} {
		for i, v := range list {
			binary.LittleEndian.PutUint32(table[name][4*i:], math.Float32bits(v))
		}
	}
	for name, list := range map[string][]int32{"b": {-700, 0, 900}} {
		for i, v := range list {
			binary.LittleEndian.PutUint32(table[name][4*i:], uint32(v))
		}
	}
	for name, list := range map[string][]int64{"matrix": {-1, 6}, "three": {2, 3, 6, 6}, "column": {1, 4, 1, 1}, "pads": {0, 1, 0, 0, 0, 0, 2, 0}, "begin": {0, 0, 0, 0}, "end": {2, 3, 4, 4}} {
		for i, v := range list {
			binary.LittleEndian.PutUint64(table[name][8*i:], uint64(v))
		}
	}
	if err := ir.Infer(p, ir.Known(table)); err != nil {
		t.Fatal(err)
	}
	return p, table
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// quantaApart runs two programs and returns how far their results are apart:
// floats must be equal.
func quantaApart(t *testing.T, a, b *ir.Program, table ir.Weights) (apart []int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	x, f := make([]byte, 2*4*6*6), make([]byte, 4*2*4*6*6)
	for i := range x {
		x[i] = byte(r.Uint32())
		binary.LittleEndian.PutUint32(f[4*i:], math.Float32bits(r.Float32()))
	}
	arg := func(dt dtype.DType, data []byte) op.Arg {
		s := shape.MustOf(2, 4, 6, 6)
		return op.Arg{Type: op.Type{DType: dt, Shape: s}, Layout: shape.RowMajor(s), Data: data}
	}
	var runs [2][]op.Arg
	for i, p := range []*ir.Program{a, b} {
		out, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, arg(dtype.U8, x), arg(dtype.F32, f))
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		runs[i] = out
	}
	for i, want := range runs[0] {
		got, most := runs[1][i], 0
		if got.Type != want.Type || len(got.Data) != len(want.Data) {
			t.Fatalf("result %d: got %v, want %v", i, got.Type, want.Type)
		}
		for j := range want.Data {
			switch d := int(got.Data[j]) - int(want.Data[j]); want.DType {
			case dtype.U8:
				most = max(most, d, -d)
			case dtype.I8:
				d := int(int8(got.Data[j])) - int(int8(want.Data[j]))
				most = max(most, d, -d)
			default:
				if d != 0 {
					t.Fatalf("result %d: got another %s at byte %d", i, fmt.Sprint(want.DType), j)
				}
			}
		}
		apart = append(apart, most)
	}
	return apart
}
