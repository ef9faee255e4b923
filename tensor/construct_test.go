package tensor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

// ok returns v and fails the test on an error; its result takes the two values
// of a call.
func ok[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func release(t testing.TB, xs ...*Tensor) {
	t.Helper()
	for _, x := range xs {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}

func wantValues[T dtype.Element](t testing.TB, x *Tensor, want ...T) {
	t.Helper()
	got, err := Values[T](x)
	if err != nil {
		t.Error(err)
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", x.describe(), got, want)
	}
}

func TestOfCopies(t *testing.T) {
	memorytest.Check(t)
	data := []float32{1, 2, 3, 4, 5, 6}
	x := ok(Of(data, 2, 3))(t)
	data[0] = 100
	wantValues[float32](t, x, 1, 2, 3, 4, 5, 6)
	if x.DType() != dtype.F32 || x.Shape() != shape.MustOf(2, 3) || x.NumElements() != 6 || x.NumBytes() != 24 || !x.Layout().IsContiguous() {
		t.Errorf("got %s, %d elements, %d bytes", x.describe(), x.NumElements(), x.NumBytes())
	}
	if !x.IsExclusive() || x.Holders() != 1 {
		t.Errorf("got exclusive %v with %d holders, want true and 1", x.IsExclusive(), x.Holders())
	}
	s := ok(Of([]int64{7}))(t)
	if s.Shape() != shape.Scalar() {
		t.Errorf("no dims: got shape %s, want a scalar", s.Shape())
	}
	e := ok(Of([]uint8{}, 3, 0))(t)
	wantValues[uint8](t, e)
	release(t, x, s, e)
}

func TestOfKnowsTheElementTypes(t *testing.T) {
	memorytest.Check(t)
	check := func(x *Tensor, want dtype.DType) {
		t.Helper()
		if x.DType() != want {
			t.Errorf("got %s, want %s", x.DType(), want)
		}
		release(t, x)
	}
	check(ok(Of([]bool{true, false}, 2))(t), dtype.Bool)
	check(ok(Of([]dtype.Float16{1}, 1))(t), dtype.F16)
	check(ok(Of([]dtype.BFloat16{1}, 1))(t), dtype.BF16)
	check(ok(Of([]complex128{1i}, 1))(t), dtype.C128)
	check(ok(Of([]uint16{1}, 1))(t), dtype.U16)
}

func TestConstructorsRefuseBadInput(t *testing.T) {
	memorytest.Check(t)
	sym := ok(shape.Parse("[batch,3]"))(t)
	buf := ok(memory.Alloc(100, memory.IO))(t)
	defer buf.Release()
	fromBuffer := func(offset int, dt dtype.DType, l *shape.Layout) error {
		_, err := FromBuffer(buf, offset, dt, l)
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		kind error
		text string
	}{
		{"of, too few", second(Of([]float32{1, 2}, 3)), ErrShape, "got 2 elements for shape [3], want 3"},
		{"of, no dims", second(Of([]float32{1, 2})), ErrShape, "want 1"},
		{"of, negative", second(Of([]float32{1, 2}, -2)), ErrShape, "-2"},
		{"of, overflow", second(Of([]float32{}, 1<<40, 1<<40)), ErrShape, "elements"},
		{"zeros, negative", second(Zeros[float32](2, -1)), ErrShape, "zeros: "},
		{"full, negative", second(Full[uint8](1, -1)), ErrShape, "full: "},
		{"full, huge", second(Full(1.5, 1<<55)), ErrLimit, "full f64[36028797018963968]"},
		{"wrap", second(Wrap([]int8{1}, 2)), ErrShape, "got 1 elements for shape [2], want 2"},
		{"new, symbolic", second(New(dtype.F32, sym)), ErrShape, "batch"},
		{"new, string", second(New(dtype.String, shape.Scalar())), ErrDType, "string"},
		{"new, huge", second(New(dtype.F64, shape.MustOf(1<<55))), ErrLimit, ""},
		{"from bytes", second(FromBytes(dtype.I16, shape.MustOf(3), make([]byte, 5))), ErrShape, "got 5 bytes for i16[3], want 6"},
		{"from buffer, long", fromBuffer(0, dtype.F32, shape.RowMajor(shape.MustOf(26))), ErrShape, "buffer of 100 bytes"},
		{"from buffer, late", fromBuffer(97, dtype.F32, shape.RowMajor(shape.MustOf(1))), ErrShape, "from byte 97"},
		{"from buffer, before", fromBuffer(-4, dtype.F32, shape.RowMajor(shape.MustOf(1))), ErrShape, "from byte -4"},
		{"from buffer, strides", fromBuffer(0, dtype.F32, ok(shape.Strided(shape.MustOf(2), 25))(t)), ErrShape, ""},
		{"from buffer, negative strides", fromBuffer(8, dtype.F32, ok(shape.Strided(shape.MustOf(4), -1))(t)), ErrShape, ""},
		{"from buffer, far strides", fromBuffer(0, dtype.C128, ok(shape.Strided(shape.MustOf(2), 1<<57))(t)), ErrShape, ""},
		{"from buffer, string", fromBuffer(0, dtype.String, shape.RowMajor(shape.Scalar())), ErrDType, ""},
		{"from buffer, packed strides", fromBuffer(0, dtype.I4, ok(shape.Strided(shape.MustOf(2), 2))(t)), ErrLayout, "i4"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v, want kind %q and text %q", c.name, c.err, c.kind, c.text)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestZerosAndFull(t *testing.T) {
	memorytest.Check(t)
	zeros, full, none := ok(Zeros[int16](2, 2))(t), ok(Full(float32(1.5), 3))(t), ok(Full(true, 0, 4))(t)
	scalar := ok(Full(dtype.BFloat16FromFloat32(2)))(t)
	wantValues[int16](t, zeros, 0, 0, 0, 0)
	wantValues[float32](t, full, 1.5, 1.5, 1.5)
	if none.NumElements() != 0 || none.DType() != dtype.Bool || scalar.String() != "bf16[] 2." {
		t.Errorf("got %s and %s, want bool[0,4] and bf16[] 2.", none, scalar)
	}
	if !zeros.IsExclusive() || !full.IsExclusive() {
		t.Errorf("got %v and %v, want tensors of the caller's alone", zeros.WhyNotWritable(), full.WhyNotWritable())
	}
	release(t, zeros, full, none, scalar)
}

func TestWrapBorrowsTheSlice(t *testing.T) {
	memorytest.Check(t)
	before := memory.Stats().Total
	data := []int32{1, 2, 3, 4}
	x := ok(Wrap(data, 2, 2))(t)
	data[3] = 9
	wantValues[int32](t, x, 1, 2, 3, 9)
	if memory.Stats().Total != before {
		t.Error("the caller's bytes are counted as ours")
	}
	wantErr(t, "why not writable", x.WhyNotWritable(), ErrShared)
	if _, err := Write[int32](x); !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), "imported") {
		t.Errorf("write: got %v, want ErrShared because it is imported", err)
	}
	if _, err := Take("relu", x.Donate()); !errors.Is(err, ErrShared) {
		t.Errorf("donate: got %v, want ErrShared", err)
	}
	release(t, x)
}

func TestFromBytesMakesBoolsClean(t *testing.T) {
	x := ok(FromBytes(dtype.Bool, shape.MustOf(4), []byte{0, 1, 2, 255}))(t)
	defer x.Release()
	u := ok(x.Use())(t)
	defer u.Release()
	if !slices.Equal(u.Data, []byte{0, 1, 1, 1}) {
		t.Errorf("got %v, want every byte 0 or 1", u.Data)
	}
}

func TestFromBufferIsAnotherHolder(t *testing.T) {
	memorytest.Check(t)
	buf := ok(memory.Alloc(64, memory.Weights))(t)
	for i := range buf.Bytes() {
		buf.Bytes()[i] = byte(i)
	}
	x := ok(FromBuffer(buf, 8, dtype.U8, ok(shape.Strided(shape.MustOf(3), -2))(t)))(t)
	wantValues[uint8](t, x, 8, 6, 4)
	y := ok(FromBuffer(buf, 3, dtype.F32, shape.RowMajor(shape.MustOf(2))))(t)
	if _, err := Read[float32](y); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "aligned") {
		t.Errorf("read at an odd address: got %v, want ErrLayout", err)
	}
	if v, err := Values[float32](y); err != nil || len(v) != 2 {
		t.Errorf("values at an odd address: got %v, %v", v, err)
	}
	if x.Holders() != 3 || x.IsExclusive() {
		t.Errorf("got %d holders, exclusive %v, want 3 and not", x.Holders(), x.IsExclusive())
	}
	release(t, y)
	if err := buf.Release(); err != nil {
		t.Fatal(err)
	}
	if !x.IsExclusive() {
		t.Errorf("alone: %v", x.WhyNotWritable())
	}
	release(t, x)
}

func TestPackedElements(t *testing.T) {
	memorytest.Check(t)
	x := ok(FromBytes(dtype.I4, shape.MustOf(2, 4), []byte{0x21, 0x43, 0xf5, 0x87}))(t)
	if got := x.String(); got != "i4[2,4]\n[[ 1  2  3  4]\n [ 5 -1  7 -8]]" {
		t.Errorf("got %s", got)
	}
	row := ok(x.Slice(Only(1)))(t)
	if got := row.String(); got != "i4[1,4]\n[[ 5 -1  7 -8]]" {
		t.Errorf("second row: got %s", got)
	}
	wantErr(t, "columns", second(x.Slice(All, Range{Stop: 2})), ErrLayout)
	odd := ok(FromBytes(dtype.U4, shape.MustOf(4), []byte{0x21, 0x43}))(t)
	wantErr(t, "from the middle of a byte", second(odd.Slice(Range{Start: 1, Stop: End})), ErrLayout)
	release(t, x, row, odd)
}

// Bits behind the last element are zero, for any earlier content of the bytes.
func TestBitsBehindTheLastElement(t *testing.T) {
	memorytest.Check(t)
	arena, err := memory.NewArena(1<<20, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []memory.Source{memory.Process(memory.IO), arena} {
		for range 3 { // released buffers are reused
			full, err := Make(src, dtype.U8, shape.MustOf(2))
			if err != nil {
				t.Fatal(err)
			}
			copy(full.bytes(), "\xff\xff")
			release(t, full)
			x, err := Make(src, dtype.U4, shape.MustOf(3))
			if err != nil {
				t.Fatal(err)
			}
			if last := x.bytes()[1]; last != 0 {
				t.Errorf("got %#x in the last byte, want zeros", last)
			}
			release(t, x)
		}
	}
	if err := arena.Close(); err != nil {
		t.Error(err)
	}
}
