package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["DFT"] = func(d *drawer) {
		d.node("DFT")
		dt := pick(d, dtype.F32, dtype.F32, dtype.F64)
		dims := append(full(d.dims(2, 3)), pick(d, 1, 2))
		for i := range dims[:len(dims)-1] {
			dims[i] = d.between(1, 9)
		}
		at := d.between(1, len(dims)-2)
		inverse := d.chance(0.4)
		d.in(dt, dims...)
		if d.chance(0.3) {
			d.operand(d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(1, 10))), d.fixed))
		} else {
			d.skip()
		}
		axis := d.signed(at, len(dims))
		if d.m.opset < 20 {
			if axis != 1 || d.chance(0.5) {
				d.attr("axis", axis)
			}
		} else if axis != -2 || d.chance(0.5) {
			d.operand(d.value(dtype.I64, []int{}, encodeInts(dtype.I64, axis), d.fixed))
		}
		if inverse {
			d.attr("inverse", 1)
		} else if dims[len(dims)-1] == 1 && d.chance(0.4) {
			d.attr("onesided", 1)
		}
		d.outs(1)
	}
	tolerances["DFT"] = tolerance{64, 512, 0, "sums in another order, angles in single precision"}
	generators["STFT"] = func(d *drawer) {
		d.node("STFT")
		dt := pick(d, dtype.F32, dtype.F32, dtype.F64)
		frame := d.between(1, 8)
		n := frame + d.between(0, 12)
		parts := pick(d, 1, 1, 2)
		scalar := func(v int) {
			d.operand(d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(v)), d.fixed))
		}
		if parts == 1 && d.chance(0.3) {
			d.in(dt, d.between(1, 2), n)
		} else {
			d.in(dt, d.between(1, 2), n, parts)
		}
		scalar(d.between(1, 4))
		window := d.chance(0.6)
		if window {
			d.in(dt, frame)
		} else {
			d.skip()
		}
		if !window || d.chance(0.5) {
			scalar(frame)
		}
		if parts == 2 || d.chance(0.5) {
			d.attr("onesided", parts == 1 && d.chance(0.5))
		}
		d.outs(1)
	}
	tolerances["STFT"] = tolerances["DFT"]
	generators["MelWeightMatrix"] = func(d *drawer) {
		d.node("MelWeightMatrix")
		it, ft := pick(d, dtype.I64, dtype.I32), dtype.F32
		for _, v := range []int{d.between(1, 8), d.between(8, 40), pick(d, 8000, 16000, 44100)} {
			d.operand(d.value(it, []int{}, encodeInts(it, int64(v)), d.fixed))
		}
		for _, v := range []float64{pick(d, 0, 20, 125.5), pick(d, 1000, 3999, 2500.5)} {
			d.operand(d.value(ft, []int{}, encodeFloats(ft, v), d.fixed))
		}
		if d.chance(0.3) {
			d.attr("output_datatype", int(pick(d, dtype.F32, dtype.F64).ONNX()))
		}
		d.outs(1)
	}
	tolerances["MelWeightMatrix"] = tolerance{64, 64, 0, "frequencies in single precision"}
	generators["TfIdfVectorizer"] = func(d *drawer) {
		d.node("TfIdfVectorizer")
		dims := pick(d, []int{d.between(1, 12)}, []int{d.between(1, 3), d.between(1, 8)})
		list := make([]int64, elements(dims))
		for i := range list {
			list[i] = int64(d.IntN(5))
		}
		words := d.chance(0.5)
		if dt := pick(d, dtype.I64, dtype.I32); words {
			d.with(dtype.String, dims, encodeStrings(wordsOf(list)))
		} else {
			d.with(dt, dims, encodeInts(dt, list...))
		}
		ones, twos := d.between(1, 3), d.between(0, 3)
		var pool []int64
		for _, v := range d.Perm(5)[:ones] {
			pool = append(pool, int64(v))
		}
		for _, v := range d.Perm(25)[:twos] {
			pool = append(pool, int64(v/5), int64(v%5))
		}
		counts, n := []int64{0, int64(ones)}, ones+twos
		if twos == 0 {
			counts = []int64{0}
		}
		var at []int64
		weights := make([]float32, n)
		for i, v := range d.Perm(n) {
			at, weights[i] = append(at, int64(v)), float32(d.between(1, 5))/2
		}
		least := d.between(1, 2)
		if twos == 0 {
			least = 1
		}
		d.attr("min_gram_length", least)
		d.attr("max_gram_length", max(least, min(len(counts), 2)))
		d.attr("max_skip_count", d.between(0, 3))
		d.attr("mode", pick(d, "TF", "IDF", "TFIDF"))
		d.attr("ngram_counts", counts)
		d.attr("ngram_indexes", at)
		if words {
			d.attr("pool_strings", wordsOf(pool))
		} else {
			d.attr("pool_int64s", pool)
		}
		if d.chance(0.5) {
			d.attr("weights", weights)
		}
		d.outs(1)
	}
	loss := func(name string) func(d *drawer) {
		return func(d *drawer) {
			d.node(name)
			dt := pick(d, dtype.F32, dtype.F32, dtype.F64, dtype.F16)
			dims := full(d.dims(2, 4))
			classes := dims[1]
			labels := append([]int{dims[0]}, dims[2:]...)
			it, ignored := pick(d, dtype.I64, dtype.I32), pick(d, 0, -1, 100)
			list := make([]int64, elements(labels))
			ignores := d.chance(0.5)
			for i := range list {
				list[i] = int64(d.IntN(classes))
				if ignores && d.chance(0.2) {
					list[i] = int64(ignored)
				}
			}
			d.in(dt, dims...)
			d.with(it, labels, encodeInts(it, list...))
			if d.chance(0.5) {
				d.positive(dt, classes)
			}
			if ignores {
				d.attr("ignore_index", ignored)
			}
			d.maybe("reduction", pick(d, "none", "sum", "mean"))
			outs := 1
			if name != "NegativeLogLikelihoodLoss" {
				outs = d.between(1, 2)
			}
			d.outs(outs)
		}
	}
	for _, name := range []string{"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"} {
		generators[name] = loss(name)
		tolerances[name] = tolerance{64, 64, 0, "sums in another order"}
	}
}
