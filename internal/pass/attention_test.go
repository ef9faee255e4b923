package pass_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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

// spelledAttention is a program that spells attention out. Its inputs are q
// [b,4,n,6], k and v [b,groups,m,6] and [b,groups,m,5], in layouts of their
// own, a bias and a mask that broadcast to [b,4,n,m].
type spelledAttention struct {
	typ        string
	head, body []string
	weights    map[string][]float64 // i64, or floats of one element
	names      int
}

// let adds a call and returns its result.
func (s *spelledAttention) let(format string, args ...any) string {
	s.names++
	name := fmt.Sprintf("%%t%d", s.names)
	s.body = append(s.body, name+" = "+fmt.Sprintf(format, args...))
	return name
}

// list is a constant of integers; number is one float of the type of q.
func (s *spelledAttention) list(v ...float64) string {
	return s.constant(fmt.Sprintf("i64[%d]", len(v)), v)
}

func (s *spelledAttention) number(v float64) string { return s.constant(s.typ+"[]", []float64{v}) }

func (s *spelledAttention) constant(typ string, v []float64) string {
	name := fmt.Sprintf("w%d", len(s.weights))
	s.head = append(s.head, fmt.Sprintf("weight @%s: %s", name, typ))
	s.weights[name] = v
	return "@" + name
}

// Choices of a drawn program.
type attentionForm struct {
	groups              int
	byToken, keysTurned bool // [batch, row, head, size]; k is read in the order [0, 2, 3, 1] or turned twice
	repeat              string
	scaleAt             string // "", "product", "quotient", "q", "both"
	masks               []string
	softmax             string // "", "spelled", "where"
	turnedBack          bool
	bias, mask          string // types
	more                string // type of a second addend, where there are two
	typ                 string // of elements
	cap, wide           bool   // the scores have a cap; softmax is computed in float32
	split               bool   // the last masks see the batch as two axes, of 2 and the rest
	merged              bool   // the products see samples and heads as one axis
}

func drawForm(r *rand.Rand) (f attentionForm) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	f.groups = []int{4, 4, 2, 1}[r.IntN(4)]
	f.byToken, f.keysTurned, f.turnedBack = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	f.repeat = pick("expand", "tile", "concat")
	f.scaleAt = pick("", "product", "quotient", "q", "both")
	f.masks = [][]string{nil, {"add"}, {"where"}, {"hide"}, {"add", "where"}, {"where", "add"}, {"hide", "add"},
		{"add", "more"}, {"add", "hide", "more"}, {"where", "add", "more"}}[r.IntN(10)]
	f.softmax = pick("", "", "spelled", "where")
	f.bias, f.mask = pick("f32[b,1,1,m]", "f32[1,1,n,m]", "f32[n,m]", "f32[4,1,1]", "f32[b,4,n,m]"), pick("bool[b,1,1,m]", "bool[1,1,n,m]", "bool[n,m]", "bool[n,1]")
	f.typ = pick("f32", "f32", "f16", "bf16", "f64")
	f.cap, f.split, f.wide = r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(2) == 0 && strings.HasSuffix(f.typ, "f16")
	f.more = pick("f32[1,4,n,m]", "f32[1,1,m]", "f32[n,1]")
	if f.split {
		f.more = pick("f32[2,1,1,n,m]", "f32[1,c,4,n,m]", "f32[2,c,1,1,m]", "f32[1,n,m]", "f32[]")
		if len(f.masks) > 0 && f.masks[len(f.masks)-1] != "more" {
			f.bias, f.mask = pick("f32[1,c,1,n,m]", "f32[2,1,4,1,m]", "f32[n,m]"), pick("bool[2,1,1,n,m]", "bool[1,c,1,1,m]", "bool[n,1]")
			f.masks = f.masks[len(f.masks)-1:]
		}
	}
	if r.IntN(4) == 0 { // as exporters write it: masks see both axes
		f.merged, f.split, f.wide, f.cap, f.scaleAt = true, false, false, false, pick("", "q")
		f.bias, f.more = pick("f32[b,1,1,m]", "f32[1,1,n,m]", "f32[n,m]", "f32[b,4,n,m]"), pick("f32[1,4,n,m]", "f32[1,1,1,m]", "f32[n,1]")
		f.mask = pick("bool[b,1,1,m]", "bool[1,1,n,m]", "bool[n,m]", "bool[n,1]")
	}
	return f
}

// spell writes the program of a form.
func spell(f attentionForm) *spelledAttention {
	s := &spelledAttention{typ: f.typ, weights: map[string][]float64{}}
	heads := func(x string) string { // [batch, row, head, size] to [batch, head, row, size]
		if f.byToken {
			return s.let("transpose(%s) {perm = [0, 2, 1, 3]}", x)
		}
		return x
	}
	repeated := func(x string, size float64) string {
		if f.groups == 4 {
			return x
		}
		axis, times := 2.0, float64(4/f.groups)
		if f.byToken {
			axis = 3
		}
		one := s.let("unsqueeze(%s, %s)", x, s.list(axis))
		to := []float64{1, 1, 1, 1, 1}
		to[int(axis)] = times
		switch f.repeat {
		case "expand":
			one = s.let("expand(%s, %s)", one, s.list(to...))
		case "tile":
			one = s.let("tile(%s, %s)", one, s.list(to...))
		default:
			one = s.let("concat(%s) {axis = %d}", strings.Join(slices.Repeat([]string{one}, int(times)), ", "), int(axis))
		}
		if f.byToken {
			return s.let("reshape(%s, %s)", one, s.list(0, 0, 4, size))
		}
		return s.let("reshape(%s, %s)", one, s.list(0, 4, -1, size))
	}
	turned := false // k, after samples and heads are merged
	q, k, v := heads("%q"), repeated("%k", 6), heads(repeated("%v", 5))
	switch {
	case f.keysTurned && f.byToken:
		k = s.let("transpose(%s) {perm = [0, 2, 3, 1]}", k)
	case f.merged:
		k, turned = heads(k), true
	default:
		k = s.let("transpose(%s) {perm = [0, 1, 3, 2]}", heads(k))
	}
	if f.scaleAt == "q" || f.scaleAt == "both" {
		q = s.let("mul(%s, %s)", q, s.number(0.6))
	}
	if f.scaleAt == "both" {
		k = s.let("mul(%s, %s)", s.number(0.6), k)
	}
	if f.merged {
		q, k, v = s.resized(q, -1), s.resized(k, -1), s.resized(v, -1)
		if turned {
			k = s.let("transpose(%s) {perm = [0, 2, 1]}", k)
		}
	}
	x := s.let("matmul(%s, %s)", q, k)
	switch f.scaleAt {
	case "product":
		x = s.let("mul(%s, %s)", s.number(0.4), x)
	case "quotient":
		x = s.let("div(%s, %s)", x, s.number(2.5))
	}
	if f.cap {
		x = s.let("mul(%s, %s)", s.let("tanh(%s)", s.let("div(%s, %s)", x, s.number(0.75))), s.number(0.75))
	}
	if f.wide && !f.split {
		s.typ = "f32"
		x = s.let("cast(%s) {to = f32}", x)
	}
	if f.merged && len(f.masks) > 0 {
		x = s.resized(x, -1, 4)
	}
	flat := x
	for i, mask := range f.masks {
		if f.split && i == len(f.masks)-1 {
			sizes := s.let("shape(%s)", flat)
			rest := s.let("slice(%s, %s, %s)", sizes, s.list(1), s.list(4))
			x = s.let("reshape(%s, %s)", x, s.let("concat(%s, %s) {axis = 0}", s.list(2, -1), rest))
		}
		switch mask {
		case "more":
			x = s.let("add(%s, %%more)", x)
		case "add":
			x = s.let("add(%s, %%bias)", x)
		case "where":
			x = s.let("where(%%mask, %s, %s)", x, s.number(-math.MaxFloat32))
		case "hide":
			x = s.let("where(%%mask, %s, %s)", s.number(math.Inf(-1)), x)
		}
	}
	if f.split && len(f.masks) > 0 && f.softmax != "where" {
		x = s.let("reshape(%s, %s)", x, s.let("shape(%s)", flat))
	}
	if f.wide && f.split {
		s.typ = "f32"
		x = s.let("cast(%s) {to = f32}", x)
	}
	if f.merged && len(f.masks) > 0 && f.softmax != "where" {
		x = s.resized(x, -1)
	}
	switch f.softmax {
	case "spelled":
		last := s.list(-1)
		e := s.let("exp(%s)", s.let("sub(%s, %s)", x, s.let("reduce_max(%s, %s)", x, last)))
		x = s.let("div(%s, %s)", e, s.let("reduce_sum(%s, %s)", e, last))
	case "where":
		x = s.let("softmax(%s) {axis = -1}", x)
		x = s.let("where(%s, %s, %s)", s.let("is_nan(%s)", x), s.number(0), x)
	default:
		x = s.let("softmax(%s)", x)
	}
	if f.split && len(f.masks) > 0 && f.softmax == "where" {
		x = s.let("reshape(%s, %s)", x, s.let("shape(%s)", flat))
	}
	if f.merged && len(f.masks) > 0 && f.softmax == "where" {
		x = s.resized(x, -1)
	}
	if f.wide {
		x = s.let("cast(%s) {to = %s}", x, f.typ)
	}
	y := s.let("matmul(%s, %s)", x, v)
	if f.merged {
		y = s.resized(y, -1, 4)
	}
	if f.turnedBack {
		y = s.let("transpose(%s) {perm = [0, 2, 1, 3]}", y)
	}
	s.body = append(s.body, "return "+y)
	return s
}

// resized reshapes x to the given first sizes and its last two.
func (s *spelledAttention) resized(x string, first ...float64) string {
	sizes := s.let("shape(%s)", x)
	last := s.let("slice(%s, %s, %s)", sizes, s.list(-2), s.list(1000))
	return s.let("reshape(%s, %s)", x, s.let("concat(%s, %s) {axis = 0}", s.list(first...), last))
}

// text returns the program with inputs of a form.
func (s *spelledAttention) text(f attentionForm) string {
	side := func(heads int, rows string, size int) string {
		if f.byToken {
			return fmt.Sprintf("f32[b,%s,%d,%d]", rows, heads, size)
		}
		return fmt.Sprintf("f32[b,%d,%s,%d]", heads, rows, size)
	}
	of := func(typ, t string) string { return strings.Replace(t, "f32", typ, 1) }
	addend := f.typ
	if f.wide && !f.split {
		addend = "f32"
	}
	return fmt.Sprintf("func @a(%%q: %s, %%k: %s, %%v: %s, %%bias: %s, %%mask: %s, %%more: %s) {\n%s\n%s\n}", of(f.typ, side(4, "n", 6)), of(f.typ, side(f.groups, "m", 6)),
		of(f.typ, side(f.groups, "m", 5)), of(addend, f.bias), f.mask, of(addend, f.more), strings.Join(s.head, "\n"), strings.Join(s.body, "\n"))
}

// putFloat writes a float of a type.
func putFloat(to []byte, dt dtype.DType, x float64) {
	switch dt {
	case dtype.F16:
		binary.LittleEndian.PutUint16(to, uint16(dtype.Float16FromFloat32(float32(x))))
	case dtype.BF16:
		binary.LittleEndian.PutUint16(to, uint16(dtype.BFloat16FromFloat32(float32(x))))
	case dtype.F32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(x)))
	case dtype.F64:
		binary.LittleEndian.PutUint64(to, math.Float64bits(x))
	}
}

// floatAt reads element i of a type.
func floatAt(data []byte, dt dtype.DType, i int) float64 {
	switch dt {
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(data[2*i:])).Float32())
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(data[2*i:])).Float32())
	case dtype.F32:
		return float32At(data[4*i:])
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
}

// nearness are the tolerances for results below 1 in magnitude: the program as
// it is written rounds scores, weights and sums of 16 bits, the call does not.
var nearness = map[dtype.DType]float64{dtype.F32: 2e-6, dtype.F64: 1e-13, dtype.F16: 4e-3, dtype.BF16: 3e-2}

// table returns the table of the constants.
func (s *spelledAttention) table(p *ir.Program) ir.WeightMap {
	table := ir.WeightMap{}
	for _, w := range p.Weights {
		var data []byte
		for _, x := range s.weights[w.Name] {
			if w.Type.DType.IsFloat() {
				data = append(data, make([]byte, w.Type.DType.Size())...)
				putFloat(data[len(data)-w.Type.DType.Size():], w.Type.DType, x)
			} else {
				data = binary.LittleEndian.AppendUint64(data, uint64(int64(x)))
			}
		}
		table[w.Name] = append(aligned(0, 0), data...)
	}
	return table
}

// TestAttentionForms draws ways to spell attention, each at five sets of sizes.
// All become one call, in one structure, that computes the same, where rows of
// scores are all -Inf, or NaN, or as small as numbers are, too.
func TestAttentionForms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 18))
	draws := 400
	if testing.Short() {
		draws = 100
	}
	for i := range draws {
		f := drawForm(r)
		text := spell(f).text(f)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("%+v\n%s", f, text)
				}
			}()
			testForm(t, r, f)
		})
	}
}

func testForm(t *testing.T, r *rand.Rand, f attentionForm) {
	s := spell(f)
	p, err := ir.Parse(s.text(f), op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	table := s.table(p)
	ctx := &pass.Context{Program: p.Clone(), Constants: &weights.Overlay{Base: table}, MaxFold: 64 << 10}
	if err := pass.Run(ctx, pass.Load, verified); err != nil {
		t.Fatal(err)
	}
	var structure *pass.Structure
	for _, n := range [][3]int{{4, 3, 5}, {6, 7, 20}, {4, 40, 33}, {6, 2, 1200}, {4, 9, 3}} {
		inputs := attentionInputs(r, p, n)
		types := make([]op.Type, len(inputs))
		for i := range inputs {
			types[i] = inputs[i].Type
		}
		fresh, err := specialise(ctx.Program, ctx.Constants, types, func(i int) []byte { return inputs[i].Data }, 0)
		if err != nil {
			t.Fatal(err)
		}
		calls := names(fresh.Program)
		if !slices.Contains(calls, "fused_attention") || slices.Contains(calls, "matmul") || slices.Contains(calls, "softmax") || slices.Contains(calls, "transpose") {
			t.Fatalf("got the calls %v, want one of attention and none of products, softmax or transposes", calls)
		}
		if err := ir.VerifyKnown(fresh.Program, ir.Known(fresh.Constants)); err != nil {
			t.Fatal(err)
		}
		if structure == nil {
			var reason string
			if structure, reason = fresh.Structure(); structure == nil {
				t.Fatalf("got no structure: %s", reason)
			}
		} else if structure.Types(types, func(i int) []byte { return inputs[i].Data }, &weights.Overlay{Base: structure.Constants()}) == nil {
			t.Errorf("sizes %v: got no instance of the structure, want one", n)
		}
		want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, inputs...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&ir.Interpreter{Eval: evalRubbish(t), Weights: fresh.Constants}).Run(fresh.Program, inputs...)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Type != want[0].Type {
			t.Fatalf("sizes %v: got %s, want %s", n, got[0].Type, want[0].Type)
		}
		dt := want[0].Type.DType
		for i := range want[0].Type.Shape.NumElements() {
			x, y := floatAt(got[0].Data, dt, i), floatAt(want[0].Data, dt, i)
			if !(math.Abs(x-y) <= nearness[dt]) && !(math.IsNaN(x) && math.IsNaN(y)) {
				t.Fatalf("sizes %v: element %d: got %v, want %v", n, i, x, y)
			}
		}
	}
}

func names(p *ir.Program) (list []string) {
	p.Walk(func(_ *ir.Block, c *ir.Call) { list = append(list, c.Op.Name) })
	return list
}

// attentionInputs draws operands for b, n and m. Some rows of masks hide all
// keys, and some of the bias are -Inf, NaN or the least number.
func attentionInputs(r *rand.Rand, p *ir.Program, sizes [3]int) []op.Arg {
	var inputs []op.Arg
	for _, v := range p.Body.Params {
		dims := make([]int, v.Type.Shape.Rank())
		for i := range dims {
			d := v.Type.Shape.Dim(i)
			n, ok := d.Size()
			if !ok {
				if n = sizes[0] / 2; d.String() != "c" {
					n = sizes[strings.Index("bnm", d.String())]
				}
			}
			dims[i] = n
		}
		a := op.Arg{Type: op.Type{DType: v.Type.DType, Shape: shape.MustOf(dims...)}}
		n := a.Shape.NumElements()
		row := 1
		if len(dims) > 0 {
			row = max(1, dims[len(dims)-1])
		}
		a.Data = aligned(n*a.DType.Size(), 0)
		for i := range n {
			if v.Type.DType == dtype.Bool {
				a.Data[i] = byte(r.IntN(2))
				if kind := i / row % 7; kind < 2 {
					a.Data[i] = byte(kind)
				}
				continue
			}
			x := 2*r.Float32() - 1
			if v.Name == "bias" {
				switch i / row % 9 {
				case 3:
					x = float32(math.Inf(-1))
				case 4:
					x = -math.MaxFloat32
				case 5:
					if i%row == row/2 {
						x = float32(math.NaN())
					}
				case 6:
					if i%2 == 0 {
						x = float32(math.Inf(-1))
					}
				}
			}
			putFloat(a.Data[i*a.DType.Size():], a.DType, float64(x))
		}
		inputs = append(inputs, a)
	}
	return inputs
}

// TestAttentionIsFound has forms that are found, and those that must not be.
func TestAttentionIsFound(t *testing.T) {
	const head = `func @a(%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,6], %w: f32[2,3,5], %one: f32[1,3,4], %x: f32[3,4], %y: f32[5,4], %z: f32[5,6], %c: bool[3,5]) {
		weight @row: f32[1]
		weight @half: f32[]
		weight @many: f32[1,1]
		weight @keys: f32[2,4,5]
		`
	for _, c := range []struct {
		name, body string
		want       bool
	}{
		{"plain", "%s = matmul(%q, %k) %p = softmax(%s) %r = matmul(%p, %v) return %r", true},
		{"matrices, by gemm", "%s = gemm(%x, %y) {transB = 1, alpha = 0.5} %p = softmax(%s) %r = gemm(%p, %z) return %r", true},
		{"a factor of one element", "%s = matmul(%q, %k) %u = mul(%s, @many) %p = softmax(%u) %r = matmul(%p, %v) return %r", true},
		{"scores that are scaled twice", "%s = matmul(%q, %k) %u = mul(%s, @half) %t = div(%u, @half) %p = softmax(%t) %r = matmul(%p, %v) return %r", true},
		{"one batch of q", "%s = matmul(%one, %k) %p = softmax(%s) %r = matmul(%p, %v) return %r", false},
		{"probabilities are a result", "%s = matmul(%q, %k) %p = softmax(%s) %r = matmul(%p, %v) return %r, %p", false},
		{"scores are a result", "%s = matmul(%q, %k) %p = softmax(%s) %r = matmul(%p, %v) return %r, %s", false},
		{"scores are read twice", "%s = matmul(%q, %k) %e = exp(%s) %p = softmax(%s) %r = matmul(%p, %v) return %r, %e", false},
		{"the peak is read elsewhere", "%s = matmul(%q, %k) %m = reduce_max(%s, %minus) %d = sub(%s, %m) %e = exp(%d) %t = reduce_sum(%e, %minus) %p = div(%e, %t) %r = matmul(%p, %v) return %r, %m", false},
		{"another axis", "%s = matmul(%q, %k) %p = softmax(%s) {axis = 1} %r = matmul(%p, %v) return %r", false},
		{"the logarithm", "%s = matmul(%q, %k) %p = log_softmax(%s) %r = matmul(%p, %v) return %r", false},
		{"weights on the right", "%s = matmul(%q, %k) %t = transpose(%s) {perm = [0, 2, 1]} %p = softmax(%t) %r = matmul(%q, %v2) return %r, %p", false},
		{"a factor after the bias", "%s = matmul(%q, %k) %u = add(%s, %w) %t = mul(%u, @half) %p = softmax(%t) %r = matmul(%p, %v) return %r", false},
		{"two biases", "%s = matmul(%q, %k) %u = add(%s, %w) %t = add(%u, %w) %p = softmax(%t) %r = matmul(%p, %v) return %r", true},
		{"three biases", "%s = matmul(%q, %k) %u = add(%s, %w) %t = add(%u, %w) %o = add(%t, %w) %p = softmax(%o) %r = matmul(%p, %v) return %r", false},
		{"two masks", "%s = matmul(%q, %k) %u = where(%c, %s, @half) %t = where(%c, @half, %u) %p = softmax(%t) %r = matmul(%p, %v) return %r", false},
		{"a choice of values", "%s = matmul(%q, %k) %u = where(%c, %s, %w) %p = softmax(%u) %r = matmul(%p, %v) return %r", false},
		{"scores added to themselves", "%s = matmul(%q, %k) %u = add(%s, %s) %p = softmax(%u) %r = matmul(%p, %v) return %r", false},
		{"a cap", "%s = matmul(%q, %k) %u = tanh(%s) %p = softmax(%u) %r = matmul(%p, %v) return %r", true},
		{"a cap with factors", "%s = matmul(%q, %k) %h = mul(%s, @half) %u = tanh(%h) %t = div(%u, @half) %p = softmax(%t) %r = matmul(%p, %v) return %r", true},
		{"a cap and a bias", "%s = matmul(%q, %k) %h = mul(%s, @half) %u = tanh(%h) %t = add(%u, %w) %p = softmax(%t) %r = matmul(%p, %v) return %r", true},
		{"a cap behind a bias", "%s = matmul(%q, %k) %h = add(%s, %w) %u = tanh(%h) %p = softmax(%u) %r = matmul(%p, %v) return %r", false},
		{"two caps", "%s = matmul(%q, %k) %h = tanh(%s) %u = tanh(%h) %p = softmax(%u) %r = matmul(%p, %v) return %r", false},
		{"a cap that is read elsewhere", "%s = matmul(%q, %k) %u = tanh(%s) %p = softmax(%u) %r = matmul(%p, %v) return %r, %u", false},
		{"constant keys", "%s = matmul(%q, @keys) %p = softmax(%s) %r = matmul(%p, %v) return %r", false},
		{"an addend of the product", "%s = gemm(%x, %y, %w1) {transB = 1} %p = softmax(%s) %r = gemm(%p, %z) return %r", false},
		{"a factor of the result", "%s = gemm(%x, %y) {transB = 1} %p = softmax(%s) %r = gemm(%p, %z) {alpha = 0.5} return %r", false},
		{"rows of q that are turned", "%s = gemm(%xt, %y) {transA = 1, transB = 1} %p = softmax(%s) %r = gemm(%p, %z) return %r", false},
		{"a donated operand", "%s = matmul(%q, %k) %u = mul(donate %s, @half) %p = softmax(donate %u) %r = matmul(%p, %v) return %r", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := strings.NewReplacer(") %", ")\n%", "} %", "}\n%", ") return", ")\nreturn", "} return", "}\nreturn").Replace(c.body)
			text := head + "%n = shape(@row)\n%minus = neg(%n)\n"
			for name, def := range map[string]string{"%v2": "%v2 = transpose(%v) {perm = [0, 2, 1]}", "%w1": "%w1 = reduce_mean(%y)", "%xt": "%xt = transpose(%x) {perm = [1, 0]}"} {
				if strings.Contains(body, name) {
					text += def + "\n"
				}
			}
			if c.name == "weights on the right" {
				body = strings.Replace(body, "matmul(%q, %v2)", "matmul(%v2, %p)", 1)
			}
			ctx := context(t, text+body+"\n}")
			if err := pass.Run(ctx, []pass.Pass{pass.Fold, pass.CSE, pass.DCE, pass.Attention, pass.DCE}, verified); err != nil {
				t.Fatal(err)
			}
			if found := slices.Contains(names(ctx.Program), "fused_attention"); found != c.want || found != (len(ctx.Notes) > 0) {
				t.Errorf("got %v and notes %q, want %v\n%s", found, ctx.Notes, c.want, ctx.Program)
			}
		})
	}
}
