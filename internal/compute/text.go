package compute

import (
	"regexp"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/text"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"string_normalizer": bindStringNormalizer,
	"string_concat":     bindStringConcat,
	"string_equal":      bindStringEqual,
	"string_split":      bindStringSplit,
	"string_index":      bindStringIndex,
	"regex_full_match":  bindRegexFullMatch,
	"murmur_hash":       bindMurmurHash,
})

// textSizes returns the sizes of an operand's or result's strings, and how
// many bytes each takes.
func textSizes(a *op.Arg) (sizes []int, width int) {
	sizes = a.Shape.Sizes()
	last := len(sizes) - 1
	return sizes[:last], sizes[last]
}

// textOf returns the strings of an operand or result, whose bytes are there
// when the task runs.
func textOf(a *op.Arg, width int) text.Text { return text.Text{Data: a.Data, Width: width} }

func bindStringNormalizer(c *op.Call) (Kernel, error) {
	spec := text.Normalizer{Fold: c.Int("is_case_sensitive") == 0, Stop: map[string]bool{}}
	switch c.StringCase() {
	case "LOWER":
		spec.Change = text.AppendLower
	case "UPPER":
		spec.Change = text.AppendUpper
	}
	for _, word := range c.Attrs.Strings("stopwords") {
		if spec.Fold {
			word = string(text.AppendLower(nil, []byte(word)))
		}
		spec.Stop[word] = true
	}
	return &normalizer{spec: spec}, nil
}

type normalizer struct {
	spec         text.Normalizer
	n            int   // strings
	width, cased int   // bytes of each, before and after
	most         []int // sizes of the result, a part of its shape
}

func (k *normalizer) Refill(t *Task) error {
	sizes, width := textSizes(&t.Call.In[0])
	k.n, k.width = product(sizes), width
	k.most, k.cased = textSizes(&t.Call.Out[0])
	t.Tiles, t.Scratch = 1, op.CasedWidth(width)
	return nil
}

func (k *normalizer) Tile(t *Task, _ int, scratch []byte) {
	c := t.Call
	n := text.Normalize(&k.spec, textOf(&c.Out[0], k.cased), textOf(&c.In[0], k.width), k.n, scratch)
	if len(k.spec.Stop) > 0 { // else the size is known
		sizes := append([]int{}, k.most...)
		sizes[len(sizes)-1] = n
		setSizes(c, 0, append(sizes, k.cased)...)
	}
}

// textPair is what kernels know that walk one result for each string of two
// operands, broadcast.
type textPair struct {
	nest        kernel.Nest
	width       int // bytes of a string of the result, where it has strings
	left, right int // of the operands
	strings     groups
}

// fill sets the nest over results of the given sizes.
func (k *textPair) fill(c *op.Call, sizes []int) error {
	if err := checkLoops(sizes); err != nil {
		return err
	}
	a, left := textSizes(&c.In[0])
	b, right := textSizes(&c.In[1])
	k.left, k.right = left, right
	var buf [3][kernel.MaxRank]int
	k.nest.Prepare(sizes, broadcastStrides(buf[0][:0], sizes, sizes), broadcastStrides(buf[1][:0], a, sizes), broadcastStrides(buf[2][:0], b, sizes))
	return nil
}

type stringConcat struct{ textPair }

func bindStringConcat(*op.Call) (Kernel, error) { return &stringConcat{}, nil }

func (k *stringConcat) Refill(t *Task) error {
	sizes, width := textSizes(&t.Call.Out[0])
	if err := k.fill(t.Call, sizes); err != nil {
		return err
	}
	k.width, k.strings = width, groupsOf(k.nest.Elements(), width)
	t.Tiles = k.strings.tiles()
	return nil
}

func (k *stringConcat) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.strings.of(tile)
	text.ConcatText(&k.nest, lo, hi, textOf(&c.Out[0], k.width), textOf(&c.In[0], k.left), textOf(&c.In[1], k.right))
}

type stringEqual struct{ textPair }

func bindStringEqual(*op.Call) (Kernel, error) { return &stringEqual{}, nil }

func (k *stringEqual) Refill(t *Task) error {
	if err := k.fill(t.Call, t.Call.Out[0].Shape.Sizes()); err != nil {
		return err
	}
	k.strings = groupsOf(k.nest.Elements(), k.left+k.right)
	t.Tiles = k.strings.tiles()
	return nil
}

func (k *stringEqual) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.strings.of(tile)
	text.EqualText(&k.nest, lo, hi, c.Out[0].Data, textOf(&c.In[0], k.left), textOf(&c.In[1], k.right))
}

func bindStringSplit(c *op.Call) (Kernel, error) {
	k := &stringSplit{spec: text.TextSplit{Delimiter: []byte(c.Str("delimiter")), Most: -1}}
	if c.Attrs.Has("maxsplit") {
		k.spec.Most = int(min(c.Int("maxsplit"), 1<<30))
	}
	return k, nil
}

type stringSplit struct {
	oneTile
	spec text.TextSplit
}

func (k *stringSplit) Tile(t *Task, _ int, _ []byte) {
	c := t.Call
	sizes, width := textSizes(&c.In[0])
	n := product(sizes)
	var counts []int64
	if wanted(c, 1) {
		counts = out[int64](c, 1)
	}
	parts := text.CountParts(&k.spec, textOf(&c.In[0], width), n, counts)
	if wanted(c, 0) {
		text.SplitText(&k.spec, textOf(&c.Out[0], width), textOf(&c.In[0], width), n, parts)
		setSizes(c, 0, append(append([]int{}, sizes...), parts, width)...)
	}
}

// texts is what kernels know that look at one string after the other.
type texts struct {
	work    int // bytes of a tile's work for each byte of text
	width   int
	strings groups
}

func (k *texts) Refill(t *Task) error {
	sizes, width := textSizes(&t.Call.In[0])
	k.width, k.strings = width, groupsOf(product(sizes), k.work*width)
	t.Tiles = k.strings.tiles()
	return nil
}

func bindStringIndex(c *op.Call) (Kernel, error) {
	keys := c.Attrs.Strings("keys")
	k := &stringIndex{texts: texts{work: 8}, places: make(map[string]int64, len(keys)), other: int64(len(keys))}
	for i, key := range keys {
		k.places[key] = int64(i)
	}
	return k, nil
}

// stringIndex looks up strings in a list.
type stringIndex struct {
	texts
	places map[string]int64
	other  int64 // the index of a string that is not in it
}

func (k *stringIndex) Tile(t *Task, tile int, _ []byte) {
	lo, hi := k.strings.of(tile)
	text.IndexText(out[int64](t.Call, 0), textOf(&t.Call.In[0], k.width), lo, hi, k.places, k.other)
}

func bindRegexFullMatch(c *op.Call) (Kernel, error) {
	pattern, err := c.FullMatch()
	return &regexFullMatch{texts: texts{work: 16}, pattern: pattern}, err
}

type regexFullMatch struct {
	texts
	pattern *regexp.Regexp
}

func (k *regexFullMatch) Tile(t *Task, tile int, _ []byte) {
	x := textOf(&t.Call.In[0], k.width)
	lo, hi := k.strings.of(tile)
	for i := lo; i < hi; i++ {
		matches := uint8(0)
		if k.pattern.Match(x.At(i)) {
			matches = 1
		}
		t.Call.Out[0].Data[i] = matches
	}
}

func bindMurmurHash(c *op.Call) (Kernel, error) {
	return &murmurHash{texts: texts{work: 8}, seed: uint32(c.Int("seed"))}, nil
}

// murmurHash hashes strings, and numbers as the bytes that they are.
type murmurHash struct {
	texts
	seed uint32
}

func (k *murmurHash) Refill(t *Task) error {
	x := &t.Call.In[0]
	if x.DType == dtype.U8 {
		return k.texts.Refill(t)
	}
	k.width = x.DType.Size()
	k.strings = groupsOf(elements(x), k.work*k.width)
	t.Tiles = k.strings.tiles()
	return nil
}

func (k *murmurHash) Tile(t *Task, tile int, _ []byte) {
	x, dst := &t.Call.In[0], view[uint32](t.Call.Out[0].Data)
	strings := textOf(x, k.width)
	lo, hi := k.strings.of(tile)
	for i := lo; i < hi; i++ {
		key := x.Data[i*k.width:][:k.width]
		if x.DType == dtype.U8 {
			key = strings.At(i)
		}
		dst[i] = text.Murmur(key, k.seed)
	}
}
