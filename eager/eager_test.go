package eager_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func of(t testing.TB, values []float32, dims ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Of(values, dims...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func vector(t testing.TB, values ...float32) *tensor.Tensor { return of(t, values, len(values)) }

func ok(x *tensor.Tensor, err error) func(testing.TB) *tensor.Tensor {
	return func(t testing.TB) *tensor.Tensor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func second[T any](_ T, err error) error { return err }

func release(t testing.TB, xs ...*tensor.Tensor) {
	t.Helper()
	for _, x := range xs {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}

func want(t testing.TB, x *tensor.Tensor, values ...float32) {
	t.Helper()
	got, err := tensor.Float32s(x)
	if err != nil {
		t.Errorf("values: %v", err)
		return
	}
	if !slices.EqualFunc(got, values, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
		t.Errorf("got %v, want %v", got, values)
	}
}

func wantErr(t testing.TB, what string, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want kind %q", what, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %q, want it to say %q", what, err, text)
		}
	}
}

// address identifies the bytes of a tensor.
func address(x *tensor.Tensor) *byte {
	data, _ := x.UnsafeBytes()
	return &data[0]
}

// A tensor with a single holder is not written either, unless the caller gives
// it up.
func TestBorrowNeverMutates(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, -1, 2, -3)
	y := ok(eager.Relu(x))(t)
	want(t, x, -1, 2, -3)
	want(t, y, 0, 2, 0)
	if address(x) == address(y) || !x.IsExclusive() {
		t.Error("the result shares the operand's bytes")
	}
	release(t, x, y)
}

func TestDonateIsInPlace(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, -1, 2, -3)
	at := address(x)
	y := ok(eager.Relu(x.Donate()))(t)
	want(t, y, 0, 2, 0)
	if address(y) != at || y.Holders() != 1 {
		t.Error("the result is not in the donated bytes")
	}
	wantErr(t, "read", second(tensor.Read[float32](x)), tensor.ErrDonated, "donated to relu")
	wantErr(t, "release", x.Release(), tensor.ErrDonated, "donated to relu")
	err := second(eager.Neg(x.Donate()))
	wantErr(t, "donate again", err, tensor.ErrDonated, "neg: f32[3]", "donated to relu")
	if invariant.Enabled != strings.Contains(err.Error(), "eager_test.TestDonateIsInPlace") {
		t.Errorf("got %v, want the call site exactly in the invariant build", err)
	}
	release(t, y)
}

// The mistake that goes unnoticed elsewhere: give x to f, keep x, use it.
func TestNegativeProbe(t *testing.T) {
	memorytest.Check(t)
	f, err := eager.NewFunc("f", 1, []int{0}, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
		return []*tensor.Tensor{s.Keep(s.Neg(x[0].Donate()))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(x tensor.Operand) (*tensor.Tensor, error) {
		ys, err := f.Call(x)
		if err != nil {
			return nil, err
		}
		return ys[0], nil
	}
	for name, f := range map[string]func(tensor.Operand) (*tensor.Tensor, error){"operation": eager.Neg, "function": run} {
		x := vector(t, 1, 2, 3)
		first := ok(f(x.Donate()))(t)
		for what, err := range map[string]error{
			"read x": second(tensor.Values[float32](x)), "view of x": second(x.Reshape(3, 1)), "donate x again": second(f(x.Donate())),
			"reuse x": second(f(x.Reuse())), "run again": second(f(x)), "write x": second(tensor.Write[float32](x)), "release x": x.Release(),
		} {
			wantErr(t, name+": "+what, err, tensor.ErrDonated)
			want(t, first, -1, -2, -3)
		}
		release(t, first)
	}
}

func TestReuse(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2)
	at := address(x)
	x2 := ok(eager.Neg(x.Reuse()))(t)
	if address(x2) != at {
		t.Error("an exclusive tensor was not reused")
	}
	view := ok(x2.View())(t)
	y := ok(eager.Neg(x2.Reuse()))(t)
	want(t, view, -1, -2)
	want(t, y, 1, 2)
	wantErr(t, "given up all the same", x2.Release(), tensor.ErrDonated)
	if !view.IsExclusive() || address(y) == at {
		t.Error("a shared tensor was written, or its hold stayed")
	}
	release(t, view, y)
}

// Every reason for which a strict donation is refused: the error names operand
// and reason, and nothing was consumed.
func TestRefusedDonations(t *testing.T) {
	memorytest.Check(t)
	x, other, row := vector(t, 1, 2, 3, 4), vector(t, 5, 6, 7, 8), vector(t, 9)
	matrix := of(t, []float32{1, 2, 3, 4}, 2, 2)
	view := ok(matrix.Transpose())(t)
	lone := ok(of(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3).Donate().Transpose())(t)
	wide := ok(row.Broadcast(4))(t)
	wrapped := ok(tensor.Wrap([]float32{1, 2, 3, 4}, 4))(t)
	whole := ok(tensor.Of([]int32{1, 2, 3, 4}, 4))(t)
	indices := ok(tensor.Of([]int64{0}, 1))(t)
	writing, err := tensor.Write[float32](other)
	if err != nil {
		t.Fatal(err)
	}
	first := func(ts []*tensor.Tensor, err error) error { return err }
	for what, c := range map[string]struct {
		err   error
		kind  error
		texts []string
	}{
		"shared":      {second(eager.Relu(matrix.Donate())), tensor.ErrShared, []string{"relu: f32[2,2]", "2 holders"}},
		"layout":      {second(eager.Softmax(lone.Donate(), 0)), tensor.ErrNotReusable, []string{"softmax: operand 0", "layout", "row-major"}},
		"broadcast":   {second(eager.Add(x, wide.Donate())), tensor.ErrShared, []string{"add: operand 1", "holders"}},
		"shape":       {second(eager.Add(x.Donate(), lone4(t))), tensor.ErrNotReusable, []string{"add: operand 0", "f32[2,4]", "shape"}},
		"width":       {second(eager.Cast(x.Donate(), dtype.F64)), tensor.ErrNotReusable, []string{"cast: operand 0", "f64[4]", "width"}},
		"fresh":       {second(eager.MatMul(x.Donate(), x4(t))), tensor.ErrNotReusable, []string{"matmul: operand 0"}},
		"imported":    {second(eager.Relu(wrapped.Donate())), tensor.ErrShared, []string{"imported"}},
		"twice":       {second(eager.Add(x.Donate(), x)), tensor.ErrShared, []string{"operand 0", "operand 1", "once"}},
		"twice both":  {second(eager.Add(x.Donate(), x.Donate())), tensor.ErrShared, []string{"once"}},
		"both":        {second(eager.Add(x.Donate(), x4(t).Donate())), tensor.ErrNotReusable, []string{"add: operand 1", "operand 0", "Reuse"}},
		"writing":     {second(eager.Add(x.Donate(), other.Donate())), tensor.ErrWriting, []string{"add: operand 1", "being written"}},
		"types":       {second(eager.Add(x.Donate(), whole)), tensor.ErrDType, []string{"add: operand 1", "i32[4]", "f32[4]"}},
		"reduction":   {second(eager.ReduceSum(x.Donate(), nil, false)), tensor.ErrNotReusable, []string{"reduce_sum: operand 0"}},
		"indices":     {second(eager.Gather(x, indices.Donate(), 0)), tensor.ErrNotReusable, []string{"gather: operand 1"}},
		"nothing":     {second(eager.Relu(nil)), tensor.ErrNoTensor, []string{"relu: operand 0", "no tensor"}},
		"nil tensor":  {second(eager.Relu((*tensor.Tensor)(nil).Donate())), tensor.ErrNoTensor, []string{"relu: operand 0", "no tensor"}},
		"split fresh": {first(eager.Split(lone4(t).Donate(), 1, 2, 2)), tensor.ErrNotReusable, []string{"split: operand 0", "f32[2,2]"}},
	} {
		wantErr(t, what, c.err, c.kind, c.texts...)
	}
	writing.Release()
	if !x.IsExclusive() || !other.IsExclusive() || !indices.IsExclusive() || !lone.IsExclusive() {
		t.Error("a refused call consumed something")
	}
	release(t, x, other, row, matrix, view, lone, wide, wrapped, whole, indices)
}

// x4 and lone4 are borrowed operands that end with the test.
func x4(t testing.TB) *tensor.Tensor {
	x := vector(t, 1, 1, 1, 1)
	t.Cleanup(func() { release(t, x) })
	return x
}

func lone4(t testing.TB) *tensor.Tensor {
	x := of(t, make([]float32, 8), 2, 4)
	t.Cleanup(func() { release(t, x) })
	return x
}

func TestBinaryTriesLeftThenRight(t *testing.T) {
	memorytest.Check(t)
	for name, c := range map[string]struct {
		x, y   func(*tensor.Tensor) tensor.Operand
		winner int // 0 left, 1 right, -1 fresh
	}{
		"left":              {reused, borrowed, 0},
		"right":             {borrowed, reused, 1},
		"both":              {reused, reused, 0},
		"donated right":     {reused, donated, 1},
		"donated left":      {donated, reused, 0},
		"neither":           {borrowed, borrowed, -1},
		"donated, borrowed": {donated, borrowed, 0},
		"borrowed, donated": {borrowed, donated, 1},
	} {
		x, y := vector(t, 1, 2), vector(t, 10, 20)
		at := []*byte{address(x), address(y)}
		z := ok(eager.Sub(c.x(x), c.y(y)))(t)
		want(t, z, -9, -18) // the order of operands stays
		if got := slices.Index(at, address(z)); got != c.winner {
			t.Errorf("%s: got the bytes of %d, want %d", name, got, c.winner)
		}
		release(t, z)
		_, _ = x.Release(), y.Release()
	}
	// The side that is broadcast is never taken.
	x, y := vector(t, 5), vector(t, 1, 2)
	at := address(y)
	z := ok(eager.Sub(x.Reuse(), y.Reuse()))(t)
	want(t, z, 4, 3)
	if address(z) != at {
		t.Error("the operand of the result's shape was not taken")
	}
	release(t, z)
}

func borrowed(x *tensor.Tensor) tensor.Operand { return x }
func reused(x *tensor.Tensor) tensor.Operand   { return x.Reuse() }
func donated(x *tensor.Tensor) tensor.Operand  { return x.Donate() }

func TestAssign(t *testing.T) {
	memorytest.Check(t)
	x, y := vector(t, 1, 2), vector(t, 3, 4)
	at := address(x)
	for _, f := range []func(**tensor.Tensor, tensor.Operand) error{eager.AddAssign, eager.MulAssign, eager.SubAssign, eager.DivAssign} {
		if err := f(&x, y); err != nil {
			t.Fatal(err)
		}
		if address(x) != at {
			t.Error("an exclusive tensor was not assigned in place")
		}
	}
	want(t, x, ((1+3)*3-3)/float32(3), ((2+4)*4-4)/float32(4))
	view := ok(x.View())(t)
	if err := eager.AddAssign(&x, x); err != nil {
		t.Fatal(err)
	}
	want(t, view, 3, 5)
	want(t, x, 6, 10)
	bad := lone4(t)
	old := x
	wantErr(t, "shape", eager.AddAssign(&x, of3(t)), tensor.ErrShape, "add")
	if x != old || !x.IsExclusive() || bad == nil {
		t.Error("a failed assignment changed the tensor")
	}
	release(t, x, y, view)
}

func of3(t testing.TB) *tensor.Tensor {
	x := vector(t, 1, 2, 3)
	t.Cleanup(func() { release(t, x) })
	return x
}

// Chains of views keep the right to write, and elementwise operations run on a
// dense view as it lies.
func TestViewsKeepTheirDonation(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{-1, 2, -3, 4, -5, 6}, 2, 3)
	at := address(x)
	y := ok(x.Donate().Transpose())(t)
	y = ok(eager.Relu(y.Donate()))(t)
	want(t, y, 0, 4, 2, 0, 0, 6)
	if address(y) != at || y.Layout().IsContiguous() {
		t.Errorf("got %s, want the transposed layout in the same bytes", y.Layout())
	}
	y = ok(y.Donate().Transpose())(t)
	y = ok(eager.Reshape(y.Donate(), -1))(t)
	if address(y) != at || !y.IsExclusive() {
		t.Error("the chain lost its bytes")
	}
	want(t, y, 0, 2, 0, 4, 0, 6)
	// A borrowed view is copied into row-major order, and the result lies in
	// the copy.
	m := of(t, []float32{-1, 2, -3, 4}, 2, 2)
	v := ok(m.Transpose())(t)
	s := eager.NewScope()
	want(t, s.Relu(v), 0, 0, 2, 4)
	if got := s.Stats(); got.CopiedBytes != 16 || got.FreshBytes != 16 || got.Fresh != 1 {
		t.Errorf("got %+v, want 16 bytes copied, and those the result's", got)
	}
	want(t, s.MatMul(v, v), -1*-1+-3*2, -1*-3+-3*4, 2*-1+4*2, 2*-3+4*4)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	want(t, m, -1, 2, -3, 4)
	release(t, y, m, v)
}

func TestViewOperationsShareOrMove(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3, 4)
	v := ok(eager.Reshape(x, 2, 2))(t)
	if address(v) != address(x) || x.Holders() != 2 {
		t.Error("a reshape of a borrowed tensor is no view")
	}
	wantErr(t, "donate with a view out", second(eager.Relu(x.Donate())), tensor.ErrShared)
	release(t, v)
	at := address(x)
	v = ok(eager.Reshape(x.Donate(), 2, -1))(t)
	if address(v) != at || !v.IsExclusive() {
		t.Error("a reshape of a donated tensor did not move it")
	}
	wantErr(t, "moved", x.Release(), tensor.ErrDonated, "reshape")
	lone := ok(v.Donate().Transpose())(t)
	w := ok(eager.Reshape(lone, 4))(t) // its elements must move
	want(t, w, 1, 3, 2, 4)
	wantErr(t, "strict, though they must move", second(eager.Reshape(lone.Donate(), 4)), tensor.ErrNotReusable, "layout")
	release(t, lone, w)
}

func TestOperationsThatAccumulateAndUpdate(t *testing.T) {
	memorytest.Check(t)
	a, b := of(t, []float32{1, 2, 3, 4}, 2, 2), of(t, []float32{1, 0, 0, 1}, 2, 2)
	c := of(t, []float32{10, 10, 10, 10}, 2, 2)
	at := address(c)
	y := ok(eager.Gemm(a, b, c.Donate(), eager.GemmOptions{}))(t)
	want(t, y, 11, 12, 13, 14)
	if address(y) != at {
		t.Error("gemm did not accumulate into the donated operand")
	}
	index := ok(tensor.Of([]int64{1}, 1, 1))(t)
	row := of(t, []float32{7, 8}, 1, 2)
	z := ok(eager.ScatterND(y.Donate(), index, row))(t)
	want(t, z, 11, 12, 7, 8)
	if address(z) != at {
		t.Error("scatter_nd did not update the donated operand")
	}
	n := ok(eager.Cast(z.Donate(), dtype.I32))(t)
	if address(n) != at || n.DType() != dtype.I32 {
		t.Error("a cast of the same width is not in place")
	}
	release(t, a, b, n, index, row)
}

// failing is an operator whose kernel writes and then fails.
func failing(cause error) *op.Def {
	return &op.Def{
		Name: "test.fail", MinArgs: 1, MaxArgs: 1, Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
		Kernel: func(c *op.Call) error {
			clear(c.Out[0].Data)
			return cause
		},
	}
}

func TestFailureAfterTheFirstWrite(t *testing.T) {
	memorytest.Check(t)
	cause := errors.New("kernel stopped")
	def := failing(cause)
	x := vector(t, 1, 2)
	wantErr(t, "borrowed", second(eager.Call(def).On(x).Run()), cause)
	want(t, x, 1, 2)
	view := ok(x.View())(t)
	wantErr(t, "reused, shared", second(eager.Call(def).On(x.Reuse()).Run()), cause)
	want(t, x, 1, 2)
	release(t, view)
	err := second(eager.Call(def).On(x.Reuse()).Run())
	wantErr(t, "reused", err, tensor.ErrPartlyWritten, "test.fail")
	wantErr(t, "reused", err, cause)
	wantErr(t, "dead", x.Release(), tensor.ErrDonated, "test.fail")
}

func TestCancelledCall(t *testing.T) {
	memorytest.Check(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := eager.NewScope(eager.WithContext(ctx))
	defer s.Close()
	x := vector(t, 1, 2)
	if y := s.Neg(x.Donate()); y != nil || !errors.Is(s.Err(), context.Canceled) || errors.Is(s.Err(), tensor.ErrPartlyWritten) {
		t.Errorf("got %v, want context.Canceled and nothing written", s.Err())
	}
	late, end := context.WithTimeoutCause(context.Background(), 0, errors.New("too late"))
	defer end()
	later := eager.NewScope(eager.WithContext(late))
	later.Neg(x)
	if err := later.Close(); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "too late") {
		t.Errorf("got %v, want context.DeadlineExceeded with its cause", err)
	}
	want(t, x, 1, 2)
	release(t, x)
}

// The sizes of some results are known when they are computed, and bounded
// before.
func TestBoundedResults(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{0, 3, 0, 5, 3, 0}, 2, 3)
	for range 2 { // the second call finds the task that the first one bound
		places := ok(eager.NonZero(x))(t)
		if got, err := int64s(places); err != nil || !slices.Equal(got, []int64{0, 1, 1, 1, 0, 1}) || places.Shape() != shape.MustOf(2, 3) {
			t.Errorf("non_zero: got %v of %s, error %v", got, places.Shape(), err)
		}
		keep := ok(tensor.Of([]bool{false, true, true}, 3))(t)
		some := ok(eager.Op("compress").On(x).On(keep).Int("axis", 1).Run())(t)
		want(t, some, 3, 0, 3, 0)
		all, err := eager.Op("unique").On(x).Results(2).RunAll()
		if err != nil {
			t.Fatal(err)
		}
		want(t, all[0], 0, 3, 5)
		release(t, places, keep, some, all[0], all[1])
	}
	boxes := of(t, []float32{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}, 1, 3, 4)
	scores := of(t, []float32{.9, .8, .7}, 1, 1, 3)
	most := ok(tensor.Of([]int64{3}, 1))(t)
	overlap := vector(t, .5)
	chosen := ok(eager.Op("non_max_suppression").On(boxes).On(scores).On(most).On(overlap).Run())(t)
	if got, err := int64s(chosen); err != nil || !slices.Equal(got, []int64{0, 0, 0, 0, 0, 2}) {
		t.Errorf("non_max_suppression: got %v, error %v", got, err)
	}
	release(t, x, boxes, scores, most, overlap, chosen)
}

func int64s(x *tensor.Tensor) ([]int64, error) {
	v, err := tensor.Read[int64](x)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	return slices.Clone(v.Data), nil
}

// Parts that lie together are views. Those of a borrowed tensor share its
// bytes; the hold of a tensor that is given up passes to one part.
func TestSplitShows(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	parts, err := eager.Split(x, 0, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	want(t, parts[0], 1, 2)
	want(t, parts[1], 3, 4, 5, 6)
	if x.Holders() != 3 || address(parts[0]) != address(x) {
		t.Errorf("got %d holders, want views", x.Holders())
	}
	release(t, parts...)
	at := address(x)
	if parts, err = eager.Split(x.Donate(), 0, 1, 2); err != nil {
		t.Fatal(err)
	}
	want(t, parts[0], 1, 2)
	if x.Alive() || address(parts[0]) != at || parts[1].Holders() != 2 {
		t.Errorf("got %d holders and the operand alive %v, want it to have moved", parts[1].Holders(), x.Alive())
	}
	release(t, parts[0])
	y := ok(eager.Neg(parts[1].Donate()))(t) // more than half of the buffer, and alone by now
	want(t, y, -3, -4, -5, -6)
	// Parts of what must be put into row-major order first show that copy.
	transposed := ok(y.Donate().Transpose())(t)
	if parts, err = eager.Split(transposed, 0, 1, 1); err != nil {
		t.Fatal(err)
	}
	want(t, parts[0], -3, -5)
	want(t, parts[1], -4, -6)
	if transposed.Holders() != 1 || parts[0].Holders() != 2 {
		t.Errorf("got %d and %d holders, want 1 and 2", transposed.Holders(), parts[0].Holders())
	}
	release(t, transposed, parts[0], parts[1])
}

func TestDataDependentSizesAreRefused(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 0)
	def := &op.Def{
		Name: "test.some", MinArgs: 1, MaxArgs: 1, Alias: op.Fresh(), Kernel: func(*op.Call) error { return nil },
		Infer: func(s *op.Sig) error {
			var err error
			s.Results[0].DType = dtype.F32
			s.Results[0].Shape, err = shape.FromDims(shape.Unknown)
			return err
		},
	}
	wantErr(t, "unknown size", second(eager.Call(def).On(x).Run()), tensor.ErrUnsupported, "depends on data")
	release(t, x)
}

func TestSqueezeAndUnsqueezeMakeViews(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	at := address(x)
	y := ok(eager.Unsqueeze(x.Donate(), 0, -1))(t)
	if got := y.Shape().String(); got != "[1,3,1]" || address(y) != at || !y.IsExclusive() {
		t.Errorf("unsqueeze: got %s, want [1,3,1] in the bytes of the operand", got)
	}
	one, all := ok(eager.Squeeze(y, 0))(t), ok(eager.Squeeze(y))(t)
	if one.Shape().String() != "[3,1]" || all.Shape().String() != "[3]" || address(all) != at {
		t.Errorf("squeeze: got %s and %s, want views [3,1] and [3]", one.Shape(), all.Shape())
	}
	wantErr(t, "a dimension that is not 1", second(eager.Squeeze(y, 1)), tensor.ErrShape)
	wantErr(t, "a place that is not there", second(eager.Unsqueeze(y, 4)), tensor.ErrShape)
	release(t, y, one, all)
}
