package chars_test

import (
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

// TestForms compares decompositions and compositions with those of x/text, for
// the characters that have one here.
func TestForms(t *testing.T) {
	n := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xd800 <= r && r <= 0xdfff || chars.Of(r)&chars.Composite == 0 {
			continue
		}
		n++
		for _, compatible := range []bool{false, true} {
			form := norm.NFD
			if compatible {
				form = norm.NFKD
			}
			var got []rune
			for _, p := range chars.Decompose(nil, r, compatible) {
				got = append(got, p.Rune)
				if p.Class != norm.NFD.PropertiesString(string(p.Rune)).CCC() {
					t.Errorf("%U: got the class %d of %U, want that of x/text", r, p.Class, p.Rune)
				}
			}
			if want := form.String(string(r)); string(got) != want {
				t.Errorf("%U: decomposed to %q, want %q", r, string(got), want)
			}
		}
		if two := []rune(norm.NFD.String(string(r))); len(two) == 2 && norm.NFC.String(string(r)) == string(r) {
			if got := chars.Compose(two[0], two[1]); got != r {
				t.Errorf("%U and %U: composed to %U, want %U", two[0], two[1], got, r)
			}
		}
	}
	if n < 15_000 {
		t.Errorf("got %d characters, want those of Unicode 9", n)
	}
}

// TestGrapheme has the examples of UAX #29.
func TestGrapheme(t *testing.T) {
	for text, want := range map[string]int{
		"ab": 1, "\r\nx": 2, "\n\u0301": 1, "e\u0301\u0302x": 5, "각x": 3, "\u1100\u1161\u11a8x": 9, "🇫🇷🇩": 8,
		"👩\u200d👩\u200d👧x": 18, "👍🏽x": 8, "क्षx": 9, "\u0600a": 3, "a\u200d👩": 4, "\x01\u0301": 1,
	} {
		if got := chars.Grapheme([]byte(text)); got != want {
			t.Errorf("%q: got %d bytes, want %d", text, got, want)
		}
	}
}

// TestCategories checks some characters against what they are known as.
func TestCategories(t *testing.T) {
	for r, want := range map[rune]string{'a': "ll", 'Ä': "lu", 'ǅ': "lt", '漢': "lo", '٣': "nd", '½': "no", '_': "pc", '€': "sc", ' ': "zs", 0x378: "cn"} {
		set, ok := chars.Category(want)
		if !ok || chars.Of(r)&set == 0 {
			t.Errorf("%q: want the category %s", r, want)
		}
	}
	if first, second := chars.Lower('İ'); first != 'i' || second != 0x307 {
		t.Errorf("got %q and %q, want i and a dot above", first, second)
	}
}
