package tokenizer

import (
	"fmt"
	"iter"
	"math"
	"os"
	"sync"
)

// A Tokenizer turns texts into the ids of a model's vocabulary, and back. It
// never changes, and may be used from any goroutine.
type Tokenizer struct {
	normalizer   normalizer
	preTokenizer preTokenizer
	model        model
	processor    processor
	decoder      decoder
	added        *addedTokens
	truncation   truncation
	padding      *padding
	frame        *frame // nil if encodings decide
	size         int

	scratches sync.Pool
}

// A truncation says how long encodings may be.
type truncation struct {
	on       bool
	most     int
	stride   int
	left     bool
	strategy strategy
}

type strategy uint8

const (
	longestFirst strategy = iota
	onlyFirst
	onlySecond
)

// Load reads a tokenizer.json file. What the file asks for and this package
// lacks is an error that names it.
func Load(path string) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.Load: %w", err)
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.Load: %s: %w", path, err)
	}
	return t, nil
}

// Parse reads the content of a tokenizer.json file.
func Parse(data []byte) (*Tokenizer, error) {
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.Parse: %w", err)
	}
	return t, nil
}

// ID returns the id of a token, by its text in the vocabulary.
func (t *Tokenizer) ID(token string) (int64, bool) {
	id, ok := t.added.ids[token]
	if !ok {
		id, ok = t.model.id(token)
	}
	return int64(id), ok
}

// Token returns the text of an id in the vocabulary. That of an added token
// that is searched for in the normalized text is as the normalizer leaves it.
func (t *Tokenizer) Token(id int64) (string, bool) {
	if id < 0 || id > math.MaxUint32 {
		return "", false
	}
	if at, ok := t.added.byID[uint32(id)]; ok {
		return t.added.list[at].shown, true
	}
	return t.model.text(uint32(id))
}

// IsSpecial says whether an id is of a special token, which Decode can leave
// out.
func (t *Tokenizer) IsSpecial(id int64) bool {
	if id < 0 || id > math.MaxUint32 {
		return false
	}
	at, ok := t.added.byID[uint32(id)]
	return ok && t.added.list[at].special
}

// Size returns the number of tokens, added ones included.
func (t *Tokenizer) Size() int { return t.size }

// All yields every token with its id, in no particular order.
func (t *Tokenizer) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for text, id := range t.added.ids {
			if !yield(text, int64(id)) {
				return
			}
		}
		t.model.each(func(text string, id uint32) bool {
			if _, ok := t.added.ids[text]; ok {
				return true
			}
			return yield(text, int64(id))
		})
	}
}

// finish fills what follows from the parts.
func (t *Tokenizer) finish() {
	t.size = t.model.size()
	for text := range t.added.ids {
		if _, ok := t.model.id(text); !ok {
			t.size++
		}
	}
	t.scratches.New = func() any { return new(scratch) }
	t.frame = newFrame(t.processor)
}

// A frame has the ids that a processor puts around one text.
type frame struct{ parts []templatePart }

// newFrame returns the frame of a processor, or nil if encodings decide what
// it adds.
func newFrame(p processor) *frame {
	f := &frame{[]templatePart{{text: 0}}}
	framed := false
	list, ok := p.(processors)
	if !ok && p != nil {
		list = processors{p}
	}
	for _, p := range list {
		if _, ok := p.(trim); ok {
			continue
		}
		if framed {
			return nil
		}
		framed = true
		switch p := p.(type) {
		case *template:
			f.parts = p.single
		case *around:
			first, last := []int64{p.first.id}, []int64{p.last.id}
			f.parts = []templatePart{{text: -1, ids: first}, {text: 0}, {text: -1, ids: last}}
		}
		for _, part := range f.parts {
			if part.text == 1 {
				return nil
			}
		}
	}
	return f
}
