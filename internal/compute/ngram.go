package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/text"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"tf_idf": bindNGrams})

func bindNGrams(c *op.Call) (Kernel, error) {
	grams, columns, err := c.NGrams()
	if err != nil {
		return nil, err
	}
	n := nGrams{
		pool:    text.NGrams{Least: int(c.Int("min_gram_length")), Most: int(c.Int("max_gram_length")), Skip: int(c.Int("max_skip_count")), Pool: map[string]int32{}},
		weights: make([]float32, columns), once: c.Str("mode") == "IDF", weighted: c.Str("mode") != "TF",
	}
	for _, g := range grams {
		var key []byte
		for _, item := range g.Items {
			key = text.NGramKey(key, item)
		}
		n.pool.Pool[string(key)] = int32(g.Column)
		n.weights[g.Column] = float32(g.Weight)
	}
	if c.In[0].DType == dtype.I32 {
		return &nGramsOf[int32]{n}, nil
	}
	return &nGramsOf[int64]{n}, nil
}

// nGrams counts the n-grams of a pool in rows.
type nGrams struct {
	pool           text.NGrams
	weights        []float32 // per column of the result
	once, weighted bool
	length         int // of a row
	rows           groups
}

func (k *nGrams) Refill(t *Task) error {
	sizes := t.Call.In[0].Shape.Sizes()
	last := len(sizes) - 1
	k.length = sizes[last]
	k.rows = groupsOf(product(sizes[:last]), 64*(len(k.weights)+k.length*k.pool.Most*(k.pool.Skip+1)))
	t.Tiles, t.Scratch = k.rows.tiles(), 8*k.pool.Most
	return nil
}

type nGramsOf[I kernel.Index] struct{ nGrams }

func (k *nGramsOf[I]) Tile(t *Task, tile int, scratch []byte) {
	columns := len(k.weights)
	lo, hi := k.rows.of(tile)
	for i := lo; i < hi; i++ {
		counts := out[float32](t.Call, 0)[i*columns:][:columns]
		clear(counts)
		text.CountNGrams(&k.pool, counts, in[I](t.Call, 0)[i*k.length:][:k.length], scratch)
		for at := range counts {
			if k.once {
				counts[at] = min(counts[at], 1)
			}
			if k.weighted {
				counts[at] *= k.weights[at]
			}
		}
	}
}
