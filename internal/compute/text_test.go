package compute

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// textArg returns an operand of strings, each of so many bytes.
func textArg(width int, list []string, dims ...int) op.Arg {
	data := make([]uint8, len(list)*width)
	for i, s := range list {
		copy(data[i*width:], s)
	}
	return arg(data, append(dims, width)...)
}

func wantStrings(t *testing.T, what string, got op.Arg, dims []int, want ...string) {
	t.Helper()
	sizes, width := textSizes(&got)
	if !slices.Equal(sizes, dims) {
		t.Fatalf("%s: got strings %v, want %v", what, sizes, dims)
	}
	for i, w := range want {
		if s := string(textOf(&got, width).At(i)); s != w {
			t.Fatalf("%s: string %d: got %q, want %q", what, i, s, w)
		}
	}
}

func TestStringNormalizer(t *testing.T) {
	x := textArg(6, []string{"Das", "ist", "größ", "DAS"}, 4)
	wantStrings(t, "as it is", eval(t, "string_normalizer", nil, x), []int{4}, "Das", "ist", "größ", "DAS")
	wantStrings(t, "upper", eval(t, "string_normalizer", attrs("case_change_action", "UPPER"), x), []int{4}, "DAS", "IST", "GRÖß", "DAS")
	stop := []string{"das"}
	wantStrings(t, "any case", eval(t, "string_normalizer", attrs("stopwords", stop), x), []int{2}, "ist", "größ")
	wantStrings(t, "this case", eval(t, "string_normalizer", attrs("stopwords", stop, "is_case_sensitive", 1, "case_change_action", "LOWER"), x),
		[]int{4}, "das", "ist", "größ", "das")
	row := textArg(3, []string{"das", "DAS"}, 1, 2)
	wantStrings(t, "nothing left", eval(t, "string_normalizer", attrs("stopwords", stop), row), []int{1, 1}, "")
	wantStrings(t, "nothing given", eval(t, "string_normalizer", nil, textArg(3, nil, 0)), []int{1}, "")
	wantStrings(t, "a longer letter", eval(t, "string_normalizer", attrs("case_change_action", "UPPER"), textArg(4, []string{"ɐɐ"}, 1)), []int{1}, "ⱯⱯ")
}

func TestStringConcat(t *testing.T) {
	a := textArg(2, []string{"a", "bb"}, 2, 1)
	b := textArg(3, []string{"x", "", "yyy"}, 3)
	wantStrings(t, "broadcast", eval(t, "string_concat", nil, a, b), []int{2, 3}, "ax", "a", "ayyy", "bbx", "bb", "bbyyy")
	wantStrings(t, "scalars", eval(t, "string_concat", nil, textArg(1, []string{"a"}), textArg(1, []string{"b"})), []int{}, "ab")
}

func TestStringEqual(t *testing.T) {
	a := textArg(2, []string{"a", "bb"}, 2, 1)
	b := textArg(3, []string{"a", "bb", "bbb"}, 3)
	expect(t, "broadcast", eval(t, "string_equal", nil, a, b), []int{2, 3}, []float64{1, 0, 0, 0, 1, 0}, 0)
}

func TestStringSplit(t *testing.T) {
	split := func(what string, a op.Attrs, x op.Arg, dims []int, parts []string, counts ...float64) {
		t.Helper()
		r := run(t, call(t, "string_split", a, 2, x))
		wantStrings(t, what, r[0], dims, parts...)
		expect(t, what+": counts", r[1], dims[:len(dims)-1], counts, 0)
	}
	x := textArg(8, []string{"a,b,,c", ",", "", "abc"}, 4)
	split("delimiter", attrs("delimiter", ","), x, []int{4, 4}, []string{"a", "b", "", "c", "", "", "", "", "", "", "", "", "abc"}, 4, 2, 1, 1)
	split("one", attrs("delimiter", ",", "maxsplit", 1), x, []int{4, 2}, []string{"a", "b,,c", "", "", "", "", "abc"}, 2, 2, 1, 1)
	y := textArg(9, []string{" a  b c ", "\u3000", "d\te"}, 3)
	split("space", nil, y, []int{3, 3}, []string{"a", "b", "c", "", "", "", "d", "e", ""}, 3, 0, 2)
	split("space once", attrs("maxsplit", 1), y, []int{3, 2}, []string{"a", "b c", "", "", "d", "e"}, 2, 0, 2)
	split("never", attrs("maxsplit", 0), y, []int{3, 1}, []string{"a  b c", "", "d\te"}, 1, 0, 1)
	split("none", nil, textArg(2, []string{"", ""}, 2), []int{2, 0}, nil, 0, 0)
	split("scalar", nil, textArg(3, []string{"a b"}), []int{2}, []string{"a", "b"}, 2)
}

func TestStringTokenize(t *testing.T) {
	how := func(pairs ...any) op.Attrs {
		return attrs(append([]any{"pad_value", "#", "mincharnum", 1}, pairs...)...)
	}
	tokens := func(what string, a op.Attrs, x op.Arg, dims []int, want ...string) {
		t.Helper()
		wantStrings(t, what, eval(t, "string_tokenize", a, x), dims, want...)
		keys := []string{"a", "#", "bc", op.TokensBegin, "ß"}
		var places []float64
		for _, w := range want {
			at := slices.Index(keys, w)
			if at < 0 {
				at = len(keys)
			}
			places = append(places, float64(at))
		}
		expect(t, what+": places", eval(t, "string_token_index", a.With("keys", keys), x), dims, places, 0)
	}
	x := textArg(9, []string{"a bc a", "", "ßd, e"}, 3)
	tokens("words", how("tokenexp", `\pL+`), x, []int{3, 3}, "a", "bc", "a", "#", "#", "#", "ßd", "e", "#")
	tokens("long words", how("tokenexp", `\pL+`).With("mincharnum", int64(2)), x, []int{3, 1}, "bc", "#", "ßd")
	tokens("marks", how("tokenexp", `\pL+`, "mark", 1), x, []int{3, 5},
		op.TokensBegin, "a", "bc", "a", op.TokensEnd, op.TokensBegin, op.TokensEnd, "#", "#", "#", op.TokensBegin, "ßd", "e", op.TokensEnd, "#")
	tokens("separators", how("separators", []string{" ", ",+"}), x, []int{3, 3}, "a", "bc", "a", "#", "#", "#", "ßd", "e", "#")
	tokens("characters", how("separators", []string{""}), textArg(4, []string{"aß", "b"}, 1, 2), []int{1, 2, 2}, "a", "ß", "b", "#")
	tokens("a dot", how("tokenexp", "."), textArg(4, []string{"a\n"}, 1), []int{1, 2}, "a", "\n")
	tokens("none", how("tokenexp", "x", "mark", 1), x, []int{3, 0})
	tokens("a scalar", how("tokenexp", ".."), textArg(4, []string{"bca"}), []int{1}, "bc")
	wantStrings(t, "wide padding", eval(t, "string_tokenize", how("tokenexp", "a+").With("pad_value", "padding"), textArg(2, []string{"a", "b"}, 2)), []int{2, 1}, "a", "padding")
	for what, a := range map[string]op.Attrs{
		"empty separators":     how("separators", []string{"a", ""}),
		"few characters":       how("separators", []string{""}).With("mincharnum", int64(2)),
		"neither":              how(),
		"a pattern of another": how("tokenexp", "(?<=a)b"),
	} {
		s := &op.Sig{Def: op.Builtin().Lookup("string_tokenize"), Args: []op.Type{x.Type}, Attrs: a, Results: make([]op.Type, 1)}
		if err := op.InferTypes(s); err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
}

func TestRegexFullMatch(t *testing.T) {
	x := textArg(8, []string{"abc", "ab", "", "xabc", "a\nc", "ä"}, 2, 3)
	match := func(pattern string, want ...float64) {
		t.Helper()
		expect(t, pattern, eval(t, "regex_full_match", attrs("pattern", pattern), x), []int{2, 3}, want, 0)
	}
	match("a|abc", 1, 0, 0, 0, 0, 0)
	match("ab?.*", 1, 1, 0, 0, 0, 0)
	match("(?s)a.c|.", 1, 0, 0, 0, 1, 1)
	match("", 0, 0, 1, 0, 0, 0)
	match("^abc$", 1, 0, 0, 0, 0, 0)
}

func TestTextOfNumbers(t *testing.T) {
	wantStrings(t, "floats", eval(t, "number_to_string", nil, arg([]float64{0.47892547, 1, 1e-5, float64(float32(1e-5)), 1e8, 123456789, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), -1.23456789e-300}, 11)), []int{11},
		"0.47892547", "1", "1e-05", "9.9999997e-06", "1e+08", "1.2345679e+08", "NaN", "INF", "-INF", "-0", "-1.2345679e-300")
	wantStrings(t, "integers", eval(t, "number_to_string", nil, arg([]int64{math.MinInt64, 7}, 2)), []int{2}, "-9223372036854775808", "7")
	wantStrings(t, "without signs", eval(t, "number_to_string", nil, arg([]uint64{math.MaxUint64}, 1)), []int{1}, "18446744073709551615")
	parse := func(to dtype.DType, want []float64, list ...string) {
		t.Helper()
		expect(t, to.String(), eval(t, "string_to_number", attrs("to", to), textArg(12, list, len(list))), []int{len(list)}, want, 0)
	}
	parse(dtype.F64, []float64{3.14, 1e-5, 1e8, math.Inf(1), math.Inf(-1), 7, 0.5, 0}, "3.14", "1e-5", "1E8", "+INF", "-inf", " 7\t", ".5", "1e-400")
	parse(dtype.F64, []float64{math.NaN()}, "nan")
	parse(dtype.I64, []float64{-3, 100, 100000, 0}, "-3", "100.5", "1e5", "1e-5")
	parse(dtype.U64, []float64{3, 1e11}, "+3", "100000000000")
	for to, list := range map[dtype.DType][]string{dtype.F64: {"", "x", "1_0", "0x10", "12abc"}, dtype.I64: {"", "nan", "1e19", "-1e30"}, dtype.U64: {"1e20", "inf", "-1e30"}} {
		for _, s := range list {
			c := call(t, "string_to_number", attrs("to", to), 1, textArg(8, []string{"1", s}, 2))
			task, err := Bind(c)
			if err == nil {
				err = task.Start()
			}
			if err == nil || !strings.Contains(err.Error(), "string 1: got ") {
				t.Errorf("%q as %s: got the error %v, want the string named", s, to, err)
			}
		}
	}
}

func TestMurmurHash(t *testing.T) {
	x := textArg(5, []string{"aaa", "", "a"}, 3)
	expect(t, "strings", eval(t, "murmur_hash", attrs("seed", 0x9747b28c), x), []int{3}, []float64{0x283e0130, 0xebb6c228, 0x7fa09ea6}, 0)
	expect(t, "numbers", eval(t, "murmur_hash", attrs("positive", 0), arg([]int32{0, 0x61616161}, 2)), []int{2}, []float64{0x2362f9de, 0x7eeed987}, 0)
	expect(t, "signs", eval(t, "murmur_hash", attrs("positive", 0, "seed", 0x9747b28c), x), []int{3}, []float64{0x283e0130, 0xebb6c228 - 1<<32, 0x7fa09ea6}, 0)
}

func TestStringIndex(t *testing.T) {
	x := textArg(4, []string{"b", "", "abcd", "c", "B", "a"}, 2, 3)
	expect(t, "places", eval(t, "string_index", attrs("keys", []string{"a", "b", "", "abc"}), x), []int{2, 3}, []float64{1, 2, 4, 4, 4, 0}, 0)
	expect(t, "no keys", eval(t, "string_index", attrs("keys", []string{}), x), []int{2, 3}, []float64{0, 0, 0, 0, 0, 0}, 0)
}
