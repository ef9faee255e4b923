package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

func unsupported(kind string) error {
	return fmt.Errorf("got the type %q, which is not supported", kind)
}

// plain refuses fields of a part that has none.
func plain(raw json.RawMessage) error { return strictly(raw, &typed{}) }

func readNormalizer(raw json.RawMessage, depth int) (normalizer, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	simple := map[string]normalizer{
		"NFC": form{compose: true}, "NFD": form{}, "NFKC": form{compose: true, compatible: true},
		"NFKD": form{compatible: true}, "Lowercase": lowercase{}, "StripAccents": filter(chars.Mark),
		"Nmt": nmt{}, "ByteLevel": byteChars{},
	}
	if n, ok := simple[kind]; ok {
		return n, plain(raw)
	}
	switch kind {
	case "Sequence":
		return readNormalizers(raw, depth)
	case "BertNormalizer":
		var v struct {
			typed
			Clean   bool  `json:"clean_text"`
			Chinese bool  `json:"handle_chinese_chars"`
			Accents *bool `json:"strip_accents"`
			Lower   bool  `json:"lowercase"`
		}
		err := strictly(raw, &v)
		n := bert{clean: v.Clean, chinese: v.Chinese, accents: v.Lower, lower: v.Lower}
		if v.Accents != nil {
			n.accents = *v.Accents
		}
		return n, err
	case "Strip":
		var v struct {
			typed
			Left  bool `json:"strip_left"`
			Right bool `json:"strip_right"`
		}
		err := strictly(raw, &v)
		return strip{v.Left, v.Right}, err
	case "Prepend":
		var v struct {
			typed
			Prepend string `json:"prepend"`
		}
		err := strictly(raw, &v)
		return prepend(v.Prepend), err
	case "Replace":
		return readReplace(raw)
	case "Precompiled":
		var v struct {
			typed
			Map string `json:"precompiled_charsmap"`
		}
		if err := strictly(raw, &v); err != nil {
			return nil, err
		}
		return newPrecompiled(v.Map)
	}
	return nil, unsupported(kind)
}

func readNormalizers(raw json.RawMessage, depth int) (normalizer, error) {
	var v struct {
		typed
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	var out normalizers
	for _, r := range v.Normalizers {
		n, err := readNormalizer(r, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func readReplace(raw json.RawMessage) (replacing, error) {
	var v struct {
		typed
		Pattern json.RawMessage `json:"pattern"`
		Content string          `json:"content"`
	}
	if err := strictly(raw, &v); err != nil {
		return replacing{}, err
	}
	re, err := readPattern(v.Pattern)
	return replacing{re, v.Content}, err
}

// readPattern reads {"String": ...} or {"Regex": ...}.
func readPattern(raw json.RawMessage) (*pattern.Regexp, error) {
	var v struct{ String, Regex *string }
	if err := strictly(raw, &v); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case v.String != nil && v.Regex == nil:
		return pattern.Literal(*v.String), nil
	case v.Regex != nil && v.String == nil:
		return pattern.Compile(*v.Regex)
	}
	return nil, errors.New("pattern: want a String or a Regex")
}

func readBehavior(name string) (behavior, error) {
	behaviors := map[string]behavior{
		"Removed": removed, "Isolated": isolated, "MergedWithPrevious": mergedWithPrevious,
		"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
	}
	b, ok := behaviors[name]
	if !ok {
		return 0, fmt.Errorf("behavior: got %q, which is not supported", name)
	}
	return b, nil
}

func readPreTokenizer(raw json.RawMessage, depth int) (preTokenizer, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	spaces := splitter{at: propMatcher(chars.Space), behavior: removed}
	simple := map[string]preTokenizer{
		"BertPreTokenizer": preTokenizers{spaces, splitter{at: propMatcher(chars.Punctuation), behavior: isolated}},
		"WhitespaceSplit":  spaces,
		"Whitespace":       splitter{at: wordMatcher{}, invert: true, behavior: removed},
	}
	if p, ok := simple[kind]; ok {
		return p, plain(raw)
	}
	switch kind {
	case "Sequence":
		var v struct {
			typed
			PreTokenizers []json.RawMessage `json:"pretokenizers"`
		}
		if err := strictly(raw, &v); err != nil {
			return nil, err
		}
		var out preTokenizers
		for _, r := range v.PreTokenizers {
			p, err := readPreTokenizer(r, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		return out, nil
	case "ByteLevel":
		v, err := readByteLevel(raw)
		if err != nil {
			return nil, err
		}
		p := byteLevel{prefix: v.Prefix, split: v.UseRegex == nil || *v.UseRegex}
		re, err := pattern.Compile(gpt2)
		p.at = splitter{at: patternMatcher{re}, behavior: isolated}
		return p, err
	case "Metaspace":
		return readMetaspace(raw)
	}
	return readSplitter(kind, raw)
}

type byteLevelJSON struct {
	typed
	Prefix   bool  `json:"add_prefix_space"`
	Trim     bool  `json:"trim_offsets"`
	UseRegex *bool `json:"use_regex"`
}

func readByteLevel(raw json.RawMessage) (v byteLevelJSON, err error) {
	err = strictly(raw, &v)
	return v, err
}

func readMetaspace(raw json.RawMessage) (metaspace, error) {
	var v struct {
		typed
		Replacement string  `json:"replacement"`
		Prefix      *bool   `json:"add_prefix_space"`
		Scheme      *string `json:"prepend_scheme"`
		Split       *bool   `json:"split"`
		Legacy      string  `json:"str_rep"`
	}
	if err := strictly(raw, &v); err != nil {
		return metaspace{}, err
	}
	scheme := "always"
	if v.Scheme != nil {
		scheme = *v.Scheme
	}
	if v.Prefix != nil && !*v.Prefix {
		if v.Scheme != nil && scheme != "never" {
			return metaspace{}, fmt.Errorf("got prepend_scheme %q without add_prefix_space, want never", scheme)
		}
		// The reference library takes the default here for a contradiction.
		if v.Scheme == nil {
			return metaspace{}, errors.New("got add_prefix_space false without prepend_scheme, want never beside it")
		}
	}
	n := metaspace{split: v.Split == nil || *v.Split}
	switch scheme {
	case "always":
	case "first":
		n.first = true
	case "never":
		n.never = true
	default:
		return n, fmt.Errorf("got prepend_scheme %q, want always, first or never", scheme)
	}
	r, err := oneRune("replacement", v.Replacement)
	n.sep, n.at = v.Replacement, splitter{at: runeMatcher(r), behavior: mergedWithNext}
	return n, err
}

func readSplitter(kind string, raw json.RawMessage) (preTokenizer, error) {
	var v struct {
		typed
		Pattern    json.RawMessage `json:"pattern"`
		Behavior   *string         `json:"behavior"`
		Invert     *bool           `json:"invert"`
		Individual *bool           `json:"individual_digits"`
		Delimiter  *string         `json:"delimiter"`
		Length     *int            `json:"length"`
	}
	switch kind {
	case "Split", "Punctuation", "Digits", "CharDelimiterSplit", "FixedLength":
	default:
		return nil, unsupported(kind)
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	n := splitter{behavior: isolated}
	var err error
	if v.Behavior != nil {
		if n.behavior, err = readBehavior(*v.Behavior); err != nil {
			return nil, err
		}
	}
	switch kind {
	case "Split":
		if v.Behavior == nil || v.Invert == nil {
			return nil, errors.New("got a part of Split's fields, want pattern, behavior and invert")
		}
		re, err := readPattern(v.Pattern)
		n.at, n.invert = patternMatcher{re}, *v.Invert
		return n, err
	case "Punctuation":
		n.at = propMatcher(chars.Punctuation)
	case "Digits":
		n.at = propMatcher(chars.Number)
		if v.Individual == nil || !*v.Individual {
			n.behavior = contiguous
		}
	case "CharDelimiterSplit":
		if v.Delimiter == nil {
			return nil, errors.New("got no delimiter, want one")
		}
		r, err := oneRune("delimiter", *v.Delimiter)
		n.at, n.behavior = runeMatcher(r), removed
		return n, err
	case "FixedLength":
		length := 5
		if v.Length != nil {
			length = *v.Length
		}
		if length < 1 {
			return nil, fmt.Errorf("length: got %d, want at least 1", length)
		}
		return fixedLength(length), nil
	}
	return n, nil
}
