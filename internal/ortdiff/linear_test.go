package ortdiff_test

import (
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["MatMul"] = func(d *drawer) {
		d.node("MatMul")
		dt := pick(d, wide...)
		a, b := d.product()
		d.in(dt, a...)
		d.in(dt, b...)
		d.outs(1)
	}
	generators["Gemm"] = func(d *drawer) {
		d.node("Gemm")
		dt := pick(d, wide...)
		m, k, n := d.dim(), d.dim(), d.dim()
		a, b := []int{m, k}, []int{k, n}
		if d.chance(0.5) {
			a = []int{k, m}
			d.attr("transA", 1)
		}
		if d.chance(0.5) {
			b = []int{n, k}
			d.attr("transB", 1)
		}
		d.maybe("alpha", pick(d, 1, 0.5, 2, -1))
		d.maybe("beta", pick(d, 1, 0.5, 2, 0))
		d.in(dt, a...)
		d.in(dt, b...)
		if d.m.opset < 7 {
			c := []int{m, n}
			if d.chance(0.5) {
				c = pick(d, []int{1, n}, []int{n}, []int{1})
				d.attr("broadcast", 1)
			}
			d.in(dt, c...)
		} else if d.m.opset < 11 || d.chance(0.7) {
			d.in(dt, d.broadcast([]int{m, n})...)
		}
		d.outs(1)
	}
	tolerances["MatMul"] = tolerance{16, 64, 0, "sums in another order; the terms may be larger than their sum"}
	tolerances["Gemm"] = tolerances["MatMul"]
	bytes8 := []dtype.DType{dtype.U8, dtype.I8}
	generators["MatMulInteger"] = func(d *drawer) {
		d.node("MatMulInteger")
		a, b := d.product()
		ta, tb := pick(d, bytes8...), pick(d, bytes8...)
		d.in(ta, a...)
		d.in(tb, b...)
		if d.chance(0.7) {
			d.zeroPoint(ta, a, len(a)-2)
			if d.chance(0.7) {
				d.zeroPoint(tb, b, len(b)-1)
			}
		}
		d.outs(1)
	}
	generators["QLinearMatMul"] = func(d *drawer) {
		d.node("QLinearMatMul")
		a, b := d.product()
		if len(a) == 1 || len(b) == 1 {
			a, b = []int{2, 3}, []int{3, 4}
		}
		ta, tb, ty := pick(d, bytes8...), pick(d, bytes8...), pick(d, bytes8...)
		d.in(ta, a...)
		d.scale(dtype.F32)
		d.in(ta)
		d.in(tb, b...)
		if n := b[len(b)-1]; len(b) == 2 && d.chance(0.4) {
			d.scale(dtype.F32, n)
			d.in(tb, n)
		} else {
			d.scale(dtype.F32)
			d.in(tb)
		}
		d.scale(dtype.F32)
		d.in(ty)
		d.outs(1)
	}
	tolerances["QLinearMatMul"] = tolerance{0, 0, 1, "the scales are multiplied in another order: what lies next to a tie may go either way"}
	generators["Einsum"] = drawEinsum
	tolerances["Einsum"] = tolerance{16, 64, 0, "sums in another order"}
	generators["Det"] = func(d *drawer) {
		d.node("Det")
		n := d.between(1, 4)
		d.in(pick(d, floats...), append(d.dims(0, 2), n, n)...)
		d.outs(1)
	}
	tolerances["Det"] = tolerance{64, 2000, 0, "products of all the rows, with other pivots"}
}

// product draws the sizes of two operands of a matrix product.
func (d *drawer) product() (a, b []int) {
	m, k, n := d.dim(), d.dim(), d.dim()
	if d.chance(0.1) {
		m, k, n = d.between(1, 40), d.between(1, 40), d.between(1, 40)
	}
	batch := d.dims(0, 2)
	a, b = append(d.broadcast(batch), m, k), append(d.broadcast(batch), k, n)
	if d.chance(0.1) {
		a = []int{k}
	}
	if d.chance(0.1) {
		b = []int{k}
	}
	return a, b
}

// zeroPoint adds the zero point of a quantized tensor: one, or one for each
// position on an axis.
func (d *drawer) zeroPoint(dt dtype.DType, dims []int, axis int) {
	switch {
	case axis >= 0 && len(dims) == 2 && d.chance(0.4):
		d.in(dt, dims[axis])
	default:
		d.in(dt)
	}
}

// scale adds scales of a quantized tensor.
func (d *drawer) scale(dt dtype.DType, dims ...int) *value {
	list := make([]float64, elements(dims))
	for i := range list {
		list[i] = pick(d, 0.25, 0.5, 1, 2, 0.1, 0.37, 0.013)
	}
	return d.with(dt, dims, encodeFloats(dt, list...))
}

func drawEinsum(d *drawer) {
	d.node("Einsum")
	sizes := map[rune]int{}
	letters := []rune("ijklmb")[:d.between(1, 5)]
	for _, l := range letters {
		sizes[l] = d.dim()
	}
	batch := [][]int{nil, nil, nil}
	dots := d.chance(0.3)
	if dots {
		lead := d.dims(0, 2)
		for i := range batch {
			batch[i] = d.broadcast(lead)
		}
	}
	var terms []string
	used := ""
	n := d.between(1, 3)
	dt := pick(d, dtype.F32, dtype.F32, dtype.F64, dtype.I32, dtype.I64)
	for i := range n {
		term, dims := "", []int{}
		for range d.between(0, 3) {
			l := pick(d, letters...)
			if strings.ContainsRune(term, l) && !d.chance(0.3) {
				continue
			}
			term += string(l)
			dims = append(dims, sizes[l])
		}
		used += term
		if dots {
			term, dims = "..."+term, append(clone(batch[i]), dims...)
		}
		terms = append(terms, term)
		d.in(dt, dims...)
	}
	equation := strings.Join(terms, ",")
	if d.chance(0.7) {
		out := ""
		for _, l := range used {
			if !strings.ContainsRune(out, l) && d.chance(0.6) {
				out += string(l)
			}
		}
		perm := []rune(out)
		d.Shuffle(len(perm), func(i, j int) { perm[i], perm[j] = perm[j], perm[i] })
		out = string(perm)
		if dots {
			out = "..." + out
		}
		equation += "->" + out
	}
	if d.chance(0.2) {
		equation = strings.ReplaceAll(equation, ",", ", ")
	}
	d.attr("equation", equation)
	d.outs(1)
}
