package sequence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func TestAttend(t *testing.T) { kerneltest.EachVariant(t, testAttend) }

func testAttend(t *testing.T, v *kernel.Variant) {
	for _, c := range []struct{ batch, heads, groups, queries, keys, size, values int }{
		{1, 1, 1, 1, 1, 1, 1}, {2, 3, 3, 5, 7, 9, 11}, {1, 4, 2, 3, 40, 16, 8}, {2, 4, 1, 1, 33, 24, 40}, {1, 2, 2, 130, 70, 33, 65}, {1, 1, 1, 64, 1100, 17, 20},
		{1, 8, 2, 20, 2100, 8, 16}, {1, 6, 3, 2, 1500, 5, 3}, {3, 2, 2, 4, 5, 0, 6}, {2, 2, 1, 4, 0, 6, 6}, {1, 1, 1, 9, 600, 300, 8},
	} {
		for form := range 8 {
			half := [2]dtype.DType{dtype.F16, dtype.BF16}[form/4] // each with all ways that operands lie
			for _, dt := range []dtype.DType{dtype.F32, half, dtype.F64} {
				a := attendOf(c.batch, c.heads, c.groups, c.queries, c.keys, c.size, c.values)
				a.Type = dt
				t.Run(fmt.Sprintf("%+v/%d/%s", c, form, dt), func(t *testing.T) { attend(t, v, a, form) })
			}
		}
	}
}

// elements are numbers of a type, rounded to it, as they are stored.
func elements(s *kerneltest.Space, name string, dt dtype.DType, x []float32) (e sequence.Elements) {
	switch dt {
	case dtype.F32:
		e.F32 = kerneltest.In(s, name, x)
	case dtype.F64:
		e.F64 = kerneltest.In(s, name, kerneltest.F64s(x))
	default:
		half := make([]uint16, len(x))
		for i := range x {
			half[i] = kerneltest.ToHalf(dt, x[i])
			x[i] = kerneltest.FromHalf(dt, half[i])
		}
		e.Half = kerneltest.In(s, name, half)
	}
	return e
}

// result makes place for n numbers of a type, and returns how one is read.
func result(s *kerneltest.Space, dt dtype.DType, n int) (e sequence.Elements, at func(i int) float64) {
	switch dt {
	case dtype.F32:
		e.F32 = kerneltest.Out[float32](s, "y", n)
		return e, func(i int) float64 { return float64(e.F32[i]) }
	case dtype.F64:
		e.F64 = kerneltest.Out[float64](s, "y", n)
		return e, func(i int) float64 { return e.F64[i] }
	}
	e.Half = kerneltest.Out[uint16](s, "y", n)
	return e, func(i int) float64 { return float64(kerneltest.FromHalf(dt, e.Half[i])) }
}

// within are the tolerances of results below 1 in magnitude: half a unit in the
// last place of the 16-bit types, beside the rounding of float32.
var within = map[dtype.DType]float64{dtype.F32: 2e-6, dtype.F64: 1e-12, dtype.F16: 0x1p-12 + 2e-6, dtype.BF16: 0x1p-9 + 2e-6}

// attend compares a call with the reference. The bits of form choose where the
// axes of heads lie, how K lies, and the masks.
func attend(t *testing.T, v *kernel.Variant, a sequence.Attend, form int) {
	r := kerneltest.NewRand(uint64(90 + form))
	batch := a.Batch[0]
	q, k, val := kerneltest.Uniform(r, batch*a.Heads*a.Queries*a.Size), kerneltest.Uniform(r, batch*a.Groups*a.Keys*a.Size), kerneltest.Uniform(r, batch*a.Groups*a.Keys*a.ValueSize)
	if form&1 != 0 { // [batch, row, head, size]
		a.Q.Head, a.Q.Row, a.Y.Head, a.Y.Row = a.Size, a.Heads*a.Size, a.ValueSize, a.Heads*a.ValueSize
		a.V.Head, a.V.Row = a.ValueSize, a.Groups*a.ValueSize
	}
	if form&2 != 0 {
		a.K.Row, a.K.Column = 1, a.Keys
	}
	bias, more := make([]float32, a.Heads*a.Keys), kerneltest.Uniform(r, a.Queries)
	allow := make([]uint8, a.Queries*a.Keys)
	special(r, bias, allow, a.Keys)
	a.Fill = -2.5
	byHead := sequence.Strides{Batch: []int{0}, Head: a.Keys, Column: 1}
	byQuery := sequence.Strides{Batch: []int{0}, Row: 1}
	types := [2]dtype.DType{a.Type, a.Type}
	addends, masked := 0, false
	switch form >> 1 {
	case 1:
		a.Addends[0].Strides, addends = byHead, 1
		if a.Type != dtype.F64 {
			types[0] = dtype.F32
		}
	case 2:
		a.Addends[0].Strides, addends, masked = byHead, 2, true
		a.Addends[1].Strides = byQuery
		a.Softcap, a.Fill, a.MaskAfter = 0.75, math.Inf(-1), form&1*2
	case 3:
		a.NaNToZero, a.MaskHides, a.MaskAfter, masked = true, true, 1, true
		a.Addends[0].Strides, addends = sequence.Strides{Batch: []int{0}}, 1
	}
	if masked {
		a.Mask = sequence.Strides{Batch: []int{0}, Row: a.Keys, Column: 1}
	}
	s := kerneltest.NewSpace(t)
	args := sequence.AttendArgs{Q: elements(s, "q", a.Type, q), K: elements(s, "k", a.Type, k), V: elements(s, "v", a.Type, val)}
	var y func(i int) float64
	args.Y, y = result(s, a.Type, batch*a.Heads*a.Queries*a.ValueSize)
	values := [2][]float32{bias, more}
	for i := range addends {
		a.Addends[i].Type = types[i]
		args.Addends[i] = elements(s, "addend", types[i], values[i])
	}
	if masked {
		args.Mask = kerneltest.In(s, "allow", allow)
	}
	a.Prepare(v)
	scratch := kerneltest.AsBytes(kerneltest.Out[float64](s, "scratch", (a.ScratchBytes()+7)/8))
	kerneltest.Backwards(a.Tiles(), func(i int) { a.Tile(i, scratch, &args) })
	s.Check()
	at := func(s *sequence.Strides, b, h, row, column int) int {
		return b*s.Batch[0] + h*s.Head + row*s.Row + column*s.Column
	}
	ref.Each([]int{batch, a.Heads, a.Queries}, func(idx []int) {
		b, h, i := idx[0], idx[1], idx[2]
		g := h / (a.Heads / a.Groups)
		scores := make([]float64, a.Keys)
		for j := range scores {
			for d := range a.Size {
				scores[j] += float64(q[at(&a.Q, b, h, i, d)]) * float64(k[at(&a.K, b, g, j, d)])
			}
			scores[j] *= a.Scale
			if a.Softcap != 0 {
				scores[j] = a.Softcap * math.Tanh(scores[j]/a.Softcap)
			}
			for which := range 3 {
				if which == a.MaskAfter && masked && (allow[at(&a.Mask, b, h, i, j)] != 0) == a.MaskHides {
					scores[j] = a.Fill
				}
				if which < addends {
					scores[j] += float64(values[which][at(&a.Addends[which].Strides, b, h, i, j)])
				}
			}
		}
		weights := softmax(scores)
		if a.NaNToZero && len(weights) > 0 && math.IsNaN(weights[0]) {
			clear(weights)
		}
		for d := range a.ValueSize {
			want := 0.0
			for j, w := range weights {
				want += w * float64(val[at(&a.V, b, g, j, d)])
			}
			got := y(at(&a.Y, b, h, i, d))
			if !(math.Abs(got-want) <= within[a.Type]) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("sample %d head %d query %d element %d: got %v, want %v", b, h, i, d, got, want)
			}
		}
	})
}

// special fills masks with numbers, rows without a key, and rows with the
// least number in all places.
func special(r *rand.Rand, bias []float32, allow []uint8, keys int) {
	for i := range bias {
		bias[i] = r.Float32()
		switch i / keys % 5 {
		case 1:
			bias[i] = float32(math.Inf(-1))
		case 2:
			bias[i] = -math.MaxFloat32
		case 3:
			bias[i] = float32(math.NaN())
		}
		if i/keys%5 == 0 && i%3 == 1 {
			bias[i] = float32(math.Inf(-1))
		}
	}
	for i := range allow {
		if i/keys%3 != 1 {
			allow[i] = uint8(r.IntN(2))
		}
	}
}

// softmax is exp(x) / sum(exp(x)), rounded nowhere.
func softmax(x []float64) []float64 {
	peak, sum := math.Inf(-1), 0.0
	for _, s := range x {
		peak = max(peak, s)
	}
	y := make([]float64, len(x))
	for i, s := range x {
		y[i] = math.Exp(s - peak)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// TestAttendScratch makes calls of random sizes smaller.
func TestAttendScratch(t *testing.T) { kerneltest.EachVariant(t, testAttendScratch) }

func testAttendScratch(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(91)
	for i := range 2000 {
		dt := []dtype.DType{dtype.F32, dtype.F16, dtype.F64}[i%3]
		groups, times, sizes := 1+r.IntN(4), 1+r.IntN(4), [5]int{}
		for i, n := range [5]int{9, 200, 2500, 600, 600} {
			sizes[i] = 1 + r.IntN(n)
		}
		bytes := func() int {
			a := attendOf(sizes[0], groups*times, groups, sizes[1], sizes[2], sizes[3], sizes[4])
			a.Type = dt
			a.Prepare(v)
			return a.ScratchBytes()
		}
		all, before := bytes(), sizes
		for i, n := range sizes {
			sizes[i] = 1 + r.IntN(n)
		}
		if n := bytes(); n > all {
			t.Fatalf("%d heads for %d, %v: got %d bytes of scratch, want at most the %d of %v", groups*times, groups, sizes, n, all, before)
		}
	}
}
