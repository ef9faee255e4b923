package pass_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestOver draws programs with open dimensions and boxes of sizes. Where a
// structure is proved to hold over the box, it holds at each of its sizes that
// the passes accept, the values have the sizes that the expressions say, and
// none has a larger one than at the upper corner.
func TestOver(t *testing.T) {
	seen := map[string]int{}
	checkOver(t, 400, seen)
	t.Logf("%v", seen)
	if 3*seen["proved"] < seen["hold"] || seen["points"] < 300 {
		t.Errorf("got %d boxes proved of %d that hold, %d sizes compared, want a third and 300", seen["proved"], seen["hold"], seen["points"])
	}
}

// checkOver draws programs and boxes.
func checkOver(t *testing.T, programs int, seen map[string]int) {
	checkDrawn(t, programs, func(t *rapid.T) {
		d := randomprogram.DrawOpen(t)
		l := load(t, d)
		corner := d.Sizes(t)
		box, points := boxBelow(t, d.Program, corner)
		ctx, err := l.specialise(corner)
		if err != nil {
			return
		}
		s, _ := ctx.Structure()
		if s == nil {
			return
		}
		f, why := s.Over(openDims(d.Program), box)
		if why != "" {
			seen[why]++
		}
		holds := true
		for _, types := range points {
			table := &weights.Overlay{Base: l.constants}
			found := s.Types(types, l.value(types), table)
			if found == nil {
				holds = false
				if _, err := l.specialise(types); err == nil && why == "" {
					t.Fatalf("%v is proved, but %v is refused: %s\n%s", box, types, s.Refusal(), d.Program)
				}
				continue
			}
			if why == "" {
				seen["points"]++
				if err := f.Check(named(d.Program, types), found); err != nil {
					t.Fatalf("over %v: %v\n%s", box, err, d.Program)
				}
			}
		}
		if holds {
			seen["hold"]++
		}
		if why == "" {
			seen["proved"]++
		}
	})
}

// boxBelow draws a box whose upper corner has the given sizes, and lists its
// sizes.
func boxBelow(t *rapid.T, p *ir.Program, corner []op.Type) (symbolic.Box, [][]op.Type) {
	box := symbolic.Box{}
	for name, n := range named(p, corner) {
		if _, ok := box[name]; ok {
			continue
		}
		box[name] = symbolic.Range{Lo: n, Hi: n}
	}
	names := []string{}
	for name := range box {
		names = append(names, name)
	}
	slices.Sort(names)
	points := []map[string]int64{{}}
	for _, name := range names {
		r := box[name]
		if len(points) < 60 {
			r.Lo = max(0, r.Hi-int64(rapid.SampledFrom([]int{0, 1, 1, 2, 3, 5}).Draw(t, "below")))
		}
		box[name] = r
		var next []map[string]int64
		for _, at := range points {
			for n := r.Lo; n <= r.Hi; n++ {
				to := map[string]int64{name: n}
				for k, v := range at {
					to[k] = v
				}
				next = append(next, to)
			}
		}
		points = next
	}
	var all [][]op.Type
	for _, at := range points {
		all = append(all, typesAt(p, at))
	}
	return box, all
}

// typesAt returns the types of the parameters for sizes by name.
func typesAt(p *ir.Program, at map[string]int64) []op.Type {
	var types []op.Type
	for i, v := range p.Body.Params {
		dims := make([]int, v.Type.Shape.Rank())
		for axis, d := range v.Type.Shape.Dims() {
			n, ok := d.Size()
			if !ok {
				n = int(at[dimName(p, i, axis)])
			}
			dims[axis] = n
		}
		types = append(types, op.Type{DType: v.Type.DType, Shape: shape.MustOf(dims...)})
	}
	return types
}

// overAlone are programs that two sizes of a box have not in common, which the
// answers to one kind of question tell.
var overAlone = []struct {
	kind          string
	besides       []string
	text          string
	first, second [][]int
}{
	{"rows", nil, `
		func @transposed(%x: f32[n,4], %y: f32[m,4]) {
			%t = transpose(%y) {perm = [1, 0]}
			%p = matmul(%x, %t)
			return %p
		}`, [][]int{{6, 4}, {9, 4}}, [][]int{{3, 4}, {9, 4}}},
	{"alias", []string{"same type", "blocks"}, `
		func @broadcast(%x: f32[n,4], %y: f32[m,4]) {
			%a = exp(%x)
			%b = exp(%y)
			%s = softmax(%b) {axis = -1}
			%t = softmax(%a) {axis = -1}
			%p = pow(%t, %s)
			return %p
		}`, [][]int{{3, 4}, {3, 4}}, [][]int{{3, 4}, {1, 4}}},
	{"view", []string{"alias"}, `
		func @moved(%x: f32[n,4,m]) {
			%a = softmax(%x) {axis = -1}
			%t = transpose(%a) {perm = [1, 0, 2]}
			%b = softmax(%t) {axis = -1}
			return %b
		}`, [][]int{{3, 4, 5}}, [][]int{{1, 4, 5}}},
	{"empty", nil, `
		func @empty(%x: f32[n,4]) {
			%a = softmax(%x) {axis = -1}
			return %a
		}`, [][]int{{3, 4}}, [][]int{{0, 4}}},
	{"folding", nil, `
		func @filled(%x: f32[n]) {
			weight @one: f32[1]
			%s = shape(%x)
			%k = expand(@one, %s)
			%a = softmax(%x) {axis = -1}
			%b = add(%a, %k)
			return %b
		}`, [][]int{{400}}, [][]int{{200}}},
}

// TestOverNeedsEachKind proves boxes with sizes that one kind of question tells
// apart: none is proved, and if the questions of the kind are left out one is
// that does not hold.
func TestOverNeedsEachKind(t *testing.T) {
	list := slices.Clone(overAlone)
	for _, c := range alone {
		if slices.Contains([]string{"same type", "same size", "along a row", "per channel"}, c.kind) {
			list = append(list, c)
		}
	}
	for _, c := range list {
		t.Run(c.kind, func(t *testing.T) {
			if why := overWritten(t, c.kind, c.text, c.besides, c.first, c.second); !strings.HasPrefix(why, c.kind) {
				t.Errorf("got the answer %q, want that it is not proved for %s", why, c.kind)
			}
			if why := overWritten(t, c.kind, c.text, append(slices.Clone(c.besides), c.kind), c.first, c.second); why != "" {
				t.Errorf("without the kind: got the answer %q, want a proof, which is wrong", why)
			}
		})
	}
}

// TestOverWrittenPrograms proves for the programs in which one kind of guard
// tells two sets of sizes apart that no box with both of them is proved.
func TestOverWrittenPrograms(t *testing.T) {
	for _, c := range alone {
		for _, pair := range [][2][][]int{{c.first, c.second}, {c.second, c.first}} {
			if why := overWritten(t, c.kind, c.text, nil, pair[0], pair[1]); why == "" {
				t.Errorf("%s: the structure of %v is proved to hold for %v, want that it is not", c.kind, pair[0], pair[1])
			}
		}
	}
}

// overWritten returns what keeps the structure of a written program for some
// sizes from being proved over the box with these and others, "" if it is. The
// structure does not hold for the others.
func overWritten(t *testing.T, kind, text string, without []string, sizes, others [][]int) (why string) {
	t.Helper()
	l := loadWritten(t, kind, text)
	box := symbolic.Box{}
	for _, sizes := range [][][]int{sizes, others} {
		for i, v := range l.drawn.Program.Body.Params {
			for axis := range v.Type.Shape.Rank() {
				name, n := dimName(l.drawn.Program, i, axis), int64(sizes[i][axis])
				r, met := box[name]
				if !met {
					r = symbolic.Range{Lo: n, Hi: n}
				}
				box[name] = symbolic.Range{Lo: min(r.Lo, n), Hi: max(r.Hi, n)}
			}
		}
	}
	ctx, err := l.specialise(floatsOf(sizes))
	if err != nil {
		t.Fatal(err)
	}
	s, reason := ctx.Structure()
	if s == nil {
		t.Fatal(reason)
	}
	if s.Types(floatsOf(others), l.value(floatsOf(others)), &weights.Overlay{Base: l.constants}) != nil {
		t.Errorf("the structure of %v holds for %v, want that it does not", sizes, others)
	}
	if s.Types(floatsOf(sizes), l.value(floatsOf(sizes)), &weights.Overlay{Base: l.constants}) == nil {
		t.Fatal(s.Refusal())
	}
	s.Ignore(without)
	_, why = s.Over(openDims(l.drawn.Program), box)
	return why
}

// TestRefuses draws boxes at which a structure of other sizes proves that the
// model accepts none, and compares them with the passes.
func TestRefuses(t *testing.T) {
	refused, all := 0, 0
	checkDrawn(t, 400, func(t *rapid.T) {
		d := randomprogram.DrawOpen(t)
		l := load(t, d)
		ctx, err := l.specialise(d.Sizes(t))
		if err != nil {
			return
		}
		s, _ := ctx.Structure()
		if s == nil {
			return
		}
		for range 4 {
			box, points := boxBelow(t, d.Program, d.Sizes(t))
			accepted := slices.ContainsFunc(points, func(types []op.Type) bool {
				_, err := l.specialise(types)
				return err == nil
			})
			if !accepted {
				all++
			}
			if !s.Refuses(openDims(d.Program), box) {
				continue
			}
			if refused++; accepted {
				t.Fatalf("%v is said to be refused, but some of its sizes are not\n%s", box, d.Program)
			}
		}
	})
	t.Logf("%d boxes refused of %d", refused, all)
	if refused == 0 {
		t.Errorf("got no box of %d that is proved to be refused, want some", all)
	}
}

// TestRefusedPrograms proves that boxes are refused for the reasons that
// models have, up to the last size that is not.
func TestRefusedPrograms(t *testing.T) {
	before := ""
	for _, c := range []struct {
		name, text string // that of the case before, if it is empty
		sizes      [][]int
		lo, hi     int64 // of n
		want       bool
	}{
		{"positions", `
			func @positions(%x: f32[n,4]) {
				weight @table: f32[7,4]
				weight @zero: i64[1]
				weight @unit: i64[1]
				%s = shape(%x)
				%c = gather(%s, @zero) {axis = 0}
				%limit = squeeze(%c, @zero)
				%start = squeeze(@zero, @zero)
				%step = squeeze(@unit, @zero)
				%i = range(%start, %limit, %step)
				%p = gather(@table, %i) {axis = 0}
				%y = add(%x, %p)
				return %y
			}`, [][]int{{3, 4}}, 8, 20, true},
		{"positions", "", [][]int{{3, 4}}, 7, 20, false},
		{"learned", `
			func @learned(%x: f32[n,4]) {
				weight @table: f32[7,4]
				%y = add(%x, @table)
				return %y
			}`, [][]int{{7, 4}}, 8, 20, true},
		{"learned", "", [][]int{{7, 4}}, 7, 20, false},
		{"learned", "", [][]int{{7, 4}}, 2, 6, true},
		{"learned", "", [][]int{{7, 4}}, 1, 6, false},
		{"learned", "", [][]int{{7, 4}}, 0, 0, true},
		{"rest", `
			func @rest(%x: f32[n,4]) {
				weight @zero: i64[1]
				weight @minus: i64[1]
				%s = shape(%x)
				%c = gather(%s, @zero) {axis = 0}
				%t = concat(%c, @minus) {axis = 0}
				%e = exp(%x)
				%y = reshape(%e, %t)
				%z = softmax(%y) {axis = -1}
				return %z
			}`, [][]int{{7, 4}}, 0, 0, true},
		{"rest", "", [][]int{{7, 4}}, 0, 1, false},
	} {
		if c.text == "" {
			c.text = before
		}
		before = c.text
		l := loadWritten(t, "", c.text)
		ctx, err := l.specialise(floatsOf(c.sizes))
		if err != nil {
			t.Fatal(err)
		}
		s, reason := ctx.Structure()
		if s == nil {
			t.Fatal(reason)
		}
		if got := s.Refuses(openDims(l.drawn.Program), symbolic.Box{"n": {Lo: c.lo, Hi: c.hi}}); got != c.want {
			t.Errorf("%s: got %v for the sizes %d to %d, want %v", c.name, got, c.lo, c.hi, c.want)
		}
	}
}
