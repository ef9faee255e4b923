package ref

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Recase returns s in lower or upper case; bytes that are no UTF-8 stay.
func Recase(s string, upper bool) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			out.WriteByte(s[i])
		case upper:
			out.WriteRune(unicode.ToUpper(r))
		default:
			out.WriteRune(unicode.ToLower(r))
		}
	}
	return out.String()
}

// Normalize returns the strings of a list that are no stopwords, one empty one
// if there are none. fold makes no difference of case.
func Normalize(list, stop []string, fold bool) []string {
	var kept []string
	for _, s := range list {
		found := false
		for _, word := range stop {
			if s == word || fold && Recase(s, false) == Recase(word, false) {
				found = true
			}
		}
		if !found {
			kept = append(kept, s)
		}
	}
	if kept == nil {
		return []string{""}
	}
	return kept
}

// SplitString returns the parts of s between delimiters or, for an empty one,
// white space; most below 0 is any number of splits.
func SplitString(s, delimiter string, most int) []string {
	if delimiter != "" && most < 0 {
		return strings.Split(s, delimiter)
	} else if delimiter != "" {
		return strings.SplitN(s, delimiter, most+1)
	}
	var parts []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		at := strings.IndexFunc(s, unicode.IsSpace)
		if at < 0 || len(parts) == most {
			return append(parts, s)
		}
		parts, s = append(parts, s[:at]), s[at:]
	}
	return parts
}
