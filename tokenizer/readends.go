package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

func readProcessor(raw json.RawMessage, depth int) (processor, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var v struct {
			typed
			Processors []json.RawMessage `json:"processors"`
		}
		if err := strictly(raw, &v); err != nil {
			return nil, err
		}
		var out processors
		for _, r := range v.Processors {
			p, err := readProcessor(r, depth+1)
			if err != nil {
				return nil, err
			}
			// Nested ones are one list, which newFrame reads.
			if list, ok := p.(processors); ok {
				out = append(out, list...)
			} else {
				out = append(out, p)
			}
		}
		return out, nil
	case "ByteLevel":
		v, err := readByteLevel(raw)
		return trim{on: v.Trim, prefix: v.Prefix}, err
	case "BertProcessing", "RobertaProcessing":
		return readAround(kind, raw)
	case "TemplateProcessing":
		return readTemplate(raw)
	}
	return nil, unsupported(kind)
}

func readAround(kind string, raw json.RawMessage) (processor, error) {
	var v struct {
		typed
		Sep    [2]json.RawMessage `json:"sep"`
		Cls    [2]json.RawMessage `json:"cls"`
		Trim   *bool              `json:"trim_offsets"`
		Prefix *bool              `json:"add_prefix_space"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	a := &around{roberta: kind == "RobertaProcessing"}
	for _, part := range []struct {
		name string
		raw  [2]json.RawMessage
		to   *named
	}{{"sep", v.Sep, &a.last}, {"cls", v.Cls, &a.first}} {
		var id uint32
		if json.Unmarshal(part.raw[0], &part.to.text) != nil || json.Unmarshal(part.raw[1], &id) != nil {
			return nil, fmt.Errorf("%s: want a text and an id", part.name)
		}
		part.to.id = int64(id)
	}
	if a.roberta {
		if v.Trim == nil || v.Prefix == nil {
			return nil, errors.New("got a part of RobertaProcessing's fields, want trim_offsets and add_prefix_space")
		}
		a.trim = trim{on: *v.Trim, prefix: *v.Prefix}
	}
	return a, nil
}

type templatePartJSON struct {
	Sequence *struct {
		ID     string `json:"id"`
		TypeID uint32 `json:"type_id"`
	}
	SpecialToken *struct {
		ID     string `json:"id"`
		TypeID uint32 `json:"type_id"`
	}
}

type specialJSON struct {
	ID     string   `json:"id"`
	IDs    []uint32 `json:"ids"`
	Tokens []string `json:"tokens"`
}

func readTemplate(raw json.RawMessage) (processor, error) {
	var v struct {
		typed
		Single  []templatePartJSON     `json:"single"`
		Pair    []templatePartJSON     `json:"pair"`
		Special map[string]specialJSON `json:"special_tokens"`
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	t := &template{}
	var err error
	if t.single, err = readParts(v.Single, v.Special); err != nil {
		return nil, fmt.Errorf("single: %w", err)
	}
	if t.pair, err = readParts(v.Pair, v.Special); err != nil {
		return nil, fmt.Errorf("pair: %w", err)
	}
	return t, nil
}

func readParts(parts []templatePartJSON, special map[string]specialJSON) ([]templatePart, error) {
	var out []templatePart
	for _, p := range parts {
		switch {
		case p.Sequence != nil && p.SpecialToken == nil:
			text := 0
			switch p.Sequence.ID {
			case "A":
			case "B":
				text = 1
			default:
				return nil, fmt.Errorf("got the sequence %q, want A or B", p.Sequence.ID)
			}
			out = append(out, templatePart{text: text, typeID: int64(p.Sequence.TypeID)})
		case p.SpecialToken != nil && p.Sequence == nil:
			tok, ok := special[p.SpecialToken.ID]
			if !ok || len(tok.IDs) != len(tok.Tokens) {
				return nil, fmt.Errorf("got %q, want a special token with as many ids as tokens", p.SpecialToken.ID)
			}
			part := templatePart{text: -1, typeID: int64(p.SpecialToken.TypeID), tokens: tok.Tokens}
			for _, id := range tok.IDs {
				part.ids = append(part.ids, int64(id))
			}
			out = append(out, part)
		default:
			return nil, errors.New("want parts that are a Sequence or a SpecialToken")
		}
	}
	return out, nil
}

func readDecoder(raw json.RawMessage, depth int) (decoder, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var v struct {
			typed
			Decoders []json.RawMessage `json:"decoders"`
		}
		if err := strictly(raw, &v); err != nil {
			return nil, err
		}
		var out decoders
		for _, r := range v.Decoders {
			d, err := readDecoder(r, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
		return out, nil
	case "ByteLevel":
		_, err := readByteLevel(raw)
		return byteDecoder{}, err
	case "ByteFallback":
		return byteFallback{}, plain(raw)
	case "Fuse":
		return fuse{}, plain(raw)
	case "Metaspace":
		n, err := readMetaspace(raw)
		return metaspaceDecoder{n.sep, n.never}, err
	case "Replace":
		return readReplace(raw)
	}
	return readTextDecoder(kind, raw)
}

// readTextDecoder reads the decoders whose fields are texts.
func readTextDecoder(kind string, raw json.RawMessage) (decoder, error) {
	var v struct {
		typed
		Prefix    string `json:"prefix"`
		Cleanup   bool   `json:"cleanup"`
		Suffix    string `json:"suffix"`
		Content   string `json:"content"`
		Start     int    `json:"start"`
		Stop      int    `json:"stop"`
		Pad       string `json:"pad_token"`
		Delimiter string `json:"word_delimiter_token"`
	}
	switch kind {
	case "WordPiece", "BPEDecoder", "Strip", "CTC":
	default:
		return nil, unsupported(kind)
	}
	if err := strictly(raw, &v); err != nil {
		return nil, err
	}
	switch kind {
	case "WordPiece":
		return wordDecoder{v.Prefix, v.Cleanup}, nil
	case "BPEDecoder":
		return suffixDecoder(v.Suffix), nil
	case "CTC":
		return ctc{v.Pad, v.Delimiter, v.Cleanup}, nil
	}
	r, err := oneRune("content", v.Content)
	if v.Start < 0 || v.Stop < 0 {
		return nil, fmt.Errorf("got start %d and stop %d, want none below 0", v.Start, v.Stop)
	}
	return stripDecoder{r, v.Start, v.Stop}, err
}
