package eager_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// shaped holds a tensor to its dimensions and its elements as numbers, and
// releases it.
func shaped(t testing.TB, what string, x *tensor.Tensor, err error, dims string, values ...float64) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	got, err := tensor.Float64s(x)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if x.Shape().String() != dims || !slices.Equal(got, values) {
		t.Errorf("%s: got %s %v, want %s %v", what, x.Shape(), got, dims, values)
	}
	release(t, x)
}

func TestStack(t *testing.T) {
	memorytest.Check(t)
	x, y := vector(t, 1, 2, 3), vector(t, 4, 5, 6)
	for _, c := range []struct {
		axis   int
		dims   string
		values []float64
	}{
		{0, "[2,3]", []float64{1, 2, 3, 4, 5, 6}}, {-2, "[2,3]", []float64{1, 2, 3, 4, 5, 6}},
		{1, "[3,2]", []float64{1, 4, 2, 5, 3, 6}}, {-1, "[3,2]", []float64{1, 4, 2, 5, 3, 6}},
	} {
		z, err := eager.Stack(c.axis, x, y)
		shaped(t, "stack", z, err, c.dims, c.values...)
	}
	if x.Holders() != 1 || !x.IsExclusive() {
		t.Error("the operands are still held after the call")
	}
	one, two, wide := ok(tensor.Full[int32](7))(t), ok(tensor.Full[int32](8))(t), ok(tensor.Full[int64](9))(t)
	z, err := eager.Stack(0, one, two, one)
	shaped(t, "stack of scalars", z, err, "[3]", 7, 8, 7)
	transposed := ok(of(t, []float32{1, 2, 3, 4}, 2, 2).Donate().Transpose())(t)
	z, err = eager.Stack(1, transposed, transposed)
	shaped(t, "stack of a view, listed twice", z, err, "[2,2,2]", 1, 3, 1, 3, 2, 4, 2, 4)

	wantErr(t, "nothing", second(eager.Stack(0)), tensor.ErrShape, "stack: got no operands")
	wantErr(t, "no tensor", second(eager.Stack(0, x, nil)), tensor.ErrNoTensor, "stack: operand 1")
	wantErr(t, "another shape", second(eager.Stack(0, x, transposed)), tensor.ErrShape, "operand 1: got f32[2,2], want f32[3]")
	wantErr(t, "another type", second(eager.Stack(0, one, wide)), tensor.ErrDType, "got i64[], want i32[]")
	wantErr(t, "an axis too far", second(eager.Stack(2, x, y)), tensor.ErrShape, "got axis 2", "want -2 to 1")
	wantErr(t, "a donation", second(eager.Stack(0, x.Donate(), y)), tensor.ErrNotReusable, "stack: operand 0, f32[3], is donated")
	if !x.Alive() {
		t.Error("the refused call has consumed an operand")
	}
	z, err = eager.Stack(0, x.Reuse(), y.Reuse())
	shaped(t, "stack of given up", z, err, "[2,3]", 1, 2, 3, 4, 5, 6)
	wantErr(t, "read", second(tensor.Read[float32](x)), tensor.ErrDonated, "donated to stack")
	release(t, one, two, wide, transposed)
}

func TestStackInAScope(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2)
	s := eager.NewScope()
	z := s.Keep(s.Stack(0, s.Neg(x), x))
	if got := s.Stats(); got.Calls != 2 || got.Fresh != 2 {
		t.Errorf("got %+v, want two calls with fresh results", got)
	}
	if s.Stack(0) != nil || s.Stack(0, x, x) != nil || s.Err() == nil {
		t.Error("got no error of the scope, want that of the first call")
	}
	_ = s.Close() // its error is known
	shaped(t, "kept", z, nil, "[2,2]", -1, -2, 1, 2)
	release(t, x)
}

// The pairs of results come in one call, and belong to a scope together.
func TestOrdered(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{3, 1, 2, 1, 5, 4}, 2, 3)
	for name, c := range map[string]struct {
		call            func() (values, indices *tensor.Tensor, err error)
		dims            string
		values, indices []float64
	}{
		"top":        {func() (v, i *tensor.Tensor, err error) { return eager.TopK(x, 2, -1) }, "[2,2]", []float64{3, 2, 5, 4}, []float64{0, 2, 1, 2}},
		"bottom":     {func() (v, i *tensor.Tensor, err error) { return eager.BottomK(x, 1, 0) }, "[1,3]", []float64{1, 1, 2}, []float64{1, 0, 0}},
		"ascending":  {func() (v, i *tensor.Tensor, err error) { return eager.Sort(x, -1, false) }, "[2,3]", []float64{1, 2, 3, 1, 4, 5}, []float64{1, 2, 0, 0, 2, 1}},
		"descending": {func() (v, i *tensor.Tensor, err error) { return eager.Sort(x, 0, true) }, "[2,3]", []float64{3, 5, 4, 1, 1, 2}, []float64{0, 1, 1, 1, 0, 0}},
	} {
		values, indices, err := c.call()
		shaped(t, name+": values", values, err, c.dims, c.values...)
		if indices.DType() != dtype.I64 {
			t.Errorf("%s: got indices of %s, want i64", name, indices.DType())
		}
		shaped(t, name+": indices", indices, err, c.dims, c.indices...)
	}
	for what, err := range map[string]error{"more than there are": third(eager.TopK(x, 4, -1)), "an axis that is not there": third(eager.Sort(x, 2, false))} {
		wantErr(t, what, err, tensor.ErrShape, "top_k")
	}
	s := eager.NewScope()
	values, _ := s.TopK(x, 1, 1)
	values = s.Keep(values)
	if v, i := s.TopK(x, 9, 1); v != nil || i != nil {
		t.Error("got results of a call that fails, want none")
	}
	_ = s.Close() // its error is the call's
	shaped(t, "kept", values, nil, "[2,1]", 3, 5)
	release(t, x)
}

func third[T, U any](_ T, _ U, err error) error { return err }

func TestSelections(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{3, 0, 3, 1}, 2, 2)
	at := ok(tensor.Of([]int64{1, -1, 5}, 3))(t)
	hold := ok(tensor.Of([]bool{false, true}, 2))(t)
	z, err := eager.OneHot(at, 3, -1, dtype.F32)
	shaped(t, "one hot", z, err, "[3,3]", 0, 1, 0, 0, 0, 1, 0, 0, 0)
	z, err = eager.OneHot(at, 2, 0, dtype.Bool)
	shaped(t, "one hot of bools", z, err, "[2,3]", 0, 0, 0, 1, 1, 0)
	wantErr(t, "one hot of no real type", second(eager.OneHot(at, 2, 0, dtype.C64)), tensor.ErrDType, "one_hot", "got c64")
	wantErr(t, "one hot of no depth", second(eager.OneHot(at, 0, 0, dtype.F32)), tensor.ErrShape, "depth")
	z, err = eager.Unique(x)
	shaped(t, "unique", z, err, "[3]", 0, 1, 3)
	z, err = eager.Compress(x, hold, 1)
	shaped(t, "compress", z, err, "[2,1]", 0, 1)
	z, err = eager.Hardmax(x, -1)
	shaped(t, "hardmax", z, err, "[2,2]", 1, 0, 1, 0)
	z, err = eager.Flip(x)
	shaped(t, "flip", z, err, "[2,2]", 1, 3, 0, 3)
	z, err = eager.Flip(x, -1)
	shaped(t, "flip of rows", z, err, "[2,2]", 0, 3, 1, 3)
	z, err = eager.Arange(dtype.I32, 5, 0, -2)
	shaped(t, "arange", z, err, "[3]", 5, 3, 1)
	wantErr(t, "arange without a step", second(eager.Arange(dtype.F32, 0, 1, 0)), tensor.ErrShape, "delta 0")
	zero, one := ok(tensor.Of([]int64{0}, 1))(t), ok(tensor.Of([]int64{1}, 1))(t)
	defer zero.Release()
	defer one.Release()
	// A step decides a size, as that of arange does.
	wantErr(t, "slice without a step", second(eager.Op("slice").On(x).On(zero).On(one).On(zero).On(zero).Run()), tensor.ErrShape, "steps: got [0], want no 0")
	boxes := of(t, []float32{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}, 1, 3, 4)
	scores := of(t, []float32{.9, .8, .1}, 1, 1, 3)
	z, err = eager.NonMaxSuppression(boxes, scores, 3, .5, .2)
	shaped(t, "non-max suppression", z, err, "[1,3]", 0, 0, 0)
	release(t, x, at, hold, boxes, scores)
}

func TestNumbersAndBits(t *testing.T) {
	memorytest.Check(t)
	x := ok(tensor.Of([]int32{1, -8}, 2))(t)
	by := ok(tensor.Of([]int32{2}, 1))(t)
	z, err := eager.ShiftLeft(x, by)
	shaped(t, "shift left", z, err, "[2]", 4, -32)
	z, err = eager.ShiftRight(x, by)
	shaped(t, "shift right", z, err, "[2]", 0, -2)
	z, err = eager.CumProd(x, 0)
	shaped(t, "running product", z, err, "[2]", 1, -8)
	place := address(x)
	bits := ok(eager.BitCast(x.Donate(), dtype.U32))(t)
	if address(bits) != place || x.Alive() {
		t.Error("the bits are not those of the operand")
	}
	shaped(t, "bits", bits, nil, "[2]", 1, 1<<32-8)
	y := of(t, []float32{float32(math.Inf(-1)), 1, 2, 3}, 1, 4, 1, 1)
	z, err = eager.IsInf(y)
	shaped(t, "infinite", z, err, "[1,4,1,1]", 1, 0, 0, 0)
	z, err = eager.DepthToSpace(y, 2)
	shaped(t, "blocks", z, err, "[1,1,2,2]", math.Inf(-1), 1, 2, 3)
	z, err = eager.SpaceToDepth(ok(y.Donate().Reshape(1, 1, 2, 2))(t).Reuse(), 2)
	shaped(t, "channels", z, err, "[1,4,1,1]", math.Inf(-1), 1, 2, 3)
	e := of(t, []float32{1, 1}, 1, 2)
	z, err = eager.ReduceLogSum(e, []int{1}, false)
	shaped(t, "logarithm of a sum", z, err, "[1]", float64(float32(math.Ln2)))
	flat := ok(eager.Flatten(e, 0))(t)
	if address(flat) != address(e) {
		t.Error("a matrix of the same elements is not a view")
	}
	shaped(t, "flat", flat, nil, "[1,2]", 1, 1)
	release(t, by, e)
}

func TestResize(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{0, 2, 4, 6}, 1, 1, 2, 2)
	z, err := eager.Resize(x, eager.Sampling{}, 4, 2)
	shaped(t, "nearest", z, err, "[1,1,4,2]", 0, 2, 0, 2, 4, 6, 4, 6)
	z, err = eager.Resize(x, eager.Sampling{Mode: "linear", Coordinates: "align_corners"}, 3, 3)
	shaped(t, "linear", z, err, "[1,1,3,3]", 0, 1, 2, 2, 3, 4, 4, 5, 6)
	z, err = eager.Resize(x, eager.Sampling{Mode: "linear", Antialias: true}, 1)
	shaped(t, "one axis", z, err, "[1,1,2,1]", 1, 5)
	wantErr(t, "a mode that is none", second(eager.Resize(x, eager.Sampling{Mode: "best"}, 1)), tensor.ErrUnsupported, "resize", "best")
	wantErr(t, "a size for more axes than there are", second(eager.Resize(x, eager.Sampling{}, 1, 1, 1, 1, 1)), tensor.ErrShape, "resize")
	release(t, x)
}

// A call writes into a cache that is given up, and moves none of its other
// elements.
func TestCacheInPlace(t *testing.T) {
	memorytest.Check(t)
	cache := ok(tensor.Zeros[float32](1, 1, 4, 2))(t)
	at := address(cache)
	keys := of(t, []float32{1, 2}, 1, 1, 1, 2)
	s := eager.NewScope(eager.ByOperation())
	for step := range int64(3) {
		place := ok(tensor.Of([]int64{step}, 1))(t)
		cache = s.TensorScatter(cache.Donate(), keys, place, -2)
		release(t, place)
	}
	cache = s.Keep(cache)
	if got := s.Stats(); got.InPlace != 3 || got.Fresh != 0 || got.CopiedBytes != 0 || address(cache) != at {
		t.Errorf("got %+v, want three results in place", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, cache, 1, 2, 1, 2, 1, 2, 0, 0)
	lengths := ok(tensor.Of([]int64{2}, 1))(t)
	q := of(t, []float32{1, 0}, 1, 1, 1, 2)
	z, err := eager.Attention(q, cache, cache, nil, lengths, eager.AttentionOptions{Scale: 1})
	shaped(t, "attention over the keys that count", z, err, "[1,1,1,2]", 1, 2)
	mask := ok(tensor.Of([]bool{false, false, false, true}, 1, 4))(t)
	z, err = eager.Attention(q, cache, cache, mask, nil, eager.AttentionOptions{})
	shaped(t, "attention over one key", z, err, "[1,1,1,2]", 0, 0)
	z, err = eager.Attention(q, cache, cache, nil, nil, eager.AttentionOptions{Causal: true})
	shaped(t, "attention of the first place", z, err, "[1,1,1,2]", 1, 2)
	release(t, keys, cache, lengths, mask)

	angle := of(t, []float32{0}, 1, 1)
	sine := of(t, []float32{1}, 1, 1)
	places := ok(tensor.Of([]int64{0}, 1, 1))(t)
	at = address(q)
	rotated := ok(eager.RotaryEmbedding(q.Donate(), angle, sine, places, eager.RotaryOptions{}))(t)
	if address(rotated) != at {
		t.Error("the rotated numbers are not in the donated bytes")
	}
	shaped(t, "rotated by a right angle", rotated, nil, "[1,1,1,2]", 0, 1)
	release(t, angle, sine, places)
}

func TestQuantised(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{-1, 0, 1, 3}, 2, 2)
	scale := of(t, []float32{.5})
	zero := ok(tensor.Of([]uint8{100}))(t)
	q := ok(eager.QuantizeLinear(x, scale, zero, 1))(t)
	back, err := eager.DequantizeLinear(q, scale, zero, 1)
	shaped(t, "back", back, err, "[2,2]", -1, 0, 1, 3)
	z, err := eager.MatMulInteger(q, q, zero, zero)
	shaped(t, "product", z, err, "[2,2]", 4-0, 0, -4+12, 36)
	shaped(t, "quantised", q, nil, "[2,2]", 98, 100, 102, 106)
	all, err := eager.DynamicQuantizeLinear(x)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d results, error %v, want 3", len(all), err)
	}
	back = ok(eager.DequantizeLinear(all[0], all[1], all[2], 0))(t)
	if got, err := tensor.Float64s(back); err != nil || math.Abs(got[0]+1) > 0.01 || math.Abs(got[3]-3) > 0.01 {
		t.Errorf("got %v, error %v, want about -1, 0, 1 and 3", got, err)
	}
	release(t, back, x, scale, zero)
	release(t, all...)
}
