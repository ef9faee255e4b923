package tensor

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"pgregory.net/rapid"
)

func TestViews(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]int32{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	defer x.Release()
	for _, c := range []struct {
		name  string
		view  func() (*Tensor, error)
		shape string
		want  []int32
	}{
		{"row", func() (*Tensor, error) { return x.Slice(Only(1)) }, "[1,3]", []int32{4, 5, 6}},
		{"last column", func() (*Tensor, error) { return x.Slice(All, Only(-1)) }, "[2,1]", []int32{3, 6}},
		{"columns by step", func() (*Tensor, error) { return x.Slice(All, Range{Stop: End, Step: 2}) }, "[2,2]", []int32{1, 3, 4, 6}},
		{"from the end", func() (*Tensor, error) { return x.Slice(All, Range{Start: -2, Stop: -1}) }, "[2,1]", []int32{2, 5}},
		{"nothing", func() (*Tensor, error) { return x.Slice(Range{Start: 2, Stop: 2}) }, "[0,3]", nil},
		{"nothing, at the end of everything", func() (*Tensor, error) { return x.Slice(Only(1), Range{Start: 3, Stop: End}) }, "[1,0]", nil},
		{"step over the end", func() (*Tensor, error) { return x.Slice(Range{Start: 0, Stop: End, Step: math.MaxInt}) }, "[1,3]", []int32{1, 2, 3}},
		{"index", func() (*Tensor, error) { return x.Index(1) }, "[3]", []int32{4, 5, 6}},
		{"index, from the end", func() (*Tensor, error) { return x.Index(-2, -1) }, "[]", []int32{3}},
		{"index, of nothing", func() (*Tensor, error) { return x.Index() }, "[2,3]", []int32{1, 2, 3, 4, 5, 6}},
		{"reshape", func() (*Tensor, error) { return x.Reshape(3, 2) }, "[3,2]", []int32{1, 2, 3, 4, 5, 6}},
		{"reshape, inferred", func() (*Tensor, error) { return x.Reshape(-1) }, "[6]", []int32{1, 2, 3, 4, 5, 6}},
		{"transpose", func() (*Tensor, error) { return x.Transpose() }, "[3,2]", []int32{1, 4, 2, 5, 3, 6}},
		{"permute", func() (*Tensor, error) { return x.Permute(1, 0) }, "[3,2]", []int32{1, 4, 2, 5, 3, 6}},
		{"unsqueeze", func() (*Tensor, error) { return x.Unsqueeze(0, -1) }, "[1,2,3,1]", []int32{1, 2, 3, 4, 5, 6}},
		{"broadcast", func() (*Tensor, error) { return x.Broadcast(2, 2, 3) }, "[2,2,3]", []int32{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
		{"view", func() (*Tensor, error) { return x.View() }, "[2,3]", []int32{1, 2, 3, 4, 5, 6}},
	} {
		view := ok(c.view())(t)
		if got := view.Shape().String(); got != c.shape {
			t.Errorf("%s: got shape %s, want %s", c.name, got, c.shape)
		}
		wantValues(t, view, c.want...)
		if view.IsExclusive() || x.IsExclusive() {
			t.Errorf("%s: got an exclusive tensor, want two holders", c.name)
		}
		release(t, view)
		if !x.IsExclusive() {
			t.Errorf("%s: after its release: %v", c.name, x.WhyNotWritable())
		}
	}
	column := ok(x.Slice(All, Only(0)))(t)
	flat := ok(column.Squeeze())(t)
	same := ok(column.Squeeze(-1))(t)
	if flat.Layout() != same.Layout() || flat.Shape() != shape.MustOf(2) {
		t.Errorf("squeeze: got %s and %s, want both [2]", flat.Layout(), same.Layout())
	}
	wantValues[int32](t, flat, 1, 4)
	release(t, column, flat, same)
}

func TestViewErrors(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]int32{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	defer x.Release()
	y := ok(x.Transpose())(t)
	defer y.Release()
	for _, c := range []struct {
		name string
		err  error
		kind error
		text string
	}{
		{"slice, many ranges", second(x.Slice(All, All, All)), ErrShape, "slice: got 3 ranges for shape [2,3], want at most 2"},
		{"slice, past the end", second(x.Slice(Range{Stop: 3})), ErrShape, "axis 0: got range 0 to 3, want it within size 2"},
		{"slice, before the start", second(x.Slice(All, Range{Start: -4})), ErrShape, "axis 1"},
		{"slice, backwards", second(x.Slice(Range{Start: 2, Stop: 1})), ErrShape, "range 2 to 1"},
		{"slice, negative step", second(x.Slice(Range{Start: 0, Stop: 2, Step: -1})), ErrUnsupported, "step -1"},
		{"index, past the end", second(x.Index(0, 3)), ErrShape, "index: axis 1: got place 3, want it within size 3"},
		{"index, before the start", second(x.Index(-3)), ErrShape, "index: axis 0: got place -3, want it within size 2"},
		{"index, many", second(x.Index(0, 0, 0)), ErrShape, "index: got 3 places for shape [2,3], want at most 2"},
		{"reshape, count", second(x.Reshape(4)), ErrShape, "got shape [4] with 4 elements for [2,3], want 6"},
		{"reshape, two unknown", second(x.Reshape(-1, -1)), ErrShape, "at most one -1"},
		{"reshape, not divisible", second(x.Reshape(-1, 4)), ErrShape, "divide its 6 elements"},
		{"reshape, zero", second(x.Reshape(-1, 0)), ErrShape, "divide"},
		{"reshape, negative", second(x.Reshape(-2, -3)), ErrShape, "-2"},
		{"reshape, strides", second(y.Reshape(6)), ErrLayout, "contiguous"},
		{"permute, few", second(x.Permute(0)), ErrShape, "got axes [0] for shape [2,3]"},
		{"permute, twice", second(x.Permute(0, 0)), ErrShape, "once"},
		{"permute, out of range", second(x.Permute(0, 2)), ErrShape, "0 to 1"},
		{"broadcast", second(x.Broadcast(2, 4)), ErrShape, "got shape [2,4] for [2,3]"},
		{"broadcast, smaller", second(x.Broadcast(3)), ErrShape, "got shape [3]"},
		{"squeeze", second(x.Squeeze(0)), ErrShape, "dimension of size 1"},
		{"squeeze, out of range", second(x.Squeeze(2)), ErrShape, "got axes [2]"},
		{"unsqueeze, twice", second(x.Unsqueeze(0, 0)), ErrShape, "once"},
		{"unsqueeze, out of range", second(x.Unsqueeze(3)), ErrShape, "rank 3"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v, want kind %q and text %q", c.name, c.err, c.kind, c.text)
		}
	}
	if x.Holders() != 2 {
		t.Errorf("after refused views: got %d holders, want 2", x.Holders())
	}
}

func TestContiguousSaysWhetherItCopied(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]int16{1, 2, 3, 4}, 2, 2))(t)
	same, copied, err := x.Contiguous()
	if err != nil || copied || same.Holders() != 2 {
		t.Errorf("contiguous already: got copied %v, %d holders, %v, want a view", copied, same.Holders(), err)
	}
	y := ok(x.Transpose())(t)
	c, copied, err := y.Contiguous()
	if err != nil || !copied || !c.Layout().IsContiguous() || !c.IsExclusive() {
		t.Errorf("transposed: got copied %v, %v, want an exclusive copy", copied, err)
	}
	wantValues[int16](t, c, 1, 3, 2, 4)
	release(t, x, same, y, c)
	_, _, err = x.Contiguous()
	wantErr(t, "released", err, ErrReleased)
	_, _, err = y.Contiguous()
	wantErr(t, "released view", err, ErrReleased)
}

// grid is an array in the plainest form: sizes and elements in row-major order.
type grid struct {
	sizes []int
	data  []int32
}

// build makes the grid whose element at index is from(index).
func build(sizes []int, from func(index []int) int32) grid {
	g := grid{sizes: sizes}
	index := make([]int, len(sizes))
	n := 1
	for _, s := range sizes {
		n *= s
	}
	for range n {
		g.data = append(g.data, from(index))
		for d := len(sizes) - 1; d >= 0; d-- {
			if index[d]++; index[d] < sizes[d] {
				break
			}
			index[d] = 0
		}
	}
	return g
}

func (g grid) at(index []int) int32 {
	i := 0
	for d, n := range g.sizes {
		i = i*n + index[d]
	}
	return g.data[i]
}

// TestViewsFollowTheModel applies random chains of views to a tensor and the
// same operations, element by element, to a plain array.
func TestViewsFollowTheModel(t *testing.T) {
	memorytest.Check(t)
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "sizes")
		next := int32(0)
		g := build(sizes, func([]int) int32 { next++; return next })
		x, err := Of(g.data, sizes...)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 5).Draw(t, "length") {
			var y *Tensor
			y, g = randomView(t, x, g)
			if err := x.Release(); err != nil && !errors.Is(err, ErrDonated) {
				t.Fatal(err)
			}
			x = y
			got, err := Values[int32](x)
			if err != nil || !slices.Equal(got, g.data) || !slices.Equal(x.Shape().Sizes(), g.sizes) {
				t.Fatalf("got %s %v (%v), want %v %v", x.Layout(), got, err, g.sizes, g.data)
			}
			if x.String() == "" {
				t.Fatal("no text")
			}
		}
		if x.Holders() != 1 {
			t.Fatalf("got %d holders, want 1", x.Holders())
		}
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// randomView returns a random view of x and its expected elements. Half of the
// views are borrowed, the others donated or reused.
func randomView(t *rapid.T, x *Tensor, g grid) (*Tensor, grid) {
	type viewer interface {
		Slice(...Range) (*Tensor, error)
		Index(...int) (*Tensor, error)
		Permute(...int) (*Tensor, error)
		Transpose() (*Tensor, error)
		Unsqueeze(...int) (*Tensor, error)
		Squeeze(...int) (*Tensor, error)
	}
	v := rapid.SampledFrom([]viewer{x, x, x.Donate(), x.Reuse()}).Draw(t, "semantics")
	must := func(y *Tensor, err error) *Tensor {
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	rank := len(g.sizes)
	switch rapid.IntRange(0, 6).Draw(t, "view") {
	case 0:
		ranges := make([]Range, rank)
		sizes := make([]int, rank)
		for d, n := range g.sizes {
			start := rapid.IntRange(0, n).Draw(t, "start")
			stop := rapid.IntRange(start, n).Draw(t, "stop")
			step := rapid.IntRange(1, 3).Draw(t, "step")
			ranges[d] = Range{Start: start, Stop: stop, Step: step}
			for i := start; i < stop; i += step {
				sizes[d]++
			}
		}
		return must(v.Slice(ranges...)), build(sizes, func(index []int) int32 {
			from := make([]int, rank)
			for d := range from {
				from[d] = ranges[d].Start + index[d]*ranges[d].Step
			}
			return g.at(from)
		})
	case 1:
		axes := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}[:rank]).Draw(t, "axes")
		sizes := make([]int, rank)
		for i, a := range axes {
			sizes[i] = g.sizes[a]
		}
		return must(v.Permute(axes...)), build(sizes, func(index []int) int32 {
			from := make([]int, rank)
			for i, a := range axes {
				from[a] = index[i]
			}
			return g.at(from)
		})
	case 2:
		sizes := slices.Clone(g.sizes)
		slices.Reverse(sizes)
		return must(v.Transpose()), build(sizes, func(index []int) int32 {
			from := slices.Clone(index)
			slices.Reverse(from)
			return g.at(from)
		})
	case 3:
		if rank > 5 {
			return must(x.View()), g
		}
		axis := rapid.IntRange(0, rank).Draw(t, "axis")
		return must(v.Unsqueeze(axis)), grid{slices.Insert(slices.Clone(g.sizes), axis, 1), g.data}
	case 4:
		return must(v.Squeeze()), grid{slices.DeleteFunc(slices.Clone(g.sizes), func(n int) bool { return n == 1 }), g.data}
	case 5:
		var places []int
		for _, n := range g.sizes[:rapid.IntRange(0, rank).Draw(t, "places")] {
			if n == 0 {
				break
			}
			places = append(places, rapid.IntRange(0, n-1).Draw(t, "place"))
		}
		return must(v.Index(places...)), build(g.sizes[len(places):], func(index []int) int32 {
			return g.at(append(slices.Clone(places), index...))
		})
	}
	sizes := slices.Clone(g.sizes)
	for d, n := range sizes {
		if n == 1 {
			sizes[d] = rapid.IntRange(0, 3).Draw(t, "repeat")
		}
	}
	return must(x.Broadcast(sizes...)), build(sizes, func(index []int) int32 {
		from := slices.Clone(index)
		for d, n := range g.sizes {
			if n == 1 {
				from[d] = 0
			}
		}
		return g.at(from)
	})
}
