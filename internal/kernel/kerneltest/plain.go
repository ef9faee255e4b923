package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func testPlain(t *testing.T, v *kernel.Variant) {
	t.Run("float64", plainGemms[float64])
	t.Run("int32", plainGemms[int32])
	t.Run("uint8", plainGemms[uint8])
	t.Run("moments", with(v, testMoments))
	t.Run("conv", testPlainConv)
	t.Run("pool float64", plainPools[float64])
	t.Run("pool int8", plainPools[int8])
}

// plainGemms compares with the reference on small integers, whose products are exact; those of uint8 are the same modulo 256.
func plainGemms[T kernel.Number](t *testing.T) {
	r := newRand(30)
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
		a, b, bias := small(r, 2*m*k), small(r, 3*k*n), small(r, biasSize(spec.Bias, m, n))
		g := ref.Gemm{M: m, N: n, K: k, TransA: spec.TransA, TransB: spec.TransB, LDA: k, LDB: n, Alpha: spec.Alpha,
			Batch: spec.Batch, BatchA: spec.BatchA, BatchB: spec.BatchB, Epilogue: ref.Epilogue{Bias: biasNames[spec.Bias], Beta: spec.Beta}}
		if g.TransA {
			g.LDA = m
		}
		if g.TransB {
			g.LDB = k
		}
		want := g.Run(a, b, bias, nil)
		spec.Prepare()
		s := newSpace(t)
		pa, pb, pc := in(s, "a", convert(a)), in(s, "b", convert(b)), out[T](s, "c", batch*m*n)
		pbias := in(s, "bias", convert(bias))
		if spec.Bias == gemm.BiasFull && r.IntN(2) == 0 {
			pc = inout(s, "c", convert(bias))
			pbias = pc
		}
		backwards(spec.Tiles(), func(i int) { gemm.PlainTile(&spec, i, pc, pa, pb, pbias) })
		s.check()
		for j := range want {
			if pc[j] != T(int64(want[j])) {
				t.Fatalf("%s: element %d: got %v, want %v", fmt.Sprintf("case %d %+v", i, spec), j, pc[j], want[j])
			}
		}
	}
}

func testMoments(t *testing.T, v *kernel.Variant) {
	r := newRand(31)
	for _, c := range [][3]int{{1, 1, 1}, {2, 3, 5}, {3, 1, 7}, {1, 4, 33}, {0, 2, 3}} {
		x := uniform(r, c[0]*c[1]*c[2])
		mean, variance := ref.Moments(c[0], c[1], c[2], f64s(x))
		s := newSpace(t)
		src, m, va := in(s, "src", x), out[float32](s, "mean", c[1]), out[float32](s, "variance", c[1])
		reduce.ChannelMoments(v, c[0], c[1], c[2], m, va, src)
		s.check()
		for i := range m {
			if c[0] == 0 {
				if m[i] == m[i] || va[i] == va[i] {
					t.Fatalf("%v: got %v and %v of no elements, want NaN", c, m[i], va[i])
				}
				continue
			}
			if math.Abs(float64(m[i])-mean[i]) > 1e-6 || math.Abs(float64(va[i])-variance[i]) > 1e-6 {
				t.Fatalf("%v: got %v and %v, want %v and %v", c, m[i], va[i], mean[i], variance[i])
			}
		}
	}
}

func testPlainConv(t *testing.T) {
	r := newRand(32)
	for i := range 150 {
		w := randomWindow(r, 1+r.IntN(3))
		c := conv.Plain{Batch: r.IntN(3), Group: 1 + r.IntN(3), Window: w}
		c.InChannels, c.OutChannels = c.Group*(1+r.IntN(3)), c.Group*(1+r.IntN(3))
		c.Prepare()
		want := ref.Conv{Batch: c.Batch, Group: c.Group, InChannels: c.InChannels, OutChannels: c.OutChannels, Window: refWindow(&c.Window)}
		x := small(r, c.Batch*c.InChannels*ref.Size(c.In))
		weights, bias := small(r, c.OutChannels*c.InChannels/c.Group*ref.Size(c.Kernel)), small(r, c.OutChannels)
		if i%2 == 0 {
			want.Bias, want.Beta = "row", 1
		}
		wanted := want.Run(x, weights, bias, nil)
		s := newSpace(t)
		dst := out[float64](s, "out", len(wanted))
		px, pw, pb := in(s, "in", f64s(x)), in(s, "weights", f64s(weights)), in(s, "bias", f64s(bias))
		if want.Bias == "" {
			pb = nil
		}
		backwards(c.Tiles(), func(t int) { conv.PlainTile(&c, t, dst, px, pw, pb) })
		s.check()
		wantEqual(t, dst, wanted)
	}
}

func plainPools[T float64 | int8](t *testing.T) {
	r := newRand(33)
	for i := range 150 {
		p := conv.PlainPool{Kind: conv.PoolKind(r.IntN(3)), Planes: r.IntN(4), Window: randomWindow(r, 1+r.IntN(3)), ColumnMajor: false}
		p.Ceil = r.IntN(2) == 0
		p.Prepare()
		want := ref.Pool{Kind: poolNames[p.Kind], Planes: p.Planes, Window: refWindow(&p.Window)}
		x := f64s(small(r, p.Planes*ref.Size(p.In)))
		values, where := want.Run(x)
		data := make([]T, len(x))
		for j, v := range x {
			data[j] = T(v)
		}
		s := newSpace(t)
		src, dst := in(s, "src", data), out[T](s, "dst", len(values))
		var indices []int64
		if p.Kind == conv.PoolMax {
			indices = out[int64](s, "indices", len(values))
		}
		backwards(p.Tiles(), func(t int) { conv.PlainPoolTile(&p, t, dst, indices, src) })
		s.check()
		for j, v := range values {
			if v == math.Inf(-1) && dst[j] <= -100 {
				continue // no element: the smallest number of the type
			}
			if dst[j] != T(v) || indices != nil && indices[j] != where[j] {
				t.Fatalf("case %d %+v: element %d: got %v, want %v", i, p, j, dst[j], v)
			}
		}
	}
}
