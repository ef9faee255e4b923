package tokenizer_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kinds are the trained tokenizers in testdata.
var kinds = []string{"wordpiece", "wordlevel", "bytebpe", "splitbpe", "fallbackbpe", "unigram"}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// changed returns a file with other parts. A key of "model.x" is a field of
// the model.
func changed(t testing.TB, file []byte, parts map[string]string) []byte {
	t.Helper()
	var doc, model map[string]json.RawMessage
	if err := json.Unmarshal(file, &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc["model"], &model); err != nil {
		t.Fatal(err)
	}
	doc, model = maps.Clone(doc), maps.Clone(model)
	for name, part := range parts {
		if field, ok := strings.CutPrefix(name, "model."); ok {
			model[field] = json.RawMessage(part)
		} else {
			doc[name] = json.RawMessage(part)
		}
	}
	var err error
	if doc["model"], err = json.Marshal(model); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDifferential compares every kind with the reference library: ids, types,
// masks, tokens, offsets, words and decoded texts.
func TestDifferential(t *testing.T) {
	ref := newReference(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			compare(t, ref, fixture(t, kind)).run(1, texts(t))
		})
	}
}

// TestCharacters compares characters alone, and between a letter and a mark:
// with -texts 10000 every one that Unicode assigns, and others.
func TestCharacters(t *testing.T) {
	ref := newReference(t)
	parts := map[string]map[string]string{}
	for name, part := range normalizerVariants() {
		switch name {
		case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "bert", "bert-accents", "bert-lower", "strip":
			parts[name] = map[string]string{"normalizer": part, "pre_tokenizer": "null"}
		}
	}
	for name, part := range preTokenizerVariants() {
		switch name {
		case "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "digits-each", "punctuation-Isolated", "bytes", "pattern-gpt4o", "pattern-han":
			parts[name] = map[string]string{"normalizer": "null", "pre_tokenizer": part}
		}
	}
	parts["precompiled"] = map[string]string{"pre_tokenizer": "null"}
	const chunk = 0x1000
	step := rune(16 * chunk)
	if texts(t) >= 10000 {
		step = chunk
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			c := compare(t, ref, changed(t, fixture(t, "unigram"), part))
			for first := rune(0); first <= 0x10ffff; first += step {
				if 0x40000 <= first && first < 0xe0000 || first >= 0xe1000 && first%0x10000 != 0xf000 {
					continue
				}
				var b strings.Builder
				for r := first; r < first+chunk; r++ {
					if r < 0xd800 || r > 0xdfff {
						b.WriteString(string(r) + "\ne" + string(r) + "\u0301 ")
					}
				}
				c.text(b.String(), "", false, false)
			}
		})
	}
}
