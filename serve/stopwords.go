package serve

import "strings"

// stopWords finds the end of a text that comes in pieces: the first place at
// which one of some words is complete. It holds back what may be the beginning
// of one, so no part of a word is ever given out.
type stopWords struct {
	words []string
	held  string // the end of the text, which may be the beginning of a word
}

// push adds a piece of text. It returns the text that is certain now, and
// whether a word ended it. Of words that are complete at one place, the longest
// one is taken off the text.
func (s *stopWords) push(piece string) (text string, stopped bool) {
	if len(s.words) == 0 {
		return piece, false
	}
	text = s.held + piece
	for end := len(s.held) + 1; end <= len(text); end++ {
		longest := 0
		for _, w := range s.words {
			if len(w) > longest && strings.HasSuffix(text[:end], w) {
				longest = len(w)
			}
		}
		if longest > 0 {
			s.held = ""
			return text[:end-longest], true
		}
	}
	certain := len(text)
	for _, w := range s.words {
		for n := min(len(w)-1, len(text)); n > len(text)-certain; n-- {
			if strings.HasSuffix(text, w[:n]) {
				certain = len(text) - n
			}
		}
	}
	text, s.held = text[:certain], text[certain:]
	return text, false
}

// flush returns what was held back, where no word can follow any more.
func (s *stopWords) flush() string {
	text := s.held
	s.held = ""
	return text
}
