package pass_test

import (
	"bytes"
	"fmt"
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

// dequantisedWeights are weights of a product of [2,96] by [96,200], and how
// they are dequantised.
var dequantisedWeights = []struct{ name, declared, body string }{
	{"a scale per column", "@w: i8[96,200]\n\tweight @s: f32[200]\n\tweight @z: i8[200]", "%d = dequantize_linear(@w, @s, @z) {axis = 1}"},
	{"16 bits", "@w: u16[96,200]\n\tweight @s: f32[]\n\tweight @z: u16[]", "%d = dequantize_linear(@w, @s, @z)"},
	{"4 bits in blocks", "@w: u4[96,200]\n\tweight @s: f32[6,200]", "%d = dequantize_linear(@w, @s) {axis = 0, block_size = 16}"},
	{"transposed", "@w: i8[200,96]\n\tweight @s: f32[200]", "%t = dequantize_linear(@w, @s) {axis = 0}\n\t%d = transpose(%t)"},
}

// Weights whose floats are read are floats once they are loaded.
func TestDequantised(t *testing.T) {
	for _, f := range dequantisedWeights {
		t.Run(f.name, func(t *testing.T) {
			text := fmt.Sprintf("func @main(%%x: f32[2,96]) -> (f32[2,200]) {\n\tweight %s\n\t%s\n\t%%y = matmul(%%x, %%d)\n\treturn %%y\n}", f.declared, f.body)
			p, table := programOfBytes(t, text)
			plain := p.Clone()
			ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: table}, MaxFold: 64 << 10}
			if err := pass.Run(ctx, pass.Load, func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }); err != nil {
				t.Fatal(err)
			}
			if got := callsOf(p); got != "matmul" {
				t.Errorf("got the calls %q, want the product alone\n%s", got, p)
			}
			var runs [2][]byte
			for i, p := range []*ir.Program{plain, p} {
				s := shape.MustOf(2, 96)
				x := op.Arg{Type: op.Type{DType: dtype.F32, Shape: s}, Layout: shape.RowMajor(s), Data: bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 2*96)}
				out, err := (&ir.Interpreter{Eval: compute.Eval, Weights: ctx.Constants}).Run(p, x)
				if err != nil {
					t.Fatal(err)
				}
				runs[i] = out[0].Data
			}
			if !bytes.Equal(runs[0], runs[1]) {
				t.Error("got another result than of weights that are dequantised in the run")
			}
		})
	}
}

// A small file that dequantises one weight again and again is not expanded
// without bound.
func TestDequantisedIsBounded(t *testing.T) {
	const each, times = 1 << 20, 40
	var body strings.Builder
	for i := range times {
		fmt.Fprintf(&body, "\t%%d%d = dequantize_linear(@w, @s%d)\n", i, i)
	}
	text := fmt.Sprintf("func @main() -> (%s) {\n\tweight @w: u8[%d]\n", strings.TrimSuffix(strings.Repeat("f32[...], ", times), ", "), each)
	var results []string
	for i := range times {
		text += fmt.Sprintf("\tweight @s%d: f32[]\n", i)
		results = append(results, fmt.Sprintf("%%d%d", i))
	}
	p, table := programOfBytes(t, text+body.String()+"\treturn "+strings.Join(results, ", ")+"\n}")
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: table}}
	if err := pass.Run(ctx, []pass.Pass{pass.Dequantised}, nil); err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, w := range p.Weights {
		size += must(w.Type.Bytes())
	}
	if most := 1<<20 + 4*each + 17<<20; size > most {
		t.Errorf("got %d bytes of weights, want at most %d", size, most)
	}
}

// programOfBytes parses a program whose weights are bytes in turn; floats are 1
// to 2.
func programOfBytes(t *testing.T, text string) (*ir.Program, ir.WeightMap) {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	table := ir.WeightMap{}
	for _, w := range p.Weights {
		data := make([]byte, must(w.Type.Bytes()))
		for i := range data {
			if data[i] = byte(i * 7); w.Type.DType == dtype.F32 {
				data[i] = [4]byte{0, 0, byte(0x80 + i/4%100), 0x3f}[i%4]
			}
		}
		table[w.Name] = data
	}
	if err := ir.Infer(p, ir.Known(table)); err != nil {
		t.Fatal(err)
	}
	return p, table
}

func callsOf(p *ir.Program) string {
	var names []string
	p.Walk(func(_ *ir.Block, c *ir.Call) { names = append(names, c.Op.Name) })
	return strings.Join(names, " ")
}
