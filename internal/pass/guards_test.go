package pass_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// alone are programs in which one kind of guard tells two sets of sizes apart,
// once the other kinds that would do it too are left out.
var alone = []struct {
	kind          string
	besides       []string
	text          string
	first, second [][]int
}{
	{"same type", []string{"alias"}, `
		func @residual(%x: f32[n,2,h,w], %y: f32[m,2,h,w]) {
			weight @conv: f32[2,2,1,1]
			%c = conv(%x, @conv)
			%r = add(%c, %y)
			return %r
		}`, [][]int{{3, 2, 4, 4}, {3, 2, 4, 4}}, [][]int{{3, 2, 4, 4}, {1, 2, 4, 4}}},
	{"same size", nil, `
		func @bias(%x: f32[n,4], %b: f32[m]) {
			weight @matrix: f32[4,3]
			%p = matmul(%x, @matrix)
			%r = add(%p, %b)
			return %r
		}`, [][]int{{5, 4}, {3}}, [][]int{{5, 4}, {1}}},
	{"along a row", []string{"same type", "alias", "blocks"}, `
		func @norm(%x: f32[n,m]) {
			weight @minus: i64[1]
			weight @epsilon: f32[]
			weight @scale: f32[4]
			%mean = reduce_mean(%x, @minus) {keepdims = 1}
			%d = sub(%x, %mean)
			%square = mul(%d, %d)
			%variance = reduce_mean(%square, @minus) {keepdims = 1}
			%sum = add(%variance, @epsilon)
			%root = sqrt(%sum)
			%q = div(%d, %root)
			%r = mul(%q, @scale)
			return %r
		}`, [][]int{{5, 4}}, [][]int{{5, 1}}},
	{"per channel", nil, `
		func @scaled(%x: f32[n,c,h,w]) {
			weight @conv: f32[2,2,1,1]
			weight @channels: f32[2,1,1]
			%s = mul(%x, @channels)
			%r = conv(%s, @conv)
			return %r
		}`, [][]int{{3, 2, 4, 4}}, [][]int{{3, 1, 4, 4}}},
	{"spelled out", nil, `
		func @target(%x: f32[n]) {
			weight @zero: i64[1]
			weight @two: i64[1]
			weight @three: i64[1]
			weight @column: i64[2]
			%s = shape(%x)
			%n = gather(%s, @zero) {axis = 0}
			%rows = sub(%n, @three)
			%t = concat(%rows, @two) {axis = 0}
			%e = exp(%x)
			%i = reshape(%e, @column)
			%o = reshape(%i, %t)
			%r = softmax(%o) {axis = -1}
			%u = softmax(%i) {axis = 0}
			return %r, %u
		}`, [][]int{{6}}, [][]int{{2}}},
	{"ranges", nil, `
		func @parts(%x: f32[n], %y: f32[m]) {
			weight @zero: i64[1]
			weight @two: i64[1]
			weight @large: i64[1]
			%s = shape(%y)
			%m = gather(%s, @zero) {axis = 0}
			%e = exp(%x)
			%a = slice(%e, @zero, %m)
			%b = slice(%e, @two, @large)
			%f = relu(%a)
			%g = softmax(%b) {axis = -1}
			return %f, %g
		}`, [][]int{{8}, {2}}, [][]int{{8}, {3}}},
	{"allowance", nil, `
		func @spent(%x: f32[n]) {
			weight @one: f32[1]
			weight @w: f32[40]
			weight @v: f32[40]
			%e = exp(@w)
			%s = shape(%x)
			%k = expand(@one, %s)
			%f = neg(@v)
			%a = add(%x, %k)
			%g = add(%e, %f)
			return %a, %g
		}`, [][]int{{10}}, [][]int{{60}}},
	{"donations", nil, `
		func @branches(%x: f32[n], %y: f32[m], %c: f32[]) {
			weight @zero: i64[1]
			weight @two: i64[1]
			weight @large: i64[1]
			weight @epsilon: f32[]
			%s = shape(%y)
			%m = gather(%s, @zero) {axis = 0}
			%e = exp(%x)
			%a = slice(%e, @zero, %m)
			%b = slice(%e, @two, @large)
			%f = relu(%a)
			%g = softmax(%b) {axis = -1}
			%k = greater(%c, @epsilon)
			%h = if(%k) {
				%p = exp(%y)
				return %p
			} {
				%q = abs(%y)
				return %q
			}
			return %f, %g, %h
		}`, [][]int{{8}, {2}, {}}, [][]int{{8}, {3}, {}}},
}

// littleFolding is how many bytes are left for folding in the program of the
// allowance: that of a model takes constants of 16 MiB.
const littleFolding = 300

// TestEachGuardAlone meets two sets of sizes that only one kind of guard tells
// apart: without it the second one gets the program of the first.
func TestEachGuardAlone(t *testing.T) {
	for _, c := range alone {
		t.Run(c.kind, func(t *testing.T) {
			if fault := meetBoth(t, c.kind, c.text, c.besides, c.first, c.second); fault != "" {
				t.Errorf("with the guards of kind %q: %s", c.kind, fault)
			}
			if fault := meetBoth(t, c.kind, c.text, append(slices.Clone(c.besides), c.kind), c.first, c.second); fault == "" {
				t.Errorf("without the guards of kind %q: got no fault, want one", c.kind)
			}
		})
	}
}

// meetBoth makes a structure for the first sizes without some kinds of guards,
// and returns the fault for the second ones.
func meetBoth(t *testing.T, kind, text string, without []string, first, second [][]int) string {
	t.Helper()
	l := loadWritten(t, kind, text)
	for _, sizes := range [][][]int{first, second} {
		if fault := l.meet(floatsOf(sizes), without, map[string]int{}); fault != "" {
			return fault
		}
		if len(l.structures) == 0 {
			t.Fatal("got no structure, want one")
		}
	}
	return ""
}

// floatsOf returns the types of parameters of these sizes.
func floatsOf(sizes [][]int) []op.Type {
	types := make([]op.Type, len(sizes))
	for i, s := range sizes {
		types[i] = op.Type{DType: dtype.F32, Shape: shape.MustOf(s...)}
	}
	return types
}

// loadWritten loads the program of a kind of guard.
func loadWritten(t *testing.T, kind, text string) *loaded {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string][]int64{"zero": {0}, "two": {2}, "three": {3}, "minus": {-1}, "large": {1 << 40}, "column": {-1, 1}, "unit": {1}}
	table := ir.WeightMap{}
	for i, w := range p.Weights {
		table[w.Name] = randomprogram.SmallFloats(w.Type, i+1)
		if list, ok := numbers[w.Name]; ok {
			table[w.Name] = nil
			for _, n := range list {
				table[w.Name] = binary.LittleEndian.AppendUint64(table[w.Name], uint64(n))
			}
		}
	}
	l := &loaded{drawn: &randomprogram.Open{Program: p, Weights: table}, program: p.Clone(), constants: &weights.Overlay{Base: table}}
	if kind == "allowance" {
		l.allowance = littleFolding
	}
	ctx := &pass.Context{Program: l.program, Constants: l.constants, MaxFold: 1 << 10}
	l.allow(ctx)
	if err := pass.Run(ctx, pass.Load, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// drawnKinds are the kinds of guards that TestGuardsAreNeeded leaves out.
var drawnKinds = []string{"folding", "value", "view", "empty", "alias", "size", "rows", "blocks", "rank", "operator's error", "elements"}

// TestEveryKindOfGuard compares the kinds that the tests leave out with those
// that the sources have.
func TestEveryKindOfGuard(t *testing.T) {
	tested := slices.Clone(drawnKinds)
	for _, c := range alone {
		tested = append(tested, c.kind)
	}
	for _, c := range aloneWithValues {
		tested = append(tested, c.kind)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := slices.Clone(pass.QuestionNames())
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bs\.ignores\("([^"]+)"\)`).FindAllSubmatch(text, -1) {
			kinds = append(kinds, string(m[1]))
		}
	}
	if len(kinds) < 16 {
		t.Errorf("got the kinds %v, want 16 or more", kinds)
	}
	for _, kind := range kinds {
		if !slices.Contains(tested, kind) {
			t.Errorf("no test leaves out the guards of kind %q", kind)
		}
	}
}
