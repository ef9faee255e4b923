package tensor

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

// negate is an elementwise operation written the way operations are: in place
// if it may, into fresh bytes otherwise.
func negate(x Operand) (*Tensor, error) { return apply("negate", nil, x) }

// apply computes the negated sum of its operands, all i32 of one shape, into
// the bytes of the first operand that may be overwritten. fail, if set, stops
// it after the first element.
func apply(op string, fail error, xs ...Operand) (*Tensor, error) {
	k, err := Take(op, xs...)
	if err != nil {
		return nil, err
	}
	defer k.Rollback()
	var y *Tensor
	for i := range xs {
		if k.InPlace(i) {
			if y, err = k.Keep(i, k.Tensor(i).DType(), k.Tensor(i).Layout()); err != nil {
				return nil, err
			}
			break
		}
	}
	fresh := y == nil
	if fresh {
		if y, err = New(k.Tensor(0).DType(), k.Tensor(0).Shape()); err != nil {
			return nil, err
		}
	}
	dst := y.bytes()
	for at := 0; at < len(dst); at += 4 {
		sum := int32(0)
		for i := range xs {
			src, _ := k.Bytes(i)
			sum -= load[int32](src[at:])
		}
		copy(dst[at:], asBytes([]int32{sum}))
		if fail != nil {
			if fresh {
				_ = y.Release()
				return nil, fail
			}
			return nil, k.Fail("element 0", fail)
		}
	}
	k.Commit()
	return y, nil
}

func vector(t testing.TB, values ...int32) *Tensor {
	t.Helper()
	return ok(Of(values, len(values)))(t)
}

// address identifies the bytes of a tensor.
func address(x *Tensor) *byte {
	data, _ := x.UnsafeBytes()
	return &data[0]
}

func TestBorrowNeverWrites(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	y := ok(negate(x))(t)
	wantValues[int32](t, x, 1, 2, 3)
	wantValues[int32](t, y, -1, -2, -3)
	if !x.IsExclusive() || address(x) == address(y) {
		t.Error("a borrowed tensor that only its caller holds was not left alone")
	}
	release(t, x, y)
}

func TestDonateMovesTheBytes(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3)
	at := address(x)
	y := ok(negate(x.Donate()))(t)
	wantValues[int32](t, y, -1, -2, -3)
	if address(y) != at || !y.IsExclusive() {
		t.Error("the result is not in the donated bytes, or not exclusive")
	}
	for name, err := range map[string]error{
		"read": second(Read[int32](x)), "release": x.Release(), "donate": second(negate(x.Donate())), "borrow": second(negate(x)),
		"reuse": second(negate(x.Reuse())), "view": second(x.Reshape(3)), "why": x.WhyNotWritable(), "donated view": second(x.Donate().Reshape(3)),
	} {
		if !errors.Is(err, ErrDonated) || !strings.Contains(err.Error(), "donated to negate") {
			t.Errorf("%s after the donation: got %v, want ErrDonated with the operation's name", name, err)
		}
		if invariant.Enabled != strings.Contains(err.Error(), "tensor.TestDonateMovesTheBytes") {
			t.Errorf("%s: got %v, want the call site exactly in the invariant build", name, err)
		}
	}
	if x.IsExclusive() || x.String() != "i32[3] (donated to negate)" {
		t.Errorf("dead tensor: got exclusive %v, %s", x.IsExclusive(), x)
	}
	if x.DType() != dtype.I32 || x.Shape() != shape.MustOf(3) {
		t.Error("the type of a dead tensor is gone")
	}
	release(t, y)
}

func TestRefusedDonationConsumesNothing(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3, 4, 5)
	free := vector(t, 1, 2, 3, 4, 5)
	refused := func(name string, err, kind error, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %v, want kind %q and text %q", name, err, kind, text)
			}
		}
		wantValues[int32](t, x, 1, 2, 3, 4, 5)
		if !free.IsExclusive() {
			t.Errorf("%s: the other donated operand: %v", name, free.WhyNotWritable())
		}
	}
	view := ok(x.Slice(Range{Stop: 4}))(t)
	refused("shared by a view", second(apply("add", nil, free.Donate(), x.Donate())), ErrShared, "add: operand 1: i32[5]", "2 holders")
	refused("the view", second(negate(view.Donate())), ErrShared, "2 holders")
	refused("donated view", second(x.Donate().Reshape(5, 1)), ErrShared, "reshape: i32[5]", "2 holders")
	release(t, view)

	v := ok(Read[int32](x))(t)
	refused("in use", second(apply("add", nil, free.Donate(), x.Donate())), ErrShared, "1 use is out")
	v.Release()

	refused("listed twice", second(apply("add", nil, x.Donate(), x.Donate())), ErrShared, "operand 0", "operand 1", "once")
	refused("borrowed too", second(apply("add", nil, x, x.Donate())), ErrShared, "operand 1", "listed again as operand 0")
	refused("reused too", second(apply("add", nil, x.Donate(), x.Reuse())), ErrShared, "operand 0")

	wide := ok(x.Unsqueeze(0))(t)
	release(t, wide)
	if !x.IsExclusive() {
		t.Errorf("at the end: %v", x.WhyNotWritable())
	}
	release(t, x, free)
}

func TestDonationOfARestIsRefused(t *testing.T) {
	memorytest.Check(t)
	rest := ok(vector(t, 1, 2, 3, 4, 5).Donate().Slice(Range{Stop: 2}))(t)
	if !rest.IsExclusive() {
		t.Errorf("moved view: %v", rest.WhyNotWritable())
	}
	_, err := negate(rest.Donate())
	if !errors.Is(err, ErrNotReusable) || !strings.Contains(err.Error(), "view of 8 bytes of a buffer of 20") {
		t.Errorf("got %v, want ErrNotReusable with both sizes", err)
	}
	at := address(rest)
	y := ok(negate(rest.Reuse()))(t)
	if address(y) == at {
		t.Error("a small rest was reused in place")
	}
	half := ok(vector(t, 1, 2, 3, 4).Donate().Slice(Range{Start: 2, Stop: End}))(t)
	at = address(half)
	z := ok(negate(half.Donate()))(t)
	if address(z) != at {
		t.Error("half a buffer was not reused in place")
	}
	wantValues[int32](t, z, -3, -4)
	release(t, y, z)
}

func TestDonationOfOverlappingElementsIsRefused(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	wide := ok(x.Broadcast(4))(t)
	release(t, x)
	if wide.IsExclusive() {
		t.Error("a broadcast is exclusive")
	}
	wantErr(t, "why", wide.WhyNotWritable(), ErrLayout)
	wantErr(t, "donate", second(Take("negate", wide.Donate())), ErrLayout)
	k := ok(Take("negate", wide.Reuse()))(t)
	if k.InPlace(0) {
		t.Error("a broadcast may be overwritten")
	}
	k.Rollback()
	release(t, wide)
}

func TestReuse(t *testing.T) {
	memorytest.Check(t)
	inPlace, fresh := ReuseCounts()
	x := vector(t, 1, 2)
	at := address(x)
	y := ok(negate(x.Reuse()))(t)
	if address(y) != at {
		t.Error("an exclusive tensor was not reused in place")
	}
	wantErr(t, "use of a reused tensor", x.Release(), ErrDonated)

	view := ok(y.View())(t)
	z := ok(negate(y.Reuse()))(t)
	if address(z) == at {
		t.Error("shared bytes were overwritten")
	}
	wantValues[int32](t, view, -1, -2)
	wantValues[int32](t, z, 1, 2)
	wantErr(t, "use of a reused tensor", y.Release(), ErrDonated)
	if !view.IsExclusive() {
		t.Errorf("the view, now alone: %v", view.WhyNotWritable())
	}

	data := ok(Read[int32](z))(t) // a reader of data outlives the tensor
	w := ok(negate(z.Reuse()))(t)
	if data.Data[0] != 1 || data.Data[1] != 2 {
		t.Errorf("data of a reused tensor: got %v, want it unharmed", data.Data)
	}
	data.Release()
	if a, b := ReuseCounts(); a != inPlace+1 || b != fresh+2 {
		t.Errorf("counts: got %d in place and %d fresh more, want 1 and 2", a-inPlace, b-fresh)
	}
	release(t, view, w)
}

func TestReuseWithTheSameTensorBorrowed(t *testing.T) {
	memorytest.Check(t)
	for name, list := range map[string]func(x *Tensor) []Operand{
		"reused first":   func(x *Tensor) []Operand { return []Operand{x.Reuse(), x} },
		"borrowed first": func(x *Tensor) []Operand { return []Operand{x, x.Reuse()} },
		"reused twice":   func(x *Tensor) []Operand { return []Operand{x.Reuse(), x.Reuse()} },
	} {
		x := vector(t, 1, 2, 3)
		y, err := apply("add", nil, list(x)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantValues[int32](t, y, -2, -4, -6)
		wantErr(t, name, x.Release(), ErrDonated)
		release(t, y)
	}
}

func TestRollbackRestoresEverything(t *testing.T) {
	memorytest.Check(t)
	x, y, z := vector(t, 1), vector(t, 2), vector(t, 3)
	k := ok(Take("fused", x.Donate(), y.Reuse(), z))(t)
	if !k.InPlace(0) || !k.InPlace(1) || k.InPlace(2) {
		t.Errorf("in place: got %v %v %v, want true true false", k.InPlace(0), k.InPlace(1), k.InPlace(2))
	}
	kept := ok(k.Keep(0, dtype.I32, x.Layout()))(t)
	wantErr(t, "donated operand during the call", x.WhyNotWritable(), ErrWriting)
	wantErr(t, "write into a borrowed operand during the call", second(Write[int32](z)), ErrShared)
	k.Rollback()
	k.Rollback()
	for _, v := range []*Tensor{x, y, z} {
		if !v.IsExclusive() {
			t.Errorf("after rollback: %v", v.WhyNotWritable())
		}
	}
	wantErr(t, "the result that was given up", kept.Release(), ErrReleased)
	if data, _ := k.Bytes(0); data != nil {
		t.Error("bytes after the end: got some")
	}
	k.Commit() // too late to do anything
	release(t, x, y, z)
}

func TestFailAfterTheFirstWrite(t *testing.T) {
	memorytest.Check(t)
	cause := errors.New("kernel stopped")
	x, y := vector(t, 1, 2), vector(t, 3, 4)
	_, err := apply("add", cause, x.Donate(), y.Reuse())
	wantErr(t, "kind", err, ErrPartlyWritten)
	wantErr(t, "cause", err, cause)
	if err == nil || !strings.Contains(err.Error(), "add: element 0") {
		t.Errorf("text: got %v, want operation and step", err)
	}
	wantErr(t, "donated operand", x.Release(), ErrDonated)
	wantErr(t, "reused operand", y.Release(), ErrDonated)

	// Into fresh bytes nothing of the caller's was written: everything is as it
	// was.
	z := vector(t, 5)
	view := ok(z.View())(t)
	wantErr(t, "fresh", second(apply("add", cause, z.Reuse())), cause)
	wantValues[int32](t, z, 5)
	release(t, z, view)
}

func TestKeepChecksTheResult(t *testing.T) {
	memorytest.Check(t)
	x, y := vector(t, 1, 2, 3, 4), vector(t, 5)
	k := ok(Take("cast", x.Donate(), y))(t)
	wantErr(t, "too long", second(k.Keep(0, dtype.F64, shape.RowMajor(shape.MustOf(4)))), ErrShape)
	wantErr(t, "borrowed", second(k.Keep(1, dtype.I32, y.Layout())), ErrShared)
	z := ok(k.Keep(0, dtype.F16, shape.RowMajor(shape.MustOf(2, 2))))(t)
	wantErr(t, "kept twice", second(k.Keep(0, dtype.I32, x.Layout())), ErrShared)
	k.Commit()
	if z.DType() != dtype.F16 || !z.IsExclusive() || z.Holders() != 1 {
		t.Errorf("got %s, %v", z.describe(), z.WhyNotWritable())
	}
	release(t, z, y)
}

func TestKeepStaysWithinTheOperand(t *testing.T) {
	memorytest.Check(t)
	half := ok(vector(t, 1, 2, 3, 4).Donate().Slice(Range{Stop: 2}))(t)
	k := ok(Take("widen", half.Reuse()))(t)
	wantErr(t, "result longer than the operand, shorter than the buffer", second(k.Keep(0, dtype.I32, shape.RowMajor(shape.MustOf(3)))), ErrShape)
	k.Rollback()
	release(t, half)
}

// Between the end of a handle and of its last use, or before the reason is
// written, the error has the kind without the name.
func TestDonationWithoutANameYet(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	if err := x.h.Use(); err != nil {
		t.Fatal(err)
	}
	if err := x.h.Donate(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "release", x.Release(), ErrDonated)
	x.h.EndUse()
}

func TestKeepOfAStridedOperand(t *testing.T) {
	memorytest.Check(t)
	x := ok(vector(t, 1, 2, 3, 4, 5, 6).Donate().Reshape(2, 3))(t)
	y := ok(x.Donate().Transpose())(t)
	k := ok(Take("copy", y.Donate()))(t)
	z := ok(k.Keep(0, dtype.I32, y.Layout()))(t)
	k.Commit()
	wantValues[int32](t, z, 1, 4, 2, 5, 3, 6)
	release(t, z)
}

func TestChainsOfViewsKeepTheDonation(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2, 3, 4, 5, 6)
	at := address(x)
	y := ok(x.Donate().Reshape(2, 3))(t)
	z := ok(y.Reuse().Transpose())(t)
	w := ok(z.Donate().Permute(1, 0))(t)
	v := ok(w.Donate().Unsqueeze(0))(t)
	u := ok(v.Reuse().Squeeze())(t)
	r := ok(negate(u.Donate()))(t)
	if address(r) != at || r.Holders() != 1 {
		t.Errorf("got %d holders, or other bytes", r.Holders())
	}
	wantErr(t, "first of the chain", x.Release(), ErrDonated)
	wantErr(t, "refused view", second(r.Donate().Reshape(5)), ErrShape)
	if !r.IsExclusive() {
		t.Errorf("after a refused view: %v", r.WhyNotWritable())
	}
	release(t, r)
}

// A reused view gives up its tensor even while a reader uses it: the reader
// keeps the bytes, and the view is exclusive when the use has ended.
func TestReusedViewOfATensorInUse(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, 2)
	v := ok(Read[int32](x))(t)
	y := ok(x.Reuse().Reshape(2, 1))(t)
	wantErr(t, "given up", x.Release(), ErrDonated)
	if y.IsExclusive() || v.Data[1] != 2 {
		t.Error("while it is read: got an exclusive view, or other data")
	}
	v.Release()
	if !y.IsExclusive() {
		t.Errorf("after the reader: %v", y.WhyNotWritable())
	}
	release(t, y)
}

func TestMixedRefusalsRollBackInOneGo(t *testing.T) {
	memorytest.Check(t)
	dead := vector(t, 1)
	release(t, dead)
	x, y := vector(t, 1), vector(t, 2)
	for _, operands := range [][]Operand{{x, y.Reuse(), dead}, {x.Donate(), dead.Reuse(), y}, {dead.Donate(), x.Reuse(), y.Donate()}} {
		wantErr(t, "with a released operand", second(apply("add", nil, operands...)), ErrReleased)
		if !x.IsExclusive() || !y.IsExclusive() {
			t.Errorf("after the refusal: %v, %v", x.WhyNotWritable(), y.WhyNotWritable())
		}
	}
	release(t, x, y)
}

func TestManyOperands(t *testing.T) {
	memorytest.Check(t)
	var xs []*Tensor
	var ops []Operand
	for i := range 10 {
		xs = append(xs, vector(t, int32(i)))
		ops = append(ops, xs[i].Donate())
	}
	y := ok(apply("sum", nil, ops...))(t)
	wantValues[int32](t, y, -45)
	for _, x := range xs {
		wantErr(t, "donated", x.Release(), ErrDonated)
	}
	release(t, y)
}

func TestSemanticsHaveTheWordsOfTheProgramText(t *testing.T) {
	x := vector(t, 1)
	defer x.Release()
	for _, c := range []struct {
		o    Operand
		want string
	}{{x, "borrow"}, {x.Reuse(), "reuse"}, {x.Donate(), "donate"}} {
		if got := c.o.Semantics().String(); got != c.want || c.o.Tensor() != x {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := CopySemantics(9).String(); got != "semantics(9)" {
		t.Errorf("got %s", got)
	}
}

func TestOperationNamesItsOperands(t *testing.T) {
	memorytest.Check(t)
	x, w := vector(t, 1, 2), ok(Wrap([]int32{1}, 1))(t)
	op := NewOperation("join", "left", "right")
	for _, c := range []struct {
		operands []Operand
		want     string
	}{
		{[]Operand{x, w.Donate()}, "join: right: i32[1]: bytes are shared: the bytes are imported"},
		{[]Operand{w.Donate()}, "join: left: i32[1]: bytes are shared: the bytes are imported"},
		{[]Operand{x.Donate(), x}, "join: i32[2] is donated as left and listed again as right, want it listed once: bytes are shared"},
		{[]Operand{x, nil}, "join: right: got no tensor: the *Tensor is nil"},
		{[]Operand{x, x, w.Donate()}, "join: operand 2: i32[1]: bytes are shared: the bytes are imported"},
	} {
		if err := new(Taken).Begin(op, c.operands...); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	release(t, x, w)
}

// A donated operand that stays is alive after the commit, in the same bytes,
// with the written elements; after a failure it is dead, and a rollback leaves
// it unchanged.
func TestStay(t *testing.T) {
	memorytest.Check(t)
	op := NewOperation("negate")
	for _, give := range []func(*Tensor) Operand{func(x *Tensor) Operand { return x.Donate() }, func(x *Tensor) Operand { return x.Reuse() }} {
		x := vector(t, 1, 2)
		at := address(x)
		var k Taken
		begin := func() {
			t.Helper()
			if err := k.Begin(op, give(x)); err != nil {
				t.Fatal(err)
			}
			if err := k.Stay(0); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		wantErr(t, "stay twice", k.Stay(0), ErrShared)
		k.Rollback()
		wantValues[int32](t, x, 1, 2)
		begin()
		data, _ := k.Bytes(0)
		copy(data, asBytes([]int32{-1, -2}))
		if _, err := x.Use(); !errors.Is(err, ErrWriting) {
			t.Errorf("use before the commit: got %v, want ErrWriting", err)
		}
		k.Commit()
		wantValues[int32](t, x, -1, -2)
		if !x.IsExclusive() || address(x) != at {
			t.Errorf("after the commit: got %v, want it exclusive in its bytes", x.WhyNotWritable())
		}
		begin()
		if err := k.Fail("element 0", errors.New("no")); !errors.Is(err, ErrPartlyWritten) || x.Alive() {
			t.Errorf("after a failure: got %v, alive %v, want it dead", err, x.Alive())
		}
	}
	x := vector(t, 1, 2)
	var k Taken
	if err := k.Begin(op, x); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "stay of a borrowed operand", k.Stay(0), ErrShared)
	k.Rollback()
	release(t, x)
}

// A Taken that is cleared keeps the room for many operands, and none of them.
func TestClearedTakenKeepsNothing(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	op := NewOperation("sum")
	operands := []Operand{x, x, x, x, x}
	var k Taken
	run := func() {
		if err := k.Begin(op, operands...); err != nil {
			t.Fatal(err)
		}
		k.Commit()
		k.Clear()
	}
	run()
	for _, c := range k.claims[:cap(k.claims)] {
		if c.t != nil {
			t.Error("a claim is left")
		}
	}
	if n := testing.AllocsPerRun(100, run); n != 0 && !invariant.Race {
		t.Errorf("got %v allocations, want none", n)
	}
	release(t, x)
}
