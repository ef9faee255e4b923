package compute

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// TestFusedMatMul computes fused calls call by call and at once, with the
// right matrix as it is and packed.
func TestFusedMatMul(t *testing.T) {
	x, w := random(dtype.F32, 1, -1, 1, 2, 9, 70), random(dtype.F32, 2, -1, 1, 70, 100)
	bias, residual := random(dtype.F32, 3, -1, 1, 100), random(dtype.F32, 4, -1, 1, 2, 9, 100)
	for i, c := range []struct {
		activation string
		attrs      op.Attrs
		name       string
		bias, res  bool
	}{
		{activation: "", bias: true},
		{activation: "", res: true},
		{activation: "relu", name: "relu", bias: true, res: true},
		{activation: "gelu", name: "gelu", bias: true},
		{activation: "gelu_tanh", name: "gelu", attrs: attrs("approximate", "tanh"), bias: true, res: true},
		{activation: "silu", name: "swish"},
		{activation: "tanh", name: "tanh", res: true},
	} {
		want := run(t, call(t, "matmul", nil, 1, x, w))[0]
		operands := []op.Arg{x, w, {}, {}}
		if c.bias {
			operands[2], want = bias, run(t, call(t, "add", nil, 1, want, bias))[0]
		}
		if c.res {
			operands[3], want = residual, run(t, call(t, "add", nil, 1, want, residual))[0]
		}
		if c.name != "" {
			want = run(t, call(t, c.name, c.attrs, 1, want))[0]
		}
		fused := call(t, "fused_matmul", attrs("activation", c.activation), 1, operands...)
		name := fmt.Sprintf("case %d, activation %q", i, c.activation)
		expect(t, name, run(t, fused)[0], []int{2, 9, 100}, floats(want), 1e-5)

		task, err := BindConstants(fused, Constants{Is: func(i int) bool { return i == 1 }})
		if err != nil {
			t.Fatal(err)
		}
		form, ok := task.Forms[1]
		if !ok {
			t.Fatalf("%s: the weights are not packed", name)
		}
		panels := aligned(form.Bytes)
		form.Pack(panels, w.Data)
		fused.In[1].Data = panels
		fused.Out[0].Data = emptyData(fused.Out[0].Type)
		scratch := aligned(task.Scratch)
		for tile := range task.Tiles {
			task.Tile(tile, scratch)
		}
		expect(t, name+", packed", fused.Out[0], []int{2, 9, 100}, floats(want), 1e-5)
	}
}

// TestFusedMatMulOfMatrices multiplies with several matrices, as they lie and
// transposed: by the call, and by a transpose before a matmul.
func TestFusedMatMulOfMatrices(t *testing.T) {
	for _, c := range []struct{ left, right []int }{
		{[]int{2, 3, 1, 64}, []int{2, 3, 70, 64}},
		{[]int{2, 3, 4, 64}, []int{3, 70, 64}},
		{[]int{3, 5, 9}, []int{2, 1, 33, 9}},
		{[]int{1, 9}, []int{3, 33, 9}},
		{[]int{3, 7, 9}, []int{3, 1, 9}},
	} {
		x, w := random(dtype.F32, 1, -1, 1, c.left...), random(dtype.F32, 2, -1, 1, c.right...)
		perm := []int64{0, 1, 2, 3}[:len(c.right)]
		perm[len(perm)-1], perm[len(perm)-2] = perm[len(perm)-2], perm[len(perm)-1]
		transposed := run(t, call(t, "transpose", attrs("perm", perm), 1, w))[0]
		want := run(t, call(t, "matmul", nil, 1, x, transposed))[0]
		sizes := want.Shape.Sizes()
		bias, residual := random(dtype.F32, 3, -1, 1, sizes[len(sizes)-1]), random(dtype.F32, 4, -1, 1, sizes...)
		want = run(t, call(t, "add", nil, 1, want, bias))[0]
		want = run(t, call(t, "add", nil, 1, want, residual))[0]
		want = run(t, call(t, "relu", nil, 1, want))[0]
		for swap, right := range []op.Arg{transposed, w} {
			got := run(t, call(t, "fused_matmul", attrs("activation", "relu", "transB", int64(swap)), 1, x, right, bias, residual))[0]
			expect(t, fmt.Sprintf("%v times %v, transB %d", c.left, right.Shape, swap), got, sizes, floats(want), 1e-5)
		}
	}
}
