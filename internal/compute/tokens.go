package compute

import (
	"github.com/tenure-go/tenure/internal/kernel/text"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"string_tokenize":    bindTokens,
	"string_token_index": bindTokenIndex,
})

// tokens is what kernels know that cut strings into tokens.
type tokens struct {
	spec      text.Tokenizer
	how       op.Tokenization
	n, width  int   // strings, and bytes of each
	most      []int // sizes of the result, a part of its shape
	rows      text.TokenRows
	tokenWide int // bytes of a token of the result, if it has tokens
}

func newTokens(c *op.Call) (k tokens, err error) {
	if k.how, err = c.Tokenization(); err != nil {
		return k, err
	}
	k.spec.Least = k.how.Least
	if k.how.Mark {
		k.rows.Lead = 1
	}
	if k.how.Characters {
		return k, nil
	}
	if k.how.Token != "" {
		k.spec.Token, err = text.NewPattern(k.how.Token)
		return k, err
	}
	for _, expr := range k.how.Separators {
		p, err := text.NewPattern(expr)
		if err != nil {
			return k, err
		}
		k.spec.Separators = append(k.spec.Separators, p)
	}
	return k, nil
}

// fill sets what follows from the sizes of the strings and those of the result
// without its width.
func (k *tokens) fill(t *Task, most []int) {
	sizes, width := textSizes(&t.Call.In[0])
	k.n, k.width, k.most = product(sizes), width, most
	k.rows.Room = most[len(most)-1]
	t.Tiles, t.Scratch = 1, 8*k.n
}

// columns returns the last size of the result, where the longest row has so
// many tokens: marks stand beside tokens only.
func (k *tokens) columns(most int) int {
	if most > 0 && k.how.Mark {
		return most + 2
	}
	return most
}

func bindTokens(c *op.Call) (Kernel, error) {
	k, err := newTokens(c)
	return &stringTokens{k}, err
}

type stringTokens struct{ tokens }

func (k *stringTokens) Refill(t *Task) error {
	most, width := textSizes(&t.Call.Out[0])
	k.tokenWide = width
	k.fill(t, most)
	return nil
}

func (k *stringTokens) Tile(t *Task, _ int, scratch []byte) {
	c := t.Call
	counts := view[int64](scratch[:8*k.n])
	dst := textOf(&c.Out[0], k.tokenWide)
	columns := k.columns(k.rows.Tokens(&k.spec, dst, textOf(&c.In[0], k.width), k.n, counts))
	if columns > 0 {
		element := func(s string) []byte { return append([]byte(s), make([]byte, k.tokenWide-len(s))...) }
		text.Close(k.rows, dst.Data, k.tokenWide, columns, counts, element(op.TokensBegin), element(op.TokensEnd), element(k.how.Pad))
	}
	setSizes(c, 0, append(append(append([]int{}, k.most[:len(k.most)-1]...), columns), k.tokenWide)...)
}

func bindTokenIndex(c *op.Call) (Kernel, error) {
	k, err := newTokens(c)
	keys := c.Attrs.Strings("keys")
	x := &tokenIndex{tokens: k, places: make(map[string]int64, len(keys)), other: int64(len(keys))}
	for i, key := range keys {
		x.places[key] = int64(i)
	}
	return x, err
}

// tokenIndex looks up tokens in a list.
type tokenIndex struct {
	tokens
	places map[string]int64
	other  int64 // the index of a token that is not in it
}

func (k *tokenIndex) Refill(t *Task) error {
	k.fill(t, t.Call.Out[0].Shape.Sizes())
	return nil
}

func (k *tokenIndex) Tile(t *Task, _ int, scratch []byte) {
	c := t.Call
	counts := view[int64](scratch[:8*k.n])
	dst := out[int64](c, 0)
	columns := k.columns(k.rows.Index(&k.spec, dst, textOf(&c.In[0], k.width), k.n, counts, k.places, k.other))
	if columns > 0 {
		element := func(s string) []int64 {
			at, ok := k.places[s]
			if !ok {
				at = k.other
			}
			return []int64{at}
		}
		text.Close(k.rows, dst, 1, columns, counts, element(op.TokensBegin), element(op.TokensEnd), element(k.how.Pad))
	}
	setSizes(c, 0, append(append([]int{}, k.most[:len(k.most)-1]...), columns)...)
}
