package tokenizer_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer"
)

// TestInvalidUTF8 compares texts with bytes that are no characters with texts
// that have U+FFFD there.
func TestInvalidUTF8(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for _, kind := range kinds {
		tok := load(t, kind)
		for range 300 {
			text := []byte(drawText(rng))
			for range 1 + rng.IntN(4) {
				if len(text) > 0 {
					text[rng.IntN(len(text))] = byte(rng.IntN(256))
				}
			}
			var repaired []rune
			for _, r := range string(text) {
				repaired = append(repaired, r)
			}
			got, err := tok.Encode(string(text), tokenizer.CharOffsets())
			if err != nil {
				t.Fatal(err)
			}
			want, err := tok.Encode(string(repaired), tokenizer.CharOffsets())
			if err != nil {
				t.Fatal(err)
			}
			if d := differs(asEncoded(got), asEncoded(want)); d != "" {
				t.Fatalf("%s, %q: %s", kind, text, d)
			}
			bytes, err := tok.Encode(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range bytes.Offsets {
				if at.Start < 0 || at.End < at.Start || at.End > len(text) {
					t.Fatalf("%s, %q: token %d has the offsets %v, want some within the text", kind, text, i, at)
				}
			}
		}
	}
}

// TestConcurrency encodes from several goroutines with one tokenizer.
func TestConcurrency(t *testing.T) {
	for _, kind := range kinds {
		tok := load(t, kind)
		rng := rand.New(rand.NewPCG(51, 52))
		var list []string
		var want [][]int64
		for range 50 {
			text := drawText(rng)
			ids, err := load(t, kind).AppendIDs(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			list, want = append(list, text), append(want, ids)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i, text := range list {
					if ids, err := tok.AppendIDs(nil, text); err != nil || !slices.Equal(ids, want[i]) {
						t.Errorf("%s, %q: got %v, %v, want %v", kind, text, ids, err, want[i])
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestVocabulary looks every token up in both directions.
func TestVocabulary(t *testing.T) {
	for _, kind := range kinds {
		tok := load(t, kind)
		n := 0
		for text, id := range tok.All() {
			n++
			if got, ok := tok.ID(text); !ok || got != id {
				t.Errorf("%s: ID(%q): got %d, %v, want %d", kind, text, got, ok, id)
			}
			if got, ok := tok.Token(id); !ok || got != text {
				t.Errorf("%s: Token(%d): got %q, %v, want %q", kind, id, got, ok, text)
			}
		}
		if n != tok.Size() {
			t.Errorf("%s: got %d tokens, want Size %d", kind, n, tok.Size())
		}
		for _, id := range []int64{-1, int64(n), 1 << 40} {
			if text, ok := tok.Token(id); ok {
				t.Errorf("%s: Token(%d): got %q, want none", kind, id, text)
			}
		}
	}
}

// TestUnigramTies checks that of equal sums the one that is found first wins:
// tokens that begin earlier are tried first, at each place from short to long.
func TestUnigramTies(t *testing.T) {
	tok, err := tokenizer.Parse([]byte(`{"model":{"type":"Unigram","unk_id":0,"vocab":[["u",-9],["a",-1],["b",-1],["ab",-2],["ba",-2]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int64{"ab": {3}, "aba": {1, 4}, "baba": {4, 4}, "bab": {2, 3}} {
		if ids, err := tok.AppendIDs(nil, text); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%q: got %v, %v, want %v", text, ids, err, want)
		}
	}
}

// TestRefusals loads files that ask for what the package lacks.
func TestRefusals(t *testing.T) {
	for want, v := range map[string]variant{
		"dropout: got 0.1":                              {"bytebpe", map[string]string{"model.dropout": "0.1"}},
		`the field "cache"`:                             {"bytebpe", map[string]string{"model.cache": "1"}},
		`the field "other"`:                             {"bytebpe", map[string]string{"other": "1"}},
		`normalizer: got the type "Custom"`:             {"bytebpe", map[string]string{"normalizer": `{"type":"Custom"}`}},
		`pre_tokenizer: got the type "UnicodeScripts"`:  {"bytebpe", map[string]string{"pre_tokenizer": `{"type":"UnicodeScripts"}`}},
		`post_processor: got the type "X"`:              {"bytebpe", map[string]string{"post_processor": `{"type":"X"}`}},
		`decoder: got the type "X"`:                     {"bytebpe", map[string]string{"decoder": `{"type":"X"}`}},
		`got the type "X", want BPE`:                    {"bytebpe", map[string]string{"model.type": `"X"`}},
		"a group of this kind":                          {"bytebpe", map[string]string{"pre_tokenizer": splitAt("(?<name>a)", "Isolated", false)}},
		"an escape":                                     {"bytebpe", map[string]string{"pre_tokenizer": splitAt(`(a)\1`, "Isolated", false)}},
		"neither a general category nor a known script": {"bytebpe", map[string]string{"pre_tokenizer": splitAt(`\p{Emoji}`, "Isolated", false)}},
		`which is one character in another case`:        {"bytebpe", map[string]string{"pre_tokenizer": splitAt(`(?i:ss)`, "Isolated", false)}},
		"behavior: got":                                 {"bytebpe", map[string]string{"pre_tokenizer": splitAt(`a`, "Other", false)}},
		"version: got":                                  {"bytebpe", map[string]string{"version": `"2.0"`}},
		"merges: got":                                   {"bytebpe", map[string]string{"model.merges": `["a b c"]`}},
		`want tokens of the vocabulary`:                 {"bytebpe", map[string]string{"model.merges": `[["a","猫"]]`}},
		"unk_id: got 100000":                            {"unigram", map[string]string{"model.unk_id": "100000"}},
		"precompiled_charsmap":                          {"unigram", map[string]string{"normalizer": `{"type":"Precompiled","precompiled_charsmap":"AAAA"}`}},
		"want a special token":                          {"bytebpe", map[string]string{"post_processor": templatePart(specialPart("none", 0), "")}},
		"want one character":                            {"bytebpe", map[string]string{"pre_tokenizer": `{"type":"CharDelimiterSplit","delimiter":"ab"}`}},
	} {
		_, err := tokenizer.Parse(changed(t, fixture(t, v.kind), v.parts))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got the error %v, want one with %q", v.parts, err, want)
		}
	}
	if _, err := tokenizer.Load("testdata/none.json"); err == nil {
		t.Error("got no error for a file that is not there")
	}
}

// TestOptions checks limits that calls set themselves.
func TestOptions(t *testing.T) {
	tok := load(t, "wordpiece")
	text := "the quick brown fox jumps over the lazy dog"
	e, err := tok.Encode(text, tokenizer.Truncate(6, 2))
	if err != nil {
		t.Fatal(err)
	}
	if e.Len() != 6 || e.Tokens[0] != "[CLS]" || e.Tokens[5] != "[SEP]" || len(e.Overflow) == 0 {
		t.Errorf("got %q and %d more parts, want 6 tokens with special ones, and more parts", e.Tokens, len(e.Overflow))
	}
	e, err = tok.Encode("fox", tokenizer.PadTo(8, "[PAD]"), tokenizer.WithoutSpecial())
	if err != nil {
		t.Fatal(err)
	}
	if e.Len() != 8 || e.Mask[0] != 1 || e.Mask[7] != 0 || e.Tokens[7] != "[PAD]" {
		t.Errorf("got %q with the mask %v, want 8 tokens, the last ones padding", e.Tokens, e.Mask)
	}
	for i, o := range []tokenizer.Option{tokenizer.PadTo(8, "[NONE]"), tokenizer.Truncate(1, 0), tokenizer.Truncate(4, 3), tokenizer.Truncate(-1, 0)} {
		if _, err := tok.Encode(text, o); err == nil {
			t.Errorf("limit %d: got no error for one that cannot hold", i)
		}
	}
}

// smallFiles have every kind of model, with few tokens.
var smallFiles = []string{
	`{"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"#","max_input_chars_per_word":9,"vocab":{"u":0,"th":1,"#e":2,"t":3,"#en":4}}}`,
	`{"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"the":1}},"added_tokens":[{"id":1,"content":"the","lstrip":true,"normalized":true,"special":true}]}`,
	`{"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["u",0],["the",-1.5],["t",-2],["e",-3]]},"decoder":{"type":"ByteFallback"}}`,
	`{"model":{"type":"BPE","unk_token":"u","fuse_unk":true,"vocab":{"u":0,"t":1,"h":2,"th":3,"e":4},"merges":[["t","h"]]},"padding":{"strategy":{"Fixed":3},"direction":"Left","pad_id":0,"pad_type_id":0,"pad_token":"u"}}`,
	`{"model":{"type":"BPE","continuing_subword_prefix":"#","end_of_word_suffix":"$","vocab":{"t":1,"#h":2,"th":3},"merges":["t #h"]},"truncation":{"max_length":2,"strategy":"OnlyFirst","stride":1}}`,
}

func FuzzParse(f *testing.F) {
	for _, file := range smallFiles {
		f.Add([]byte(file))
	}
	for _, part := range []string{gpt4Pattern, gpt4oPattern, hanPattern, camelPattern, lazyPattern} {
		f.Add(changed(f, []byte(smallFiles[1]), map[string]string{"pre_tokenizer": splitAt(part, "Isolated", false)}))
	}
	for field, variants := range map[string]map[string]string{
		"normalizer": normalizerVariants(), "pre_tokenizer": preTokenizerVariants(), "post_processor": processorVariants(),
	} {
		for _, part := range variants {
			f.Add(changed(f, []byte(smallFiles[1]), map[string]string{field: part}))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 100_000 {
			return
		}
		tok, err := tokenizer.Parse(data)
		if err != nil {
			return
		}
		checkEncoding(t, tok, "The tensor, 10  é́ <s>\n漢字")
	})
}

func FuzzEncode(f *testing.F) {
	rng := rand.New(rand.NewPCG(61, 62))
	for i := range 60 {
		f.Add(byte(i), drawText(rng))
	}
	var toks []*tokenizer.Tokenizer
	for _, kind := range kinds {
		toks = append(toks, load(f, kind))
	}
	f.Fuzz(func(t *testing.T, kind byte, text string) {
		checkEncoding(t, toks[int(kind)%len(toks)], text)
	})
}

// checkEncoding checks what holds for every encoding.
func checkEncoding(t *testing.T, tok *tokenizer.Tokenizer, text string) {
	e, err := tok.Encode(text)
	if err != nil {
		return
	}
	n := e.Len()
	if len(e.TypeIDs) != n || len(e.Mask) != n || len(e.Special) != n || len(e.Tokens) != n || len(e.Offsets) != n || len(e.Words) != n {
		t.Fatalf("%q: got lists of different lengths", text)
	}
	for _, at := range e.Offsets {
		if at.Start > len(text) {
			t.Fatalf("%q: got the offsets %v, want some within %d bytes", text, at, len(text))
		}
	}
	ids, err := tok.AppendIDs(nil, text)
	if err != nil || !slices.Equal(ids, e.IDs) {
		t.Fatalf("%q: got the ids %v, %v, want %v", text, ids, err, e.IDs)
	}
	s := tok.NewStream(false)
	for _, id := range e.IDs[:min(n, 200)] {
		if part := s.Push(id); !utf8.ValidString(part) {
			t.Fatalf("%q: got the part %q, want whole characters", text, part)
		}
	}
	s.Flush()
	tok.Decode(e.IDs, true)
}
