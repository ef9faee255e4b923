package tokenizer_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/tokenizer"
)

func templatePart(single, pair string) string {
	return fmt.Sprintf(`{"type":"TemplateProcessing","single":[%s],"pair":[%s],"special_tokens":{
		"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]},"<two>":{"id":"<two>","ids":[2,1],"tokens":["</s>","<pad>"]}}}`, single, pair)
}

func textPart(id string, typeID int) string {
	return fmt.Sprintf(`{"Sequence":{"id":%q,"type_id":%d}}`, id, typeID)
}

func specialPart(id string, typeID int) string {
	return fmt.Sprintf(`{"SpecialToken":{"id":%q,"type_id":%d}}`, id, typeID)
}

func processorVariants() map[string]string {
	out := map[string]string{"none": "null"}
	out["bytes"] = byteLevelPart(true, true, true)
	out["bytes-no-prefix"] = byteLevelPart(false, true, true)
	out["bert"] = `{"type":"BertProcessing","sep":["</s>",2],"cls":["<s>",0]}`
	out["roberta"] = `{"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],"trim_offsets":true,"add_prefix_space":false}`
	out["roberta-plain"] = `{"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],"trim_offsets":false,"add_prefix_space":true}`
	out["template"] = templatePart(
		specialPart("<two>", 3)+","+textPart("A", 1),
		textPart("B", 1)+","+specialPart("<s>", 0)+","+textPart("A", 2)+","+specialPart("<two>", 1))
	out["template-twice"] = templatePart(textPart("A", 0)+","+textPart("A", 1), textPart("A", 0)+","+textPart("B", 0))
	out["sequence"] = sequence("processors", out["bytes-no-prefix"], out["template"])
	out["sequence-reversed"] = sequence("processors", out["template"], out["bytes"])
	return out
}

// TestProcessors compares each post-processor, alone and with truncation and
// padding.
func TestProcessors(t *testing.T) {
	ref := newReference(t)
	limits := map[string]map[string]string{
		"whole": {},
		"truncated": {
			"truncation": `{"direction":"Right","max_length":12,"strategy":"LongestFirst","stride":2}`,
			"padding":    `{"strategy":"BatchLongest","direction":"Right","pad_to_multiple_of":8,"pad_id":1,"pad_type_id":3,"pad_token":"<pad>"}`,
		},
		"left": {
			"truncation": `{"direction":"Left","max_length":9,"strategy":"OnlyFirst","stride":0}`,
			"padding":    `{"strategy":{"Fixed":20},"direction":"Left","pad_to_multiple_of":null,"pad_id":1,"pad_type_id":0,"pad_token":"<pad>"}`,
		},
		"second": {"truncation": `{"max_length":15,"strategy":"OnlySecond","stride":1}`},
	}
	n := texts(t) / 50
	for name, part := range processorVariants() {
		for limit, parts := range limits {
			t.Run(name+"-"+limit, func(t *testing.T) {
				parts := map[string]string{"post_processor": part, "truncation": parts["truncation"], "padding": parts["padding"]}
				for k, v := range parts {
					if v == "" {
						delete(parts, k)
					}
				}
				compare(t, ref, changed(t, fixture(t, "bytebpe"), parts)).run(7, n)
			})
		}
	}
}

// TestDecoders compares each decoder on drawn ids.
func TestDecoders(t *testing.T) {
	ref := newReference(t)
	replace := `{"type":"Replace","pattern":{"String":"▁"},"content":" "}`
	strip := `{"type":"Strip","content":" ","start":2,"stop":0}`
	variants := map[string]string{
		"none": "null", "bytes": byteLevelPart(true, true, true),
		"wordpiece":       `{"type":"WordPiece","prefix":"##","cleanup":true}`,
		"wordpiece-plain": `{"type":"WordPiece","prefix":"▁","cleanup":false}`,
		"metaspace":       metaspacePart("always", true), "metaspace-never": metaspacePart("never", true),
		"fallback": `{"type":"ByteFallback"}`, "fuse": `{"type":"Fuse"}`, "replace": replace, "strip": strip,
		"bpe":   `{"type":"BPEDecoder","suffix":"▁"}`,
		"ctc":   `{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"▁","cleanup":true}`,
		"regex": `{"type":"Replace","pattern":{"Regex":"[a-m]+|▁"},"content":"_"}`,
	}
	variants["llama"] = sequence("decoders", replace, `{"type":"ByteFallback"}`, `{"type":"Fuse"}`, `{"type":"Strip","content":" ","start":1,"stop":0}`)
	for name, part := range variants {
		t.Run(name, func(t *testing.T) {
			for _, kind := range kinds {
				c := compare(t, ref, changed(t, fixture(t, kind), map[string]string{"decoder": part}))
				c.streams(texts(t) / 100)
			}
		})
	}
}

// streams compares decoded streams of ids, which end in the whole text.
func (c *comparison) streams(n int) {
	rng := rand.New(rand.NewPCG(3, 4))
	broken := 0
	for range n {
		var ids []int64
		for range 1 + rng.IntN(30) {
			ids = append(ids, rng.Int64N(int64(c.own.Size())+3))
		}
		if rng.IntN(2) == 0 { // ids of a text
			e, err := c.own.Encode(drawText(rng), tokenizer.WithoutSpecial())
			if err != nil {
				continue
			}
			ids = append(ids[:1], e.IDs...)
		}
		skip := rng.IntN(2) == 0
		want := c.ref.ask(request{"stream": ids, "skip": skip})
		s := c.own.NewStream(skip)
		joined := ""
		for i, id := range ids {
			part := s.Push(id)
			joined += part
			if want.Error == "" && part != want.Parts[i] {
				c.t.Fatalf("%v, part %d: got %q, want %q", ids, i, part, want.Parts[i])
			}
		}
		joined += s.Flush()
		if want.Error != "" {
			broken++ // the reference library gives up where text changes
			continue
		}
		if whole := c.own.Decode(ids, skip); joined != whole {
			c.t.Fatalf("%v: the stream gave %q, want %q", ids, joined, whole)
		}
	}
	c.t.Logf("%d streams, %d of which the reference library gives up", n, broken)
}

// TestModels compares the options of the models.
func TestModels(t *testing.T) {
	ref := newReference(t)
	n := texts(t) / 20
	for name, v := range map[string]variant{
		"wordpiece-short":       {"wordpiece", map[string]string{"model.max_input_chars_per_word": "5"}},
		"wordpiece-prefix":      {"wordpiece", map[string]string{"model.continuing_subword_prefix": `""`}},
		"wordpiece-whole":       {"wordpiece", map[string]string{"pre_tokenizer": "null"}},
		"wordpiece-no-unknown":  {"wordpiece", map[string]string{"model.unk_token": `"[NONE]"`}},
		"wordlevel-no-unknown":  {"wordlevel", map[string]string{"model.unk_token": `"[NONE]"`}},
		"bpe-unknown":           {"fallbackbpe", map[string]string{"model.byte_fallback": "false"}},
		"bpe-unknown-each":      {"fallbackbpe", map[string]string{"model.byte_fallback": "false", "model.fuse_unk": "false"}},
		"bpe-no-unknown":        {"fallbackbpe", map[string]string{"model.byte_fallback": "false", "model.unk_token": "null"}},
		"bpe-lost-unknown":      {"fallbackbpe", map[string]string{"model.byte_fallback": "false", "model.unk_token": `"[NONE]"`}},
		"bpe-ignore-merges":     {"fallbackbpe", map[string]string{"model.ignore_merges": "true", "pre_tokenizer": metaspacePart("always", true)}},
		"bpe-split":             {"fallbackbpe", map[string]string{"pre_tokenizer": metaspacePart("first", true), "normalizer": "null"}},
		"bpe-suffix":            {"bytebpe", map[string]string{"model.end_of_word_suffix": `"e"`, "model.unk_token": `"<unk>"`}},
		"bpe-bytes-not-merged":  {"splitbpe", map[string]string{"model.ignore_merges": "false"}},
		"bpe-bytes-whole":       {"bytebpe", map[string]string{"pre_tokenizer": byteLevelPart(true, true, false)}},
		"unigram-bytes":         {"unigram", map[string]string{"model.byte_fallback": "true"}},
		"unigram-whole":         {"unigram", map[string]string{"pre_tokenizer": "null"}},
		"unigram-first-unknown": {"unigram", map[string]string{"model.unk_id": "5"}},
		"unigram-no-unknown":    {"unigram", map[string]string{"model.unk_id": "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, ref, changed(t, fixture(t, v.kind), v.parts)).run(5, n)
		})
	}
	t.Run("unigram-all-bytes", func(t *testing.T) {
		var doc struct {
			Model struct{ Vocab []json.RawMessage }
		}
		file := fixture(t, "unigram")
		if err := json.Unmarshal(file, &doc); err != nil {
			t.Fatal(err)
		}
		for b := range 256 {
			doc.Model.Vocab = append(doc.Model.Vocab, json.RawMessage(fmt.Sprintf(`["<0x%02X>",0]`, b)))
		}
		vocab, err := json.Marshal(doc.Model.Vocab)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]string{"model.byte_fallback": "true", "model.vocab": string(vocab)}
		compare(t, ref, changed(t, file, parts)).run(6, n)
	})
}

// TestAddedTokens compares added tokens with all their flags.
func TestAddedTokens(t *testing.T) {
	ref := newReference(t)
	contents := []string{"the", "ox", "<s>", "é", "e\u0301", "İs", "  ", "\n", "Jumps", "▁t", "fox j", "漢字", "[MASK]", "1", "tenure", "Ġ"}
	rng := rand.New(rand.NewPCG(8, 9))
	norms := normalizerVariants()
	for i := range 40 {
		var tokens []map[string]any
		for _, content := range contents {
			// Of two tokens that normalise to one text the reference library
			// finds either.
			composed := content == "e\u0301" && slices.ContainsFunc(tokens, func(t map[string]any) bool { return t["content"] == "é" })
			if rng.IntN(3) == 0 || composed {
				continue
			}
			tokens = append(tokens, map[string]any{
				"id": len(tokens), "content": content, "single_word": rng.IntN(3) == 0, "lstrip": rng.IntN(3) == 0,
				"rstrip": rng.IntN(3) == 0, "normalized": rng.IntN(2) == 0, "special": rng.IntN(2) == 0,
			})
		}
		list, err := json.Marshal(tokens)
		if err != nil {
			t.Fatal(err)
		}
		kind := kinds[i%len(kinds)]
		for _, norm := range []string{"none", "bert-lower", "prepend", "NFC", "odd"} {
			file := changed(t, fixture(t, kind), map[string]string{"added_tokens": string(list), "normalizer": norms[norm]})
			t.Run(fmt.Sprintf("%s-%s-%d", kind, norm, i), func(t *testing.T) {
				_, err := tokenizer.Parse(file)
				if err != nil && strings.Contains(err.Error(), "got an empty text from the normalizer") {
					return // the reference library finds it between all characters
				}
				if a := ref.ask(request{"load": string(file)}); a.Error != "" || err != nil {
					if (a.Error != "") != (err != nil) {
						t.Fatalf("loading: got %v, want %q", err, a.Error)
					}
					return
				}
				c := compare(t, ref, file)
				c.run(uint64(i), texts(t)/200)
				c.streams(texts(t) / 1000)
			})
		}
	}
}
