package tokenizer

// A model turns a piece into tokens of its vocabulary.
type model interface {
	// tokenize appends the tokens of a piece, whose text is not empty.
	tokenize(dst []token, s *modelScratch, p *piece) ([]token, error)
	id(text string) (uint32, bool)
	text(id uint32) (string, bool)
	size() int
	// each calls a function with every token of the vocabulary.
	each(func(text string, id uint32) bool) bool
}

// A vocabulary maps texts to ids and back.
type vocabulary struct {
	ids   map[string]uint32
	texts []string // by id; the empty text where there is none
	far   map[uint32]string
	zero  bool // the empty text has id empty
	empty uint32
}

// newVocabulary makes the reverse of a map. Ids far beyond the number of texts
// are kept apart, so that one of them takes no memory for those before it.
func newVocabulary(ids map[string]uint32) vocabulary {
	v := vocabulary{ids: ids, texts: make([]string, 0, len(ids))}
	limit := uint32(2*len(ids) + 1000)
	for text, id := range ids {
		if text == "" {
			v.zero, v.empty = true, id
			continue
		}
		if id >= limit {
			if v.far == nil {
				v.far = map[uint32]string{}
			}
			if old, ok := v.far[id]; !ok || text < old {
				v.far[id] = text
			}
			continue
		}
		for uint32(len(v.texts)) <= id {
			v.texts = append(v.texts, "")
		}
		if old := v.texts[id]; old == "" || text < old {
			v.texts[id] = text
		}
	}
	return v
}

func (v *vocabulary) id(text string) (uint32, bool) {
	id, ok := v.ids[text]
	return id, ok
}

func (v *vocabulary) text(id uint32) (string, bool) {
	if id < uint32(len(v.texts)) && v.texts[id] != "" {
		return v.texts[id], true
	}
	if text, ok := v.far[id]; ok {
		return text, true
	}
	return "", v.zero && v.empty == id
}

func (v *vocabulary) size() int { return len(v.ids) }

func (v *vocabulary) each(f func(string, uint32) bool) bool {
	for text, id := range v.ids {
		if !f(text, id) {
			return false
		}
	}
	return true
}

// texts sorted by nothing in particular, with their ids, for tries.
func (v *vocabulary) lists() (texts []string, ids []int32) {
	for text, id := range v.ids {
		texts, ids = append(texts, text), append(ids, int32(id))
	}
	return texts, ids
}
