package pattern_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

// matches returns the texts of all matches.
func matches(t *testing.T, source, text string) []string {
	t.Helper()
	re, err := pattern.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	var st pattern.Stack
	at, err := re.AppendMatches(nil, &st, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := 0; i < len(at); i += 2 {
		out = append(out, text[at[i]:at[i+1]])
	}
	return out
}

// TestBeyondRegexp has what package regexp lacks.
func TestBeyondRegexp(t *testing.T) {
	for _, c := range []struct {
		source, text string
		want         []string
	}{
		{`\s+(?!\S)|\s+`, "a   b  ", []string{"  ", " ", "  "}},
		{`a(?=b)`, "ab ac", []string{"a"}},
		{`(?<=a)b|(?<!a)c`, "ab ac c", []string{"b", "c"}},
		{`a*+a|b`, "aab", []string{"b"}},
		{`(?>a|ab)c`, "abc ac", []string{"ac"}},
		{`[\p{L}&&[^a-m]]+`, "amznü", []string{"znü"}},
		{`(?i:'s|'T)`, "'S 'ſ 't", []string{"'S", "'ſ", "'t"}},
		{`[\w]+`, "a²b", []string{"a", "b"}},
		{`\w+`, "a²b", []string{"a²b"}},
		{`\p{^Lu}+`, "aBc", []string{"a", "c"}},
		{`^.|.$`, "ab\ncd", []string{"a", "b", "c", "d"}},
		{`x{,2}y`, "xxxy", []string{"xxy"}},
	} {
		if got := matches(t, c.source, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s on %q: got %q, want %q", c.source, c.text, got, c.want)
		}
	}
}

// TestAgainstRegexp compares drawn patterns of what both have.
func TestAgainstRegexp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	atoms := []string{"a", "b", "é", "ab", ".", "[a-c]", "[^a]", `\n`, "(?:a|b)", "(?:ab|a)", "(?:a|)b"}
	counts := []string{"", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{1,}?"}
	for range 3000 {
		var b strings.Builder
		for i := range 1 + rng.IntN(5) {
			if i > 0 && rng.IntN(5) == 0 {
				b.WriteByte('|')
			}
			atom := atoms[rng.IntN(len(atoms))]
			if atom[0] != '\\' && len(atom) > 1 {
				atom = "(?:" + atom + ")"
			}
			b.WriteString(atom + counts[rng.IntN(len(counts))])
		}
		source := b.String()
		re := regexp.MustCompile(source)
		for range 5 {
			text := ""
			for range rng.IntN(12) {
				text += []string{"a", "b", "c", "é", "\n", " "}[rng.IntN(6)]
			}
			got, want := matches(t, source, text), re.FindAllString(text, -1)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Fatalf("%s on %q: got %q, want %q", source, text, got, want)
			}
		}
	}
}

// TestSteps bounds the work for a match.
func TestSteps(t *testing.T) {
	re, err := pattern.Compile(`(?:a+)+b`)
	if err != nil {
		t.Fatal(err)
	}
	var st pattern.Stack
	if _, err := re.AppendMatches(nil, &st, []byte(strings.Repeat("a", 60))); err == nil || !strings.Contains(err.Error(), "steps for one match") {
		t.Errorf("got the error %v, want one that names the steps", err)
	}
}
