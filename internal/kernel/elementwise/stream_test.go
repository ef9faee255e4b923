package elementwise_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func testStream(t *testing.T, v *kernel.Variant) {
	x := kerneltest.Uniform(kerneltest.NewRand(71), kerneltest.LongRow)
	for _, n := range []int{0, 1, 15, 16, 17, 40, 4103, kerneltest.LongRow} {
		s := kerneltest.NewSpace(t)
		src, dst, streamed, want := kerneltest.In(s, "x", x[:n]), kerneltest.Out[float32](s, "copied", n), kerneltest.Out[float32](s, "streamed", n), kerneltest.Out[float32](s, "want", n)
		elementwise.Stream(v, kerneltest.AsBytes(dst), kerneltest.AsBytes(src))
		kerneltest.WantEqual(t, dst, src)
		for _, op := range kernel.UnaryOps() {
			elementwise.UnaryF32(v, op, want, src, 0.25, 0.5)
			for _, dst := range [][]float32{streamed, kerneltest.OutAligned[float32](s, "streamed by vectors", n)} {
				elementwise.UnaryStream(v, op, dst, src, 0.25, 0.5, kerneltest.Out[float32](s, "scratch", elementwise.StreamScratchFloats))
				kerneltest.WantEqual(t, dst, want)
			}
		}
		bytes := kerneltest.Out[byte](s, "bytes", 4*n+3)
		from := kerneltest.Words[byte](len(bytes), 3)
		elementwise.Stream(v, bytes, from)
		kerneltest.WantEqual(t, bytes, from)
		s.Check()
	}
}
