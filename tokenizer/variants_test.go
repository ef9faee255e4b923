package tokenizer_test

import (
	"fmt"
	"strings"
	"testing"
)

// A variant is a fixture with other parts.
type variant struct {
	kind  string
	parts map[string]string
}

func sequence(field string, parts ...string) string {
	return fmt.Sprintf(`{"type":"Sequence","%s":[%s]}`, field, strings.Join(parts, ","))
}

func bertNormalizer(clean, chinese bool, accents string, lower bool) string {
	return fmt.Sprintf(`{"type":"BertNormalizer","clean_text":%t,"handle_chinese_chars":%t,"strip_accents":%s,"lowercase":%t}`, clean, chinese, accents, lower)
}

func replaceBy(kind, pattern, content string) string {
	return fmt.Sprintf(`{"type":"Replace","pattern":{"%s":%q},"content":%q}`, kind, pattern, content)
}

func splitAt(pattern, behavior string, invert bool) string {
	return fmt.Sprintf(`{"type":"Split","pattern":{"Regex":%q},"behavior":%q,"invert":%t}`, pattern, behavior, invert)
}

func byteLevelPart(prefix, trim, regex bool) string {
	return fmt.Sprintf(`{"type":"ByteLevel","add_prefix_space":%t,"trim_offsets":%t,"use_regex":%t}`, prefix, trim, regex)
}

func metaspacePart(scheme string, split bool) string {
	return fmt.Sprintf(`{"type":"Metaspace","replacement":"▁","prepend_scheme":%q,"split":%t}`, scheme, split)
}

// The patterns of published tokenizers.
const (
	gpt4Pattern     = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	gpt4oPattern    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	signsPattern    = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	hanPattern      = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	kanaPattern     = `[一-龥\u0800-一가-\ud7ff]+`
	camelPattern    = `(?<=[a-z])(?=[A-Z])|(?<![0-9])[0-9]{2,4}?(?=\s|$)|\b\w+\b`
	lazyPattern     = `(?m:<.+?>)|(?>\s+)x|^.|\p{^L}$`
	digitsRightLeft = `(?=(\d{3})+(?!\d))`
)

func normalizerVariants() map[string]string {
	simple := func(name string) string { return fmt.Sprintf(`{"type":%q}`, name) }
	out := map[string]string{"none": "null"}
	for _, n := range []string{"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"} {
		out[n] = simple(n)
	}
	out["bert"] = bertNormalizer(true, true, "null", false)
	out["bert-accents"] = bertNormalizer(false, true, "true", false)
	out["bert-lower"] = bertNormalizer(true, false, "false", true)
	out["strip"] = `{"type":"Strip","strip_left":true,"strip_right":true}`
	out["strip-left"] = `{"type":"Strip","strip_left":true,"strip_right":false}`
	out["strip-right"] = `{"type":"Strip","strip_left":false,"strip_right":true}`
	out["prepend"] = `{"type":"Prepend","prepend":"▁x"}`
	out["prepend-empty"] = `{"type":"Prepend","prepend":""}`
	out["replace"] = replaceBy("String", "e", "")
	out["replace-regex"] = replaceBy("Regex", `\s+|(?<=a)b*`, "_é")
	out["replace-empty"] = replaceBy("Regex", `x*`, "-")
	out["accents"] = sequence("normalizers", simple("NFD"), simple("Lowercase"), simple("StripAccents"), simple("NFC"))
	out["t5"] = sequence("normalizers", simple("Nmt"), simple("NFKC"), replaceBy("Regex", " {2,}", " "), out["strip"])
	out["odd"] = sequence("normalizers", out["strip-left"], simple("NFD"), simple("Lowercase"), out["prepend"], out["bert"], replaceBy("Regex", "[aeiou]+", "aé"))
	return out
}

func preTokenizerVariants() map[string]string {
	out := map[string]string{"none": "null"}
	for _, n := range []string{"BertPreTokenizer", "Whitespace", "WhitespaceSplit"} {
		out[n] = fmt.Sprintf(`{"type":%q}`, n)
	}
	out["bytes"] = byteLevelPart(true, true, true)
	out["bytes-plain"] = byteLevelPart(true, false, false)
	for _, scheme := range []string{"always", "first", "never"} {
		out["metaspace-"+scheme] = metaspacePart(scheme, true)
		out["metaspace-whole-"+scheme] = metaspacePart(scheme, false)
	}
	for _, b := range []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"} {
		out["punctuation-"+b] = fmt.Sprintf(`{"type":"Punctuation","behavior":%q}`, b)
		out["split-"+b] = splitAt(`[a-e]+|\s`, b, false)
		out["split-invert-"+b] = splitAt(`\w+|é`, b, true)
		out["split-string-"+b] = fmt.Sprintf(`{"type":"Split","pattern":{"String":"  "},"behavior":%q,"invert":false}`, b)
	}
	out["digits"] = `{"type":"Digits","individual_digits":false}`
	out["digits-each"] = `{"type":"Digits","individual_digits":true}`
	out["delimiter"] = `{"type":"CharDelimiterSplit","delimiter":"e"}`
	out["fixed"] = `{"type":"FixedLength","length":3}`
	for name, p := range map[string]string{
		"gpt4": gpt4Pattern, "gpt4o": gpt4oPattern, "signs": signsPattern, "han": hanPattern,
		"kana": kanaPattern, "camel": camelPattern, "lazy": lazyPattern, "thousands": digitsRightLeft,
	} {
		out["pattern-"+name] = splitAt(p, "Isolated", false)
		out["pattern-removed-"+name] = splitAt(p, "Removed", false)
	}
	out["sequence"] = sequence("pretokenizers", out["digits-each"], splitAt(signsPattern, "Isolated", false), byteLevelPart(false, true, false))
	out["bytes-then-digits"] = sequence("pretokenizers", out["bytes"], out["digits"], out["punctuation-Isolated"])
	out["metaspace-then"] = sequence("pretokenizers", out["metaspace-always"], out["punctuation-Contiguous"], out["metaspace-first"])
	return out
}

// TestNormalizers compares each normalizer, before models of different kinds.
func TestNormalizers(t *testing.T) {
	ref := newReference(t)
	n := texts(t) / 20
	for name, part := range normalizerVariants() {
		t.Run(name, func(t *testing.T) {
			for i, kind := range []string{"wordlevel", "fallbackbpe", "bytebpe"} {
				file := changed(t, fixture(t, kind), map[string]string{"normalizer": part})
				compare(t, ref, file).run(uint64(i), n)
			}
		})
	}
}

// TestPreTokenizers compares each pre-tokenizer, after different normalizers.
func TestPreTokenizers(t *testing.T) {
	ref := newReference(t)
	n := texts(t) / 20
	norms := normalizerVariants()
	for name, part := range preTokenizerVariants() {
		t.Run(name, func(t *testing.T) {
			for i, v := range [][2]string{{"wordlevel", "none"}, {"fallbackbpe", "accents"}, {"bytebpe", "none"}, {"unigram", "t5"}, {"wordpiece", "odd"}} {
				file := changed(t, fixture(t, v[0]), map[string]string{"normalizer": norms[v[1]], "pre_tokenizer": part})
				compare(t, ref, file).run(uint64(i), n)
			}
		})
	}
}
