package ortdiff_test

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

// featureTypes are those of the operators of ai.onnx.ml on numbers.
var featureTypes = []dtype.DType{dtype.F32, dtype.F32, dtype.F64, dtype.I64, dtype.I32}

// halves draws n numbers that are multiples of a half, and few: sums of their
// products have no rounding, and some are equal.
func (d *drawer) halves(n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(d.between(-6, 6)) / 2
	}
	return list
}

// features draws an operand of one row or several, of numbers that are
// multiples of a half.
func (d *drawer) features(dt dtype.DType) (dims []int) {
	dims = []int{d.between(1, d.size), d.between(1, d.size)}
	if d.chance(0.15) {
		dims = dims[1:]
	}
	list := ref64(d.halves(elements(dims)))
	var data []byte
	if dt.IsFloat() {
		data = encodeFloats(dt, list...)
	} else {
		ints := make([]int64, len(list))
		for i, v := range list {
			ints[i] = int64(v)
		}
		data = encodeInts(dt, ints...)
	}
	d.operand(d.value(dt, dims, data, d.chance(0.1)))
	return dims
}

func ref64(list []float32) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = float64(v)
	}
	return out
}

// perFeature draws one number, or one for each feature.
func (d *drawer) perFeature(dims []int) []float32 {
	if d.chance(0.4) {
		return d.halves(1)
	}
	return d.halves(dims[len(dims)-1])
}

func init() {
	generators[mlDomain+"::Scaler"] = func(d *drawer) {
		d.node("Scaler")
		dims := d.features(pick(d, featureTypes...))
		offset := d.perFeature(dims)
		d.attr("offset", offset)
		d.attr("scale", d.halves(len(offset)))
		d.outs(1)
	}
	generators[mlDomain+"::Normalizer"] = func(d *drawer) {
		d.node("Normalizer")
		d.features(pick(d, featureTypes...))
		d.maybe("norm", pick(d, "MAX", "L1", "L2"))
		d.outs(1)
	}
	tolerances[mlDomain+"::Normalizer"] = tolerance{4, 0, 0, "sums in another order"}
	generators[mlDomain+"::Binarizer"] = func(d *drawer) {
		d.node("Binarizer")
		d.features(dtype.F32)
		d.maybe("threshold", pick(d, 0.5, -1.0, 0.25))
		d.outs(1)
	}
	generators[mlDomain+"::Imputer"] = drawImputer
	generators[mlDomain+"::FeatureVectorizer"] = func(d *drawer) {
		d.node("FeatureVectorizer")
		dt, rows := pick(d, featureTypes...), d.between(1, 4)
		var sizes []int64
		for range d.between(1, 3) {
			size := d.between(1, 4)
			d.in(dt, rows, size)
			sizes = append(sizes, int64(max(1, size+d.between(-1, 1))))
		}
		for d.chance(0.1) && len(sizes) < 20 || d.size > 3 && len(sizes) < 20 && d.chance(0.9) {
			d.in(dt, rows, 1)
			sizes = append(sizes, 1)
		}
		d.attr("inputdimensions", sizes)
		d.outs(1)
	}
	generators[mlDomain+"::ArrayFeatureExtractor"] = func(d *drawer) {
		d.node("ArrayFeatureExtractor")
		dims := d.dims(1, 3)
		last := dims[len(dims)-1]
		d.in(pick(d, dtype.F32, dtype.F64, dtype.I64, dtype.I32, dtype.String), dims...)
		list := make([]int64, d.between(1, 5))
		for i := range list {
			list[i] = int64(d.IntN(max(last, 1)))
		}
		d.with(dtype.I64, []int{len(list)}, encodeInts(dtype.I64, list...))
		d.outs(1)
	}
	generators[mlDomain+"::OneHotEncoder"] = drawOneHotEncoder
	generators[mlDomain+"::CategoryMapper"] = drawCategoryMapper
	generators[mlDomain+"::LinearRegressor"] = drawLinearRegressor
	generators[mlDomain+"::LinearClassifier"] = drawLinearClassifier
	why := "sums in another order, exponentials of their own on both sides"
	tolerances[mlDomain+"::LinearRegressor"] = tolerance{256, 32, 0, why}
	tolerances[mlDomain+"::LinearClassifier"] = tolerance{256, 32, 0, why}
}

func drawImputer(d *drawer) {
	d.node("Imputer")
	if d.chance(0.4) {
		dims := d.features(dtype.I64)
		d.attr("imputed_value_int64s", []int64{int64(d.between(-3, 3))})
		if d.chance(0.5) {
			list := make([]int64, dims[len(dims)-1])
			for i := range list {
				list[i] = int64(d.between(-9, 9))
			}
			d.n.attrs = nil
			d.attr("imputed_value_int64s", list)
		}
		d.maybe("replaced_value_int64", d.between(-1, 1))
		d.outs(1)
		return
	}
	dims := d.dims(1, 2)
	list := ref64(d.halves(elements(dims)))
	for i := range list {
		if d.chance(0.3) {
			list[i] = math.NaN()
		}
	}
	d.with(dtype.F32, dims, encodeFloats(dtype.F32, list...))
	if len(dims) == 0 || dims[len(dims)-1] == 0 {
		dims = []int{1}
	}
	d.attr("imputed_value_floats", d.perFeature(dims))
	d.maybe("replaced_value_float", pick(d, math.NaN(), math.NaN(), 0.5, 1))
	d.outs(1)
}

func drawOneHotEncoder(d *drawer) {
	d.node("OneHotEncoder")
	if d.chance(0.4) {
		dims := d.dims(1, 2)
		words := d.texts(elements(dims))
		d.with(dtype.String, dims, encodeStrings(words))
		cats := append(slices.Clone(words), "other")
		slices.Sort(cats)
		cats = slices.Compact(cats)
		d.attr("cats_strings", cats[d.IntN(2)*d.IntN(len(cats)):])
	} else {
		dims := d.dims(1, 2)
		list := make([]int64, elements(dims))
		for i := range list {
			list[i] = int64(d.between(-2, 4))
		}
		dt := pick(d, dtype.I64, dtype.F32, dtype.F64)
		data := encodeInts(dtype.I64, list...)
		if dt.IsFloat() {
			floats := make([]float64, len(list))
			for i, v := range list {
				floats[i] = float64(v) + 0.25*float64(v&1)
			}
			data = encodeFloats(dt, floats...)
		}
		d.with(dt, dims, data)
		d.attr("cats_int64s", int64s(d.Perm(d.between(1, 5))))
	}
	d.maybe("zeros", d.IntN(2))
	d.outs(1)
}

func drawCategoryMapper(d *drawer) {
	d.node("CategoryMapper")
	cats := d.texts(d.between(1, 4))
	slices.Sort(cats)
	cats = slices.Compact(cats)
	dims := d.dims(1, 2)
	if d.chance(0.5) {
		list := d.texts(elements(dims))
		for i := range list {
			if d.chance(0.6) {
				list[i] = pick(d, cats...)
			}
		}
		d.with(dtype.String, dims, encodeStrings(list))
	} else {
		list := make([]int64, elements(dims))
		for i := range list {
			list[i] = int64(d.between(-1, len(cats)))
		}
		d.with(dtype.I64, dims, encodeInts(dtype.I64, list...))
	}
	d.attr("cats_strings", cats)
	d.attr("cats_int64s", int64s(d.Perm(len(cats))))
	d.maybe("default_int64", 77)
	d.maybe("default_string", "other")
	d.outs(1)
}

// transforms are functions of scores. PROBIT is one of numbers between 0 and 1.
var transforms = []string{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"}

func drawLinearRegressor(d *drawer) {
	d.node("LinearRegressor")
	dims := d.features(dtype.F32)
	targets := d.between(1, 3)
	d.attr("targets", targets)
	d.attr("coefficients", d.halves(targets*dims[len(dims)-1]))
	if d.chance(0.7) {
		d.attr("intercepts", d.halves(targets))
	}
	d.maybe("post_transform", pick(d, transforms...))
	d.outs(1)
}

// classNames draws the labels of classes.
func (d *drawer) classNames(count int, ints string) {
	if d.chance(0.4) {
		list := make([]string, count)
		for i := range list {
			list[i] = string(rune('a'+i)) + d.text()
		}
		d.attr("classlabels_strings", list)
		return
	}
	d.attr(ints, int64s(d.Perm(count)))
}

func drawLinearClassifier(d *drawer) {
	d.node("LinearClassifier")
	dims := d.features(pick(d, featureTypes...))
	classes := d.between(1, 4)
	rows := classes
	if classes == 2 && d.chance(0.5) {
		rows = 1
	}
	d.attr("coefficients", d.halves(rows*dims[len(dims)-1]))
	d.attr("intercepts", d.halves(rows))
	d.classNames(classes, "classlabels_ints")
	d.maybe("multi_class", d.IntN(2))
	d.maybe("post_transform", pick(d, transforms...))
	d.outs(2)
}
