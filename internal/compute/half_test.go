package compute

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// Calls on 16-bit floats that run in pieces compute what the float32 kernels
// compute from the same numbers, rounded once, bit by bit. A large call has
// several tiles, and less scratch than its operands would take as float32.
func TestHalfInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		name  string
		attrs op.Attrs
		more  func(x []int) [][]int // sizes of the other operands
	}{
		{"softmax", attrs("axis", -1), nil},
		{"softmax", attrs("axis", 2), nil},
		{"log_softmax", attrs("axis", 3), nil},
		{"layer_normalization", attrs("axis", 3), func(x []int) [][]int { return [][]int{{x[3]}, {x[3]}} }},
		{"rms_normalization", attrs("axis", 2), func(x []int) [][]int { return [][]int{{x[2], x[3]}} }},
		{"instance_normalization", nil, func(x []int) [][]int { return [][]int{{x[1]}, {x[1]}} }},
		{"batch_normalization", nil, func(x []int) [][]int { return [][]int{{x[1]}, {x[1]}, {x[1]}, {x[1]}} }},
		{"group_normalization", attrs("num_groups", 1), func(x []int) [][]int { return [][]int{{x[1]}, {x[1]}} }},
		{"lrn", attrs("size", 3), nil},
		{"max_pool", attrs("kernel_shape", []int64{2, 3}, "pads", []int64{0, 1, 1, 1}), nil},
		{"average_pool", attrs("kernel_shape", []int64{3, 2}, "strides", []int64{2, 1}, "pads", []int64{1, 0, 1, 1}), nil},
		{"global_average_pool", nil, nil},
		{"global_max_pool", nil, nil},
		{"max", nil, func(x []int) [][]int { return [][]int{{x[2], x[3]}, {x[1], 1, x[3]}} }},
		{"mean", nil, func(x []int) [][]int { return [][]int{{x[0], 1, 1, 1}, x} }},
	} {
		for i := range 12 {
			x := []int{1 + r.IntN(3), 1 + r.IntN(40), 3 + r.IntN(30), 3 + r.IntN(30)}
			switch i {
			case 0:
				x = []int{1, 30, 40, 50}
			case 1: // more pieces than tiles
				x = []int{37, 20, 20, 30}
			}
			sizes := [][]int{x}
			if c.more != nil {
				sizes = append(sizes, c.more(x)...)
			}
			dt := []dtype.DType{dtype.F16, dtype.BF16}[i%2]
			var halves, wide []op.Arg
			for k, s := range sizes {
				a := random(dt, uint64(i*10+k), 0.5, 3, s...)
				halves, wide = append(halves, a), append(wide, fromFloats(dtype.F32, floats(a), s...))
			}
			what := fmt.Sprintf("%s of %s%v", c.name, dt, sizes)
			f32 := eval(t, c.name, c.attrs, wide...)
			want := fromFloats(dt, floats(f32), f32.Shape.Sizes()...)
			expect(t, what, eval(t, c.name, c.attrs, halves...), want.Shape.Sizes(), floats(want), 0)
			if i > 0 {
				continue
			}
			task, err := Bind(call(t, c.name, c.attrs, 1, halves...))
			if err != nil {
				t.Fatal(err)
			}
			if whole := 4 * (elements(&halves[0]) + elements(&want)); task.Tiles < 2 || task.Scratch > whole*3/4 {
				if c.name != "lrn" && c.name != "group_normalization" { // one sample is one piece
					t.Errorf("%s: got %d tiles and %d bytes of scratch, want tiles that have less than the %d bytes of all", what, task.Tiles, task.Scratch, whole)
				}
			}
		}
	}
}

// Convolutions and products of 16-bit floats, with all that is fused into them,
// compute what those of float32 do, to the last bits of the 16-bit type, with
// constants in a form and without.
func TestHalfAgainstFloat32(t *testing.T) {
	pads := []any{"pads", []int64{1, 1, 1, 1}}
	pool := append([]any{"pool", "max", "pool_kernel", []int64{3, 3}, "pool_strides", []int64{2, 2}, "pool_pads", []int64{1, 1, 1, 1}}, pads...)
	none := []int(nil)
	for _, c := range []struct {
		name  string
		attrs op.Attrs
		sizes [][]int
	}{
		{"conv", attrs(pads...), [][]int{{2, 20, 17, 19}, {40, 20, 3, 3}, {40}}},
		{"conv", attrs("group", 24, "strides", []int64{2, 2}), [][]int{{1, 24, 30, 31}, {24, 1, 3, 3}}},
		{"conv", attrs("group", 3, "dilations", []int64{2}), [][]int{{2, 12, 300}, {9, 4, 3}, {9}}},
		{"conv", nil, [][]int{{1, 5, 9, 10, 11}, {7, 5, 3, 3, 3}}},
		{"fused_conv", attrs(append(pool, "activation", "relu")...), [][]int{{1, 3, 40, 41}, {24, 3, 3, 3}, {24}}},
		{"fused_conv", attrs("activation", "clip", "beta", 1.0), [][]int{{1, 64, 14, 14}, {96, 64, 1, 1}, {96}, {1, 96, 14, 14}}},
		{"fused_conv", attrs(append([]any{"pre_relu", 1}, pads...)...), [][]int{{1, 20, 9, 9}, {10, 20, 3, 3}, none, none, {20}, {20}}},
		{"fused_conv", attrs("activation", "sigmoid"), [][]int{{1, 20, 9, 9}, {10, 20, 1, 1}, none, none, none, {20}}},
		{"conv_transpose", attrs("strides", []int64{2, 2}), [][]int{{2, 20, 17, 19}, {20, 12, 2, 3}, {12}}},
		{"conv_transpose", attrs("strides", []int64{3}, "group", 2), [][]int{{1, 20, 700}, {20, 2, 4}}},
		{"matmul", nil, [][]int{{3, 37, 70}, {70, 45}}},
		{"matmul", nil, [][]int{{2, 3, 9, 20}, {3, 20, 33}}},
		{"gemm", attrs("transB", 1, "alpha", 0.5), [][]int{{130, 300}, {70, 300}, {70}}},
		{"fused_matmul", attrs("activation", "gelu"), [][]int{{1, 300}, {300, 70}, {70}, {1, 70}}},
		{"fused_matmul", attrs("activation", "silu", "transB", 1), [][]int{{2, 5, 40}, {33, 40}, {33}}},
	} {
		for i, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
			var halves, wide []op.Arg
			for k, s := range c.sizes {
				if s == nil {
					halves, wide = append(halves, absent), append(wide, absent)
					continue
				}
				a := random(dt, uint64(i*10+k), -1, 1, s...)
				w := fromFloats(dtype.F32, floats(a), s...)
				if k >= 4 {
					a = w
				}
				halves, wide = append(halves, a), append(wide, w)
			}
			what := fmt.Sprintf("%s of %s%v", c.name, dt, c.sizes)
			want := eval(t, c.name, c.attrs, wide...)
			eps := map[dtype.DType]float64{dtype.F16: 0x1p-10, dtype.BF16: 0x1p-7}[dt]
			expect(t, what, eval(t, c.name, c.attrs, halves...), want.Shape.Sizes(), floats(want), eps)
			task, err := BindConstants(call(t, c.name, c.attrs, 1, slices.Clone(halves)...), Constants{Is: func(i int) bool { return i == 1 }})
			if err != nil {
				t.Fatal(err)
			}
			packed := op.Arg{Type: task.Call.Out[0].Type, Data: runPacked(t, task)}
			if f, ok := task.Forms[1]; ok && f.Unpack == nil { // transformed weights were rounded, too
				eps *= 8
			}
			expect(t, what+" in a form", packed, want.Shape.Sizes(), floats(want), eps)
			if f, ok := task.Forms[1]; ok && f.Bytes > 3*len(halves[1].Data) {
				t.Errorf("%s: got a form of %d bytes for a weight of %d, want one of 16-bit floats", what, f.Bytes, len(halves[1].Data))
			}
		}
	}
}
