package ortdiff_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// moved are the types of what only moves elements: the others, and strings.
var moved = append([]dtype.DType{dtype.String, dtype.String}, all...)

// A value of strings has as its bytes each string behind its length.
func encodeStrings(list []string) []byte {
	var data []byte
	for _, s := range list {
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(s))), s...)
	}
	return data
}

func decodeStrings(data []byte) []string {
	list := []string{}
	for len(data) > 0 {
		n := 4 + int(binary.LittleEndian.Uint32(data))
		list, data = append(list, string(data[4:n])), data[n:]
	}
	return list
}

// textParts are what strings are made of.
var textParts = []string{"a", "b", "B", "k", " ", "  ", "\t", "-", ",", "ß", "É", "中", "𐐀", "das", "DAS", "abc"}

func (d *drawer) text() string {
	s := ""
	for range d.IntN(5) {
		s += pick(d, textParts...)
	}
	return s
}

func (d *drawer) texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = d.text()
	}
	return list
}

func init() {
	generators["StringNormalizer"] = func(d *drawer) {
		d.node("StringNormalizer")
		dims := d.dims(1, 1)
		if d.chance(0.4) {
			dims = append([]int{1}, dims...)
		}
		words := d.texts(elements(dims))
		d.with(dtype.String, dims, encodeStrings(words))
		d.maybe("case_change_action", pick(d, "NONE", "LOWER", "UPPER"))
		d.maybe("is_case_sensitive", d.IntN(2))
		if d.chance(0.9) {
			d.attr("locale", "C.UTF-8") // one that there is where ONNX Runtime runs
		}
		if d.chance(0.7) {
			stop := append(d.texts(d.between(1, 3)), "das")
			if len(words) > 0 {
				stop = append(stop, words[0])
			}
			d.attr("stopwords", stop)
		}
		d.outs(1)
	}
	generators["StringConcat"] = func(d *drawer) {
		d.node("StringConcat")
		dims := d.dims(0, 4)
		d.in(dtype.String, d.broadcast(dims)...)
		d.in(dtype.String, d.broadcast(dims)...)
		d.outs(1)
	}
	generators["StringSplit"] = func(d *drawer) {
		d.node("StringSplit")
		d.in(dtype.String, d.dims(0, 3)...)
		d.maybe("delimiter", pick(d, "", "-", "a", "ab", "das", "ß"))
		if d.chance(0.4) {
			d.attr("maxsplit", d.between(0, 3))
		}
		d.outs(2)
	}
	generators["RegexFullMatch"] = func(d *drawer) {
		d.node("RegexFullMatch")
		d.in(dtype.String, d.dims(0, 4)...)
		d.attr("pattern", pick(d, "a|ab", "[a-z]*", "(?i)das.*", "", ".+", `\w+`, `\s*`, "[^ab]*", "É?.", "(a|b){1,2}", "ab?.*c"))
		d.outs(1)
	}
	generators[mlDomain+"::LabelEncoder"] = func(d *drawer) {
		d.node("LabelEncoder")
		if d.chance(0.15) {
			d.classes()
			return
		}
		if d.chance(0.5) {
			d.numberLabels()
			return
		}
		dims := d.dims(1, 3)
		words := d.texts(elements(dims))
		d.with(dtype.String, dims, encodeStrings(words))
		keys := []string{"a"}
		for _, w := range words {
			if !slices.Contains(keys, w) && d.chance(0.6) {
				keys = append(keys, w)
			}
		}
		d.attr("keys_strings", keys)
		d.labels(len(keys))
		d.outs(1)
	}
	generators[contribDomain+"::MurmurHash3"] = func(d *drawer) {
		d.node("MurmurHash3")
		d.in(pick(d, dtype.String, dtype.String, dtype.I32, dtype.U32, dtype.I64, dtype.U64, dtype.F32, dtype.F64), d.dims(0, 4)...)
		d.maybe("positive", d.IntN(2))
		d.maybe("seed", pick(d, 1, 42, math.MaxInt32, math.MaxUint32))
		d.outs(1)
	}
	generators[contribDomain+"::Tokenizer"] = func(d *drawer) {
		d.node("Tokenizer")
		dims := d.dims(1, 2)
		d.with(dtype.String, dims, encodeStrings(d.texts(elements(dims))))
		d.attr("mark", d.IntN(2))
		d.attr("pad_value", pick(d, "#", "", "padding", "a"))
		least := 1
		switch d.IntN(3) {
		case 0:
			d.attr("separators", []string{""})
		case 1:
			least = d.between(1, 3)
			all := []string{" ", "-|,", "a", "[ab]+", "b|bk|bka", `\s`, `\bd`, "(?i)das", "ß", "^a", "[,.]"}
			var list []string
			for _, i := range d.Perm(len(all))[:d.between(1, 3)] {
				list = append(list, all[i])
			}
			d.attr("separators", list)
		default:
			token := pick(d, ".", "..", "[a-z]+", `\w+`, `\b\w\w+\b`, "a|ab|abc", "a*", `[^ \t]+?`, "^.", "中.?", `\pL+`, "(?s)..?$")
			if token != "." {
				least = d.between(1, 3)
			}
			d.attr("tokenexp", token)
		}
		d.attr("mincharnum", least)
		d.outs(1)
	}
	numbers := generators["Equal"]
	generators["Equal"] = func(d *drawer) {
		if d.m.opset < 19 || d.chance(0.7) {
			numbers(d)
			return
		}
		d.node("Equal")
		dims := d.dims(0, 4)
		d.in(dtype.String, d.broadcast(dims)...)
		d.in(dtype.String, d.broadcast(dims)...)
		d.outs(1)
	}
}

// castText draws an operand that a Cast makes of strings, or strings of, and
// returns the type that it becomes.
func (d *drawer) castText() dtype.DType {
	types := []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64, dtype.Bool}
	dt, dims := pick(d, types...), d.dims(0, 3)
	if d.chance(0.5) {
		d.in(dt, dims...)
		return dtype.String
	}
	list := make([]string, elements(dims))
	for i := range list {
		switch {
		case dt.IsFloat():
			list[i] = pick(d, "1.5", "-2", "3e2", "1E-3", "inf", "-INF", "NaN", ".25", " 7", "0.1", "12345.678")
		case dt == dtype.U64:
			list[i] = pick(d, "0", "7", "18446744073709551615", "300")
		default:
			list[i] = pick(d, "0", "7", "-5", "100", "300", "70000")
		}
	}
	d.with(dtype.String, dims, encodeStrings(list))
	return dt
}

// wordsOf returns a word for each number, the same for equal ones.
func wordsOf(list []int64) []string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = []string{"das", "", "DAS", "größ", "a b"}[v]
	}
	return words
}

// quoted gives strings as text.
func quoted(data []byte) string {
	return strings.ReplaceAll(fmt.Sprintf("%q", decodeStrings(data)), "\n", `\n`)
}

// labels draws what belongs to so many keys, and to everything else.
func (d *drawer) labels(count int) {
	switch d.IntN(3) {
	case 0:
		d.attr("values_int64s", int64s(d.Perm(count)))
		d.maybe("default_int64", 77)
	case 1:
		list := make([]float32, count)
		for i := range list {
			list[i] = float32(i) / 2
		}
		d.attr("values_floats", list)
		d.maybe("default_float", 0.75)
	default:
		d.attr("values_strings", d.texts(count))
		d.maybe("default_string", "other")
	}
}

// numberLabels draws a LabelEncoder of numbers, among them NaN and both zeros.
func (d *drawer) numberLabels() {
	d.mild = true
	dims, count := d.dims(0, 3), d.between(1, 5)
	dt := pick(d, dtype.I64, dtype.F32, dtype.F64)
	var data, keys []byte
	if dt == dtype.I64 {
		list := make([]int64, count)
		for i := range list {
			list[i] = int64(d.between(-3, 3))
		}
		data, keys = d.data(dt, elements(dims)), encodeInts(dt, list...)
	} else {
		some := func(n int) []byte {
			list := make([]float64, n)
			for i := range list {
				list[i] = pick(d, math.NaN(), math.NaN(), 0, math.Copysign(0, -1), 1.5, -2, 1e30)
			}
			return encodeFloats(dt, list...)
		}
		data, keys = some(elements(dims)), some(count)
	}
	d.with(dt, dims, data)
	list := decode(dt, keys)
	switch {
	case dt == dtype.F64 || d.chance(0.3):
		d.attr("keys_tensor", &value{name: "keys", dt: dt, dims: []int{count}, data: keys})
	case dt == dtype.I64:
		ints := make([]int64, count)
		for i := range ints {
			ints[i] = list[i].i
		}
		d.attr("keys_int64s", ints)
	default:
		floats := make([]float32, count)
		for i := range floats {
			floats[i] = float32(list[i].f)
		}
		d.attr("keys_floats", floats)
	}
	if dt != dtype.F64 && d.chance(0.7) {
		d.labels(count)
	} else {
		of := pick(d, dtype.F64, dtype.F64, dtype.F32, dtype.I64, dtype.String)
		d.attr("values_tensor", &value{name: "values", dt: of, dims: []int{count}, data: d.data(of, count)})
		if d.chance(0.5) {
			d.attr("default_tensor", &value{name: "default", dt: of, dims: []int{1}, data: d.data(of, 1)})
		}
		if d.chance(0.3) { // as ONNX Runtime saves it
			d.attr("default_int64", 77)
			d.attr("default_float", 0.75)
			d.attr("default_string", "other")
		}
	}
	d.outs(1)
}

// classes draws a LabelEncoder of the first opset: strings are numbered, or
// numbers become the strings that have them.
func (d *drawer) classes() {
	d.m.ml = 1
	words := d.texts(d.between(1, 4))
	slices.Sort(words)
	words = slices.Compact(words)
	dims := d.dims(1, 2)
	if d.chance(0.5) {
		list := make([]int64, elements(dims))
		for i := range list {
			list[i] = int64(d.between(-1, len(words)))
		}
		d.with(dtype.I64, dims, encodeInts(dtype.I64, list...))
		d.maybe("default_string", "other")
	} else {
		list := d.texts(elements(dims))
		for i := range list {
			if d.chance(0.6) {
				list[i] = pick(d, words...)
			}
		}
		d.with(dtype.String, dims, encodeStrings(list))
		d.maybe("default_int64", 77)
	}
	d.attr("classes_strings", words)
	d.outs(1)
}
