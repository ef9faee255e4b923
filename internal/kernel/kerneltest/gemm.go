package kerneltest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var biasNames = map[gemm.BiasKind]string{
	gemm.NoBias: "", gemm.BiasScalar: "scalar", gemm.BiasRow: "row", gemm.BiasCol: "col", gemm.BiasFull: "full",
}

// activations whose results on integers are exact.
var activations = []gemm.Activation{{}, {Op: kernel.Relu}, {Op: kernel.LeakyRelu, A: 0.5}, {Op: kernel.Clip, A: -4, B: 6}}

// residualMode says where a residual comes from.
type residualMode int

const (
	noResidual residualMode = iota
	ownResidual
	inPlaceResidual
)

func refEpilogue(e gemm.Epilogue, beta float32) ref.Epilogue {
	r := ref.Epilogue{Bias: biasNames[e.Bias], Beta: float64(beta), ActA: float64(e.Act.A), ActB: float64(e.Act.B)}
	if e.Act.Op != kernel.Identity {
		r.Act = e.Act.Op.String()
	}
	return r
}

func biasSize(kind gemm.BiasKind, rows, cols int) int {
	return map[gemm.BiasKind]int{gemm.BiasScalar: 1, gemm.BiasRow: rows, gemm.BiasCol: cols, gemm.BiasFull: rows * cols}[kind]
}

// poison fills scratch before each tile: a tile must not lean on what an earlier one left.
func poison(scratch []float32) {
	for i := range scratch {
		scratch[i] = float32(math.NaN())
	}
}

func testGemm(t *testing.T, v *kernel.Variant) {
	r := newRand(20)
	sizes := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40}
	for i := range 400 {
		g := gemm.Gemm{M: sizes[r.IntN(len(sizes))], N: sizes[r.IntN(len(sizes))], K: sizes[r.IntN(len(sizes))], Alpha: 1, Beta: 1}
		randomGemm(r, &g)
		gemmCase(t, v, r, fmt.Sprint("random ", i), g, residualMode(r.IntN(3)), r.IntN(3) == 0)
	}
	// Every tail of every dimension, beside odd sizes of the others.
	for n := 1; n <= 40; n++ {
		for i, size := range [][3]int{{n, 13, 9}, {n, 37, 30}, {7, n, 9}, {20, n, 18}, {7, 13, n}, {3, 35, n}} {
			g := gemm.Gemm{M: size[0], N: size[1], K: size[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			gemmCase(t, v, r, fmt.Sprint("tail ", i), g, residualMode(r.IntN(3)), n%2 == 0)
			g.TransA, g.TransB, g.Alpha = false, false, 1
			gemmCase(t, v, r, fmt.Sprint("tail ", i), g, residualMode(r.IntN(3)), n%2 == 1)
		}
	}
	// Around the ends of tiles and blocks.
	for i, m := range [][3]int{{130, 5, 3}, {5, 130, 3}, {3, 17, 256}, {2, 9, 257}, {33, 40, 515}, {1, 300, 20}, {300, 1, 20}, {129, 129, 9}, {4, 300, 300}, {140, 270, 300}, {30, 70, 1024}, {1, 1, 600}, {37, 70, 512}} {
		for range 6 {
			g := gemm.Gemm{M: m[0], N: m[1], K: m[2], Alpha: 1, Beta: 1}
			randomGemm(r, &g)
			g.Batch = nil
			gemmCase(t, v, r, fmt.Sprint("edge ", i), g, residualMode(r.IntN(3)), r.IntN(3) == 0)
		}
	}
	t.Run("broadcast batches", with(v, testGemmBatches))
	t.Run("accuracy", with(v, testGemmAccuracy))
	t.Run("rows between", with(v, testGemmRowGaps))
}

func randomGemm(r *rand.Rand, g *gemm.Gemm) {
	g.TransA, g.TransB = r.IntN(2) == 0, r.IntN(2) == 0
	g.Alpha, g.Beta = []float32{1, 1, 0.5}[r.IntN(3)], []float32{1, 1, 2}[r.IntN(3)]
	g.Bias = gemm.BiasKind(r.IntN(5))
	g.Act = activations[r.IntN(len(activations))]
	if r.IntN(3) == 0 {
		g.Batch = []int{1 + r.IntN(3), 1 + r.IntN(2)}
	}
}

// gemmCase runs a problem whose matrices follow each other.
func gemmCase(t *testing.T, v *kernel.Variant, r *rand.Rand, name string, g gemm.Gemm, res residualMode, packed bool) {
	t.Helper()
	name += fmt.Sprintf(" %+v residual %d packed %v", g, res, packed)
	batch := ref.Size(g.Batch)
	want := ref.Gemm{
		M: g.M, N: g.N, K: g.K, TransA: g.TransA, TransB: g.TransB, LDA: g.K, LDB: g.N, Alpha: float64(g.Alpha), Batch: g.Batch,
		Epilogue: refEpilogue(g.Epilogue, g.Beta),
	}
	if g.TransA {
		want.LDA = g.M
	}
	if g.TransB {
		want.LDB = g.K
	}
	matricesB := batch
	want.BatchA, want.BatchB = rowMajor(g.Batch), rowMajor(g.Batch)
	for i := range g.Batch {
		want.BatchA[i] *= g.M * g.K
		want.BatchB[i] *= g.K * g.N
		if packed {
			want.BatchB[i], matricesB = 0, 1
		}
	}
	s := newSpace(t)
	args := gemm.Args{
		A: in(s, "a", small(r, batch*g.M*g.K)), B: in(s, "b", small(r, matricesB*g.K*g.N)), Bias: in(s, "bias", small(r, biasSize(g.Bias, g.M, g.N))),
	}
	var residual []float32
	if res != noResidual {
		g.Residual = true
		residual = small(r, batch*g.M*g.N)
	}
	wanted := ref.Map(want.Run(args.A, args.B, args.Bias, residual), func(v float64) float32 { return float32(v) })
	switch res {
	case noResidual:
		args.C = out[float32](s, "c", batch*g.M*g.N)
	case ownResidual:
		args.C, args.Residual = out[float32](s, "c", batch*g.M*g.N), in(s, "residual", residual)
	case inPlaceResidual:
		args.C = inout(s, "c", residual)
		args.Residual = args.C
	}
	if packed {
		g.PackedB = true
		panels := out[float32](s, "packed", g.PackedBFloats(v))
		pack := g
		pack.PackB(v, panels, args.B)
		if g.Alpha == 1 {
			unpacked := out[float32](s, "unpacked", g.K*g.N)
			pack.UnpackB(v, unpacked, panels)
			if !bytes.Equal(asBytes(unpacked), asBytes(args.B)) {
				t.Fatalf("%s: unpacking gives another matrix than was packed", name)
			}
		}
		args.B = panels
	}
	runGemm(v, s, &g, &args)
	s.check()
	for i := range wanted {
		if args.C[i] != wanted[i] {
			t.Fatalf("%s: element %d: got %v, want %v", name, i, args.C[i], wanted[i])
		}
	}
}

func runGemm(v *kernel.Variant, s *space, g *gemm.Gemm, args *gemm.Args) {
	g.Prepare(v)
	scratch := out[float32](s, "scratch", g.ScratchBytes()/4)
	backwards(g.Tiles(), func(i int) {
		poison(scratch)
		g.Tile(i, scratch, args)
	})
}

// testGemmBatches broadcasts either side, along either axis.
func testGemmBatches(t *testing.T, v *kernel.Variant) {
	r := newRand(21)
	const m, n, k = 5, 9, 7
	for _, c := range []struct{ a, b []int }{
		{[]int{2 * m * k, m * k}, []int{0, 0}}, {[]int{0, 0}, []int{2 * k * n, k * n}}, {[]int{m * k, 0}, []int{0, k * n}},
		{[]int{0, m * k}, []int{k * n, 0}}, {[]int{0, m * k}, []int{0, 0}},
	} {
		for _, bias := range []gemm.BiasKind{gemm.NoBias, gemm.BiasRow, gemm.BiasCol, gemm.BiasFull} {
			g := gemm.Gemm{M: m, N: n, K: k, Alpha: 1, Beta: 1, Batch: []int{3, 2}, BatchA: c.a, BatchB: c.b, Epilogue: gemm.Epilogue{Bias: bias}}
			want := ref.Gemm{M: m, N: n, K: k, LDA: k, LDB: n, Alpha: 1, Batch: g.Batch, BatchA: c.a, BatchB: c.b, Epilogue: refEpilogue(g.Epilogue, 1)}
			s := newSpace(t)
			args := gemm.Args{
				A: in(s, "a", small(r, 6*m*k)), B: in(s, "b", small(r, 6*k*n)), Bias: in(s, "bias", small(r, biasSize(bias, m, n))),
				C: out[float32](s, "c", 6*m*n),
			}
			wanted := want.Run(args.A, args.B, args.Bias, nil)
			runGemm(v, s, &g, &args)
			s.check()
			wantEqual(t, f64s(args.C), wanted)
		}
	}
}

// testGemmAccuracy bounds the rounding of long sums, and passes NaN and infinity through.
func testGemmAccuracy(t *testing.T, v *kernel.Variant) {
	r := newRand(22)
	for _, m := range []int{1, 6, 33} {
		g := gemm.Gemm{M: m, N: 37, K: 700, Alpha: 1, Beta: 1, Epilogue: gemm.Epilogue{Bias: gemm.BiasCol, Act: gemm.Activation{Op: kernel.Tanh}}}
		want := ref.Gemm{M: m, N: 37, K: 700, LDA: 700, LDB: 37, Alpha: 1, Epilogue: refEpilogue(g.Epilogue, 1)}
		s := newSpace(t)
		args := gemm.Args{A: in(s, "a", uniform(r, m*700)), B: in(s, "b", uniform(r, 700*37)), Bias: in(s, "bias", uniform(r, 37)), C: out[float32](s, "c", m*37)}
		wanted := want.Run(args.A, args.B, args.Bias, nil)
		runGemm(v, s, &g, &args)
		s.check()
		wantNear(t, args.C, wanted, 2e-5)
	}
	a, b := small(r, 6*40), small(r, 40*20)
	a[2*40+39], b[5*20+3] = float32(math.NaN()), float32(math.Inf(1))
	for i := range 6 {
		a[i*40+5] = 1
	}
	for j := range 20 {
		b[39*20+j] = 1
	}
	g := gemm.Gemm{M: 6, N: 20, K: 40, Alpha: 1, Beta: 1}
	s := newSpace(t)
	args := gemm.Args{A: in(s, "a", a), B: in(s, "b", b), C: out[float32](s, "c", 120)}
	runGemm(v, s, &g, &args)
	s.check()
	for i, v := range args.C {
		row, col := i/20, i%20
		if isNaN, isInf := v != v, math.IsInf(float64(v), 1); isNaN != (row == 2) || isInf != (row != 2 && col == 3) {
			t.Fatalf("element [%d,%d]: got %v", row, col, v)
		}
	}
}

// testGemmRowGaps reads and writes parts of wider matrices.
func testGemmRowGaps(t *testing.T, v *kernel.Variant) {
	r := newRand(23)
	for _, m := range []int{1, 3, 6} {
		for trans := range 4 {
			for _, n := range []int{1, 11} {
				g := gemm.Gemm{M: m, N: n, K: 5, TransA: trans&1 != 0, TransB: trans&2 != 0, LDA: 9, LDB: 13, LDC: 15, Alpha: 1, Beta: 1}
				want := ref.Gemm{M: m, N: n, K: 5, TransA: g.TransA, TransB: g.TransB, LDA: 9, LDB: 13, Alpha: 1}
				s := newSpace(t)
				args := gemm.Args{A: in(s, "a", small(r, 9*9)), B: in(s, "b", small(r, 13*13)), C: inout(s, "c", make([]float32, 15*m))}
				wanted := want.Run(args.A, args.B, nil, nil)
				runGemm(v, s, &g, &args)
				s.check()
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
