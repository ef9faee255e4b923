package ref

import (
	"fmt"
	"regexp"
	"unicode/utf8"
)

// leftmost returns the bounds, in characters, of the first match of a pattern
// in s that begins at character from or later, and the longest of those that
// begin there: it tries all bounds.
func leftmost(s, pattern string, from int) (lo, hi int, ok bool) {
	n := utf8.RuneCountInString(s)
	for lo := from; lo <= n; lo++ {
		for hi := n; hi >= lo; hi-- {
			whole := fmt.Sprintf(`\A(?s:.{%d})(?:%s)(?s:.{%d})\z`, lo, pattern, n-hi)
			if regexp.MustCompile(whole).MatchString(s) {
				return lo, hi, true
			}
		}
	}
	return 0, 0, false
}

// characters returns the characters of s from one place to another.
func characters(s string, lo, hi int) string { return string([]rune(s)[lo:hi]) }

// Tokens returns the longest matches of a pattern in s, one after the other.
// One of fewer than least characters is none, but the next may begin at its
// second.
func Tokens(s, pattern string, least int) []string {
	var list []string
	for from := 0; from <= utf8.RuneCountInString(s); {
		lo, hi, ok := leftmost(s, pattern, from)
		if !ok {
			break
		}
		if from = lo + 1; hi-lo >= least {
			list, from = append(list, characters(s, lo, hi)), hi
		}
	}
	return list
}

// Parts returns what lies in s between the longest matches of the first
// separator, cut again at those of the next. Parts of fewer than least
// characters are dropped, and matches without characters are none.
func Parts(s string, separators []string, least int) []string {
	list := []string{s}
	for _, pattern := range separators {
		var parts []string
		for _, p := range list {
			from, n := 0, utf8.RuneCountInString(p)
			for at := 0; at < n; {
				lo, hi, ok := leftmost(p, pattern, at)
				if !ok {
					break
				}
				if at = lo + 1; hi > lo {
					parts, from, at = append(parts, characters(p, from, lo)), hi, hi
				}
			}
			parts = append(parts, characters(p, from, n))
		}
		list = nil
		for _, p := range parts {
			if utf8.RuneCountInString(p) >= least {
				list = append(list, p)
			}
		}
	}
	return list
}
