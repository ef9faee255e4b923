package compute

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op"
)

func singles(a op.Arg) []float32 {
	if a.IsZero() {
		return nil
	}
	var out []float32
	for _, v := range floats(a) {
		out = append(out, float32(v))
	}
	return out
}

// refWindow is the reference's form of spatial axes.
func refWindow(axes []op.WindowAxis) ref.Window {
	var w ref.Window
	for _, a := range axes {
		w.In, w.Out, w.Kernel = append(w.In, a.In), append(w.Out, a.Out), append(w.Kernel, a.Kernel)
		w.Stride, w.Dilation = append(w.Stride, a.Stride), append(w.Dilation, a.Dilation)
		w.PadBegin, w.PadEnd = append(w.PadBegin, a.Begin), append(w.PadEnd, a.End)
	}
	return w
}

func refConv(t *testing.T, c *op.Call) ref.Conv {
	t.Helper()
	axes, err := c.ConvAxes()
	if err != nil {
		t.Fatal(err)
	}
	r := ref.Conv{
		Batch: c.In[0].Shape.Size(0), Group: int(c.Int("group")), InChannels: c.In[0].Shape.Size(1), OutChannels: c.In[1].Shape.Size(0),
		Window: refWindow(axes),
	}
	if has(c, 2) {
		r.Bias, r.Beta = "row", 1
	}
	return r
}

func operand(c *op.Call, i int) []float32 {
	if !has(c, i) {
		return nil
	}
	return singles(c.In[i])
}

func list(n ...int64) []int64 { return n }

func TestConv(t *testing.T) {
	for i, c := range []struct {
		x, w []int
		a    op.Attrs
	}{
		{[]int{2, 3, 7, 8}, []int{4, 3, 3, 3}, nil},
		{[]int{1, 4, 9, 9}, []int{6, 2, 3, 3}, attrs("group", 2, "pads", list(1, 1, 1, 1), "strides", list(2, 2))},
		{[]int{2, 6, 8, 5}, []int{6, 1, 3, 3}, attrs("group", 6, "pads", list(2, 0, 1, 1), "dilations", list(2, 1))},
		{[]int{1, 5, 6, 7}, []int{3, 5, 1, 1}, nil},
		{[]int{2, 3, 11}, []int{4, 3, 4}, attrs("auto_pad", "SAME_UPPER", "strides", list(2))},
		{[]int{1, 2, 5, 6, 4}, []int{3, 2, 2, 3, 2}, attrs("auto_pad", "SAME_LOWER")},
		{[]int{0, 3, 7, 8}, []int{4, 3, 3, 3}, nil},
	} {
		for _, dt := range floatTypes {
			for _, bias := range []bool{false, true} {
				in := []op.Arg{small3(dt, 1, c.x...), small3(dt, 2, c.w...)}
				if bias {
					in = append(in, small3(dt, 3, c.w[0]))
				}
				conv := call(t, "conv", c.a, 1, in...)
				want := refConv(t, conv).Run(operand(conv, 0), operand(conv, 1), operand(conv, 2), nil)
				expect(t, fmt.Sprintf("conv %d %v", i, dt), run(t, conv)[0], conv.Out[0].Shape.Sizes(), want, tolerance(dt))
			}
		}
	}
	big := call(t, "conv", attrs("pads", list(1, 1, 1, 1)), 1, random(dtype.F32, 1, -1, 1, 1, 8, 20, 20), random(dtype.F32, 2, -1, 1, 12, 8, 3, 3))
	want := refConv(t, big).Run(operand(big, 0), operand(big, 1), nil, nil)
	expect(t, "conv", run(t, big)[0], []int{1, 12, 20, 20}, want, 1e-5)

	four := call(t, "conv", nil, 1, small3(dtype.F32, 1, 1, 1, 2, 2, 2, 2), small3(dtype.F32, 1, 1, 1, 1, 1, 1, 1))
	if _, err := Bind(four); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("conv over 4 spatial axes: got %v, want ErrUnsupported", err)
	}
}

func TestFusedConv(t *testing.T) {
	x, w, bias := small3(dtype.F32, 1, 2, 4, 8, 9), small3(dtype.F32, 2, 6, 4, 3, 3), random(dtype.F32, 3, -9, 0, 6)
	scale, shift := small3(dtype.F32, 4, 4), random(dtype.F32, 5, -3, 0, 4)
	residual := random(dtype.F32, 6, -100, 9, 2, 6, 8, 9)
	pads := list(1, 1, 1, 1)
	for i, c := range []struct {
		in []op.Arg
		a  op.Attrs
	}{
		{[]op.Arg{x, w}, attrs("activation", "relu")},
		{[]op.Arg{x, w, bias}, attrs("activation", "leaky_relu", "alpha", 0.5, "pads", pads)},
		{[]op.Arg{x, w, bias, residual}, attrs("activation", "clip", "alpha", -4.0, "beta", 60.0, "pads", pads)},
		{[]op.Arg{x, w, absent, residual}, attrs("activation", "relu", "pads", pads)},
		{[]op.Arg{x, w, bias, residual}, attrs("pads", pads, "pre_relu", 1)},
		{[]op.Arg{x, w, bias, absent, scale, shift}, attrs("pads", pads, "pre_relu", 1, "activation", "relu")},
		{[]op.Arg{x, w, bias, absent, scale}, attrs("pads", pads)},
		{[]op.Arg{x, w, bias, absent, absent, shift}, attrs("pads", pads)},
		{[]op.Arg{x, w, bias, residual}, attrs("pads", pads, "activation", "relu", "pool", "max", "pool_kernel", list(3, 3), "pool_strides", list(2, 2), "pool_pads", pads)},
		{[]op.Arg{x, w}, attrs("pool", "average", "pool_kernel", list(2, 2), "pool_pads", list(1, 0, 0, 1), "count_include_pad", 1)},
		{[]op.Arg{x, w}, attrs("pool", "average", "pool_kernel", list(2, 3), "pool_strides", list(2, 2), "pool_ceil", 1)},
		{[]op.Arg{x, w, random(dtype.F32, 3, -99, -80, 6)}, attrs("activation", "sigmoid")},
		{[]op.Arg{x, w, bias, absent, absent, absent, small3(dtype.F32, 7, 6, 1, 3, 3), bias}, attrs("pads", pads, "activation", "relu", "pool", "depthwise", "pool_kernel", list(3, 3),
			"pool_strides", list(2, 1), "pool_pads", list(1, 0, 2, 4), "pool_activation", "clip", "pool_alpha", -3.0, "pool_beta", 9.0)},
		{[]op.Arg{x, w, bias, residual, absent, absent, small3(dtype.F32, 7, 6, 1, 2, 5)}, attrs("pads", pads, "pool", "depthwise", "pool_kernel", list(2, 5), "pool_activation", "hard_swish")},
		{[]op.Arg{x, w, random(dtype.F32, 3, -99, -80, 6)}, attrs("activation", "tanh")},
	} {
		conv := call(t, "fused_conv", c.a, 1, c.in...)
		r := refConv(t, conv)
		r.PrologueRelu = conv.Int("pre_relu") != 0
		r.Act, r.ActA, r.ActB = conv.Str("activation"), conv.Float("alpha"), conv.Float("beta")
		if has(conv, 4) || has(conv, 5) {
			r.Scale, r.Shift = operand(conv, 4), operand(conv, 5)
			if r.Scale == nil {
				r.Scale = []float32{1, 1, 1, 1}
			}
			if r.Shift == nil {
				r.Shift = make([]float32, 4)
			}
		}
		want := r.Run(operand(conv, 0), operand(conv, 1), operand(conv, 2), operand(conv, 3))
		if pool := conv.Str("pool"); pool != "" {
			axes, err := conv.FusedPoolAxes()
			if err != nil {
				t.Fatal(err)
			}
			if pool == "depthwise" {
				d := ref.Conv{Batch: 2, Group: 6, InChannels: 6, OutChannels: 6, Window: refWindow(axes)}
				d.Beta, d.Act, d.ActA, d.ActB = 1, conv.Str("pool_activation"), conv.Float("pool_alpha"), conv.Float("pool_beta")
				if has(conv, 7) {
					d.Bias = "row"
				}
				want = d.Run(ref.Map(want, func(v float64) float32 { return float32(v) }), operand(conv, 6), operand(conv, 7), nil)
				expect(t, fmt.Sprintf("fused_conv %d", i), run(t, conv)[0], conv.Out[0].Shape.Sizes(), want, 1e-5)
				continue
			}
			if conv.Int("count_include_pad") != 0 {
				pool = "average_padded"
			}
			want, _ = ref.Pool{Kind: pool, Planes: 12, Window: refWindow(axes)}.Run(want)
		}
		expect(t, fmt.Sprintf("fused_conv %d", i), run(t, conv)[0], conv.Out[0].Shape.Sizes(), want, 1e-5)
	}
}

func TestConvTranspose(t *testing.T) {
	for i, c := range []struct {
		x, w []int
		a    op.Attrs
	}{
		{[]int{1, 2, 3, 4}, []int{2, 3, 3, 3}, nil},
		{[]int{2, 4, 3, 3}, []int{4, 2, 2, 3}, attrs("group", 2, "strides", list(2, 3), "pads", list(1, 0, 0, 1), "output_padding", list(1, 0))},
		{[]int{1, 2, 5}, []int{2, 3, 3}, attrs("dilations", list(2), "strides", list(2))},
		{[]int{1, 1, 3, 3}, []int{1, 2, 3, 3}, attrs("strides", list(3, 2), "output_shape", list(10, 8))},
		{[]int{1, 1, 3, 3}, []int{1, 2, 3, 3}, attrs("strides", list(2, 2), "auto_pad", "SAME_UPPER")},
		{[]int{1, 2, 2, 3, 2}, []int{2, 1, 2, 2, 2}, nil},
	} {
		for _, dt := range floatTypes {
			x, w := small3(dt, 1, c.x...), small3(dt, 2, c.w...)
			conv := call(t, "conv_transpose", c.a, 1, x, w)
			conv = call(t, "conv_transpose", c.a, 1, x, w, small3(dt, 3, conv.Out[0].Shape.Size(1)))
			axes, err := conv.ConvTransposeAxes()
			if err != nil {
				t.Fatal(err)
			}
			group, perGroup := int(conv.Int("group")), c.w[1]
			sizes := conv.Out[0].Shape.Sizes()
			want := make([]float64, product(sizes))
			bias, dx, dw := floats(conv.In[2]), floats(x), floats(w)
			each(sizes, func(o []int) { want[offset(sizes, o)] = bias[o[1]] })
			each(c.x, func(in []int) {
				each(c.w[1:], func(k []int) {
					to := []int{in[0], in[1]/(c.x[1]/group)*perGroup + k[0]}
					for j, a := range axes {
						to = append(to, in[2+j]*a.Stride-a.Begin+k[1+j]*a.Dilation)
					}
					if ref.Inside(sizes, to) {
						want[offset(sizes, to)] += dx[offset(c.x, in)] * dw[offset(c.w, append([]int{in[1]}, k...))]
					}
				})
			})
			expect(t, fmt.Sprintf("conv_transpose %d %v", i, dt), run(t, conv)[0], sizes, want, tolerance(dt))
		}
	}
}

// offset is the place of an index tuple in a row-major tensor.
func offset(sizes, index []int) int {
	pos := 0
	for i, n := range sizes {
		pos = pos*n + index[i]
	}
	return pos
}

func TestPools(t *testing.T) {
	for i, c := range []struct {
		x []int
		a op.Attrs
	}{
		{[]int{2, 3, 7, 8}, attrs("kernel_shape", list(3, 3))},
		{[]int{1, 2, 7, 8}, attrs("kernel_shape", list(3, 2), "strides", list(2, 2), "pads", list(1, 0, 1, 1))},
		{[]int{1, 2, 7, 8}, attrs("kernel_shape", list(2, 2), "strides", list(2, 3), "ceil_mode", 1)},
		{[]int{1, 2, 9}, attrs("kernel_shape", list(3), "dilations", list(2), "auto_pad", "SAME_UPPER")},
		{[]int{1, 2, 4, 5, 3}, attrs("kernel_shape", list(2, 2, 2), "auto_pad", "SAME_LOWER")},
	} {
		for _, dt := range append(floatTypes, dtype.I8, dtype.U8) {
			x := small3(dt, uint64(i), c.x...)
			axes, err := call(t, "max_pool", c.a, 1, x).PoolAxes()
			if err != nil {
				t.Fatal(err)
			}
			pool := ref.Pool{Kind: "max", Planes: c.x[0] * c.x[1], Window: refWindow(axes)}
			want, where := pool.Run(floats(x))
			dims := append([]int{c.x[0], c.x[1]}, pool.Out...)
			name := fmt.Sprintf("pool %d %v", i, dt)
			expect(t, name, eval(t, "max_pool", c.a, x), dims, want, 0)
			for order := range 2 {
				both := run(t, call(t, "max_pool", c.a.With("storage_order", int64(order)), 2, x))
				places := make([]float64, len(where))
				area := product(c.x[2:])
				for j, at := range where {
					places[j] = float64(at)
					if order == 1 {
						rest, turned := int(at)%area, 0
						for k := len(c.x) - 1; k >= 2; k-- {
							turned = turned*c.x[k] + rest%c.x[k]
							rest /= c.x[k]
						}
						places[j] = float64(int(at)/area*area + turned)
					}
				}
				expect(t, name, both[0], dims, want, 0)
				expect(t, name+" indices", both[1], dims, places, 0)
			}
			only := call(t, "max_pool", c.a, 2, x)
			only.Out[0], only.Results[0] = absent, op.Type{}
			at := run(t, only)[1]
			for j, v := range floats(at) {
				if v != float64(where[j]) {
					t.Fatalf("%s: indices alone: element %d: got %v, want %v", name, j, v, where[j])
				}
			}
			if dt.IsInt() {
				continue
			}
			for padded, kind := range []string{"average", "average_padded"} {
				pool.Kind = kind
				want, _ = pool.Run(floats(x))
				got := eval(t, "average_pool", c.a.With("count_include_pad", int64(padded)), x)
				expect(t, name+" "+kind, got, dims, want, tolerance(dt))
			}
		}
	}
	eval(t, "max_pool", attrs("kernel_shape", list(3, 3), "strides", list(2, 2)), random(dtype.F32, 1, -1, 1, 1, 16, 50, 51))
	eval(t, "average_pool", attrs("kernel_shape", list(3, 3)), random(dtype.F32, 1, -1, 1, 1, 16, 50, 51))
}

func TestGlobalPools(t *testing.T) {
	for _, dt := range floatTypes {
		for _, dims := range [][]int{{2, 3, 4}, {2, 3, 4, 5}, {1, 2, 2, 3, 2}} {
			x := random(dt, 1, -4, 4, dims...)
			var axes, one []int
			for i := range dims {
				if one = append(one, dims[i]); i >= 2 {
					axes, one[i] = append(axes, i), 1
				}
			}
			var largest, mean []float64
			for _, l := range folded(x, axes) {
				m := math.Inf(-1)
				for _, v := range l {
					m = max(m, v)
				}
				largest, mean = append(largest, m), append(mean, sum(l, func(v float64) float64 { return v })/float64(len(l)))
			}
			expect(t, "global_max_pool", eval(t, "global_max_pool", nil, x), one, largest, 0)
			expect(t, "global_average_pool", eval(t, "global_average_pool", nil, x), one, mean, tolerance(dt))
		}
	}
}
