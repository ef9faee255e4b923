package ortdiff_test

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators[mlDomain+"::ZipMap"] = func(d *drawer) {
		d.node("ZipMap")
		rows, count := d.between(1, 4), d.between(1, 5)
		d.in(dtype.F32, rows, count)
		if d.chance(0.5) {
			d.attr("classlabels_int64s", int64s(d.Perm(count)))
		} else {
			d.attr("classlabels_strings", words(count))
		}
		d.outs(1)
	}
	generators[mlDomain+"::CastMap"] = func(d *drawer) {
		d.node("CastMap")
		d.mild, d.calm = true, true
		count := d.between(1, 6)
		d.value(dtype.I64, []int{count}, encodeInts(dtype.I64, int64s(d.Perm(8)[:count])...), false).name = "x.keys"
		d.value(dtype.F32, []int{count}, d.data(dtype.F32, count), false).name = "x.values"
		d.maybe("cast_to", pick(d, "TO_FLOAT", "TO_INT64"))
		if d.chance(0.5) {
			d.attr("map_form", "SPARSE")
			d.attr("max_map", d.between(1, 10))
		} else if d.chance(0.5) {
			d.attr("map_form", "DENSE")
		}
		d.n.in = []string{"x"}
		d.outs(1)
	}
	generators[mlDomain+"::DictVectorizer"] = func(d *drawer) {
		d.node("DictVectorizer")
		count, known := d.between(1, 6), d.between(1, 6)
		places := d.Perm(8)
		values := pick(d, dtype.F32, dtype.F64, dtype.I64)
		if d.chance(0.5) {
			d.attr("int64_vocabulary", int64s(places[:known]))
			d.value(dtype.I64, []int{count}, encodeInts(dtype.I64, int64s(d.Perm(8)[:count])...), false).name = "x.keys"
			values = pick(d, dtype.F32, dtype.F64)
		} else {
			var vocabulary, keys []string
			for _, i := range places[:known] {
				vocabulary = append(vocabulary, words(8)[i])
			}
			for _, i := range d.Perm(8)[:count] {
				keys = append(keys, words(8)[i])
			}
			d.attr("string_vocabulary", vocabulary)
			d.value(dtype.String, []int{count}, encodeStrings(keys), false).name = "x.keys"
		}
		d.value(values, []int{count}, d.data(values, count), false).name = "x.values"
		d.n.in = []string{"x"}
		d.outs(1)
	}
}

// words returns that many different strings.
func words(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("class %d", 7*i))
	}
	return list
}
