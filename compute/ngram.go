package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"tf_idf": bindNGrams})

func bindNGrams(c *op.Call) (*Task, error) {
	grams, columns, err := c.NGrams()
	if err != nil {
		return nil, err
	}
	spec := &kernel.NGrams{Least: int(c.Int("min_gram_length")), Most: int(c.Int("max_gram_length")), Skip: int(c.Int("max_skip_count")), Pool: map[string]int32{}}
	weights := make([]float32, columns)
	for _, g := range grams {
		var key []byte
		for _, item := range g.Items {
			key = kernel.NGramKey(key, item)
		}
		spec.Pool[string(key)] = int32(g.Column)
		weights[g.Column] = float32(g.Weight)
	}
	if c.In[0].DType == dtype.I32 {
		return ngramTask[int32](c, spec, weights), nil
	}
	return ngramTask[int64](c, spec, weights), nil
}

func ngramTask[I kernel.Index](c *op.Call, g *kernel.NGrams, weights []float32) *Task {
	sizes := c.In[0].Shape.Sizes()
	rows, length, columns := product(sizes[:len(sizes)-1]), sizes[len(sizes)-1], len(weights)
	once, weighted := c.Str("mode") == "IDF", c.Str("mode") != "TF"
	tiles, units := groups(rows, 64*(columns+length*g.Most*(g.Skip+1)))
	return &Task{Tiles: tiles, Scratch: 8 * g.Most, Tile: func(tile int, scratch []byte) {
		lo, hi := units(tile)
		for i := lo; i < hi; i++ {
			counts := out[float32](c, 0)[i*columns:][:columns]
			clear(counts)
			kernel.CountNGrams(g, counts, in[I](c, 0)[i*length:][:length], scratch)
			for k := range counts {
				if once {
					counts[k] = min(counts[k], 1)
				}
				if weighted {
					counts[k] *= weights[k]
				}
			}
		}
	}}
}
