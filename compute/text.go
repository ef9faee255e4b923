package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"string_normalizer": bindStringNormalizer,
	"string_concat":     bindStringConcat,
	"string_equal":      bindStringEqual,
	"string_split":      bindStringSplit,
	"string_index":      bindStringIndex,
	"regex_full_match":  bindRegexFullMatch,
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
func textOf(a *op.Arg, width int) kernel.Text { return kernel.Text{Data: a.Data, Width: width} }

func bindStringNormalizer(c *op.Call) (*Task, error) {
	spec := &kernel.Normalizer{Fold: c.Int("is_case_sensitive") == 0, Stop: map[string]bool{}}
	switch c.StringCase() {
	case "LOWER":
		spec.Change = kernel.AppendLower
	case "UPPER":
		spec.Change = kernel.AppendUpper
	}
	for _, word := range c.Attrs.Strings("stopwords") {
		if spec.Fold {
			word = string(kernel.AppendLower(nil, []byte(word)))
		}
		spec.Stop[word] = true
	}
	sizes, width := textSizes(&c.In[0])
	kept, cased := textSizes(&c.Out[0])
	kept = append([]int{}, kept...)
	return &Task{Tiles: 1, Scratch: op.CasedWidth(width), Tile: func(_ int, scratch []byte) {
		n := kernel.Normalize(spec, textOf(&c.Out[0], cased), textOf(&c.In[0], width), product(sizes), scratch)
		if len(spec.Stop) > 0 { // else the size is known
			kept[len(kept)-1] = n
			setSizes(c, 0, append(kept, cased)...)
		}
	}}, nil
}

// textNest walks one result for each string of the given sizes, and the
// strings of two operands, broadcast.
func textNest(c *op.Call, sizes []int) (*kernel.Nest, error) {
	a, _ := textSizes(&c.In[0])
	b, _ := textSizes(&c.In[1])
	return newNest(sizes, broadcastStrides(sizes, sizes), broadcastStrides(a, sizes), broadcastStrides(b, sizes))
}

func bindStringConcat(c *op.Call) (*Task, error) {
	sizes, width := textSizes(&c.Out[0])
	_, left := textSizes(&c.In[0])
	_, right := textSizes(&c.In[1])
	nest, err := textNest(c, sizes)
	if err != nil {
		return nil, err
	}
	tiles, units := groups(nest.Elements(), width)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.ConcatText(nest, lo, hi, textOf(&c.Out[0], width), textOf(&c.In[0], left), textOf(&c.In[1], right))
	}}, nil
}

func bindStringEqual(c *op.Call) (*Task, error) {
	sizes := c.Out[0].Shape.Sizes()
	_, left := textSizes(&c.In[0])
	_, right := textSizes(&c.In[1])
	nest, err := textNest(c, sizes)
	if err != nil {
		return nil, err
	}
	tiles, units := groups(nest.Elements(), left+right)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.EqualText(nest, lo, hi, c.Out[0].Data, textOf(&c.In[0], left), textOf(&c.In[1], right))
	}}, nil
}

func bindStringSplit(c *op.Call) (*Task, error) {
	spec := &kernel.TextSplit{Delimiter: []byte(c.Str("delimiter")), Most: -1}
	if c.Attrs.Has("maxsplit") {
		spec.Most = int(min(c.Int("maxsplit"), 1<<30))
	}
	sizes, width := textSizes(&c.In[0])
	n := product(sizes)
	return small(func() {
		var counts []int64
		if wanted(c, 1) {
			counts = out[int64](c, 1)
		}
		parts := kernel.CountParts(spec, textOf(&c.In[0], width), n, counts)
		if wanted(c, 0) {
			kernel.SplitText(spec, textOf(&c.Out[0], width), textOf(&c.In[0], width), n, parts)
			setSizes(c, 0, append(append([]int{}, sizes...), parts, width)...)
		}
	}), nil
}

func bindStringIndex(c *op.Call) (*Task, error) {
	keys := c.Attrs.Strings("keys")
	places := make(map[string]int64, len(keys))
	for i, key := range keys {
		places[key] = int64(i)
	}
	sizes, width := textSizes(&c.In[0])
	tiles, units := groups(product(sizes), 8*width)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		lo, hi := units(tile)
		kernel.IndexText(out[int64](c, 0), textOf(&c.In[0], width), lo, hi, places, int64(len(keys)))
	}}, nil
}

func bindRegexFullMatch(c *op.Call) (*Task, error) {
	pattern, err := c.FullMatch()
	if err != nil {
		return nil, err
	}
	sizes, width := textSizes(&c.In[0])
	tiles, units := groups(product(sizes), 16*width)
	return &Task{Tiles: tiles, Tile: func(tile int, _ []byte) {
		x := textOf(&c.In[0], width)
		lo, hi := units(tile)
		for i := lo; i < hi; i++ {
			matches := uint8(0)
			if pattern.Match(x.At(i)) {
				matches = 1
			}
			c.Out[0].Data[i] = matches
		}
	}}, nil
}
