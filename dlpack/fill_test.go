package dlpack

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func TestFill(t *testing.T) {
	memorytest.Check(t)
	x := counting(t)
	v := ok(x.Slice(tensor.All, tensor.Range{Start: 1, Stop: 3}))(t)
	var d DLTensor
	if err := Fill(&d, v); err != nil {
		t.Fatal(err)
	}
	data, first := v.UnsafeBytes()
	want := DLTensor{Data: uintptr(unsafe.Pointer(&data[first])), Device: Device{CPU, 0}, NDim: 2, DType: DataType{Float, 32, 1}, Shape: d.Shape, Strides: d.Strides}
	if d != want || !slices.Equal(words(d.Shape, 2), []int64{2, 2}) || !slices.Equal(words(d.Strides, 2), []int64{3, 1}) {
		t.Errorf("got %+v with shape %v and strides %v, want %+v with [2 2] and [3 1]", d, words(d.Shape, 2), words(d.Strides, 2), want)
	}
	if got := testing.AllocsPerRun(100, func() { _ = Fill(&d, v) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
	release(t, v)
	wantErr(t, "released", Fill(&d, v), tensor.ErrReleased, "already released")
	wantErr(t, "no tensor", Fill(&d, nil), tensor.ErrNoTensor, "got no tensor")
	w := ok(tensor.Write[float32](x))(t)
	wantErr(t, "while it is written", Fill(&d, x), tensor.ErrWriting, "being written")
	w.Release()
	release(t, x)
	empty := ok(tensor.New(dtype.I64, shape.MustOf(0, 2)))(t)
	if err := Fill(&d, empty); err != nil || d.Data != 0 {
		t.Errorf("empty: got %v and data at %#x, want NULL", err, d.Data)
	}
	release(t, empty)
}
