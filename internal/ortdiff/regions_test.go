package ortdiff_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// quantisedRegion is what the models of TestQuantisedRegions are called.
const quantisedRegion = "a region of quantised numbers"

func init() {
	tolerances[quantisedRegion] = tolerance{0, 0, 1, "a sum of integers is rounded once, a sum of floats more often"}
}

// TestQuantisedRegions compares models that quantise what they compute of
// dequantised numbers: products with a bias of any form, convolutions, sums,
// pools and movement, with a bound or a function behind them.
func TestQuantisedRegions(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	o := &operator{name: quantisedRegion, from: 13, till: 21, draw: (*drawer).region, ref: ref, tally: tally{}}
	for i := 20 * *from; i < 20*(*from+*models); i++ {
		m := o.model(i, 4)
		fault, err := o.try(m)
		if err != nil {
			t.Fatal(err)
		}
		if fault != "" {
			t.Errorf("model %d: %s\n%s", i, fault, m)
		}
	}
	t.Log(o.tally)
	if o.tally["agree"] == 0 {
		t.Error("got no model that both run, want some")
	}
}

// step adds a node whose result only others read.
func (d *drawer) step(op string, in ...string) string {
	d.node(op)
	name := fmt.Sprint("t", len(d.m.graph.nodes))
	d.n.in, d.n.out = in, []string{name}
	return name
}

func (d *drawer) constant(dt dtype.DType, dims []int, data []byte) string {
	return d.value(dt, dims, data, true).name
}

func (d *drawer) float32s(list ...float64) string {
	dims := []int{len(list)}
	if len(list) == 1 && d.chance(0.7) {
		dims = nil
	}
	return d.constant(dtype.F32, dims, encodeFloats(dtype.F32, list...))
}

// quanta draws bytes, which their type fills.
func (d *drawer) quanta(dt dtype.DType, n int) []byte {
	list := make([]int64, n)
	for i := range list {
		if list[i] = int64(d.IntN(256)); dt == dtype.I8 {
			list[i] -= 128
		}
	}
	return encodeInts(dt, list...)
}

// dequantised is a value of bytes, an input of the model or a constant, as
// floats: by one scale, or one for each place on an axis.
func (d *drawer) dequantised(dims []int, scale float64, axis int, constant bool) string {
	dt := pick(d, dtype.U8, dtype.I8)
	in := []string{d.value(dt, dims, d.quanta(dt, elements(dims)), constant).name}
	n := 1
	if axis >= 0 {
		n = dims[axis]
	}
	scales := make([]float64, n)
	for i := range scales {
		scales[i] = scale * (0.5 + d.Float64())
	}
	in = append(in, d.float32s(scales...))
	list := d.m.values[len(d.m.values)-1].dims
	switch d.IntN(3) {
	case 0:
		in = append(in, d.constant(dt, list, d.quanta(dt, n)))
	case 1:
		in = append(in, d.constant(dt, list, encodeInts(dt, make([]int64, n)...)))
	}
	x := d.step("DequantizeLinear", in...)
	if axis >= 0 {
		d.attr("axis", axis)
	}
	return x
}

// region draws a model of one region.
func (d *drawer) region() {
	var y string
	scale := 0.05
	switch d.IntN(8) {
	case 0, 1:
		y, scale = d.regionProduct()
	case 2, 3:
		y, scale = d.regionConv()
	case 4:
		y = d.regionPool(scale)
	case 5:
		dims := []int{d.between(1, 3), d.between(1, 4)}
		a, b := d.dequantised(dims, scale, -1, false), d.dequantised(dims, 2*scale, -1, d.chance(0.2))
		y = d.step("Concat", a, b, a)
		d.attr("axis", d.IntN(2))
	default:
		dims := d.dims(1, 4)
		a, b := d.dequantised(dims, scale, -1, false), d.dequantised(d.broadcast(dims), 2*scale, -1, d.chance(0.4))
		y, scale = d.step(pick(d, "Add", "Sub", "Mul", "Max", "Add"), a, b), 4*scale
	}
	switch d.IntN(6) {
	case 0:
		y = d.step("Relu", y)
	case 1:
		y = d.step("Clip", y, d.float32s(-40*scale*d.Float64()), d.float32s(60*scale*d.Float64()))
	case 2:
		y = d.step("Transpose", y)
	}
	dt := pick(d, dtype.U8, dtype.I8)
	d.node("QuantizeLinear")
	d.n.in = []string{y, d.constant(dtype.F32, nil, encodeFloats(dtype.F32, scale)), d.constant(dt, nil, d.quanta(dt, 1))}
	d.outs(1)
}

// regionPool draws a maximum, whose windows may miss the input with all taps.
func (d *drawer) regionPool(scale float64) string {
	dims := []int{d.between(1, 3), d.between(1, 4)}
	var k, pads, dilations []int
	for range 2 {
		n, dilation := d.between(1, 3), pick(d, 1, 1, 1, 2)
		pad := d.IntN(n)
		dims = append(dims, max(1, (n-1)*dilation+1-2*pad)+d.IntN(7))
		k, pads, dilations = append(k, n), append(pads, pad), append(dilations, dilation)
	}
	y := d.step("MaxPool", d.dequantised(dims, scale, -1, false))
	d.attr("kernel_shape", k)
	d.attr("pads", append(pads, pads...))
	d.attr("dilations", dilations)
	d.maybe("strides", []int{d.between(1, 3), d.between(1, 3)})
	return y
}

// regionProduct draws a product of matrices, and the scale that its results
// want.
func (d *drawer) regionProduct() (y string, scale float64) {
	m, k, n := d.between(1, 6), d.between(1, 40), d.between(1, 20)
	scale = 0.05 * 0.02 * 70 * math.Sqrt(float64(k))
	bias := func(dims ...int) string {
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = d.NormFloat64() * 20 * scale
		}
		return d.constant(dtype.F32, dims, encodeFloats(dtype.F32, list...))
	}
	if d.chance(0.4) {
		x, turned, axis := d.dequantised([]int{m, k}, 0.05, -1, false), d.chance(0.5), pick(d, -1, 0, 1)
		dims := []int{k, n}
		if turned {
			dims = []int{n, k}
		}
		in := []string{x, d.dequantised(dims, 0.02, axis, true)}
		if d.chance(0.7) {
			in = append(in, bias(pick(d, []int{n}, []int{1}, []int{}, []int{1, n}, []int{m, 1}, []int{m, n})...))
		}
		y = d.step("Gemm", in...)
		d.attr("transB", turned)
		if d.chance(0.2) {
			d.attr("beta", 0.5)
		}
		return y, scale
	}
	dims := append(d.dims(0, 2), m, k)
	if d.chance(0.15) {
		dims = []int{k}
	}
	y = d.step("MatMul", d.dequantised(dims, 0.05, -1, false), d.dequantised([]int{k, n}, 0.02, pick(d, -1, -1, 1, 0), d.chance(0.7)))
	if d.chance(0.7) {
		b := bias(pick(d, []int{n}, []int{n}, []int{1}, []int{}, []int{1, n}, []int{1, 1, n}, []int{1, 1, 1, n}, []int{1, 1, 1}, []int{2, 1, 1, n})...)
		if d.chance(0.5) {
			y, b = b, y
		}
		y = d.step("Add", y, b)
	}
	return y, scale
}

// regionConv draws a convolution.
func (d *drawer) regionConv() (y string, scale float64) {
	group, channels, filters := pick(d, 1, 1, 2, 5), d.between(1, 5), d.between(1, 9)
	if d.chance(0.3) {
		channels, filters = 1, 1
	}
	dims, w := []int{d.between(1, 2), group * channels}, []int{group * filters, channels}
	var pads, strides, dilations []int
	for range pick(d, 1, 2, 2, 3) {
		k, dilation := d.between(1, 4), pick(d, 1, 1, 2)
		reach := (k-1)*dilation + 1
		dims, w = append(dims, reach+d.IntN(12)), append(w, k)
		pads, strides, dilations = append(pads, d.IntN(reach)), append(strides, d.between(1, 3)), append(dilations, dilation)
	}
	in := []string{d.dequantised(dims, 0.05, -1, false), d.dequantised(w, 0.02, pick(d, -1, 0, 0, 1), true)}
	scale = 0.05 * 0.02 * 70 * math.Sqrt(float64(elements(w[1:])))
	if d.chance(0.5) {
		list := make([]float64, w[0])
		for i := range list {
			list[i] = d.NormFloat64() * 20 * scale
		}
		in = append(in, d.constant(dtype.F32, w[:1], encodeFloats(dtype.F32, list...)))
	}
	y = d.step("Conv", in...)
	d.attr("group", group)
	d.attr("pads", append(pads, pads...))
	d.attr("strides", strides)
	d.attr("dilations", dilations)
	return y, scale
}
