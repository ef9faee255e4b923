package compute

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

var productTypes = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I32, dtype.I64, dtype.U32, dtype.U64}

// small3 returns an operand of whole numbers from 0 to 3, whose products are
// exact in every type.
func small3(dt dtype.DType, seed uint64, dims ...int) op.Arg {
	src := values[float64](seed, product(dims), 0, 3.99)
	for i := range src {
		src[i] = float64(int(src[i]))
	}
	return fromFloats(dt, src, dims...)
}

// checkMatMul compares with the definition.
func checkMatMul(t *testing.T, x, y op.Arg, tol float64) {
	t.Helper()
	got := eval(t, "matmul", nil, x, y)
	a, b := x.Shape.Sizes(), y.Shape.Sizes()
	row, col := len(a) == 1, len(b) == 1
	if row {
		a = []int{1, a[0]}
	}
	if col {
		b = []int{b[0], 1}
	}
	outerA, outerB := a[:len(a)-2], b[:len(b)-2]
	batch := got.Shape.Sizes()[:max(len(outerA), len(outerB))]
	m, k, n := a[len(a)-2], a[len(a)-1], b[len(b)-1]
	da, db := floats(x), floats(y)
	var want []float64
	each(batch, func(i []int) {
		at := func(sizes []int, area int) int {
			pos, step := 0, area
			for j := len(sizes) - 1; j >= 0; j-- {
				if sizes[j] != 1 {
					pos += i[len(i)-len(sizes)+j] * step
				}
				step *= sizes[j]
			}
			return pos
		}
		offA, offB := at(outerA, m*k), at(outerB, k*n)
		for r := range m {
			for c := range n {
				s := 0.0
				for q := range k {
					s += da[offA+r*k+q] * db[offB+q*n+c]
				}
				want = append(want, s)
			}
		}
	})
	dims := slices.Clone(batch)
	if !row {
		dims = append(dims, m)
	}
	if !col {
		dims = append(dims, n)
	}
	expect(t, fmt.Sprintf("matmul(%v, %v)", x.Type, y.Type), got, dims, want, tol)
}

func TestMatMul(t *testing.T) {
	for _, dt := range productTypes {
		for _, s := range [][2][]int{
			{{3, 4}, {4, 5}}, {{4}, {4, 5}}, {{3, 4}, {4}}, {{4}, {4}}, {{1, 4}, {4, 1}}, {{3, 0}, {0, 2}}, {{0, 3}, {3, 2}},
			{{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}}, {{3, 4}, {2, 4, 5}}, {{2, 1, 3, 4}, {1, 3, 4, 5}}, {{2, 1, 3, 4}, {3, 4, 1}},
			{{2, 3, 4}, {4}}, {{4}, {2, 4, 5}}, {{0, 3, 4}, {4, 5}},
		} {
			checkMatMul(t, small3(dt, 1, s[0]...), small3(dt, 2, s[1]...), 0)
		}
	}
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64} {
		checkMatMul(t, random(dt, 1, -1, 1, 130, 260), random(dt, 2, -1, 1, 260, 40), 1e-5)
		checkMatMul(t, random(dt, 1, -1, 1, 1, 300), random(dt, 2, -1, 1, 300, 700), 1e-5)
		checkMatMul(t, random(dt, 1, -1, 1, 3, 1, 30, 40), random(dt, 2, -1, 1, 2, 40, 30), 1e-5)
	}
	checkMatMul(t, small3(dtype.I64, 1, 100, 30), small3(dtype.I64, 2, 30, 40), 0)
}

func TestGemm(t *testing.T) {
	const m, n, k = 3, 4, 5
	for _, dt := range productTypes {
		for _, c := range [][]int{nil, {}, {1}, {n}, {1, n}, {m, 1}, {m, n}, {1, 1}} {
			for _, trans := range []int{0, 1, 2, 3} {
				for _, factors := range [][2]float64{{1, 1}, {2, 3}} {
					dimA, dimB := []int{m, k}, []int{k, n}
					if trans&1 != 0 {
						dimA = []int{k, m}
					}
					if trans&2 != 0 {
						dimB = []int{n, k}
					}
					in := []op.Arg{small3(dt, 1, dimA...), small3(dt, 2, dimB...)}
					if c != nil {
						in = append(in, small3(dt, 3, c...))
					}
					a := attrs("transA", trans&1, "transB", trans>>1, "alpha", factors[0], "beta", factors[1])
					got := eval(t, "gemm", a, in...)
					da, db := floats(in[0]), floats(in[1])
					var want []float64
					each([]int{m, n}, func(i []int) {
						s := 0.0
						for q := range k {
							x, y := da[(i[0]*k+q)%(m*k)], db[(q*n+i[1])%(k*n)]
							if trans&1 != 0 {
								x = da[q*m+i[0]]
							}
							if trans&2 != 0 {
								y = db[i[1]*k+q]
							}
							s += x * y
						}
						s *= factors[0]
						if c != nil {
							s += factors[1] * at(in[2], floats(in[2]), i)
						}
						want = append(want, s)
					})
					expect(t, fmt.Sprintf("gemm %v c %v trans %d", dt, c, trans), got, []int{m, n}, want, 0)
				}
			}
		}
	}
	// The bias in place, where it has the result's shape and would pass for a
	// row or a number.
	for _, s := range [][]int{{1, 6}, {6, 1}, {1, 1}} {
		x, y, c := random(dtype.F32, 1, -1, 1, s[0], 3), random(dtype.F32, 2, -1, 1, 3, s[1]), random(dtype.F32, 3, -1, 1, s...)
		eval(t, "gemm", attrs("beta", 0.5), x, y, c)
	}
	x, y := random(dtype.F32, 1, -1, 1, 100, 50), random(dtype.F32, 2, -1, 1, 150, 50)
	eval(t, "gemm", attrs("transB", 1), x, y, random(dtype.F32, 3, -1, 1, 100, 150))
}

func TestGemmOfIntegersWithFractions(t *testing.T) {
	x := small3(dtype.I32, 1, 2, 2)
	c := call(t, "gemm", attrs("alpha", 0.5), 1, x, x)
	if _, err := Bind(c); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}
