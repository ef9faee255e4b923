package compute

import (
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// TestVariants binds the same calls for every variant in one process and runs
// them. All numbers are small integers, so that results are exact, in any order
// of additions.
func TestVariants(t *testing.T) {
	whole := func(dt dtype.DType, seed uint64, dims ...int) op.Arg {
		x := random(dtype.I8, seed, -4, 4, dims...)
		return fromFloats(dt, floats(x), dims...)
	}
	pads := attrs("pads", []int64{1, 1, 1, 1})
	for _, c := range []struct {
		name  string
		attrs op.Attrs
		in    []op.Arg
	}{
		{"matmul", nil, []op.Arg{whole(dtype.F32, 1, 9, 70), whole(dtype.F32, 2, 70, 100)}},
		{"matmul", nil, []op.Arg{whole(dtype.F16, 1, 9, 7), whole(dtype.F16, 2, 7, 10)}},
		{"conv", pads, []op.Arg{whole(dtype.F32, 3, 1, 20, 9, 9), whole(dtype.F32, 4, 70, 20, 3, 3)}},
		{"matmul_integer", nil, []op.Arg{random(dtype.U8, 1, 0, 255, 9, 70), random(dtype.I8, 2, -128, 127, 70, 100)}},
		{"pow", nil, []op.Arg{whole(dtype.F16, 5, 40), fromFloats(dtype.F16, []float64{2}, 1)}},
		{"reduce_sum", nil, []op.Arg{whole(dtype.F32, 6, 33, 65)}},
		{"constant", attrs("dtype", dtype.F16, "dims", []int64{9}, "floats", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}), nil},
	} {
		t.Run(c.name+" "+typeOf(c.in), func(t *testing.T) {
			var want []float64
			for _, v := range machine.Variants() {
				got := runOn(t, v, call(t, c.name, c.attrs, 1, c.in...))
				if want == nil {
					want = got // of the portable variant, which the other tests compare with references
				}
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%s: element %d: got %v, want %v", v.Name, i, got[i], want[i])
					}
				}
			}
		})
	}
}

func typeOf(in []op.Arg) string {
	if len(in) == 0 {
		return ""
	}
	return in[0].DType.String()
}

// runOn binds a call whose second operand is constant and returns the elements
// of its result.
func runOn(t *testing.T, v *kernel.Variant, c *op.Call) []float64 {
	t.Helper()
	freshResults(c)
	task, err := bindFor(v, c, Constants{Is: func(arg int) bool { return arg == 1 }, Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	for arg, form := range task.Forms {
		packed := aligned(form.Bytes)
		form.Pack(packed, c.In[arg].Data)
		old := c.In[arg].Data
		c.In[arg].Data = packed
		defer func() { c.In[arg].Data = old }()
	}
	if err := task.run(aligned(task.Scratch)); err != nil {
		t.Fatal(err)
	}
	return floats(c.Out[0])
}

// TestVariantIsPassedOn binds calls for variants that differ from the best one
// in the entries that a binder, a packer or an inner task reads.
func TestVariantIsPassedOn(t *testing.T) {
	constants := Constants{Is: func(arg int) bool { return arg == 1 }}
	forms := func(v *kernel.Variant, name string, in ...op.Arg) int {
		task, err := bindFor(v, call(t, name, nil, 1, in...), constants)
		if err != nil {
			t.Fatal(err)
		}
		return len(task.Forms)
	}
	wide := *kernel.Portable
	wide.Gemm.Width = 64
	x, w := random(dtype.F32, 1, -1, 1, 9, 70), random(dtype.F32, 2, -1, 1, 70, 20)
	if narrow, wide := forms(kernel.Portable, "matmul", x, w), forms(&wide, "matmul", x, w); narrow != 1 || wide != 0 {
		t.Errorf("got %d forms for panels of %d columns and %d for panels of 64, want 1 and 0", narrow, kernel.Portable.Gemm.Width, wide)
	}
	bytes := *kernel.Portable
	bytes.Bytes.Width, bytes.Bytes.Step = 16, 2
	a, b := random(dtype.U8, 1, 0, 255, 9, 70), random(dtype.I8, 2, -128, 127, 70, 100)
	if without, with := forms(kernel.Portable, "matmul_integer", a, b), forms(&bytes, "matmul_integer", a, b); without != 0 || with != 1 {
		t.Errorf("got %d forms without panels of bytes and %d with them, want 0 and 1", without, with)
	}

	calls := 0
	counting := *kernel.Portable
	counting.Rows.NarrowF16 = func(n int, dst *uint16, x *float32) {
		calls++
		to, from := unsafe.Slice(dst, 8*n), unsafe.Slice(x, 8*n)
		for i := range to {
			to[i] = uint16(dtype.Float16FromFloat32(from[i]))
		}
	}
	half := random(dtype.F16, 5, 1, 4, 40)
	for _, c := range []*op.Call{
		call(t, "constant", attrs("dtype", dtype.F16, "dims", []int64{9}, "floats", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}), 1),
		call(t, "pow", nil, 1, half, fromFloats(dtype.F16, []float64{2}, 1)), // a task inside of another
	} {
		calls = 0
		runOn(t, &counting, c)
		if calls == 0 {
			t.Errorf("%s: got no call of the variant's loop that rounds to f16", c.Def.Name)
		}
	}
}
