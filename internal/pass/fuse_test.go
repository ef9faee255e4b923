package pass_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// fusions are bodies of programs over %x: f32[2,4,5,6] and %c: bool[], and
// the expected convolutions: for each fused one the calls that it took in.
var fusions = []struct{ name, body, want string }{
	{"residual on the right", `
		%a: f32[2,4,5,6] = conv(%x, @w, @b) {pads = [1, 1, 1, 1]}
		%e = exp(%x)
		%y = add(%a, %x)
		return %y, %e`, "residual"},
	{"residual on the left", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = add(%x, %a)
		%z = relu(%y)
		return %z, %x`, "residual relu"},
	{"residual by sum", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = sum(%x, %a)
		return %y, %x`, "residual"},
	{"sum of three", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = sum(%x, %a, %x)
		return %y, %x`, ""},
	{"residual of one image for all", `
		%r = reduce_mean(%x, @zero)
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = add(%a, %r)
		return %y, %x`, ""},
	{"residual that makes the result larger", `
		%a: f32[2,4,1,1] = conv(%x, @wall)
		%y = add(%a, %x)
		return %y, %x`, ""},
	{"residual that comes later", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%r = exp(%x)
		%y = add(%a, %r)
		return %y, %x`, ""},
	{"residual is a weight", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = add(%a, @full)
		return %y, %x`, ""},
	{"two convolutions, the later one takes the earlier", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%d: f32[2,4,5,6] = conv(%x, @one, @b)
		%s = add(%a, %d)
		%y = relu(%s)
		return %y, %x`, "residual relu"},
	{"the earlier one's activation is read by the later one's addition", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%d: f32[2,4,5,6] = conv(%x, @one)
		%r = relu(%a)
		%s = add(%d, %r)
		return %s, %x`, "relu; residual"},
	{"a convolution plus itself", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = add(%a, %a)
		return %y, %x`, ""},
	{"a second reader", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = relu(%a)
		%z = neg(%a)
		return %y, %z`, ""},
	{"the value is an output", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y = relu(%a)
		return %y, %a`, ""},
	{"an activation before the addition", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%r = sigmoid(%a)
		%y = add(%r, %x)
		return %y, %x`, "sigmoid"},
	{"two activations", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%r = tanh(%a)
		%y = relu(%r)
		return %y, %x`, "tanh"},
	{"leaky", `
		%a: f32[2,4,5,6] = conv(%x, @one, @b)
		%y = leaky_relu(%a) {alpha = 0.5}
		return %y, %x`, "leaky_relu"},
	{"clip", `
		%a: f32[2,4,5,6] = conv(%x, @w, @b) {pads = [1, 1, 1, 1]}
		%y = clip(%a, @low, @high)
		return %y, %x`, "clip"},
	{"clip without a bound", `
		%a: f32[2,4,5,6] = conv(%x, @w, @b) {pads = [1, 1, 1, 1]}
		%y = clip(%a, @low)
		return %y, %x`, ""},
	{"clip to a bound that a run computes", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%m = reduce_max(%x) {keepdims = 0}
		%y = clip(%a, @low, %m)
		return %y, %x`, ""},
	{"pool that overlaps, pads on one side, whole windows only", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%r = relu(%a)
		%y: f32[2,4,2,3] = max_pool(%r) {kernel_shape = [3, 3], pads = [0, 0, 1, 2], strides = [2, 2]}
		return %y, %x`, "relu max"},
	{"pool with a part of a window, negative values", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%y: f32[2,4,3,4] = max_pool(%a) {ceil_mode = 1, kernel_shape = [2, 3], pads = [0, 1, 0, 1], strides = [2, 2]}
		return %y, %x`, "max"},
	{"mean of what is inside", `
		%a: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,3,4] = average_pool(%a) {ceil_mode = 1, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}
		return %y, %x`, "average"},
	{"mean with the pads", `
		%a: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,4,4] = average_pool(%a) {ceil_mode = 1, count_include_pad = 1, kernel_shape = [3, 3], pads = [2, 1, 1, 1], strides = [2, 2]}
		return %y, %x`, "average"},
	{"pool with holes", `
		%a: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,3,4] = max_pool(%a) {dilations = [2, 2], kernel_shape = [2, 2]}
		return %y, %x`, ""},
	{"pool after a residual", `
		%a: f32[2,4,5,6] = conv(%x, @one)
		%s = add(%a, %x)
		%y: f32[2,4,4,5] = max_pool(%s) {kernel_shape = [2, 2]}
		return %y, %x`, "residual"},
	{"pool with indices", `
		%a: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,4,5], %i = max_pool(%a) {kernel_shape = [2, 2]}
		return %y, %i`, ""},
	{"zeros around the input, after scale and relu", `
		%n = batch_normalization(%x, @b, @b, @mean, @b)
		%r = relu(%n)
		%a: f32[2,4,6,8] = conv(%r, @w) {pads = [2, 1, 1, 3]}
		return %a, %x`, "scale pre_relu"},
	{"shift alone, twice", `
		%n = add(%x, @channel)
		%m = add(@channel, %n)
		%a: f32[2,4,5,6] = conv(%m, @w, @b) {pads = [1, 1, 1, 1]}
		return %a, %x`, "scale"},
	{"relu alone, then residual of the same input", `
		%r = relu(%x)
		%a: f32[2,4,5,6] = conv(%r, @w) {pads = [1, 1, 1, 1]}
		%y = add(%x, %a)
		return %y, %x`, "residual pre_relu"},
	{"relu before the scale stays", `
		%r = relu(%x)
		%m = mul(@channel, %r)
		%a: f32[2,4,5,6] = conv(%m, @w) {pads = [1, 1, 1, 1]}
		return %a, %x`, "scale"},
	{"scale per column is no scale per channel", `
		%m = mul(%x, @column)
		%a: f32[2,4,5,6] = conv(%m, @w) {pads = [1, 1, 1, 1]}
		return %a, %x`, ""},
	{"the scaled input is the residual too", `
		%m = mul(%x, @channel)
		%a: f32[2,4,5,6] = conv(%m, @w) {pads = [1, 1, 1, 1]}
		%y = add(%a, %m)
		return %y, %x`, "residual"},
	{"groups, everything around", `
		%m = mul(%x, @channel)
		%r = relu(%m)
		%a: f32[2,4,5,6] = conv(%r, @half, @b) {group = 2, pads = [1, 1, 1, 1]}
		%s = add(%x, %a)
		%y = tanh(%s)
		return %y, %x`, "residual tanh scale pre_relu"},
	{"depthwise, everything around", `
		%m = add(%x, @channel)
		%r = relu(%m)
		%a: f32[2,4,5,6] = conv(%r, @each, @b) {group = 4, pads = [1, 1, 1, 1]}
		%s = add(%x, %a)
		%y = relu(%s)
		return %y, %x`, "residual relu scale pre_relu"},
	{"depthwise under a pool", `
		%m = mul(%x, @channel)
		%a: f32[2,4,5,6] = conv(%m, @each) {group = 4, pads = [1, 1, 1, 1]}
		%y: f32[2,4,3,3] = max_pool(%a) {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}
		return %y, %x`, "max scale"},
	{"depthwise with its activation", `
		%p: f32[2,4,5,6] = conv(%x, @one, @b)
		%h = hard_swish(%p)
		%a: f32[2,4,3,3] = conv(%h, @each, @b) {group = 4, pads = [1, 1, 2, 1], strides = [2, 2]}
		%y = swish(%a)
		return %y, %x`, "hard_swish depthwise then silu"},
	{"depthwise after another scale", `
		%m = mul(%x, @channel)
		%r = relu(%m)
		%p: f32[2,4,5,6] = conv(%r, @w, @b) {pads = [1, 1, 1, 1]}
		%y: f32[2,4,5,6] = conv(%p, @each) {group = 4, pads = [1, 1, 1, 1]}
		return %y, %x`, "depthwise scale pre_relu"},
	{"depthwise of a result that another reads", `
		%p: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,5,6] = conv(%p, @each) {group = 4, pads = [1, 1, 1, 1]}
		return %y, %p`, ""},
	{"depthwise with a residual, or before another group", `
		%p: f32[2,4,5,6] = conv(%x, @one)
		%q: f32[2,4,5,6] = conv(%p, @each) {group = 4, pads = [1, 1, 1, 1]}
		%y = add(%q, %x)
		%g: f32[2,4,5,6] = conv(%x, @half) {group = 2, pads = [1, 1, 1, 1]}
		%z: f32[2,4,5,6] = conv(%g, @each) {group = 4, pads = [1, 1, 1, 1]}
		return %y, %z`, "residual"},
	{"depthwise after a residual, and with gaps", `
		%p: f32[2,4,5,6] = conv(%x, @one)
		%q = add(%p, %x)
		%y: f32[2,4,5,6] = conv(%q, @each) {group = 4, pads = [1, 1, 1, 1]}
		%s: f32[2,4,5,6] = conv(%x, @one, @b)
		%z: f32[2,4,3,4] = conv(%s, @each) {group = 4, pads = [1, 1, 1, 1], dilations = [2, 2]}
		return %y, %z`, "residual"},
	{"depthwise twice, and a pool", `
		%p: f32[2,4,5,6] = conv(%x, @one)
		%q: f32[2,4,5,6] = conv(%p, @each) {group = 4, pads = [1, 1, 1, 1]}
		%y: f32[2,4,5,6] = conv(%q, @each) {group = 4, pads = [1, 1, 1, 1]}
		%s: f32[2,4,5,6] = conv(%x, @one)
		%t: f32[2,4,4,5] = max_pool(%s) {kernel_shape = [2, 2]}
		%z: f32[2,4,4,5] = conv(%t, @each) {group = 4, pads = [1, 1, 1, 1]}
		return %y, %z`, "depthwise; max"},
	{"depthwise with a bias that exists before the first, and one that does not", `
		%n: f32[4] = reduce_max(%x, @spatial) {keepdims = 0}
		%p: f32[2,4,5,6] = conv(%x, @one)
		%y: f32[2,4,5,6] = conv(%p, @each, %n) {group = 4, pads = [1, 1, 1, 1]}
		%q: f32[2,4,5,6] = conv(%x, @one)
		%m: f32[4] = reduce_max(%x, @spatial) {keepdims = 0}
		%z: f32[2,4,5,6] = conv(%q, @each, %m) {group = 4, pads = [1, 1, 1, 1]}
		return %y, %z`, "depthwise"},
	{"one axis", `
		%v: f32[2,4,30] = reshape(%x, @flat)
		%m = mul(%v, @mean1)
		%a: f32[2,4,32] = conv(%m, @line) {pads = [1, 3]}
		%r = relu(%a)
		%y: f32[2,4,17] = average_pool(%r) {kernel_shape = [2], pads = [1, 1], strides = [2]}
		return %y, %x`, "relu average scale"},
	{"three axes, a pool with more steps than the first one has", `
		%v: f32[2,4,1,5,6] = reshape(%x, @cube)
		%a: f32[2,4,1,5,6] = conv(%v, @each3, @b) {group = 4, pads = [0, 1, 1, 0, 1, 1]}
		%y: f32[2,4,2,5,5] = max_pool(%a) {kernel_shape = [2, 1, 2], pads = [1, 0, 0, 1, 0, 0]}
		return %y, %x`, "max"},
	{"in a branch, residual from outside", `
		%r = exp(%x)
		%y, %z = if(%c) {
			%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
			%s = add(%a, %r)
			%t = relu(%s)
			%u = relu(%x)
			return %t, %u
		} {
			%k = relu(%r)
			%a2: f32[2,4,5,6] = conv(%k, @one)
			%n = neg(%r)
			return %a2, %n
		}
		return %y, %z`, "residual relu; pre_relu"},
	{"read in a branch only", `
		%a: f32[2,4,5,6] = conv(%x, @w) {pads = [1, 1, 1, 1]}
		%d = relu(%x)
		%y, %z = if(%c) {
			%s = relu(%a)
			%a2: f32[2,4,5,6] = conv(%d, @one)
			return %s, %a2
		} {
			%u = neg(%x)
			%v = exp(%x)
			return %u, %v
		}
		return %y, %z`, ""},
}

const fusionHead = `func @main(%x: f32[2,4,5,6], %c: bool[]) -> (f32[...], f32[...]) {
	weight @w: f32[4,4,3,3]
	weight @one: f32[4,4,1,1]
	weight @wall: f32[4,4,5,6]
	weight @half: f32[4,2,3,3]
	weight @each: f32[4,1,3,3]
	weight @line: f32[4,4,3]
	weight @each3: f32[4,1,1,3,3]
	weight @b: f32[4]
	weight @mean: f32[4]
	weight @mean1: f32[4,1]
	weight @channel: f32[4,1,1]
	weight @column: f32[6]
	weight @full: f32[2,4,5,6]
	weight @zero: i64[1]
	weight @flat: i64[3]
	weight @cube: i64[5]
	weight @spatial: i64[3]
	weight @low: f32[]
	weight @high: f32[]
`

func TestFusedEqualsUnfused(t *testing.T) {
	for _, f := range fusions {
		t.Run(f.name, func(t *testing.T) {
			ctx := fusionContext(t, f.body)
			plain := ctx.Program.Clone()
			verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }
			if err := pass.Run(ctx, []pass.Pass{pass.Fuse}, verify); err != nil {
				t.Fatal(err)
			}
			if got := fusedCalls(ctx.Program); got != f.want {
				t.Errorf("got %q fused, want %q\n%s", got, f.want, ctx.Program)
			}
			for _, condition := range []byte{0, 1} {
				want, got := evaluate(t, plain, ctx.Constants, condition), evaluate(t, ctx.Program, ctx.Constants, condition)
				for i := range want {
					sameFloats(t, got[i], want[i])
				}
			}
		})
	}
}

func fusionContext(t *testing.T, body string) *pass.Context {
	results := "f32[...], f32[...]"
	if strings.Contains(body, "%i =") {
		results = "f32[...], i64[...]"
	}
	text := strings.Replace(fusionHead, "f32[...], f32[...]", results, 1) + body + "\n}"
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	given := ir.WeightMap{}
	for _, w := range p.Weights {
		given[w.Name] = signed(w.Type)
	}
	copy(given["b"], fill(op.Type{DType: dtype.F32, Shape: p.Weights[7].Type.Shape})) // a variance too
	binary.LittleEndian.PutUint32(given["high"], math.Float32bits(1.25))
	for name, dims := range map[string][]int64{"flat": {2, 4, 30}, "cube": {2, 4, 1, 5, 6}, "spatial": {0, 2, 3}} {
		for i, n := range dims {
			binary.LittleEndian.PutUint64(given[name][8*i:], uint64(n))
		}
	}
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: given}}
	if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// signed is fill with numbers of both signs; zero for integers.
func signed(t op.Type) []byte {
	n, err := t.Bytes()
	if err != nil {
		panic(err)
	}
	data := aligned(n, 0)
	if t.DType == dtype.F32 {
		for i := range n / 4 {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i*5%13-6)/4))
		}
	}
	return data
}

// aligned returns n bytes for elements of any type.
func aligned(n int, fill byte) []byte {
	words := make([]uint64, n/8+9)
	skip := int(-uintptr(unsafe.Pointer(&words[0])) & 63)
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[skip : skip+n]
	for i := range data {
		data[i] = fill
	}
	return data
}

// fusedCalls lists the calls that the fused convolutions took in.
func fusedCalls(p *ir.Program) string {
	var all []string
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		if c.Op.Name != "fused_conv" {
			return
		}
		var parts []string
		add := func(present bool, name string) {
			if present {
				parts = append(parts, name)
			}
		}
		sig := c.Sig(nil)
		add(c.Args[3].Value != nil, "residual")
		add(sig.Str("activation") != "", sig.Str("activation"))
		add(sig.Str("pool") != "", sig.Str("pool"))
		add(sig.Str("pool_activation") != "", "then "+sig.Str("pool_activation"))
		add(c.Args[4].Value != nil && c.Args[5].Value != nil, "scale")
		add(sig.Int("pre_relu") != 0, "pre_relu")
		all = append(all, strings.Join(parts, " "))
	})
	return strings.Join(all, "; ")
}

// evaluate runs a program with scratch that holds rubbish.
func evaluate(t *testing.T, p *ir.Program, weights ir.Weights, condition byte) []op.Arg {
	t.Helper()
	in := ir.Interpreter{Weights: weights, Eval: evalRubbish(t)}
	out, err := in.Run(p, op.Arg{Type: p.Body.Params[0].Type, Data: signed(p.Body.Params[0].Type)},
		op.Arg{Type: p.Body.Params[1].Type, Data: []byte{condition}})
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	return out
}

func evalRubbish(t *testing.T) func(c *op.Call) error {
	pool := compute.NewPool(1)
	t.Cleanup(pool.Close)
	return func(c *op.Call) error {
		task, err := compute.Bind(c)
		if err != nil {
			return err
		}
		return pool.Run(nil, task, aligned(task.Scratch, 0xCC))
	}
}

func sameFloats(t *testing.T, got, want op.Arg) {
	t.Helper()
	if got.Type != want.Type || got.DType != dtype.F32 {
		if string(got.Data) != string(want.Data) {
			t.Errorf("got %s % x, want %s % x", got.Type, got.Data, want.Type, want.Data)
		}
		return
	}
	for i := 0; i < len(want.Data); i += 4 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(got.Data[i:])))
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(want.Data[i:])))
		if !(math.Abs(x-y) <= 1e-4*(1+math.Abs(y))) {
			t.Errorf("element %d: got %v, want %v", i/4, x, y)
			return
		}
	}
}
