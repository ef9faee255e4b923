package ortdiff_test

import "github.com/tenure-go/tenure/dtype"

func init() {
	why := "sums in another order, exponentials of their own on both sides"
	generators[mlDomain+"::SVMRegressor"] = drawSVMRegressor
	tolerances[mlDomain+"::SVMRegressor"] = tolerance{1024, 512, 0, why}
	generators[mlDomain+"::SVMClassifier"] = drawSVMClassifier
	tolerances[mlDomain+"::SVMClassifier"] = tolerance{1024, 512, 0, why}
}

// normals draws n numbers of the normal distribution.
func (d *drawer) normals(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(d.NormFloat64())
	}
	return list
}

// kernel draws the kernel function.
func (d *drawer) kernel() {
	d.maybe("kernel_type", pick(d, "LINEAR", "POLY", "RBF", "SIGMOID"))
	d.attr("kernel_params", []float32{pick[float32](d, 0.25, 0.5), pick[float32](d, 0, 1), pick[float32](d, 1, 2, 3, 4)})
}

func drawSVMRegressor(d *drawer) {
	d.node("SVMRegressor")
	dims := d.features(dtype.F32)
	f := dims[len(dims)-1]
	d.kernel()
	d.attr("rho", d.normals(1))
	if d.chance(0.3) {
		d.attr("coefficients", d.normals(f))
	} else {
		count := d.between(1, 5)
		d.attr("n_supports", count)
		d.attr("support_vectors", d.halves(count*f))
		d.attr("coefficients", d.normals(count))
	}
	d.maybe("one_class", d.IntN(2))
	d.maybe("post_transform", pick(d, transforms...))
	d.outs(1)
}

func drawSVMClassifier(d *drawer) {
	d.node("SVMClassifier")
	dims := d.features(pick(d, featureTypes...))
	f, classes := dims[len(dims)-1], d.between(2, 4)
	pairs := classes * (classes - 1) / 2
	d.kernel()
	d.classNames(classes, "classlabels_ints")
	if d.chance(0.25) {
		coefficients := d.normals(classes * f)
		if d.chance(0.3) {
			for i, v := range coefficients {
				coefficients[i] = max(v, -v)
			}
		}
		d.attr("coefficients", coefficients)
		d.attr("rho", d.normals(1))
	} else {
		total := 0
		var each []int64
		for range classes {
			n := d.between(1, 3)
			total += n
			each = append(each, int64(n))
		}
		d.attr("vectors_per_class", each)
		d.attr("support_vectors", d.halves(total*f))
		d.attr("coefficients", d.normals((classes-1)*total))
		d.attr("rho", d.normals(pairs))
		if d.chance(0.5) {
			d.attr("prob_a", d.normals(pairs))
			d.attr("prob_b", d.normals(pairs))
		}
	}
	d.maybe("post_transform", pick(d, transforms...))
	d.outs(2)
}
