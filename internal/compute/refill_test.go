package compute

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// runPacked runs a task with its constants in their forms, and returns
// result 0.
func runPacked(t *testing.T, task *Task) []byte {
	t.Helper()
	c := task.Call
	raw := map[int][]byte{}
	for i, f := range task.Forms {
		raw[i] = c.In[i].Data
		if f.Measure != nil {
			f.Bytes = f.Measure(raw[i])
		}
		packed := aligned(f.Bytes)
		f.Pack(packed, raw[i])
		c.In[i].Data = packed
	}
	freshResults(c)
	if err := task.run(aligned(task.Scratch)); err != nil {
		t.Fatal(err)
	}
	for i, data := range raw {
		c.In[i].Data = data
	}
	return c.Out[0].Data
}

// retype sets the shapes and bytes of the task's call to those of another call.
func retype(task *Task, to *op.Call) {
	*task.Call.Sig = *to.Sig
	copy(task.Call.In, to.In)
	copy(task.Call.Out, to.Out)
}

// Tasks that read constants in a form compute the same after a Refill as when
// bound, in the same form: it does not depend on the sizes of other operands.
func TestRefillKeepsForms(t *testing.T) {
	f32 := func(seed uint64, dims ...int) op.Arg { return random(dtype.F32, seed, -1, 1, dims...) }
	image := func(h, w int) []op.Arg { return []op.Arg{f32(1, 1, 20, h, w), f32(5, 70, 20, 3, 3)} }
	bytesOf := func(rows int) []op.Arg {
		return []op.Arg{random(dtype.U8, 1, 0, 255, rows, 70), random(dtype.I8, 2, -128, 127, 70, 100)}
	}
	pads := attrs("pads", []int64{1, 1, 1, 1})
	f16 := func(seed uint64, dims ...int) op.Arg { return random(dtype.F16, seed, -1, 1, dims...) }
	halfImage := func(h, w int) []op.Arg { return []op.Arg{f16(1, 1, 20, h, w), f16(5, 70, 20, 3, 3)} }
	for _, c := range []struct {
		name       string
		attrs      op.Attrs
		a, b       []op.Arg
		compressed bool
	}{
		{"matmul", nil, []op.Arg{f32(1, 9, 70), f32(2, 70, 100)}, []op.Arg{f32(1, 3, 140, 70), f32(2, 70, 100)}, false},
		{"matmul", nil, []op.Arg{f32(1, 1, 300), f32(2, 300, 100)}, []op.Arg{f32(1, 40, 300), f32(2, 300, 100)}, true},
		{"gemm", attrs("transB", 1), []op.Arg{f32(1, 200, 70), f32(3, 100, 70)}, []op.Arg{f32(1, 2, 70), f32(3, 100, 70)}, false},
		{"fused_matmul", nil, []op.Arg{f32(1, 5, 70), f32(2, 70, 100), f32(3, 100)}, []op.Arg{f32(1, 2, 7, 70), f32(2, 70, 100), f32(3, 100)}, false},
		{"matmul_integer", nil, bytesOf(9), bytesOf(130), false},
		{"conv", pads, image(7, 7), image(9, 12), false},
		{"conv", pads, image(30, 31), image(5, 6), false},
		{"conv", pads, []op.Arg{f32(1, 1, 20, 64, 64), f32(6, 12, 20, 3, 3)}, []op.Arg{f32(1, 1, 20, 8, 2), f32(6, 12, 20, 3, 3)}, false},
		{"conv", pads, []op.Arg{f32(1, 0, 20, 5, 9), f32(6, 12, 20, 3, 3)}, []op.Arg{f32(1, 1, 20, 1, 9), f32(6, 12, 20, 3, 3)}, false},
		{"conv", attrs("strides", []int64{2, 2}), []op.Arg{f32(1, 1, 6, 64, 64), f32(6, 3, 6, 3, 3)}, []op.Arg{f32(1, 1, 6, 5, 4), f32(6, 3, 6, 3, 3)}, false},
		{"conv", attrs("dilations", []int64{300, 1}, "pads", []int64{300, 0, 300, 0}), []op.Arg{f32(1, 1, 3, 1, 20000), f32(6, 20, 3, 3, 1)}, []op.Arg{f32(1, 1, 3, 310, 5), f32(6, 20, 3, 3, 1)}, false},
		{"conv", attrs("group", 40), []op.Arg{f32(1, 1, 40, 9, 9), f32(6, 40, 1, 3, 3)}, []op.Arg{f32(1, 3, 40, 20, 11), f32(6, 40, 1, 3, 3)}, false},
		{"fused_conv", attrs("pool", "max", "pool_kernel", []int64{2, 2}, "pool_strides", []int64{2, 2}), image(12, 12), image(31, 18), false},
		{"fused_conv", attrs("pool", "max", "pool_kernel", []int64{2, 2}, "pool_strides", []int64{2, 2}), halfImage(12, 12), halfImage(61, 18), false},
		{"conv", pads, halfImage(40, 31), halfImage(5, 6), false},
		{"matmul", nil, []op.Arg{f16(1, 9, 70), f16(2, 70, 100)}, []op.Arg{f16(1, 3, 140, 70), f16(2, 70, 100)}, true},
		{"gemm", attrs("transB", 1, "alpha", 2.0), []op.Arg{f16(1, 200, 70), f16(3, 100, 70)}, []op.Arg{f16(1, 2, 70), f16(3, 100, 70)}, false},
	} {
		constants := Constants{Is: func(i int) bool { return i == 1 }, Compressed: c.compressed}
		bind := func(in []op.Arg) *Task {
			task, err := BindConstants(call(t, c.name, c.attrs, 1, slices.Clone(in)...), constants)
			if err != nil {
				t.Fatal(err)
			}
			return task
		}
		task, at, other := bind(c.a), bind(c.a), bind(c.b)
		for i, next := range []*Task{other, at, other} {
			retype(task, next.Call)
			if err := task.Refill(); err != nil {
				t.Fatalf("%s, refill %d: %v", c.name, i, err)
			}
			if got, want := task.Forms[1].Name, next.Forms[1].Name; got != want {
				t.Fatalf("%s, refill %d: got the form %q, want %q as when bound", c.name, i, got, want)
			}
			if got, want := runPacked(t, task), runPacked(t, next); !bytes.Equal(got, want) {
				t.Errorf("%s, refill %d: the result differs from that of the task that was bound", c.name, i)
			}
		}
	}
}

// A form is of one shape of its operand.
func TestRefillOfAnotherWeight(t *testing.T) {
	f32 := func(dims ...int) op.Arg { return random(dtype.F32, 1, -1, 1, dims...) }
	constants := Constants{Is: func(i int) bool { return i == 1 }}
	task, err := BindConstants(call(t, "matmul", nil, 1, f32(9, 70), f32(70, 100)), constants)
	if err != nil {
		t.Fatal(err)
	}
	retype(task, call(t, "matmul", nil, 1, f32(9, 80), f32(80, 100)))
	if err := task.Refill(); !errors.Is(err, ErrRebind) {
		t.Errorf("got %v, want ErrRebind", err)
	}
	plain, err := Bind(call(t, "matmul", nil, 1, f32(9, 70), f32(70, 100)))
	if err != nil {
		t.Fatal(err)
	}
	retype(plain, call(t, "matmul", nil, 1, f32(9, 80), f32(80, 100)))
	if err := plain.Refill(); err != nil {
		t.Errorf("got %v of a task that reads the operand as it is, want none", err)
	}
}

// A Refill that fails leaves a task that the next one repairs.
func TestRefillAfterAnError(t *testing.T) {
	x, y := random(dtype.F32, 1, -1, 1, 5, 7), random(dtype.F32, 2, -1, 1, 5, 7)
	task, err := Bind(call(t, "add", nil, 1, x, y))
	if err != nil {
		t.Fatal(err)
	}
	task.Call.In[0].Shape = nil
	if err := task.Refill(); err == nil {
		t.Fatal("got no error for an operand without a shape")
	}
	to := call(t, "add", nil, 1, random(dtype.F32, 3, -1, 1, 3, 1), random(dtype.F32, 4, -1, 1, 200))
	retype(task, to)
	if err := task.Refill(); err != nil {
		t.Fatal(err)
	}
	bound, err := Bind(to)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(runPacked(t, task), runPacked(t, bound)) {
		t.Error("the result differs from that of the task that was bound")
	}
}
