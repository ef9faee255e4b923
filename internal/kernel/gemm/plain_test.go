package gemm_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// plainGemms compares with the reference on small integers, whose products are
// exact; those of uint8 are the same modulo 256.
func plainGemms[T kernel.Number](t *testing.T) {
	r := kerneltest.NewRand(30)
	sizes := []int{0, 1, 2, 3, 7, 16, 33}
	convert := func(x []float32) []T {
		y := make([]T, len(x))
		for i, v := range x {
			y[i] = T(int64(v))
		}
		return y
	}
	for i := range 150 {
		spec := gemm.Plain{
			M: sizes[r.IntN(len(sizes))], N: sizes[r.IntN(len(sizes))], K: sizes[r.IntN(len(sizes))],
			TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0,
			Alpha: float64(1 + r.IntN(2)), Beta: float64(1 + r.IntN(2)), Bias: gemm.BiasKind(r.IntN(5)),
		}
		m, n, k := spec.M, spec.N, spec.K
		batch := 1
		if r.IntN(2) == 0 && spec.Bias != gemm.BiasFull {
			batch = 6
			spec.Batch, spec.BatchA, spec.BatchB = []int{2, 3}, []int{m * k, 0}, []int{0, k * n}
		}
		a, b, bias := kerneltest.Small(r, 2*m*k), kerneltest.Small(r, 3*k*n), kerneltest.Small(r, kerneltest.BiasSize(spec.Bias, m, n))
		g := ref.Gemm{M: m, N: n, K: k, TransA: spec.TransA, TransB: spec.TransB, LDA: k, LDB: n, Alpha: spec.Alpha,
			Batch: spec.Batch, BatchA: spec.BatchA, BatchB: spec.BatchB, Epilogue: ref.Epilogue{Bias: kerneltest.BiasNames[spec.Bias], Beta: spec.Beta}}
		if g.TransA {
			g.LDA = m
		}
		if g.TransB {
			g.LDB = k
		}
		want := g.Run(a, b, bias, nil)
		spec.Prepare()
		s := kerneltest.NewSpace(t)
		pa, pb, pc := kerneltest.In(s, "a", convert(a)), kerneltest.In(s, "b", convert(b)), kerneltest.Out[T](s, "c", batch*m*n)
		pbias := kerneltest.In(s, "bias", convert(bias))
		if spec.Bias == gemm.BiasFull && r.IntN(2) == 0 {
			pc = kerneltest.InOut(s, "c", convert(bias))
			pbias = pc
		}
		kerneltest.Backwards(spec.Tiles(), func(i int) { gemm.PlainTile(&spec, i, pc, pa, pb, pbias) })
		s.Check()
		for j := range want {
			if pc[j] != T(int64(want[j])) {
				t.Fatalf("%s: element %d: got %v, want %v", fmt.Sprintf("case %d %+v", i, spec), j, pc[j], want[j])
			}
		}
	}
}

func TestPlain(t *testing.T) {
	t.Run("float64", plainGemms[float64])
	t.Run("int32", plainGemms[int32])
	t.Run("uint8", plainGemms[uint8])
}

// TestGemvInPieces gives one-row products their rows of B at once and in
// pieces: keys and values may lie in several blocks, and the bits of a result
// must not depend on it.
func TestGemvInPieces(t *testing.T) {
	const rows, cols = 37, 21
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		r := kerneltest.NewRand(5)
		a, x, b := kerneltest.Uniform(r, rows), kerneltest.Uniform(r, cols), kerneltest.Uniform(r, rows*cols)
		sum, dots := make([]float32, cols), make([]float32, rows)
		gemm.GemvAxpy(v, sum, a, b, cols)
		gemm.GemvDot(v, dots, x, b, cols)
		for piece := 1; piece < rows; piece++ {
			part, some := make([]float32, cols), make([]float32, rows)
			for k := 0; k < rows; k += piece {
				end := min(k+piece, rows)
				gemm.GemvAxpy(v, part, a[k:end], b[k*cols:], cols)
				gemm.GemvDot(v, some[k:end], x, b[k*cols:], cols)
			}
			kerneltest.WantEqual(t, part, sum)
			kerneltest.WantEqual(t, some, dots)
		}
	})
}
