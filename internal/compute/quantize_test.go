package compute

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

func TestQuantize(t *testing.T) {
	x := arg([]float32{-10, -0.75, 0.25, 0.75, 1.25, 900}, 2, 3)
	half := scalar[float32](0.5)
	expect(t, "u8", eval(t, "quantize_linear", nil, x, half), []int{2, 3}, []float64{0, 0, 0, 2, 2, 255}, 0)
	expect(t, "i8", eval(t, "quantize_linear", nil, x, half, scalar[int8](1)), []int{2, 3}, []float64{-19, -1, 1, 3, 3, 127}, 0)
	rows := arg([]float32{0.5, 100}, 2)
	expect(t, "axis 0", eval(t, "quantize_linear", attrs("axis", 0, "output_dtype", dtype.I16), x, rows), []int{2, 3}, []float64{-20, -2, 0, 0, 0, 9}, 0)
	blocks := arg([]float32{0.5, 1, 0.25, 100}, 2, 2)
	expect(t, "blocks", eval(t, "quantize_linear", attrs("block_size", 2, "output_dtype", dtype.I16), x, blocks), []int{2, 3}, []float64{-20, -2, 0, 3, 5, 9}, 0)
	// Figures of ONNX Runtime 1.32 and of ONNX's reference implementation for
	// opset 23, where the quotient is rounded to f16 unless precision is 1.
	narrow := fromFloats(dtype.F16, []float64{9.5, 1, 2, 3.3}, 4)
	thin, five := fromFloats(dtype.F16, []float64{0.013}), scalar[uint16](5)
	expect(t, "f16 divided in f32", eval(t, "quantize_linear", nil, narrow, thin, five), []int{4}, []float64{736, 82, 159, 259}, 0)
	expect(t, "f16 divided in f16", eval(t, "quantize_linear", attrs("precision", dtype.F16), narrow, thin, five), []int{4}, []float64{735, 82, 159, 259}, 0)
	for _, dt := range []dtype.DType{dtype.I4, dtype.U4, dtype.I2, dtype.U2, dtype.F8E4M3FN, dtype.F8E5M2, dtype.F4E2M1} {
		// Types of few bits are compared by the numbers that they represent.
		q := eval(t, "quantize_linear", attrs("output_dtype", dt), arg([]float32{0, 1, 2, -2, 0.1}, 5), scalar[float32](1))
		want := []float64{0, 1, 2, -2, 0}
		switch dt {
		case dtype.I2:
			want = []float64{0, 1, 1, -2, 0}
		case dtype.U4, dtype.U2:
			want[3] = 0
		case dtype.F8E4M3FN:
			want[4] = 0.1015625
		case dtype.F8E5M2:
			want[4] = 0.09375
		}
		expect(t, dt.String(), eval(t, "dequantize_linear", nil, q, scalar[float32](1)), []int{5}, want, 0)
	}
	f16 := eval(t, "dequantize_linear", attrs("output_dtype", dtype.F16), arg([]uint8{0, 200}, 2), half, scalar[uint8](100))
	expect(t, "f16", f16, []int{2}, []float64{-50, 50}, 0)
}

func TestDynamicQuantize(t *testing.T) {
	c := call(t, "dynamic_quantize_linear", nil, 3, arg([]float32{0, 2, -3, -2.5, 1.34, 0.5}, 6))
	out := run(t, c)
	expect(t, "y", out[0], []int{6}, []float64{153, 255, 0, 26, 221, 179}, 0)
	expect(t, "scale", out[1], nil, []float64{5.0 / 255}, 1e-7)
	expect(t, "zero", out[2], nil, []float64{153}, 0)
}

func TestIntegerProducts(t *testing.T) {
	a, b := arg([]uint8{11, 7, 3, 10, 6, 2}, 2, 3), arg([]int8{1, 4, 2, -5, 3, 6}, 3, 2)
	zero := scalar[uint8](12)
	expect(t, "matmul", eval(t, "matmul_integer", nil, a, b, zero), []int{2, 2}, []float64{-38, -33, -44, -38}, 0)
	columns := arg([]int8{1, 2}, 2)
	expect(t, "columns", eval(t, "matmul_integer", nil, a, b, zero, columns), []int{2, 2}, []float64{-23, -3, -26, -2}, 0)
	f := scalar[float32]
	q := []op.Arg{a, f(0.5), zero, b, f(2), scalar[int8](0), f(4), scalar[int8](3)}
	expect(t, "qlinear", eval(t, "qlinear_matmul", nil, q...), []int{2, 2}, []float64{-7, -5, -8, -7}, 0)
	q = slices.Clone(q)
	q[7] = scalar[uint8](3)
	expect(t, "qlinear", eval(t, "qlinear_matmul", nil, q...), []int{2, 2}, []float64{0, 0, 0, 0}, 0)
}

func TestIntegerConv(t *testing.T) {
	x, w := arg([]uint8{2, 3, 4, 5, 6, 7, 8, 9, 10}, 1, 1, 3, 3), arg([]uint8{1, 1, 1, 1}, 1, 1, 2, 2)
	expect(t, "conv", eval(t, "conv_integer", nil, x, w, scalar[uint8](1)), []int{1, 1, 2, 2}, []float64{12, 16, 24, 28}, 0)
	padded := eval(t, "conv_integer", attrs("pads", []int64{1, 1, 1, 1}), x, w, scalar[uint8](1))
	expect(t, "pads", padded, []int{1, 1, 4, 4}, []float64{1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}, 0)
	f := scalar[float32]
	q := eval(t, "qlinear_conv", nil, x, f(0.5), scalar[uint8](1), w, arg([]float32{2}, 1), arg([]uint8{0}, 1), f(4), scalar[int8](-1), arg([]int32{8}, 1))
	expect(t, "qlinear", q, []int{1, 1, 2, 2}, []float64{4, 5, 7, 8}, 0)
}
