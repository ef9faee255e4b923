package compute

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
)

func TestPRelu(t *testing.T) {
	x := arg([]float32{-2, -0.5, 0, 0.5, 2}, 5)
	expect(t, "prelu", eval(t, "prelu", nil, x, arg([]float32{3}, 1)), []int{5}, []float64{-6, -1.5, 0, 0.5, 2}, 0)
	rows := arg([]int32{-1, 2, -3, -4}, 2, 2)
	expect(t, "prelu", eval(t, "prelu", nil, rows, arg([]int32{2, 5}, 2, 1)), []int{2, 2}, []float64{-2, 2, -15, -20}, 0)
}

func TestFloatClasses(t *testing.T) {
	inf := math.Inf(1)
	for _, dt := range floatTypes {
		x := fromFloats(dt, []float64{1, inf, -inf, math.NaN(), 0}, 5)
		expect(t, "is_nan", eval(t, "is_nan", nil, x), []int{5}, []float64{0, 0, 0, 1, 0}, 0)
		expect(t, "is_inf", eval(t, "is_inf", nil, x), []int{5}, []float64{0, 1, 1, 0, 0}, 0)
		expect(t, "is_inf", eval(t, "is_inf", attrs("detect_negative", 0), x), []int{5}, []float64{0, 1, 0, 0, 0}, 0)
		expect(t, "is_inf", eval(t, "is_inf", attrs("detect_positive", 0), x), []int{5}, []float64{0, 0, 1, 0, 0}, 0)
	}
}

func TestBitwise(t *testing.T) {
	for _, dt := range intTypes {
		x, y := fromFloats(dt, []float64{12, 10, 7, 0}, 2, 2), fromFloats(dt, []float64{10, 3}, 2)
		expect(t, "and", eval(t, "bitwise_and", nil, x, y), []int{2, 2}, []float64{8, 2, 2, 0}, 0)
		expect(t, "or", eval(t, "bitwise_or", nil, x, y), []int{2, 2}, []float64{14, 11, 15, 3}, 0)
		expect(t, "xor", eval(t, "bitwise_xor", nil, x, y), []int{2, 2}, []float64{6, 9, 13, 3}, 0)
	}
	expect(t, "not", eval(t, "bitwise_not", nil, arg([]uint8{0, 255, 1}, 3)), []int{3}, []float64{255, 0, 254}, 0)
	for _, dt := range []dtype.DType{dtype.U8, dtype.U16, dtype.U32, dtype.U64} {
		x, y := fromFloats(dt, []float64{16, 4, 1}, 3), fromFloats(dt, []float64{1, 2, 3}, 3)
		expect(t, "left", eval(t, "bit_shift", attrs("direction", "LEFT"), x, y), []int{3}, []float64{32, 16, 8}, 0)
		expect(t, "right", eval(t, "bit_shift", attrs("direction", "RIGHT"), x, y), []int{3}, []float64{8, 1, 0}, 0)
	}
	down := arg([]int8{-128, -1, 5, 5, -5}, 5)
	expect(t, "signed", eval(t, "bit_shift", attrs("direction", "RIGHT"), down, arg([]int8{3, 1, 1, 100, -1}, 5)), []int{5}, []float64{-16, -1, 2, 0, -1}, 0)
	expect(t, "signed left", eval(t, "bit_shift", attrs("direction", "LEFT"), down, arg([]int8{1, 1, 5, 8, -1}, 5)), []int{5}, []float64{0, -2, -96, 0, 0}, 0)
}
