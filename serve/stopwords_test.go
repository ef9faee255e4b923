package serve

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// firstStop looks for the first place at which a word is complete.
func firstStop(text string, words []string) (string, bool) {
	for end := 0; end <= len(text); end++ {
		longest := ""
		for _, w := range words {
			if strings.HasSuffix(text[:end], w) && len(w) > len(longest) {
				longest = w
			}
		}
		if longest != "" {
			return text[:end-len(longest)], true
		}
	}
	return text, false
}

// TestStopWords cuts drawn texts into drawn pieces, and compares with a search
// in the whole.
func TestStopWords(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	draw := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	stops := 0
	for range 20000 {
		text := draw(random.IntN(20))
		s := stopWords{}
		for range random.IntN(4) {
			s.words = append(s.words, draw(1+random.IntN(5)))
		}
		want, wantStop := firstStop(text, s.words)
		var got strings.Builder
		stopped, rest := false, text
		for !stopped && rest != "" {
			n := 1 + random.IntN(len(rest))
			var piece string
			piece, stopped = s.push(rest[:n])
			rest = rest[n:]
			got.WriteString(piece)
			if !strings.HasPrefix(want, got.String()) {
				t.Fatalf("%q, %q: got %q, which is no beginning of %q", text, s.words, got.String(), want)
			}
		}
		if !stopped {
			got.WriteString(s.flush())
		}
		if got.String() != want || stopped != wantStop {
			t.Fatalf("%q, %q: got %q, %v, want %q, %v", text, s.words, got.String(), stopped, want, wantStop)
		}
		if stopped {
			stops++
		}
	}
	if stops < 5000 {
		t.Errorf("got %d texts with a word in them, want more", stops)
	}
}

// TestStopWordsHoldNoMore wants text as soon as it is certain.
func TestStopWordsHoldNoMore(t *testing.T) {
	s := stopWords{words: []string{"END", "\n\n"}}
	for _, c := range [][2]string{{"a E", "a "}, {"N", ""}, {"O", "ENO"}, {"\n", ""}, {"x\n", "\nx"}} {
		if got, stopped := s.push(c[0]); got != c[1] || stopped {
			t.Errorf("%q: got %q, %v, want %q", c[0], got, stopped, c[1])
		}
	}
	if got, stopped := s.push("\n"); got != "" || !stopped {
		t.Errorf("got %q, %v, want the end", got, stopped)
	}
}
