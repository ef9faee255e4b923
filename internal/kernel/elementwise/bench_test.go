package elementwise_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func BenchmarkUnary(b *testing.B) {
	const n = 64 << 10
	src, dst := make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(i%2000)/100 - 10
	}
	for _, op := range []kernel.UnaryOp{kernel.Relu, kernel.LeakyRelu, kernel.Exp, kernel.Sigmoid, kernel.Tanh, kernel.Gelu, kernel.GeluTanh, kernel.Erf, kernel.Silu, kernel.HardSwish, kernel.Sqrt, kernel.Log} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			b.Run(fmt.Sprintf("f32/%s/%s/64Ki", v.Name, op), func(b *testing.B) {
				b.SetBytes(8 * n)
				for b.Loop() {
					elementwise.UnaryF32(v, op, dst, src, 0.1, 0)
				}
			})
		})
	}
}

func BenchmarkBinary(b *testing.B) {
	const n = 64 << 10
	x, y, dst := make([]float32, n), make([]float32, n), make([]float32, n)
	var even, perRow kernel.Nest
	even.Prepare([]int{n}, []int{1}, []int{1}, []int{1})
	perRow.Prepare([]int{n / 256, 256}, []int{256, 1}, []int{256, 1}, []int{1, 0})
	for _, op := range []kernel.BinaryOp{kernel.Add, kernel.Mul} {
		kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
			for name, nest := range map[string]*kernel.Nest{"even": &even, "per row": &perRow} {
				b.Run(fmt.Sprintf("f32/%s/%s/%s/64Ki", v.Name, op, name), func(b *testing.B) {
					b.SetBytes(12 * n)
					for b.Loop() {
						elementwise.BinaryF32(v, op, nest, 0, n, dst, x, y)
					}
				})
			}
		})
	}
}
