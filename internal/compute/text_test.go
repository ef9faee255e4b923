package compute

import (
	"slices"
	"testing"

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

func TestStringIndex(t *testing.T) {
	x := textArg(4, []string{"b", "", "abcd", "c", "B", "a"}, 2, 3)
	expect(t, "places", eval(t, "string_index", attrs("keys", []string{"a", "b", "", "abc"}), x), []int{2, 3}, []float64{1, 2, 4, 4, 4, 0}, 0)
	expect(t, "no keys", eval(t, "string_index", attrs("keys", []string{}), x), []int{2, 3}, []float64{0, 0, 0, 0, 0, 0}, 0)
}
