package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

func readModel(raw json.RawMessage) (model, error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	if kind == "" { // as older files have it: the fields tell
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		switch {
		case fields["merges"] != nil:
			kind = "BPE"
		case fields["continuing_subword_prefix"] != nil:
			kind = "WordPiece"
		case fields["unk_token"] != nil:
			kind = "WordLevel"
		default:
			kind = "Unigram"
		}
	}
	switch kind {
	case "BPE":
		return readBPE(raw)
	case "WordPiece":
		return readWordPiece(raw)
	case "WordLevel":
		return readWordLevel(raw)
	case "Unigram":
		return readUnigram(raw)
	}
	return nil, fmt.Errorf("got the type %q, want BPE, WordPiece, WordLevel or Unigram", kind)
}

// checkIDs refuses what other parts cannot hold.
func checkIDs(ids map[string]uint32) error {
	for text, id := range ids {
		if id > math.MaxInt32 {
			return fmt.Errorf("vocab: got the id %d of %q, want at most %d", id, text, math.MaxInt32)
		}
	}
	return nil
}

func readWordPiece(raw json.RawMessage) (model, error) {
	var v struct {
		typed
		Unknown  *string           `json:"unk_token"`
		Prefix   *string           `json:"continuing_subword_prefix"`
		MaxChars *int              `json:"max_input_chars_per_word"`
		Vocab    map[string]uint32 `json:"vocab"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	if v.Unknown == nil || v.Prefix == nil || v.MaxChars == nil || v.Vocab == nil {
		return nil, errors.New("got a part of WordPiece's fields, want unk_token, continuing_subword_prefix, max_input_chars_per_word and vocab")
	}
	if err := checkIDs(v.Vocab); err != nil {
		return nil, err
	}
	return newWordPiece(newVocabulary(v.Vocab), *v.Unknown, *v.Prefix, *v.MaxChars), nil
}

func readWordLevel(raw json.RawMessage) (model, error) {
	var v struct {
		typed
		Unknown *string           `json:"unk_token"`
		Vocab   map[string]uint32 `json:"vocab"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	if v.Unknown == nil || v.Vocab == nil {
		return nil, errors.New("got a part of WordLevel's fields, want unk_token and vocab")
	}
	if err := checkIDs(v.Vocab); err != nil {
		return nil, err
	}
	return &wordLevel{newVocabulary(v.Vocab), *v.Unknown}, nil
}

func readUnigram(raw json.RawMessage) (model, error) {
	var v struct {
		typed
		Unknown  *int                 `json:"unk_id"`
		Vocab    [][2]json.RawMessage `json:"vocab"`
		Fallback bool                 `json:"byte_fallback"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	unknown := -1
	if v.Unknown != nil {
		if unknown = *v.Unknown; unknown < 0 || unknown >= len(v.Vocab) {
			return nil, fmt.Errorf("unk_id: got %d, want the index of one of %d pieces", unknown, len(v.Vocab))
		}
	}
	if v.Vocab == nil {
		return nil, errors.New("got no vocab, want one")
	}
	pieces, scores := make([]string, len(v.Vocab)), make([]float64, len(v.Vocab))
	for i, pair := range v.Vocab {
		if err := json.Unmarshal(pair[0], &pieces[i]); err != nil {
			return nil, fmt.Errorf("vocab: piece %d: %w", i, err)
		}
		if err := json.Unmarshal(pair[1], &scores[i]); err != nil {
			return nil, fmt.Errorf("vocab: score %d: %w", i, err)
		}
	}
	return newUnigram(pieces, scores, unknown, v.Fallback), nil
}

func readBPE(raw json.RawMessage) (model, error) {
	var v struct {
		typed
		Dropout      *float64          `json:"dropout"`
		Unknown      *string           `json:"unk_token"`
		Prefix       *string           `json:"continuing_subword_prefix"`
		Suffix       *string           `json:"end_of_word_suffix"`
		FuseUnknown  *bool             `json:"fuse_unk"`
		Fallback     *bool             `json:"byte_fallback"`
		IgnoreMerges *bool             `json:"ignore_merges"`
		Vocab        map[string]uint32 `json:"vocab"`
		Merges       json.RawMessage   `json:"merges"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	switch {
	case v.Dropout != nil && *v.Dropout != 0:
		return nil, fmt.Errorf("dropout: got %v, want none: merges that are left out at random are for training", *v.Dropout)
	case v.Vocab == nil || absent(v.Merges):
		return nil, errors.New("got a part of BPE's fields, want vocab and merges")
	}
	if err := checkIDs(v.Vocab); err != nil {
		return nil, err
	}
	set := func(b *bool) bool { return b != nil && *b }
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	m := &bpe{
		vocabulary: newVocabulary(v.Vocab), unknown: text(v.Unknown), hasUnknown: v.Unknown != nil,
		prefix: text(v.Prefix), suffix: text(v.Suffix),
		fuseUnknown: set(v.FuseUnknown), ignoreMerges: set(v.IgnoreMerges),
	}
	if set(v.Fallback) {
		m.fallback = byteTokens(&m.vocabulary)
	}
	m.prepare()
	return m, m.readMerges(v.Merges)
}

// readMerges reads pairs of texts, or lines with a space between two.
func (m *bpe) readMerges(raw json.RawMessage) error {
	var pairs [][2]string
	if err := json.Unmarshal(raw, &pairs); err != nil {
		var lines []string
		if errLines := json.Unmarshal(raw, &lines); errLines != nil {
			return fmt.Errorf("merges: %w", err)
		}
		pairs = pairs[:0]
		for _, line := range lines {
			if strings.HasPrefix(line, "#version") {
				continue
			}
			left, right, ok := strings.Cut(line, " ")
			if !ok || strings.Contains(right, " ") {
				return fmt.Errorf("merges: got %q, want two texts with a space between them", line)
			}
			pairs = append(pairs, [2]string{left, right})
		}
	} else if err := checkPairs(raw, len(pairs)); err != nil {
		return err
	}
	m.merges = newMergeTable(len(pairs))
	for rank, pair := range pairs {
		left, okLeft := m.ids[pair[0]]
		right, okRight := m.ids[pair[1]]
		if !okLeft || !okRight {
			return fmt.Errorf("merges: got %q and %q, want tokens of the vocabulary", pair[0], pair[1])
		}
		if len(pair[1]) < len(m.prefix) {
			return fmt.Errorf("merges: got %q, want a text that begins with the prefix %q", pair[1], m.prefix)
		}
		text := pair[0] + pair[1][len(m.prefix):]
		id, ok := m.ids[text]
		if !ok {
			return fmt.Errorf("merges: got %q and %q, want a token %q in the vocabulary", pair[0], pair[1], text)
		}
		m.merges.put(left, right, uint32(rank), id)
	}
	return nil
}

// checkPairs refuses lists of other lengths, which the decoder would fill or
// cut.
func checkPairs(raw json.RawMessage, n int) error {
	lists := make([][]string, 0, n)
	if err := json.Unmarshal(raw, &lists); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	for _, l := range lists {
		if len(l) != 2 {
			return fmt.Errorf("merges: got %q, want two texts", l)
		}
	}
	return nil
}
