package tokenizer

import "slices"

// An Encoding is what a model takes for a text: lists of one length, with an
// element for each token.
//
// IDs, TypeIDs and Mask are the inputs that exporters name input_ids,
// token_type_ids and attention_mask. They are int64, as those inputs are.
type Encoding struct {
	IDs     []int64
	TypeIDs []int64 // 0 for the first text, 1 for the second, as the file says
	Mask    []int64 // 1 for tokens, 0 for padding
	// Special is 1 for tokens that no text has: those that the file adds, and
	// padding.
	Special []int64
	// Tokens are the texts of the tokens in the vocabulary.
	Tokens []string
	// Offsets are the bytes of the text that the tokens stand for. Added
	// tokens have none.
	Offsets []Span
	// Words are the numbers of the parts that the text was cut in before the
	// model read it; -1 for added tokens.
	Words []int32
	// Overflow are the other parts of a text that was truncated.
	Overflow []Encoding
}

// A Span is a range of bytes of a text, or of its characters with
// [CharOffsets].
type Span struct{ Start, End int }

// Len returns the number of tokens.
func (e *Encoding) Len() int { return len(e.IDs) }

// add appends a token.
func (e *Encoding) add(id, typeID, special int64, text string, at Span, word int32) {
	e.IDs = append(e.IDs, id)
	e.TypeIDs = append(e.TypeIDs, typeID)
	e.Mask = append(e.Mask, 1)
	e.Special = append(e.Special, special)
	e.Tokens = append(e.Tokens, text)
	e.Offsets = append(e.Offsets, at)
	e.Words = append(e.Words, word)
}

// grow makes room for n more tokens.
func (e *Encoding) grow(n int) {
	e.IDs = slices.Grow(e.IDs, n)
	e.TypeIDs = slices.Grow(e.TypeIDs, n)
	e.Mask = slices.Grow(e.Mask, n)
	e.Special = slices.Grow(e.Special, n)
	e.Tokens = slices.Grow(e.Tokens, n)
	e.Offsets = slices.Grow(e.Offsets, n)
	e.Words = slices.Grow(e.Words, n)
}

func (e *Encoding) setType(id int64) {
	for i := range e.TypeIDs {
		e.TypeIDs[i] = id
	}
}

// part returns some of the tokens, as an encoding of its own.
func (e *Encoding) part(start, end int) Encoding {
	return Encoding{
		IDs: slices.Clone(e.IDs[start:end]), TypeIDs: slices.Clone(e.TypeIDs[start:end]),
		Mask: slices.Clone(e.Mask[start:end]), Special: slices.Clone(e.Special[start:end]),
		Tokens: slices.Clone(e.Tokens[start:end]), Offsets: slices.Clone(e.Offsets[start:end]),
		Words: slices.Clone(e.Words[start:end]),
	}
}

// clone copies an encoding.
func (e *Encoding) clone() Encoding {
	n := e.part(0, e.Len())
	for i := range e.Overflow {
		n.Overflow = append(n.Overflow, e.Overflow[i].clone())
	}
	return n
}

// merge appends another encoding. Overflowing parts are combined, each of one
// with each of the other.
func (e *Encoding) merge(other *Encoding) {
	var overflow []Encoding
	for i := range e.Overflow {
		n := e.Overflow[i].clone()
		n.merge(other)
		overflow = append(overflow, n)
		for j := range other.Overflow {
			n := e.Overflow[i].clone()
			n.merge(&other.Overflow[j])
			overflow = append(overflow, n)
		}
	}
	for j := range other.Overflow {
		n := e.clone()
		n.merge(&other.Overflow[j])
		overflow = append(overflow, n)
	}
	e.append(other)
	e.Overflow = overflow
}

func (e *Encoding) append(other *Encoding) {
	e.IDs = append(e.IDs, other.IDs...)
	e.TypeIDs = append(e.TypeIDs, other.TypeIDs...)
	e.Mask = append(e.Mask, other.Mask...)
	e.Special = append(e.Special, other.Special...)
	e.Tokens = append(e.Tokens, other.Tokens...)
	e.Offsets = append(e.Offsets, other.Offsets...)
	e.Words = append(e.Words, other.Words...)
}

// truncate cuts an encoding into parts of at most n tokens, of which
// neighbours share stride tokens. The first part stays; the others overflow.
func (e *Encoding) truncate(n, stride int, left bool) {
	size := e.Len()
	if n >= size {
		return
	}
	if n == 0 {
		all := *e
		*e = Encoding{Overflow: []Encoding{all}}
		return
	}
	var parts []Encoding
	if left {
		for end := size; end > 0; end -= n - stride {
			start := max(end-n, 0)
			parts = append(parts, e.part(start, end))
			if start == 0 {
				break
			}
		}
	} else {
		for start := 0; start < size; start += n - stride {
			end := min(start+n, size)
			parts = append(parts, e.part(start, end))
			if end == size {
				break
			}
		}
	}
	*e = parts[0]
	e.Overflow = parts[1:]
}

// pad adds tokens up to a length.
func (e *Encoding) pad(size int, p *padding) {
	for i := range e.Overflow {
		e.Overflow[i].pad(size, p)
	}
	n := size - e.Len()
	if n <= 0 {
		return
	}
	at := e.Len()
	if p.left {
		at = 0
	}
	e.IDs = slices.Insert(e.IDs, at, slices.Repeat([]int64{p.id}, n)...)
	e.TypeIDs = slices.Insert(e.TypeIDs, at, slices.Repeat([]int64{p.typeID}, n)...)
	e.Mask = slices.Insert(e.Mask, at, make([]int64, n)...)
	e.Special = slices.Insert(e.Special, at, slices.Repeat([]int64{1}, n)...)
	e.Tokens = slices.Insert(e.Tokens, at, slices.Repeat([]string{p.token}, n)...)
	e.Offsets = slices.Insert(e.Offsets, at, make([]Span, n)...)
	e.Words = slices.Insert(e.Words, at, slices.Repeat([]int32{-1}, n)...)
}

// A padding says how encodings are made of one length.
type padding struct {
	fixed    int // or 0: to the longest of a batch
	multiple int
	left     bool
	id       int64
	typeID   int64
	token    string
}

// apply pads encodings together.
func (p *padding) apply(encodings []Encoding) {
	size := p.fixed
	if size == 0 {
		for i := range encodings {
			size = max(size, encodings[i].Len())
		}
	}
	if p.multiple > 0 && size%p.multiple > 0 {
		size += p.multiple - size%p.multiple
	}
	for i := range encodings {
		encodings[i].pad(size, p)
	}
}
