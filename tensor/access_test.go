package tensor

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

func TestReadAndWrite(t *testing.T) {
	memorytest.Check(t)
	x := ok(New(dtype.F32, shape.MustOf(4)))(t)
	w := ok(Write[float32](x))(t)
	w.Data[2] = 5
	for _, err := range []error{
		second(Read[float32](x)), second(Write[float32](x)), second(x.Use()), second(x.Lock()), second(x.View()), second(Values[float32](x)),
		second(Take("relu", x)), second(Take("relu", x.Donate())), second(Take("relu", x.Reuse())), second(x.Donate().Reshape(2, 2)),
		x.WhyNotWritable(),
	} {
		wantErr(t, "while it is written", err, ErrWriting)
	}
	if x.IsExclusive() {
		t.Error("while it is written: got exclusive, want not")
	}
	w.Release()
	w.Release() // harmless
	r := ok(Read[float32](x))(t)
	r2 := ok(Read[float32](x))(t)
	if r.Data[2] != 5 || r2.Data[2] != 5 {
		t.Errorf("got %v and %v, want 5 as third", r.Data, r2.Data)
	}
	wantErr(t, "write while it is read", second(Write[float32](x)), ErrShared)
	if err := x.WhyNotWritable(); !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), "2 uses") {
		t.Errorf("why: got %v, want ErrShared with the 2 uses", err)
	}
	r.Release()
	r2.Release()
	if err := x.WhyNotWritable(); err != nil {
		t.Errorf("after all views: got %v, want none", err)
	}
	release(t, x)
}

func TestReleaseWhileInUse(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]int64{1, 2, 3}, 3))(t)
	v := ok(Read[int64](x))(t)
	release(t, x)
	if x.Holders() != 1 || v.Data[1] != 2 {
		t.Errorf("released in use: got %d holders and %v, want the bytes to stay", x.Holders(), v.Data)
	}
	wantErr(t, "read", second(Read[int64](x)), ErrReleased)
	v.Release()
	if x.Holders() != 0 {
		t.Errorf("after the use: got %d holders, want 0", x.Holders())
	}
	wantErr(t, "second release", x.Release(), ErrReleased)
	if v.Data != nil {
		t.Error("a released view still shows data")
	}
}

func TestAccessErrors(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, 2, 3, 4}, 2, 2))(t)
	y := ok(x.Transpose())(t)
	for _, c := range []struct {
		name       string
		err, kind  error
		text, also string
	}{
		{"other type", second(Read[float64](x)), ErrDType, "read: got f32[2,2], want elements of f64", ""},
		{"write other type", second(Write[int32](x)), ErrDType, "write: got f32[2,2], want elements of i32", ""},
		{"values of other type", second(Values[int32](x)), ErrDType, "i32", ""},
		{"transposed", second(Read[float32](y)), ErrLayout, "contiguous", "[1 2]"},
		{"transposed bytes", second(y.Use()), ErrLayout, "contiguous", ""},
		{"transposed lock", second(y.Lock()), ErrLayout, "contiguous", ""},
		{"nil", second(Read[float32](nil)), ErrNoTensor, "no tensor", ""},
		{"nil values", second(Values[float32](nil)), ErrNoTensor, "no tensor", ""},
		{"nil release", (*Tensor)(nil).Release(), ErrNoTensor, "no tensor", ""},
		{"zero release", (&Tensor{}).Release(), ErrNoTensor, "no tensor", ""},
		{"zero view", second((&Tensor{}).View()), ErrNoTensor, "no tensor", ""},
		{"nil view", second((*Tensor)(nil).Reshape(1)), ErrNoTensor, "no tensor", ""},
		{"zero", second((&Tensor{}).Use()), ErrNoTensor, "no tensor", ""},
		{"nil operand", second(Take("add", x, nil)), ErrNoTensor, "add: operand 1", ""},
		{"nil tensor operand", second(Take("add", x, (*Tensor)(nil).Donate())), ErrNoTensor, "add: operand 1", ""},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) || !strings.Contains(c.err.Error(), c.also) {
			t.Errorf("%s: got %v, want kind %q and texts %q, %q", c.name, c.err, c.kind, c.text, c.also)
		}
	}
	wantErr(t, "why a nil tensor", (*Tensor)(nil).WhyNotWritable(), ErrNoTensor)
	release(t, x, y)
	if data, _ := x.UnsafeBytes(); data != nil {
		t.Error("unsafe bytes of a released tensor: got some")
	}
}

func TestUnsafeBytesFindsTheFirstElement(t *testing.T) {
	x := ok(Of([]uint8{1, 2, 3, 4, 5, 6}, 6))(t)
	defer x.Release()
	y := ok(x.Slice(Range{Start: 2, Stop: 5, Step: 2}))(t)
	defer y.Release()
	data, first := y.UnsafeBytes()
	if len(data) != 3 || data[first] != 3 || data[2] != 5 {
		t.Errorf("got %v from %d, want 3 4 5 from 0", data, first)
	}
}

func TestAt(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]int32{1, 2, 3, 4, 5, 6}, 2, 3))(t)
	y := ok(x.Transpose())(t)
	z := ok(x.Slice(All, Range{Start: 1, Stop: End}))(t)
	s := ok(Of([]float64{7}))(t)
	for _, c := range []struct {
		x    *Tensor
		at   []int
		want int32
	}{
		{x, []int{0, 0}, 1}, {x, []int{1, -1}, 6}, {x, []int{-2, 1}, 2}, {y, []int{2, 1}, 6}, {y, []int{0, 1}, 4}, {z, []int{1, 0}, 5},
	} {
		if got, err := At[int32](c.x, c.at...); got != c.want || err != nil {
			t.Errorf("at %v of %s: got %d, %v, want %d", c.at, c.x.Layout(), got, err, c.want)
		}
	}
	if got, err := At[float64](s); got != 7 || err != nil {
		t.Errorf("scalar: got %v, %v, want 7", got, err)
	}
	for _, c := range []struct {
		err  error
		kind error
		text string
	}{
		{second(At[int32](x, 0)), ErrShape, "at: got 1 places for shape [2,3], want 2"},
		{second(At[int32](x, 0, 1, 2)), ErrShape, "want at most 2"},
		{second(At[int32](x, 2, 0)), ErrShape, "at: axis 0: got place 2, want it within size 2"},
		{second(At[float32](x, 0, 0)), ErrDType, "got i32[2,3], want elements of f32"},
		{second(At[float32](nil)), ErrNoTensor, "at: got no tensor"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("got %v, want kind %q and text %q", c.err, c.kind, c.text)
		}
	}
	w := ok(Write[float64](s))(t)
	wantErr(t, "writing", second(At[float64](s)), ErrWriting)
	w.Release()
	release(t, x, y, z, s)
	wantErr(t, "released", second(At[int32](x, 0, 0)), ErrReleased)
}

func TestAccessAllocatesNothing(t *testing.T) {
	x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	defer x.Release()
	sum := float32(0)
	for name, f := range map[string]func(){
		"read": func() {
			v, err := Read[float32](x)
			if err != nil {
				t.Fatal(err)
			}
			sum += v.Data[0]
			v.Release()
		},
		"write": func() {
			v, err := Write[float32](x)
			if err != nil {
				t.Fatal(err)
			}
			v.Data[0]++
			v.Release()
		},
		"use": func() {
			b, err := x.Use()
			if err != nil {
				t.Fatal(err)
			}
			sum += float32(b.Data[0])
			b.Release()
		},
		"lock": func() {
			b, err := x.Lock()
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		},
		"at": func() {
			v, err := At[float32](x, 3)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		},
		"ask": func() {
			if !x.IsExclusive() || x.Holders() != 1 {
				t.Fatal("not exclusive")
			}
		},
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, n)
		}
	}
	if math.IsNaN(float64(sum)) {
		t.Error("read nonsense")
	}
}

func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(Tensor{}); got > 80 {
		t.Errorf("Tensor: got %d bytes, want at most 80: every result of every operation allocates one", got)
	}
}
