package tenure

import (
	"slices"
	"testing"
)

func TestSumOf(t *testing.T) {
	symbols := []string{"n", "past", "sequence", "2*n", "past + 1", "a*b"}
	for _, tc := range []struct {
		symbol string
		terms  []string
		rest   int64
	}{
		{"past", nil, 0}, {"past + sequence", []string{"past", "sequence"}, 0}, {"past+1", []string{"past"}, 1}, {"1 + past + 2", []string{"past"}, 3},
		{"2*n", []string{"n", "n"}, 0}, {"2*n + 1", []string{"2*n"}, 1}, {"n * 3 + 1", []string{"n", "n", "n"}, 1}, {"n+n", []string{"n", "n"}, 0}, {"a*b + 1", []string{"a*b"}, 1},
		{"past + 1", []string{"past"}, 1}, {"other + 1", nil, 0}, {"past * sequence", nil, 0}, {"0*n", nil, 0}, {"-1*n", nil, 0}, {"1000000*n", nil, 0},
		{"past + -1", nil, 0}, {"+", nil, 0}, {"*", nil, 0}, {"n*", nil, 0}, {"n+", nil, 0},
	} {
		terms, rest := sumOf(tc.symbol, symbols)
		if !slices.Equal(terms, tc.terms) || terms != nil && rest != tc.rest {
			t.Errorf("%q: got %q and %d, want %q and %d", tc.symbol, terms, rest, tc.terms, tc.rest)
		}
	}
}

func FuzzSumOf(f *testing.F) {
	for _, s := range []string{"past + 1", "2*n", "n*n", "++", "1*2*n", "9999999999999999999*n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, symbol string) {
		symbols := []string{"n", "past", symbol}
		terms, rest := sumOf(symbol, symbols)
		if rest < 0 || slices.Contains(terms, symbol) {
			t.Errorf("%q: got %q and %d, want others and no negative number", symbol, terms, rest)
		}
		for _, name := range terms {
			if !slices.Contains(symbols, name) {
				t.Errorf("%q: got %q, which is no symbol", symbol, name)
			}
		}
	})
}
