package pass_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// ruled are programs by the operator whose rule for expressions they use, in
// the calls that have it.
var ruled = map[string]string{
	"reshape": `func @f(%x: f32[a,6,b]) {
		%t: i64[3] = constant() {dtype = i64, dims = [3], ints = [0, 3, -1]}
		%u: i64[2] = constant() {dtype = i64, dims = [2], ints = [-1, 2]}
		%e = exp(%x)
		%r = reshape(%e, %t)
		%s = reshape(%e, %u)
		return %r, %s
	}`,
	"flatten": `func @f(%x: f32[a,3,b]) { %e = exp(%x) %r = flatten(%e) {axis = 2} return %r }`,
	"expand": `func @f(%x: f32[a,1], %y: f32[b]) {
		%two: i64[1] = constant() {dtype = i64, dims = [1], ints = [2]}
		%s = shape(%y)
		%t = concat(%two, %s, %s) {axis = 0}
		%r = expand(%x, %t)
		return %r
	}`,
	"tile": `func @f(%x: f32[a,2], %y: f32[b]) {
		%three: i64[1] = constant() {dtype = i64, dims = [1], ints = [3]}
		%s = shape(%y)
		%t = concat(%three, %s) {axis = 0}
		%r = tile(%x, %t)
		return %r
	}`,
	"concat": `func @f(%x: f32[a,2], %y: f32[b,2], %z: f32[3,2]) { %r = concat(%x, %y, %z) {axis = -2} return %r }`,
	"split":  `func @f(%x: f32[2,a]) { %r, %s, %t, %u = split(%x) {axis = 1} return %r, %s, %t, %u }`,
	"slice": `func @f(%x: f32[a,b,c], %y: f32[d]) {
		%from: i64[2] = constant() {dtype = i64, dims = [2], ints = [-5, 3]}
		%to: i64[2] = constant() {dtype = i64, dims = [2], ints = [9223372036854775807, -2]}
		%axes: i64[2] = constant() {dtype = i64, dims = [2], ints = [-1, 1]}
		%steps: i64[2] = constant() {dtype = i64, dims = [2], ints = [2, 3]}
		%zero: i64[1] = constant() {dtype = i64, dims = [1], ints = [0]}
		%e = exp(%x)
		%r = slice(%e, %from, %to, %axes, %steps)
		%s = shape(%y)
		%t = slice(%e, %zero, %s)
		%far: i64[1] = constant() {dtype = i64, dims = [1], ints = [100]}
		%u = slice(%e, %s, %far)
		return %r, %t, %u
	}`,
	"pad": `func @f(%x: f32[a,b]) {
		%p: i64[4] = constant() {dtype = i64, dims = [4], ints = [1, 0, 2, 3]}
		%r = pad(%x, %p)
		return %r
	}`,
	"range": `func @f(%x: f32[a], %y: f32[b]) {
		%three: i64[] = constant() {dtype = i64, ints = [3]}
		%n = size(%x)
		%m = size(%y)
		%r = range(%n, %m, %three)
		%c = cast(%r) {to = f32}
		return %c
	}`,
	"constant_of_shape": `func @f(%x: f32[a,b]) { %s = shape(%x) %r = constant_of_shape(%s) {value = 1.5} return %r }`,
	"random_uniform":    `func @f(%x: f32[a,b]) { %s = shape(%x) %r = random_uniform(%s) return %r }`,
	"random_normal":     `func @f(%x: f32[a,b]) { %s = shape(%x) %r = random_normal(%s) return %r }`,
	"resize": `func @f(%x: f32[1,2,a,b]) {
		%s: f32[4] = constant() {dims = [4], floats = [1, 1, 2, 1.25]}
		%r = resize(%x, _, %s)
		return %r
	}`,
	"conv": `func @f(%x: f32[a,2,b,c]) {
		%w: f32[4,1,3,2] = constant() {dims = [4,1,3,2], floats = [1]}
		%r = conv(%x, %w) {group = 2, strides = [2, 3], pads = [1, 0, 2, 1], dilations = [2, 1]}
		%s = conv(%x, %w) {group = 2, strides = [2, 3], auto_pad = "SAME_UPPER"}
		return %r, %s
	}`,
	"fused_conv": `func @f(%x: f32[a,2,b,c]) {
		%w: f32[4,2,3,3] = constant() {dims = [4,2,3,3], floats = [1]}
		%r = fused_conv(%x, %w) {strides = [1, 2], pads = [1, 1, 1, 1], pool = "max", pool_kernel = [2, 3], pool_strides = [2, 2], pool_pads = [0, 1, 1, 1], pool_ceil = 1}
		return %r
	}`,
	"conv_integer": `func @f(%x: u8[a,2,b]) {
		%w: u8[4,2,3] = constant() {dtype = u8, dims = [4,2,3], ints = [1]}
		%r = conv_integer(%x, %w) {strides = [2], pads = [1, 1]}
		return %r
	}`,
	"qlinear_conv": `func @f(%x: u8[a,2,b]) {
		%s: f32[] = constant() {floats = [1]}
		%z: u8[] = constant() {dtype = u8, ints = [1]}
		%w: u8[4,2,3] = constant() {dtype = u8, dims = [4,2,3], ints = [1]}
		%r = qlinear_conv(%x, %s, %z, %w, %s, %z, %s, %z) {strides = [2], pads = [1, 1]}
		return %r
	}`,
	"conv_transpose": `func @f(%x: f32[a,2,b,c]) {
		%w: f32[2,2,3,2] = constant() {dims = [2,2,3,2], floats = [1]}
		%r = conv_transpose(%x, %w) {group = 2, strides = [2, 3], pads = [1, 0, 0, 1], output_padding = [1, 0], dilations = [1, 2]}
		%s = conv_transpose(%x, %w) {strides = [2, 3], auto_pad = "SAME_LOWER"}
		return %r, %s
	}`,
	"max_pool": `func @f(%x: f32[a,2,b,c]) {
		%r = max_pool(%x) {kernel_shape = [3, 2], strides = [2, 3], pads = [1, 0, 1, 1], ceil_mode = 1}
		%s = max_pool(%x) {kernel_shape = [3, 2], strides = [2, 3], pads = [1, 0, 1, 1], dilations = [2, 1]}
		return %r, %s
	}`,
	"average_pool":   `func @f(%x: f32[a,2,b]) { %r = average_pool(%x) {kernel_shape = [4], strides = [3], pads = [1, 2], ceil_mode = 1} return %r }`,
	"depth_to_space": `func @f(%x: f32[a,8,b,c]) { %r = depth_to_space(%x) {blocksize = 2} return %r }`,
	"space_to_depth": `func @f(%x: f32[1,a,b,c]) { %r = space_to_depth(%x) {blocksize = 2} return %r }`,
	"matmul":         `func @f(%x: f32[a,b,2,3], %y: f32[c,1,3,4]) { %r = matmul(%x, %y) return %r }`,
	"fused_matmul":   `func @f(%x: f32[a,b,2,3], %y: f32[c,1,4,3]) { %r = fused_matmul(%x, %y) {transB = 1} return %r }`,
	"matmul_integer": `func @f(%x: u8[a,b,2,3], %y: u8[c,1,3,4]) { %r = matmul_integer(%x, %y) return %r }`,
	"attention": `func @f(%q: f32[a,2,b,4], %k: f32[a,2,c,4], %p: f32[a,2,d,4]) {
		%r, %s, %t, %u = attention(%q, %k, %k, _, %p, %p)
		return %r, %s, %t, %u
	}`,
	"fused_attention": `func @f(%q: f32[a,b,c,2,4], %k: f32[e,1,2,d,4], %v: f32[1,d,b,2,5]) {
		%r = fused_attention(%q, %k, %v) {q_perm = [0, 1, 3, 2, 4], v_perm = [0, 2, 3, 1, 4], y_perm = [1, 0, 3, 2, 4]}
		return %r
	}`,
	"mod":         `func @f(%x: f32[a], %y: f32[b]) { %r = mod(%x, %y) {fmod = 1} return %r }`,
	"bit_shift":   `func @f(%x: u32[a], %y: u32[b]) { %r = bit_shift(%x, %y) {direction = "LEFT"} return %r }`,
	"where":       `func @f(%x: f32[a,1], %y: f32[b,2]) { %c = greater(%x, %x) %r = where(%c, %x, %y) return %r }`,
	"pow":         `func @f(%x: f32[a], %y: f32[b]) { %r = pow(%x, %y) return %r }`,
	"fused_chain": `func @f(%x: f32[a], %y: f32[b]) { %r = fused_chain(%x, %y) {steps = ["add 0 1"]} return %r }`,
	"top_k": `func @f(%x: f32[a,b], %y: f32[c]) {
		%k = shape(%y)
		%r, %i = top_k(%x, %k) {axis = 0}
		return %r, %i
	}`,
}

// sized is a program around calls that compute numbers from the sizes of x and
// y, two constants of rank 1, and fill the shape %t.
func sized(calls string) string {
	return "func @f(%x: f32[a,b], %y: f32[c]) {\n%two: i64[1] = constant() {dtype = i64, dims = [1], ints = [2]}\n%s = shape(%x)\n%u = shape(%y)\n" + calls +
		"\n%r = constant_of_shape(%t) {value = 1.5}\nreturn %r\n}"
}

var contents = map[string]string{
	"shape":       sized("%t = shape(%x) {start = -1}"),
	"size":        sized("%zero: i64[1] = constant() {dtype = i64, dims = [1], ints = [0]}\n%n = size(%x)\n%t = unsqueeze(%n, %zero)"),
	"identity":    sized("%t = identity(%s)"),
	"copy":        sized("%t = copy(%s)"),
	"reshape":     sized("%t = reshape(%s, %two)"),
	"squeeze":     sized("%zero: i64[1] = constant() {dtype = i64, dims = [1], ints = [0]}\n%o: i64[2] = constant() {dtype = i64, dims = [2], ints = [1, 2]}\n%q = reshape(%s, %o)\n%t = squeeze(%q, %zero)"),
	"unsqueeze":   sized("%zero: i64[1] = constant() {dtype = i64, dims = [1], ints = [0]}\n%n = size(%y)\n%t = unsqueeze(%n, %zero)"),
	"flatten":     sized("%q = flatten(%s) {axis = 0}\n%t = reshape(%q, %two)"),
	"cast":        sized("%q = cast(%s) {to = i32}\n%t = cast(%q) {to = i64}"),
	"concat":      sized("%t = concat(%u, %s, %two) {axis = 0}"),
	"gather":      sized("%one: i64[2] = constant() {dtype = i64, dims = [2], ints = [-1, 0]}\n%t = gather(%s, %one)"),
	"slice":       sized("%one: i64[1] = constant() {dtype = i64, dims = [1], ints = [1]}\n%t = slice(%s, %one, %two)"),
	"transpose":   sized("%o: i64[2] = constant() {dtype = i64, dims = [2], ints = [2, 1]}\n%q = reshape(%s, %o)\n%p = transpose(%q)\n%t = reshape(%p, %two)"),
	"expand":      sized("%o: i64[2] = constant() {dtype = i64, dims = [2], ints = [2, 1]}\n%q = expand(%u, %o)\n%t = reshape(%q, %two)"),
	"tile":        sized("%t = tile(%s, %two)"),
	"equal":       sized("%m: i64[1] = constant() {dtype = i64, dims = [1], ints = [-1]}\n%q = concat(%u, %m, %s) {axis = 0}\n%e = equal(%q, %m)\n%t = where(%e, %two, %q)"),
	"where":       sized("%m: i64[1] = constant() {dtype = i64, dims = [1], ints = [-1]}\n%q = concat(%u, %m, %s) {axis = 0}\n%e = equal(%q, %m)\n%t = where(%e, %two, %q)"),
	"add":         sized("%t = add(%s, %u)"),
	"sub":         sized("%q = add(%s, %u)\n%t = sub(%q, %u)"),
	"mul":         sized("%t = mul(%s, %u)"),
	"div":         sized("%t = div(%s, %two)"),
	"max":         sized("%t = max(%s, %u)"),
	"min":         sized("%t = min(%s, %u)"),
	"reduce_prod": sized("%t = reduce_prod(%s)"),
	"reduce_sum":  sized("%t = reduce_sum(%s)"),
}

// meetFormulas derives the formulas of a program for boxes from 1 and from 2
// on, and compares them at all sizes up to 9, of up to four dimensions. It
// returns the number of sizes that were compared, that of dimensions of results
// without a formula, and the first fault.
func meetFormulas(t *testing.T, text string) (compared, unknown int, fault error) {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	l := &loaded{program: p.Clone(), constants: &weights.Overlay{Base: ir.WeightMap{}}}
	ctx := &pass.Context{Program: l.program, Constants: l.constants, MaxFold: 1 << 10}
	if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, x := range p.Body.Params {
		for axis, dim := range x.Type.Shape.Dims() {
			if _, fixed := dim.Size(); !fixed && !slices.Contains(names, dimName(p, i, axis)) {
				names = append(names, dimName(p, i, axis))
			}
		}
	}
	for _, least := range []int64{1, 2} {
		box := symbolic.Box{}
		for _, name := range names {
			box[name] = symbolic.Range{Lo: least, Hi: 9}
		}
		var structures []*pass.Structure
		var formulas []*pass.Formulas
		for _, sizes := range points(names, box) {
			types := make([]op.Type, len(p.Body.Params))
			for i, dims := range openDims(p) {
				types[i] = op.Type{DType: p.Body.Params[i].Type.DType, Shape: shapeAt(dims, sizes)}
			}
			fresh, err := l.specialise(types)
			if err != nil {
				continue // no such program
			}
			at := slices.IndexFunc(structures, func(s *pass.Structure) bool { return s.Types(types, nil, &weights.Overlay{Base: l.constants}) != nil })
			if at < 0 {
				s, reason := fresh.Structure()
				if s == nil {
					t.Fatalf("got no structure: %s", reason)
				}
				at = len(structures)
				structures, formulas = append(structures, s), append(formulas, s.Formulas(openDims(p), box))
				for _, v := range fresh.Program.Body.Results {
					for _, e := range formulas[at].Dims(v.ID) {
						if e == nil {
							unknown++
						}
					}
				}
			}
			compared++
			if err := formulas[at].Check(sizes, structures[at].Types(types, nil, &weights.Overlay{Base: l.constants})); err != nil {
				return compared, unknown, fmt.Errorf("%w\n%s", err, text)
			}
		}
	}
	return compared, unknown, nil
}

// TestSizeRules compares the rule of each operator with its shape rule, at all
// sizes of small boxes, and breaks it: then the comparison finds a fault.
func TestSizeRules(t *testing.T) {
	for _, f := range elementwise.Binaries() {
		for _, dt := range []string{"bool", "u32", "f32"} {
			text := fmt.Sprintf("func @f(%%x: %[1]s[a], %%y: %[1]s[b]) { %%r = %[2]s(%%x, %%y) return %%r }", dt, f.Name)
			if _, err := ir.Parse(text, op.Builtin()); err == nil && f.Name != "prelu" {
				ruled[f.Name] = text
			}
		}
	}
	testRules(t, pass.SizeRules(), ruled, pass.BreakSizeRule)
}

// TestContentRules does the same for the elements of constants.
func TestContentRules(t *testing.T) {
	testRules(t, pass.ContentRules(), contents, pass.BreakContentRule)
}

func testRules(t *testing.T, rules []string, programs map[string]string, breakRule func(string) func()) {
	for _, name := range rules {
		t.Run(name, func(t *testing.T) {
			text := programs[name]
			if text == "" {
				t.Fatal("got no program with a call that the rule is for, want one")
			}
			compared, unknown, fault := meetFormulas(t, text)
			if fault != nil || compared < 8 || unknown > 0 {
				t.Errorf("got %v; %d sets of sizes compared, %d dimensions without a formula, want all and no fault", fault, compared, unknown)
			}
			defer breakRule(name)()
			if _, _, fault := meetFormulas(t, text); fault == nil {
				t.Error("got no fault with a rule that is wrong by one, want one")
			}
		})
	}
	for name := range programs {
		if !slices.Contains(rules, name) {
			t.Errorf("%s: got a program for a rule that there is not", name)
		}
	}
}

func shapeAt(dims []*symbolic.Expr, sizes map[string]int64) *shape.Shape {
	list := make([]int, len(dims))
	for i, e := range dims {
		n, _ := e.Eval(sizes)
		list[i] = int(n)
	}
	return shape.MustOf(list...)
}

// points are all sizes of a box.
func points(names []string, box symbolic.Box) []map[string]int64 {
	all := []map[string]int64{{}}
	for _, name := range names {
		var next []map[string]int64
		for _, p := range all {
			for n := box[name].Lo; n <= box[name].Hi; n++ {
				q := map[string]int64{name: n}
				for k, v := range p {
					q[k] = v
				}
				next = append(next, q)
			}
		}
		all = next
	}
	return all
}
