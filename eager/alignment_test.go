package eager_test

import (
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Elements that lie at no multiple of their size are copied before a kernel
// reads them, and no result lies there.
func TestUnalignedOperands(t *testing.T) {
	memorytest.Check(t)
	buf, err := memory.Alloc(2+16, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	copy(buf.Bytes()[2:], unsafe.Slice((*byte)(unsafe.Pointer(&[]float32{1, -2, 3, -4}[0])), 16))
	x := ok(tensor.FromBuffer(buf, 2, dtype.F32, shape.RowMajor(shape.MustOf(4))))(t)
	if err := buf.Release(); err != nil {
		t.Fatal(err)
	}
	y := ok(eager.Relu(x))(t)
	want(t, y, 1, 0, 3, 0)
	wantErr(t, "donated", second(eager.Relu(x.Donate())), tensor.ErrNotReusable, "relu: operand 0", "not aligned")
	want(t, x, 1, -2, 3, -4)
	z := ok(eager.Add(x.Reuse(), y))(t)
	want(t, z, 2, -2, 6, -4)
	if address(z) == nil || uintptr(unsafe.Pointer(address(z)))%4 != 0 {
		t.Error("the result is not aligned")
	}
	release(t, y, z)
}

// Results may be empty, and operands.
func TestEmptyOperands(t *testing.T) {
	memorytest.Check(t)
	x := of(t, nil, 0, 3)
	y := ok(eager.Relu(x))(t)
	z := ok(eager.Add(y.Donate(), x))(t)
	v := ok(z.Donate().Transpose())(t)
	w := ok(eager.Neg(v.Reuse()))(t)
	if w.NumElements() != 0 || w.Shape() != shape.MustOf(3, 0) {
		t.Errorf("got %s, want f32[3,0]", w)
	}
	s := ok(eager.ReduceSum(x, []int{0}, false))(t)
	want(t, s, 0, 0, 0)
	release(t, x, w, s)
}
