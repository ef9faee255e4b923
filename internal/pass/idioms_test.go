package pass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// spelled are bodies of programs over %x: f32[2,4,8] that give %y, and the
// operator that is found in them, if one is.
var spelled = []struct{ name, body, want string }{
	{"layer norm", layerNorm("%last", "pow(%d, %two)", "div(%d, %r)", "mul(%n, @g8)", "add(%s, @b8)"), "layer_normalization"},
	{"layer norm, operands exchanged", layerNorm("%last", "mul(%d, %d)", "div(%d, %r)", "mul(@g8, %n)", "add(@b8, %s)"), "layer_normalization"},
	{"layer norm over two axes", layerNorm("%lastTwo", "mul(%d, %d)", "div(%d, %r)", "mul(%n, @g8)", "add(%s, @b48)"), "layer_normalization"},
	{"layer norm without bias", layerNorm("%last", "mul(%d, %d)", "div(%d, %r)", "mul(%n, @g8)", "neg(%s)"), "layer_normalization"},
	{"layer norm without scale", layerNorm("%last", "mul(%d, %d)", "div(%d, %r)", "neg(%n)", "neg(%s)"), "layer_normalization"},
	{"layer norm by a reciprocal", layerNorm("%last", "mul(%d, %d)", "mul(%i, %d)", "mul(%n, @g8)", "add(%s, @b8)"), "layer_normalization"},
	{"layer norm with a scale per row", layerNorm("%last", "mul(%d, %d)", "div(%d, %r)", "mul(%n, @g4)", "add(%s, @b8)"), "layer_normalization"},
	{"layer norm with a bias per row", layerNorm("%last", "mul(%d, %d)", "div(%d, %r)", "mul(%n, @g8)", "add(%s, @g4)"), "layer_normalization"},
	{"another axis", layerNorm("%middle", "mul(%d, %d)", "div(%d, %r)", "mul(%n, @g8)", "add(%s, @b8)"), ""},
	{"something else than a square", layerNorm("%last", "exp(%d)", "div(%d, %r)", "mul(%n, @g8)", "add(%s, @b8)"), ""},
	{"the quotient upside down", layerNorm("%last", "mul(%d, %d)", "div(%r, %d)", "mul(%n, @g8)", "add(%s, @b8)"), ""},
	{"the mean of something else", `
		%z = exp(%x)
		%m = reduce_mean(%z, %last)
		%d = sub(%x, %m)
		%q = mul(%d, %d)
		%v = reduce_mean(%q, %last)
		%e = add(%v, %eps)
		%r = sqrt(%e)
		%y = div(%d, %r)`, "rms_normalization"},
	{"another axis for the mean", `
		%m = reduce_mean(%x, %middle)
		%d = sub(%x, %m)
		%q = mul(%d, %d)
		%v = reduce_mean(%q, %last)
		%e = add(%v, %eps)
		%r = sqrt(%e)
		%y = div(%d, %r)`, "rms_normalization"},
	{"rms norm", `
		%q = mul(%x, %x)
		%v = reduce_mean(%q, %last)
		%e = add(%eps, %v)
		%r = sqrt(%e)
		%i = div(%one, %r)
		%n = mul(%x, %i)
		%y = mul(%n, @g8)`, "rms_normalization"},
	{"rms norm of another value", `
		%q = mul(%x, %x)
		%v = reduce_mean(%q, %last)
		%e = add(%eps, %v)
		%r = sqrt(%e)
		%z = exp(%x)
		%y = div(%z, %r)`, ""},
	{"a root that is read twice", `
		%q = mul(%x, %x)
		%v = reduce_mean(%q, %last)
		%e = add(%eps, %v)
		%r = sqrt(%e)
		%n = div(%x, %r)
		%y = mul(%n, %r)`, ""},
	{"gelu", gelu("div(%x, %root2)", "mul(%x, %p)", "mul(%h, %half)"), "gelu"},
	{"gelu by products", gelu("mul(%invRoot2, %x)", "mul(%p, %x)", "mul(%half, %h)"), "gelu"},
	{"gelu with half the sum", gelu("div(%x, %root2)", "mul(%p, %half)", "mul(%h, %x)"), "gelu"},
	{"gelu of another root", gelu("div(%x, %two)", "mul(%x, %p)", "mul(%h, %half)"), ""},
	{"gelu times another value", gelu("div(%x, %root2)", "mul(@full, %p)", "mul(%h, %half)"), ""},
	{"gelu doubled", gelu("div(%x, %root2)", "mul(%x, %p)", "mul(%h, %two)"), ""},
	{"gelu of a square", gelu("div(%x, %root2)", "mul(%x, %p)", "mul(%h, %x)"), ""},
	{"tanh gelu", `
		%c = pow(%x, %three)
		%k = mul(%cube, %c)
		%s = add(%x, %k)
		%u = mul(%s, %rootPi)
		%t = tanh(%u)
		%p = add(%one, %t)
		%h = mul(%x, %half)
		%y = mul(%h, %p)`, "gelu"},
	{"tanh gelu by products", `
		%q = mul(%x, %x)
		%c = mul(%q, %x)
		%k = mul(%c, %cube)
		%s = add(%k, %x)
		%u = mul(%s, %rootPi)
		%t = tanh(%u)
		%p = add(%one, %t)
		%h = mul(%half, %p)
		%y = mul(%h, %x)`, "gelu"},
	{"tanh gelu of another power", `
		%c = mul(%x, %x)
		%k = mul(%c, %cube)
		%s = add(%k, %x)
		%u = mul(%s, %rootPi)
		%t = tanh(%u)
		%p = add(%one, %t)
		%h = mul(%half, %p)
		%y = mul(%h, %x)`, ""},
	{"silu", `
		%s = sigmoid(%x)
		%y = mul(%s, %x)`, "swish"},
	{"swish", `
		%a = mul(%x, %two)
		%s = sigmoid(%a)
		%y = mul(%x, %s)`, "swish"},
	{"sigmoid of another value", `
		%a = exp(%x)
		%s = sigmoid(%a)
		%y = mul(%x, %s)`, ""},
	{"sigmoid squared", `
		%s = sigmoid(%x)
		%y = mul(%s, %s)`, ""},
}

// layerNorm spells out a normalisation with the given calls for the square, the
// quotient, the product with a scale and the sum with a bias.
func layerNorm(axes, square, quotient, scale, bias string) string {
	return fmt.Sprintf(`
		%%m = reduce_mean(%%x, %[1]s)
		%%d = sub(%%x, %%m)
		%%q = %[2]s
		%%v = reduce_mean(%%q, %[1]s)
		%%e = add(%%v, %%eps)
		%%r = sqrt(%%e)
		%%i = reciprocal(%%r)
		%%n = %[3]s
		%%s = %[4]s
		%%y = %[5]s`, axes, square, quotient, scale, bias)
}

func gelu(argument, first, second string) string {
	return fmt.Sprintf(`
		%%a = %s
		%%e = erf(%%a)
		%%p = add(%%e, %%one)
		%%h = %s
		%%y = %s`, argument, first, second)
}

const spelledHead = `func @main(%x: f32[2,4,8]) -> (f32[2,4,8]) {
		weight @g8: f32[8]
		weight @b8: f32[1,8]
		weight @b48: f32[4,8]
		weight @g4: f32[4,1]
		weight @full: f32[2,4,8]
		weight @empty: i64[0]
		weight @single: i64[1]
		weight @pair: i64[2]
		%one = constant_of_shape(@empty) {dtype = f32, value = 1.0}
		%two = constant_of_shape(@empty) {dtype = f32, value = 2.0}
		%three = constant_of_shape(@empty) {dtype = f32, value = 3.0}
		%half = constant_of_shape(@empty) {dtype = f32, value = 0.5}
		%eps = constant_of_shape(@empty) {dtype = f32, value = 0.001}
		%root2 = constant_of_shape(@empty) {dtype = f32, value = 1.41421356}
		%invRoot2 = constant_of_shape(@empty) {dtype = f32, value = 0.70710678}
		%cube = constant_of_shape(@empty) {dtype = f32, value = 0.044715}
		%rootPi = constant_of_shape(@empty) {dtype = f32, value = 0.79788456}
		%last = neg(@single)
		%middle = add(%last, %last)
		%lastTwo = neg(@pair)
		`

// TestIdiomsKeepTheResult compares what programs compute before and after.
func TestIdiomsKeepTheResult(t *testing.T) {
	for _, c := range spelled {
		t.Run(c.name, func(t *testing.T) {
			p, err := ir.Parse(spelledHead+c.body+"\nreturn %y\n}", op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			given := ir.WeightMap{}
			for _, w := range p.Weights {
				given[w.Name] = signed(w.Type)
			}
			given["single"][0] = 1
			given["pair"][0], given["pair"][8] = 1, 2
			ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: given}, MaxFold: 64 << 10}
			in := ir.Interpreter{Weights: ctx.Constants, Eval: evalRubbish(t)}
			x := op.Arg{Type: p.Body.Params[0].Type, Data: signed(p.Body.Params[0].Type)}
			want, err := in.Run(p, x)
			if err != nil {
				t.Fatal(err)
			}
			if err := pass.Run(ctx, []pass.Pass{pass.Fold, pass.CSE, pass.DCE, pass.Idioms, pass.DCE}, verified); err != nil {
				t.Fatal(err)
			}
			got, err := in.Run(p, x)
			if err != nil {
				t.Fatal(err)
			}
			sameFloats(t, got[0], want[0])
			found := ""
			p.Walk(func(_ *ir.Block, call *ir.Call) {
				if n := call.Op.Name; strings.HasSuffix(n, "normalization") || n == "gelu" || n == "swish" {
					found = n
				}
			})
			if found != c.want || (c.want != "") != (len(ctx.Notes) > 0) {
				t.Errorf("got %q and notes %q, want %q\n%s", found, ctx.Notes, c.want, p)
			}
		})
	}
}

func verified(_ pass.Pass, p *ir.Program) error { return ir.Verify(p) }
