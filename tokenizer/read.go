package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// document is the form of a tokenizer.json file.
type document struct {
	Version       *string         `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedJSON     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type addedJSON struct {
	ID         *uint32 `json:"id"`
	Content    *string `json:"content"`
	SingleWord bool    `json:"single_word"`
	Lstrip     bool    `json:"lstrip"`
	Rstrip     bool    `json:"rstrip"`
	Normalized *bool   `json:"normalized"`
	Special    bool    `json:"special"`
}

func parse(data []byte) (*Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("got invalid UTF-8, want JSON")
	}
	var doc document
	if err := strictly(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != nil && *doc.Version != "1.0" {
		return nil, fmt.Errorf("version: got %q, want 1.0", *doc.Version)
	}
	if absent(doc.Model) {
		return nil, errors.New("got no model, want one")
	}
	t := &Tokenizer{}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
		read func(json.RawMessage) error
	}{
		{"truncation", doc.Truncation, t.readTruncation},
		{"padding", doc.Padding, t.readPadding},
		{"normalizer", doc.Normalizer, func(raw json.RawMessage) (err error) {
			t.normalizer, err = readNormalizer(raw, 0)
			return err
		}},
		{"pre_tokenizer", doc.PreTokenizer, func(raw json.RawMessage) (err error) {
			t.preTokenizer, err = readPreTokenizer(raw, 0)
			return err
		}},
		{"post_processor", doc.PostProcessor, func(raw json.RawMessage) (err error) {
			t.processor, err = readProcessor(raw, 0)
			return err
		}},
		{"decoder", doc.Decoder, func(raw json.RawMessage) (err error) {
			t.decoder, err = readDecoder(raw, 0)
			return err
		}},
		{"model", doc.Model, func(raw json.RawMessage) (err error) {
			t.model, err = readModel(raw)
			return err
		}},
	} {
		if absent(part.raw) {
			continue
		}
		if err := part.read(part.raw); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if m, ok := t.model.(*bpe); ok && m.readsBytes() {
		t.preTokenizer = rawLast(t.preTokenizer)
	}
	var err error
	t.added, err = readAdded(doc.AddedTokens, t.model, t.normalizer)
	if err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// rawLast lets the last pre-tokenizer leave bytes to the model.
func rawLast(p preTokenizer) preTokenizer {
	switch p := p.(type) {
	case byteLevel:
		p.raw = true
		return p
	case preTokenizers:
		if n := len(p); n > 0 {
			p[n-1] = rawLast(p[n-1])
		}
	}
	return p
}

func readAdded(list []addedJSON, m model, n normalizer) (*addedTokens, error) {
	var tokens []addedToken
	for i, a := range list {
		if a.Content == nil {
			return nil, fmt.Errorf("added_tokens: got no content in token %d, want one", i)
		}
		normalized := !a.Special
		if a.Normalized != nil {
			normalized = *a.Normalized
		}
		tokens = append(tokens, addedToken{
			content: *a.Content, singleWord: a.SingleWord, lstrip: a.Lstrip, rstrip: a.Rstrip,
			normalized: normalized, special: a.Special,
		})
	}
	return newAddedTokens(tokens, m, n)
}

// strictly decodes JSON and refuses fields that the target lacks: a field that
// is ignored could change every id.
func strictly(raw []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("got the field %s, which is not supported", name)
		}
		return err
	}
	if d.More() {
		return errors.New("got more after the JSON value, want nothing")
	}
	return nil
}

// typeOf returns the type of a part.
func typeOf(raw json.RawMessage) (string, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", err
	}
	return head.Type, nil
}

// typed is the type of a part, which its fields stand beside.
type typed struct {
	Type string `json:"type"`
}

// maxDepth bounds sequences within sequences.
const maxDepth = 50

func tooDeep(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("got sequences within sequences more than %d deep, want fewer", maxDepth)
	}
	return nil
}

// oneRune decodes a text of one character.
func oneRune(name, text string) (rune, error) {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 || size != len(text) {
		return 0, fmt.Errorf("%s: got %q, want one character", name, text)
	}
	return r, nil
}

func (t *Tokenizer) readTruncation(raw json.RawMessage) error {
	var v struct {
		Direction string `json:"direction"`
		MaxLength *int   `json:"max_length"`
		Strategy  string `json:"strategy"`
		Stride    int    `json:"stride"`
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	strategies := map[string]strategy{"LongestFirst": longestFirst, "OnlyFirst": onlyFirst, "OnlySecond": onlySecond}
	s, ok := strategies[v.Strategy]
	switch {
	case !ok:
		return fmt.Errorf("got the strategy %q, want LongestFirst, OnlyFirst or OnlySecond", v.Strategy)
	case v.MaxLength == nil || *v.MaxLength < 0 || v.Stride < 0:
		return errors.New("got no max_length or a negative number, want both at least 0")
	}
	left, err := isLeft(v.Direction)
	t.truncation = truncation{on: true, most: *v.MaxLength, stride: v.Stride, left: left, strategy: s}
	return err
}

func isLeft(direction string) (bool, error) {
	switch direction {
	case "Left":
		return true, nil
	case "", "Right":
		return false, nil
	}
	return false, fmt.Errorf("got the direction %q, want Left or Right", direction)
}

// maxPadding bounds the length that a file may pad every text to.
const maxPadding = 1 << 20

func (t *Tokenizer) readPadding(raw json.RawMessage) error {
	var v struct {
		Strategy  json.RawMessage `json:"strategy"`
		Direction string          `json:"direction"`
		Multiple  *int            `json:"pad_to_multiple_of"`
		ID        uint32          `json:"pad_id"`
		TypeID    uint32          `json:"pad_type_id"`
		Token     string          `json:"pad_token"`
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	p := &padding{id: int64(v.ID), typeID: int64(v.TypeID), token: v.Token}
	var name string
	if err := json.Unmarshal(v.Strategy, &name); err != nil || name != "BatchLongest" {
		var fixed struct {
			Fixed int
		}
		if err := strictly(v.Strategy, &fixed); err != nil || fixed.Fixed <= 0 || fixed.Fixed > maxPadding {
			return fmt.Errorf("got the strategy %s, want BatchLongest or a Fixed length of at most %d", v.Strategy, maxPadding)
		}
		p.fixed = fixed.Fixed
	}
	if v.Multiple != nil {
		if p.multiple = *v.Multiple; p.multiple < 0 || p.multiple > maxPadding {
			return fmt.Errorf("got pad_to_multiple_of %d, want 0 to %d", p.multiple, maxPadding)
		}
	}
	var err error
	p.left, err = isLeft(v.Direction)
	t.padding = p
	return err
}
