package gemm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestHalf(t *testing.T) { kerneltest.EachVariant(t, testHalf) }

// Products of 16-bit floats are compared with the definition, computed from the
// same numbers and rounded once.
func testHalf(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(22)
	sizes := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40}
	for i := range 300 {
		g := gemm.Gemm{M: sizes[r.IntN(len(sizes))], N: sizes[r.IntN(len(sizes))], K: sizes[r.IntN(len(sizes))], Alpha: 1, Beta: 1}
		randomGemm(r, &g)
		halfCase(t, v, r, fmt.Sprint("random ", i), g, kerneltest.ResidualMode(r.IntN(3)), r.IntN(3) == 0)
	}
	for n := 1; n <= 40; n++ {
		for i, size := range [][3]int{{n, 37, 30}, {20, n, 18}, {7, 13, n}, {3, 35, n}} {
			g := gemm.Gemm{M: size[0], N: size[1], K: size[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			halfCase(t, v, r, fmt.Sprint("tail ", i), g, kerneltest.ResidualMode(r.IntN(3)), n%2 == 0)
		}
	}
	// Around the ends of tiles and blocks.
	for i, m := range [][3]int{{130, 5, 3}, {5, 130, 3}, {3, 17, 256}, {2, 9, 257}, {33, 40, 515}, {1, 300, 20}, {300, 1, 20}, {4, 300, 300}, {140, 270, 300}, {1, 7, 4200}, {2, 1100, 37}, {6, 300, 300}, {8, 70, 512}} {
		for range 4 {
			g := gemm.Gemm{M: m[0], N: m[1], K: m[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			g.Batch = nil
			halfCase(t, v, r, fmt.Sprint("edge ", i), g, kerneltest.ResidualMode(r.IntN(3)), r.IntN(3) == 0)
		}
	}
}

// halfCase runs a problem with NaN between the rows of its matrices, and in A
// every so often.
func halfCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, g gemm.Gemm, res kerneltest.ResidualMode, packed bool) {
	t.Helper()
	dt := []dtype.DType{dtype.F16, dtype.BF16}[r.IntN(2)]
	batch := ref.Size(g.Batch)
	rowsA, colsA, rowsB, colsB := g.M, g.K, g.K, g.N
	if g.TransA {
		rowsA, colsA = colsA, rowsA
	}
	if g.TransB {
		rowsB, colsB = colsB, rowsB
	}
	gap := r.IntN(3)
	if g.M*g.N*g.K == 0 {
		gap = 0
	}
	g.LDA, g.LDB, g.LDC, g.LDRes = colsA+gap, colsB, g.N+gap, g.N+gap
	if !packed {
		g.LDB += gap
	}
	matricesB := batch
	strides := func(size int) []int {
		return ref.Map(kerneltest.RowMajor(g.Batch), func(n int) int { return n * size })
	}
	g.BatchA, g.BatchB, g.BatchC, g.BatchRes = strides(rowsA*g.LDA), strides(rowsB*g.LDB), strides(g.M*g.LDC), strides(g.M*g.LDRes)
	if packed {
		clear(g.BatchB)
		matricesB = min(batch, 1)
	}
	name += fmt.Sprintf(" %s %+v residual %d packed %v", dt, g, res, packed)
	a, b := kerneltest.Small(r, batch*g.M*g.K), kerneltest.Small(r, matricesB*g.K*g.N)
	if r.IntN(4) == 0 && len(a) > 0 {
		a[r.IntN(len(a))] = float32(math.NaN())
	}
	bias := kerneltest.Small(r, kerneltest.BiasSize(g.Bias, g.M, g.N))
	var residual []float32
	if res != kerneltest.NoResidual {
		g.Residual, residual = true, kerneltest.Small(r, batch*g.M*g.N)
	}
	want := ref.Gemm{
		M: g.M, N: g.N, K: g.K, TransA: g.TransA, TransB: g.TransB, LDA: colsA, LDB: colsB, Alpha: float64(g.Alpha), Batch: g.Batch,
		BatchA: strides(g.M * g.K), BatchB: strides(g.K * g.N), Epilogue: kerneltest.RefEpilogue(g.Epilogue, g.Beta),
	}
	if packed {
		clear(want.BatchB)
	}
	wanted := ref.Map(want.Run(a, b, bias, residual), func(v float64) float32 { return float32(v) })

	s := kerneltest.NewSpace(t)
	half := func(x []float32) []uint16 {
		return ref.Map(x, func(f float32) uint16 { return kerneltest.ToHalf(dt, f) })
	}
	args := gemm.HalfArgs{
		A: kerneltest.In(s, "a", half(withGaps(a, colsA, g.LDA))), B: kerneltest.In(s, "b", half(withGaps(b, colsB, g.LDB))),
		Bias: kerneltest.In(s, "bias", half(bias)),
	}
	switch res {
	case kerneltest.NoResidual:
		args.C = kerneltest.InOut(s, "c", half(withGaps(make([]float32, batch*g.M*g.N), g.N, g.LDC)))
	case kerneltest.OwnResidual:
		args.C = kerneltest.InOut(s, "c", half(withGaps(make([]float32, batch*g.M*g.N), g.N, g.LDC)))
		args.Residual = kerneltest.In(s, "residual", half(withGaps(residual, g.N, g.LDRes)))
	case kerneltest.InPlaceResidual:
		args.C = kerneltest.InOut(s, "c", half(withGaps(residual, g.N, g.LDC)))
		args.Residual = args.C
	}
	if packed {
		pack := gemm.Gemm{N: g.N, K: g.K, TransB: g.TransB, Alpha: g.Alpha, PackedB: true}
		panels, again := kerneltest.Out[uint16](s, "packed", pack.PackedBFloats(v)), make([]uint16, g.K*g.N)
		if len(args.B) > 0 {
			pack.PackHalf(v, panels, args.B)
			pack.UnpackHalf(v, again, panels)
			kerneltest.WantEqual(t, again, args.B)
		}
		g.PackedB, args.B = true, panels
	}
	h := gemm.Half{Gemm: g, Type: dt}
	h.Prepare(v)
	if most := (&gemm.Half{Gemm: g, Type: dt}).MostScratchBytes(v); batch*g.M*g.N*g.K > 0 && h.ScratchBytes() > most {
		t.Fatalf("%s: got %d bytes of scratch, want at most %d", name, h.ScratchBytes(), most)
	}
	scratch := kerneltest.Out[float32](s, "scratch", h.ScratchBytes()/4)
	kerneltest.Backwards(h.Tiles(), func(i int) {
		kerneltest.Poison(scratch)
		h.Tile(i, scratch, &args)
	})
	s.Check()
	for i, x := range withGaps(wanted, g.N, g.LDC) {
		got, want := kerneltest.FromHalf(dt, args.C[i]), kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, x))
		if got != want && (got == got || want == want) {
			t.Fatalf("%s: place %d: got %v, want %v", name, i, got, want)
		}
	}
}

// withGaps puts rows further apart, with NaN between them.
func withGaps(x []float32, cols, ld int) []float32 {
	if cols == 0 {
		return nil
	}
	wide := make([]float32, len(x)/cols*ld)
	for i := range wide {
		wide[i] = float32(math.NaN())
		if i%ld < cols {
			wide[i] = x[i/ld*cols+i%ld]
		}
	}
	return wide
}
