package text_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/text"
)

func pattern(t *testing.T, expr string) *text.Pattern {
	t.Helper()
	p, err := text.NewPattern(expr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tokenPatterns have assertions about what is before and after a match,
// alternatives of which the longest counts, and matches without characters.
var tokenPatterns = []string{`\w+`, `a|ab|abc`, `\b\w\w+\b`, `^\w+`, `(?m)^.`, `\B\w`, `[^a]`, `a*`, `\s`, `x|`, `(?i)A+?`, `.b`, `\w+$`}

// tokenText draws characters that the patterns tell apart.
func tokenText(r *rand.Rand, most int) string {
	s := ""
	for range r.IntN(most) {
		s += []string{"a", "b", "c", "A", " ", "\n", ".", "ß", "中"}[r.IntN(9)]
	}
	return s
}

func TestTokens(t *testing.T) {
	r := kerneltest.NewRand(180)
	for i := range 400 {
		z := &text.Tokenizer{Least: 1 + r.IntN(3)}
		var want func(s string) []string
		switch what := i % 3; what {
		case 0:
			expr := tokenPatterns[r.IntN(len(tokenPatterns))]
			z.Token = pattern(t, expr)
			want = func(s string) []string { return ref.Tokens(s, expr, z.Least) }
		case 1:
			var list []string
			for range 1 + r.IntN(3) {
				list = append(list, tokenPatterns[r.IntN(len(tokenPatterns))])
				z.Separators = append(z.Separators, pattern(t, list[len(list)-1]))
			}
			want = func(s string) []string { return ref.Parts(s, list, z.Least) }
		default:
			z.Least = 1
			want = func(s string) []string { return strings.Split(s, "") }
		}
		s := tokenText(r, 10)
		var got []string
		z.Each([]byte(s), func(token []byte) { got = append(got, string(token)) })
		if w := want(s); !slices.Equal(got, w) {
			t.Fatalf("%q, case %d, at least %d characters: got %q, want %q", s, i, z.Least, got, w)
		}
	}
}

func TestTokensOfBytes(t *testing.T) {
	var got []string
	emit := func(token []byte) { got = append(got, string(token)) }
	(&text.Tokenizer{Least: 1}).Each([]byte("a\xffß\xc3"), emit)
	(&text.Tokenizer{Least: 2, Token: pattern(t, "[^a]+")}).Each([]byte("a\xff\xffa\xc3"), emit)
	(&text.Tokenizer{Least: 1, Separators: []*text.Pattern{pattern(t, "a")}}).Each([]byte("\xffaa\xc3"), emit)
	if want := []string{"a", "\xff", "ß", "\xc3", "\xff\xff", "\xff", "\xc3"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// TestTokenRows lays the tokens of strings out as rows of bytes and of places.
func TestTokenRows(t *testing.T) {
	r := kerneltest.NewRand(181)
	z := &text.Tokenizer{Least: 1, Token: pattern(t, `\w+`)}
	places := map[string]int64{"a": 0, "b": 1, "": 2, "#": 3}
	place := func(s string) int64 {
		if at, ok := places[s]; ok {
			return at
		}
		return 9
	}
	for i := range 60 {
		list := make([]string, r.IntN(5))
		most, columns, lead := 0, 0, i%2
		for k := range list {
			list[k] = tokenText(r, 8)
			most = max(most, len(list[k]))
			columns = max(columns, len(ref.Tokens(list[k], `\w+`, 1)))
		}
		columns += 2 * lead
		var want []string
		var at []int64
		for _, v := range list {
			row := ref.Tokens(v, `\w+`, 1)
			if lead > 0 {
				row = slices.Concat([]string{"<"}, row, []string{">"})
			}
			for len(row) < columns {
				row = append(row, "#")
			}
			want = append(want, row...)
		}
		for _, v := range want {
			at = append(at, place(v))
		}
		s := kerneltest.NewSpace(t)
		src := textIn(s, r, "src", list)
		rows := text.TokenRows{Room: most + 2*lead, Lead: lead}
		dst, numbers := textOut(s, len(list)*rows.Room, src.Width), kerneltest.Out[int64](s, "numbers", len(list)*rows.Room)
		counts := kerneltest.Out[int64](s, "counts", len(list))
		element := func(v string) []byte { return append([]byte(v), make([]byte, src.Width-len(v))...) }
		n := rows.Tokens(z, dst, src, len(list), counts) + 2*lead
		if len(list) > 0 && n != columns {
			t.Fatalf("%q: got %d columns, want %d", list, n, columns)
		}
		text.Close(rows, dst.Data, src.Width, columns, counts, element("<"), element(">"), element("#"))
		rows.Index(z, numbers, src, len(list), counts, places, 9)
		text.Close(rows, numbers, 1, columns, counts, []int64{place("<")}, []int64{place(">")}, []int64{place("#")})
		s.Check()
		wantText(t, "tokens", text.Text{Data: dst.Data[:len(want)*dst.Width], Width: dst.Width}, want)
		if !slices.Equal(numbers[:len(at)], at) {
			t.Fatalf("%q: got places %v, want %v", list, numbers[:len(at)], at)
		}
	}
}
