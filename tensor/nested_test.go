package tensor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

type celsius float32

func TestNested(t *testing.T) {
	memorytest.Check(t)
	half := dtype.Float16FromFloat32(0.5)
	for _, v := range []any{
		float32(1.5), []float64{1, 2}, [][]int32{{1, 2, 3}, {4, 5, 6}}, [][][]bool{{{true}, {false}}}, []dtype.Float16{half}, [][]celsius{{36.6}},
		[]uint8{}, [][]int64{{}, {}},
	} {
		x := ok(FromNested(v))(t)
		back, err := nestedAs(v, x)
		if err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("%T: got %v, error %v, want %v", v, back, err, v)
		}
		release(t, x)
	}
	for want, v := range map[string]any{"i8[2,2]": [2][]int8{{1, 2}, {3, 4}}, "f32[0,0]": [][]float32{}, "f32[1,0,0]": [][][]float32{{}}, "u16[2]": [2]uint16{1, 2}} {
		x := ok(FromNested(v))(t)
		if got := x.describe(); got != want {
			t.Errorf("%T: got %s, want %s", v, got, want)
		}
		release(t, x)
	}
}

// nestedAs calls Nested for the type of v.
func nestedAs(v any, x *Tensor) (any, error) {
	switch v.(type) {
	case float32:
		return Nested[float32](x)
	case []float64:
		return Nested[[]float64](x)
	case [][]int32:
		return Nested[[][]int32](x)
	case [][][]bool:
		return Nested[[][][]bool](x)
	case []dtype.Float16:
		return Nested[[]dtype.Float16](x)
	case [][]celsius:
		return Nested[[][]celsius](x)
	case []uint8:
		return Nested[[]uint8](x)
	}
	return Nested[[][]int64](x)
}

func TestNestedOfViews(t *testing.T) {
	memorytest.Check(t)
	x := ok(FromNested([][]int32{{1, 2, 3}, {4, 5, 6}}))(t)
	transposed := ok(x.Transpose())(t)
	rows, err := Nested[[][]int32](transposed)
	if want := [][]int32{{1, 4}, {2, 5}, {3, 6}}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("got %v, error %v, want %v", rows, err, want)
	}
	if cap(rows[0]) != 2 {
		t.Errorf("got room for %d elements in a row, want 2: an append would reach into the next", cap(rows[0]))
	}
	release(t, x, transposed)
}

func TestNestedRefuses(t *testing.T) {
	memorytest.Check(t)
	x := ok(FromNested([][]int32{{1}}))(t)
	for what, c := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"nil":              {second(FromNested(nil)), ErrDType, "got nil"},
		"text":             {second(FromNested([]string{"a"})), ErrDType, "got []string"},
		"ints":             {second(FromNested([][]int{{1}})), ErrDType, "got [][]int"},
		"rows that differ": {second(FromNested([][]int32{{1, 2}, {3}})), ErrShape, "got 1 elements in row [1], want 2"},
		"a deep one":       {second(FromNested([][][]int8{{{1}}, {{1}}, {{1, 2}}})), ErrShape, "got 2 elements in row [2 0], want 1"},
		"another rank":     {second(Nested[[]int32](x)), ErrDType, "nested: got i32[1,1], which does not go into []int32"},
		"another type":     {second(Nested[[][]float32](x)), ErrDType, "[][]float32"},
		"arrays":           {second(Nested[[][1]int32](x)), ErrDType, "[][1]int32"},
		"an interface":     {second(Nested[any](x)), ErrDType, "interface"},
		"no tensor at all": {second(Nested[[]int32](nil)), ErrNoTensor, "nested"},
	} {
		wantErr(t, what, c.err, c.kind)
		if !strings.Contains(fmt.Sprint(c.err), c.text) {
			t.Errorf("%s: got %v, want it to say %q", what, c.err, c.text)
		}
	}
	release(t, x)
	wantErr(t, "released", second(Nested[[][]int32](x)), ErrReleased)
}

// The caller's slice is written where the tensor is given up, and only then.
func TestWrapWritable(t *testing.T) {
	memorytest.Check(t)
	data := []float32{1, 2, 3, 4}
	x := ok(WrapWritable(data, 2, 2))(t)
	at, _ := x.UnsafeBytes()
	if unsafe.Pointer(&at[0]) != unsafe.Pointer(&data[0]) || !x.IsExclusive() {
		t.Fatal("the tensor is not over the slice, or not exclusive")
	}
	w := ok(Write[float32](x))(t)
	w.Data[0] = 10
	wantErr(t, "read meanwhile", second(Read[float32](x)), ErrWriting)
	w.Release()
	view := ok(x.Reshape(4))(t)
	wantErr(t, "write beside a view", second(Write[float32](x)), ErrShared)
	release(t, view)
	y := ok(x.Donate().Reshape(4))(t)
	wantErr(t, "use after it was given up", second(Read[float32](x)), ErrDonated)
	if w, err := Write[float32](y); err != nil {
		t.Error(err)
	} else {
		w.Data[3] = 40
		w.Release()
	}
	release(t, y)
	if data[0] != 10 || data[3] != 40 {
		t.Errorf("got %v, want the two that were written", data)
	}
	wantErr(t, "too few", second(WrapWritable(data, 5)), ErrShape)

	fixed := ok(Wrap(data, 4))(t)
	wantErr(t, "a slice that is only lent", second(Write[float32](fixed)), ErrShared)
	release(t, fixed)
}
