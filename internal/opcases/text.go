package opcases

import (
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(textCases)

// text holds words of up to width bytes.
func text(width int, words string, sizes ...int) optest.Operand {
	var data []uint8
	for _, word := range strings.Split(words, ",") {
		data = append(data, append([]byte(word), make([]byte, width-len(word))...)...)
	}
	return optest.Of(data, append(sizes, width)...)
}

func textCases() map[string][]optest.Case {
	days := text(9, "Monday,tuesday,,wednesday", 4)
	many := text(9, strings.TrimSuffix(strings.Repeat("Monday,tuesday,,wednesday,", 500), ","), 4, 500)
	return map[string][]optest.Case{
		"string_normalizer": {
			{Args: args{days}}, {Args: args{days}, Attrs: attr("case_change_action", "LOWER")}, {Args: args{text(9, "a,B", 1, 2)}, Attrs: attr("case_change_action", "UPPER")},
			{Args: args{days}, Attrs: attr("stopwords", []string{"monday"})}, {Args: args{days}, Attrs: attr("stopwords", []string{"Monday", "tuesday", "", "wednesday"}, "is_case_sensitive", 1)},
			{Args: args{num(u8, 0, 3)}}, {Args: args{num(u8, 0, 3)}, Attrs: attr("stopwords", []string{"x"})},
		},
		"string_concat": {{Args: args{days, text(3, "abc")}}, {Args: args{many, text(2, "x,yz,,w", 4, 1)}}, {Args: args{num(u8, 0, 3), num(u8, 1, 3)}}},
		"string_equal":  {{Args: args{days, text(12, "tuesday")}}, {Args: args{many, many}}, {Args: args{num(u8, 0, 3), num(u8, 1, 3)}}},
		"string_split":  {{Args: args{days}, Attrs: attr("delimiter", "d"), Results: 2}, {Args: args{text(5, "a b, c", 2)}}, {Args: args{many}, Attrs: attr("delimiter", "da", "maxsplit", 1), Results: 2}, {Args: args{num(u8, 0, 3)}, Results: 2}},
		"string_index":  {{Args: args{days}, Attrs: attr("keys", []string{"tuesday", "", "day"})}, {Args: args{many}, Attrs: attr("keys", []string{"Monday"})}, {Args: args{num(u8, 0, 3)}, Attrs: attr("keys", []string{"a"})}},
		"string_tokenize": {
			{Args: args{days}, Attrs: attr("pad_value", "#", "mincharnum", 1, "tokenexp", "[a-m]+")}, {Args: args{days}, Attrs: attr("pad_value", "", "mincharnum", 1, "tokenexp", ".", "mark", 1)},
			{Args: args{many}, Attrs: attr("pad_value", "padding", "mincharnum", 2, "separators", []string{"d", "[ue]+"}, "mark", 1)},
			{Args: args{text(1, ",", 2)}, Attrs: attr("pad_value", "#", "mincharnum", 1, "separators", []string{""}, "mark", 1)}, {Args: args{num(u8, 0, 3)}, Attrs: attr("pad_value", "#", "mincharnum", 1, "tokenexp", "a")},
		},
		"string_token_index": {
			{Args: args{days}, Attrs: attr("pad_value", "#", "mincharnum", 1, "tokenexp", "[a-m]+", "keys", []string{"da", "ed", "#"})},
			{Args: args{many}, Attrs: attr("pad_value", "", "mincharnum", 2, "separators", []string{"d", "[ue]+"}, "mark", 1, "keys", []string{"ay", "\x02", "Mon", "\x03"})},
			{Args: args{num(u8, 0, 3)}, Attrs: attr("pad_value", "#", "mincharnum", 1, "tokenexp", "a", "keys", []string{})},
		},
		"number_to_string": {
			{Args: args{num(f64, 3, 2)}}, {Args: args{num(i64, 700)}}, {Args: args{optest.Of([]uint64{1<<64 - 1, 0}, 2)}}, {Args: args{optest.Of([]float64{1e-300, 12345678.9, 0.1, -1e5}, 4)}}, {Args: args{num(f64, 0)}},
		},
		"string_to_number": {
			{Args: args{text(6, "1.5,-2, 3 ,1e-2,inf,-5", 3, 2)}, Attrs: attr("to", f64)}, {Args: args{text(6, "1.5,-2,1e3", 3)}, Attrs: attr("to", i64)}, {Args: args{text(3, "7,-1", 2)}, Attrs: attr("to", dtype.U64)},
			{Args: args{num(u8, 0, 3)}, Attrs: attr("to", f64)},
		},
		"murmur_hash": {
			{Args: args{days}}, {Args: args{many}, Attrs: attr("positive", 0, "seed", 7)}, {Args: args{num(f32, 3, 2)}}, {Args: args{num(i64, 2)}, Attrs: attr("positive", 0)}, {Args: args{num(u8, 0, 3)}},
		},
		"regex_full_match": {{Args: args{days}, Attrs: attr("pattern", "(?i).*DAY")}, {Args: args{many}, Attrs: attr("pattern", "[a-z]+|")}, {Args: args{num(u8, 0, 3)}, Attrs: attr("pattern", "")}},
	}
}
