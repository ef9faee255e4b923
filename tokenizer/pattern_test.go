package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/tokenizer"
)

// drawPattern returns a regular expression of parts that both libraries
// support.
func drawPattern(rng *rand.Rand, depth int) string {
	atoms := []string{
		"a", "é", "x", "the", " ", `\s`, `\S`, `\w`, `\W`, `\d`, `.`, `\p{L}`, `\P{L}`, `\p{N}`, `\p{Lu}`, `\p{M}`, `\p{^P}`,
		`\p{Han}`, `[a-e]`, `[^\s\p{L}]`, `[\p{L}&&[^a-m]]`, `[\r\n]`, `[一-龥]`, `\n`, `\x41`, `(?i:s)`, `(?i:the)`, `[[:digit:]x]`,
		`[^[a-c]d]`, `\p{Letter}`, `[\w&&\D]`, `\u3042`, `'`, `(?i:[k-m])`, `[a\-z]`, `[-z]`,
	}
	looks := []string{`(?=%s)`, `(?!%s)`, `(?>%s)`, `(?:%s)`, `(%s)`}
	asserts := []string{"^", "$", `\b`, `\B`, `\A`, `\z`, `\Z`, `(?<=a)`, `(?<!\s)`, `(?<=\p{L}|..)`, `(?<![aé]b?)`}
	counts := []string{"", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}", "*?", "+?", "??", "*+", "++", "?+", "{1,3}?"}
	var b strings.Builder
	for range 1 + rng.IntN(3) {
		part := atoms[rng.IntN(len(atoms))]
		switch {
		case depth < 2 && rng.IntN(4) == 0:
			part = fmt.Sprintf(looks[rng.IntN(len(looks))], drawPattern(rng, depth+1))
		case rng.IntN(10) == 0:
			b.WriteString(asserts[rng.IntN(len(asserts))])
		case len([]rune(part)) > 1 && part[0] >= 'a':
			part = "(?:" + part + ")"
		}
		b.WriteString(part)
		if !strings.HasPrefix(part, "(?=") && !strings.HasPrefix(part, "(?!") {
			b.WriteString(counts[rng.IntN(len(counts))])
		}
	}
	if rng.IntN(3) == 0 {
		b.WriteString("|" + drawPattern(rng, depth+1))
	}
	return b.String()
}

// TestPatterns compares how drawn patterns split texts.
func TestPatterns(t *testing.T) {
	ref := newReference(t)
	rng := rand.New(rand.NewPCG(11, 12))
	file := fixture(t, "wordlevel")
	refused := map[string]int{}
	for i := range texts(t) / 40 {
		p := drawPattern(rng, 0)
		part := splitAt(p, "Isolated", false)
		doc := changed(t, file, map[string]string{"pre_tokenizer": part, "normalizer": "null"})
		_, err := tokenizer.Parse(doc)
		a := ref.ask(request{"load": string(doc)})
		if err != nil || a.Error != "" {
			if err == nil {
				t.Logf("%s: the reference library does not load it: %s", p, a.Error)
			} else {
				why := err.Error()
				refused[why[strings.LastIndex(why, `": `)+3:]]++
			}
			continue
		}
		ok := t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := compare(t, ref, doc)
			for range 20 {
				c.text(drawText(rng), "", false, true)
			}
		})
		if !ok {
			t.Errorf("pattern %s", p)
		}
	}
	for why, n := range refused {
		t.Logf("%d refused: %s", n, why)
	}
}
