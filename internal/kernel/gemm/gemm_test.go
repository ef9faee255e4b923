package gemm_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestGemm(t *testing.T) { kerneltest.EachVariant(t, testGemm) }

func testGemm(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(20)
	sizes := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40}
	for i := range 400 {
		g := gemm.Gemm{M: sizes[r.IntN(len(sizes))], N: sizes[r.IntN(len(sizes))], K: sizes[r.IntN(len(sizes))], Alpha: 1, Beta: 1}
		randomGemm(r, &g)
		gemmCase(t, v, r, fmt.Sprint("random ", i), g, kerneltest.ResidualMode(r.IntN(3)), r.IntN(3) == 0)
	}
	// Every tail of every dimension, beside odd sizes of the others.
	for n := 1; n <= 40; n++ {
		for i, size := range [][3]int{{n, 13, 9}, {n, 37, 30}, {7, n, 9}, {20, n, 18}, {7, 13, n}, {3, 35, n}} {
			g := gemm.Gemm{M: size[0], N: size[1], K: size[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			gemmCase(t, v, r, fmt.Sprint("tail ", i), g, kerneltest.ResidualMode(r.IntN(3)), n%2 == 0)
			g.TransA, g.TransB, g.Alpha = false, false, 1
			gemmCase(t, v, r, fmt.Sprint("tail ", i), g, kerneltest.ResidualMode(r.IntN(3)), n%2 == 1)
		}
	}
	// Around the ends of tiles and blocks.
	for i, m := range [][3]int{{130, 5, 3}, {5, 130, 3}, {3, 17, 256}, {2, 9, 257}, {33, 40, 515}, {1, 300, 20}, {300, 1, 20}, {129, 129, 9}, {4, 300, 300}, {140, 270, 300}, {30, 70, 1024}, {1, 1, 600}, {37, 70, 512}} {
		for range 6 {
			g := gemm.Gemm{M: m[0], N: m[1], K: m[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			g.Batch = nil
			gemmCase(t, v, r, fmt.Sprint("edge ", i), g, kerneltest.ResidualMode(r.IntN(3)), r.IntN(3) == 0)
		}
	}
	t.Run("broadcast batches", kerneltest.With(v, testGemmBatches))
	t.Run("accuracy", kerneltest.With(v, testGemmAccuracy))
	t.Run("rows between", kerneltest.With(v, testGemmRowGaps))
}

func randomGemm(r *rand.Rand, g *gemm.Gemm) {
	g.TransA, g.TransB = r.IntN(2) == 0, r.IntN(2) == 0
	g.Alpha, g.Beta = []float32{1, 1, 0.5}[r.IntN(3)], []float32{1, 1, 2}[r.IntN(3)]
	g.Bias = gemm.BiasKind(r.IntN(5))
	g.Act = kerneltest.Activations[r.IntN(len(kerneltest.Activations))]
	if r.IntN(3) == 0 {
		g.Batch = []int{1 + r.IntN(3), 1 + r.IntN(2)}
	}
}

// gemmCase runs a problem whose matrices follow each other.
func gemmCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, g gemm.Gemm, res kerneltest.ResidualMode, packed bool) {
	t.Helper()
	name += fmt.Sprintf(" %+v residual %d packed %v", g, res, packed)
	batch := ref.Size(g.Batch)
	want := ref.Gemm{
		M: g.M, N: g.N, K: g.K, TransA: g.TransA, TransB: g.TransB, LDA: g.K, LDB: g.N, Alpha: float64(g.Alpha), Batch: g.Batch,
		Epilogue: kerneltest.RefEpilogue(g.Epilogue, g.Beta),
	}
	if g.TransA {
		want.LDA = g.M
	}
	if g.TransB {
		want.LDB = g.K
	}
	matricesB := batch
	want.BatchA, want.BatchB = kerneltest.RowMajor(g.Batch), kerneltest.RowMajor(g.Batch)
	for i := range g.Batch {
		want.BatchA[i] *= g.M * g.K
		want.BatchB[i] *= g.K * g.N
		if packed {
			want.BatchB[i], matricesB = 0, 1
		}
	}
	s := kerneltest.NewSpace(t)
	args := gemm.Args{
		A: kerneltest.In(s, "a", kerneltest.Small(r, batch*g.M*g.K)), B: kerneltest.In(s, "b", kerneltest.Small(r, matricesB*g.K*g.N)), Bias: kerneltest.In(s, "bias", kerneltest.Small(r, kerneltest.BiasSize(g.Bias, g.M, g.N))),
	}
	var residual []float32
	if res != kerneltest.NoResidual {
		g.Residual = true
		residual = kerneltest.Small(r, batch*g.M*g.N)
	}
	wanted := ref.Map(want.Run(args.A, args.B, args.Bias, residual), func(v float64) float32 { return float32(v) })
	switch res {
	case kerneltest.NoResidual:
		args.C = kerneltest.Out[float32](s, "c", batch*g.M*g.N)
	case kerneltest.OwnResidual:
		args.C, args.Residual = kerneltest.Out[float32](s, "c", batch*g.M*g.N), kerneltest.In(s, "residual", residual)
	case kerneltest.InPlaceResidual:
		args.C = kerneltest.InOut(s, "c", residual)
		args.Residual = args.C
	}
	if packed {
		g.PackedB = true
		panels := kerneltest.Out[float32](s, "packed", g.PackedBFloats(v))
		pack := g
		pack.PackB(v, panels, args.B)
		if g.Alpha == 1 {
			unpacked := kerneltest.Out[float32](s, "unpacked", g.K*g.N)
			pack.UnpackB(v, unpacked, panels)
			if !bytes.Equal(kerneltest.AsBytes(unpacked), kerneltest.AsBytes(args.B)) {
				t.Fatalf("%s: unpacking gives another matrix than was packed", name)
			}
		}
		args.B = panels
	}
	runGemm(v, s, &g, &args)
	s.Check()
	for i := range wanted {
		if args.C[i] != wanted[i] {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, args.C[i], wanted[i])
		}
	}
}

func runGemm(v *kernel.Variant, s *kerneltest.Space, g *gemm.Gemm, args *gemm.Args) {
	g.Prepare(v)
	scratch := kerneltest.Out[float32](s, "scratch", g.ScratchBytes()/4)
	kerneltest.Backwards(g.Tiles(), func(i int) {
		kerneltest.Poison(scratch)
		g.Tile(i, scratch, args)
	})
}

// testGemmBatches broadcasts either side, along either axis.
func testGemmBatches(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(21)
	const m, n, k = 5, 9, 7
	for _, c := range []struct{ a, b []int }{
		{[]int{2 * m * k, m * k}, []int{0, 0}}, {[]int{0, 0}, []int{2 * k * n, k * n}}, {[]int{m * k, 0}, []int{0, k * n}},
		{[]int{0, m * k}, []int{k * n, 0}}, {[]int{0, m * k}, []int{0, 0}},
	} {
		for _, bias := range []gemm.BiasKind{gemm.NoBias, gemm.BiasRow, gemm.BiasCol, gemm.BiasFull} {
			g := gemm.Gemm{M: m, N: n, K: k, Alpha: 1, Beta: 1, Batch: []int{3, 2}, BatchA: c.a, BatchB: c.b, Epilogue: gemm.Epilogue{Bias: bias}}
			want := ref.Gemm{M: m, N: n, K: k, LDA: k, LDB: n, Alpha: 1, Batch: g.Batch, BatchA: c.a, BatchB: c.b, Epilogue: kerneltest.RefEpilogue(g.Epilogue, 1)}
			s := kerneltest.NewSpace(t)
			args := gemm.Args{
				A: kerneltest.In(s, "a", kerneltest.Small(r, 6*m*k)), B: kerneltest.In(s, "b", kerneltest.Small(r, 6*k*n)), Bias: kerneltest.In(s, "bias", kerneltest.Small(r, kerneltest.BiasSize(bias, m, n))),
				C: kerneltest.Out[float32](s, "c", 6*m*n),
			}
			wanted := want.Run(args.A, args.B, args.Bias, nil)
			runGemm(v, s, &g, &args)
			s.Check()
			kerneltest.WantEqual(t, kerneltest.F64s(args.C), wanted)
		}
	}
}

// testGemmAccuracy bounds the rounding of long sums, and passes NaN and
// infinity through.
func testGemmAccuracy(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(22)
	for _, m := range []int{1, 6, 33} {
		g := gemm.Gemm{M: m, N: 37, K: 700, Alpha: 1, Beta: 1, Epilogue: gemm.Epilogue{Bias: gemm.BiasCol, Act: gemm.Activation{Op: kernel.Tanh}}}
		want := ref.Gemm{M: m, N: 37, K: 700, LDA: 700, LDB: 37, Alpha: 1, Epilogue: kerneltest.RefEpilogue(g.Epilogue, 1)}
		s := kerneltest.NewSpace(t)
		args := gemm.Args{A: kerneltest.In(s, "a", kerneltest.Uniform(r, m*700)), B: kerneltest.In(s, "b", kerneltest.Uniform(r, 700*37)), Bias: kerneltest.In(s, "bias", kerneltest.Uniform(r, 37)), C: kerneltest.Out[float32](s, "c", m*37)}
		wanted := want.Run(args.A, args.B, args.Bias, nil)
		runGemm(v, s, &g, &args)
		s.Check()
		kerneltest.WantNear(t, args.C, wanted, 2e-5)
	}
	a, b := kerneltest.Small(r, 6*40), kerneltest.Small(r, 40*20)
	a[2*40+39], b[5*20+3] = float32(math.NaN()), float32(math.Inf(1))
	for i := range 6 {
		a[i*40+5] = 1
	}
	for j := range 20 {
		b[39*20+j] = 1
	}
	g := gemm.Gemm{M: 6, N: 20, K: 40, Alpha: 1, Beta: 1}
	s := kerneltest.NewSpace(t)
	args := gemm.Args{A: kerneltest.In(s, "a", a), B: kerneltest.In(s, "b", b), C: kerneltest.Out[float32](s, "c", 120)}
	runGemm(v, s, &g, &args)
	s.Check()
	for i, v := range args.C {
		row, col := i/20, i%20
		if isNaN, isInf := v != v, math.IsInf(float64(v), 1); isNaN != (row == 2) || isInf != (row != 2 && col == 3) {
			t.Fatalf("element [%d,%d]: got %v", row, col, v)
		}
	}
}

// testGemmRowGaps reads and writes parts of wider matrices.
func testGemmRowGaps(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(23)
	for _, m := range []int{1, 3, 6} {
		for trans := range 4 {
			for _, n := range []int{1, 11} {
				g := gemm.Gemm{M: m, N: n, K: 5, TransA: trans&1 != 0, TransB: trans&2 != 0, LDA: 9, LDB: 13, LDC: 15, Alpha: 1, Beta: 1}
				want := ref.Gemm{M: m, N: n, K: 5, TransA: g.TransA, TransB: g.TransB, LDA: 9, LDB: 13, Alpha: 1}
				s := kerneltest.NewSpace(t)
				args := gemm.Args{A: kerneltest.In(s, "a", kerneltest.Small(r, 9*9)), B: kerneltest.In(s, "b", kerneltest.Small(r, 13*13)), C: kerneltest.InOut(s, "c", make([]float32, 15*m))}
				wanted := want.Run(args.A, args.B, nil, nil)
				runGemm(v, s, &g, &args)
				s.Check()
				for i, v := range args.C {
					w := 0.0
					if i%15 < n {
						w = wanted[i/15*n+i%15]
					}
					if float64(v) != w {
						t.Fatalf("m %d n %d trans %d: element %d: got %v, want %v", m, n, trans, i, v, w)
					}
				}
			}
		}
	}
}

// TestGemvLong multiplies a row that the kernels cut into pieces.
func TestGemvLong(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		r := kerneltest.NewRand(72)
		for trans := range 2 {
			g := gemm.Gemm{M: 1, N: 9, K: kerneltest.LongRow, TransB: trans == 1, Alpha: 1, Beta: 1}
			gemmCase(t, v, r, "long", g, kerneltest.NoResidual, false)
		}
	})
}
